package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hashicorp/go-plugin/runner"
	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/strict"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
	sdk "github.com/evoslurm/evoslurm/plugins/strategy"
)

// process is a running plugin that has been asked for its parameters and has
// planned or resized something.
type process struct {
	file        file
	sum         string
	given       map[string]string // parameters
	values      sdk.Values        // the same with the defaults
	description sdk.Description
	client      *sdk.Client
	runner      *keeperRunner
}

// Bounds of a start.
const (
	startTimeout    = 15 * time.Second // Python needs about one
	describeTimeout = 5 * time.Second
)

// start starts a plugin, asks what it is with these parameters, and lets it plan a small problem,
// so that a useless plugin is found before it is relied on.
func start(ctx context.Context, cfg config.Strategies, f file, given map[string]string, log *logrus.Logger) (_ *process, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("strategy %s: %w", f.name, err)
		}
	}()
	if f.refused != "" {
		return nil, fmt.Errorf("%s", f.refused)
	}
	if err := strict.Path(f.path); err != nil {
		return nil, err
	}
	p := &process{file: f, given: maps.Clone(given)}
	if p.sum, err = sum(f.path); err != nil {
		return nil, err
	}
	sums, err := cfg.Sums()
	if err != nil {
		return nil, err
	}
	want, ok := sums[filepath.Base(f.path)]
	if !ok {
		want, ok = sums[f.name]
	}
	if ok && want != p.sum {
		return nil, fmt.Errorf("%s has SHA-256 %s, the configuration wants %s", f.path, p.sum, want)
	}
	id, err := runAs(cfg.User, log)
	if err != nil {
		return nil, fmt.Errorf("strategies.user: %w", err)
	}
	giveUp := func() bool { return true }
	defer func() { giveUp() }()
	launch := sdk.Launch{Timeout: startTimeout, Runner: func(cmd *exec.Cmd, socketDir string) (runner.Runner, error) {
		o := order{Path: f.path, Memory: int64(cfg.Memory) << 20, User: id, SocketDir: socketDir}
		var err error
		if p.runner, err = newKeeperRunner(o, cmd, log.WithField("strategy", f.name)); err != nil {
			return nil, err
		}
		giveUp = context.AfterFunc(ctx, func() { _ = p.runner.Kill(ctx) })
		return p.runner, nil
	}}
	if id != nil {
		if err := join(int(id.GID)); err != nil {
			return nil, fmt.Errorf("strategies.user: %w", err)
		}
		launch.Group = strconv.FormatUint(uint64(id.GID), 10)
	}
	if p.client, err = sdk.Start(launch); err != nil {
		return nil, p.explain(err)
	}
	if err := p.examine(ctx); err != nil {
		err = p.explain(err)
		p.end()
		return nil, err
	}
	return p, nil
}

// examine returns the first calls.
func (p *process) examine(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	if p.description, err = p.client.Describe(ctx, nil); err != nil {
		return err
	}
	if p.description.Name != p.file.name {
		return fmt.Errorf("it says that its name is %s", p.description.Name)
	}
	if p.values, err = p.description.Values(p.given); err != nil {
		return err
	}
	if len(p.given) > 0 {
		if p.description, err = p.client.Describe(ctx, p.values); err != nil {
			return err
		}
		if p.description.Name != p.file.name {
			return fmt.Errorf("it says that its name is %s", p.description.Name)
		}
	}
	if p.description.Resizes {
		if err := p.examineSizes(ctx); err != nil {
			return err
		}
	}
	if !p.description.Plans {
		return nil
	}
	small := sdk.Request{Problem: planner.Problem{Nodes: 4, Busy: []planner.Busy{{Duration: 60, Nodes: 2}}, Jobs: []planner.Job{
		{ID: "1", ExpandLimit: 1, Profile: planner.Profile{{Duration: 60, Nodes: 1}, {Duration: 60, Nodes: 4}}},
		{ID: "2", ExpandLimit: 2, Profile: planner.Profile{{Duration: 60, Nodes: 3}}},
	}}}
	call, err := p.client.Call(ctx, p.values, p.description, small.Size())
	if err != nil {
		return err
	}
	defer call.Close()
	_, err = p.plan(ctx, call, small)
	return err
}

// examineSizes lets a malleability policy resize two small jobs, and checks the answer.
func (p *process) examineSizes(ctx context.Context) error {
	for _, asked := range []malleable.Request{{Kind: malleable.Grow, Nodes: 3}, {Kind: malleable.Shrink, Nodes: 2, Mandatory: true}, {Kind: malleable.Balance}} {
		small := sdk.ResizeRequest{Asked: asked, Nodes: 16, Jobs: []malleable.Job{
			{ID: "1", Nodes: 4, Min: 1, Max: 8, Speedup: malleable.Amdahl(.9)},
			{ID: "2", Start: 60, Nodes: 2, Min: 2, Max: 8, Sizes: malleable.Pow2},
		}}
		if _, err := p.client.Resize(ctx, p.values, small); err != nil {
			return err
		}
	}
	return nil
}

// plan asks for a plan and verifies it.
func (p *process) plan(ctx context.Context, call *sdk.Call, r sdk.Request) (sdk.Answer, error) {
	a, err := call.Plan(ctx, r)
	if err != nil {
		return sdk.Answer{}, err
	}
	if err := sdk.Check(r, p.description.Rigid, p.limit(), a); err != nil {
		return sdk.Answer{}, fmt.Errorf("invalid plan: %w", err)
	}
	return a, nil
}

// limit returns the expand limit of jobs that have none of their own.
func (p *process) limit() planner.ExpandLimit {
	if p.description.ExpandLimit == 0 {
		return planner.Infinite
	}
	return p.description.ExpandLimit
}

// explain adds the plugin's last output to an error. If the process has ended, that output explains
// it, and comes a little later than the error.
func (p *process) explain(err error) error {
	if p.runner == nil || p.runner.cmd.Process == nil {
		return err
	}
	if errors.Is(err, sdk.ErrBroken) {
		select {
		case <-p.runner.ended:
		case <-time.After(200 * time.Millisecond):
		}
	}
	if words := p.runner.said(); words != "" {
		return fmt.Errorf("%w (%s)", err, words)
	}
	return err
}

// end kills the plugin and all that came of it.
func (p *process) end() {
	_ = p.runner.Kill(context.Background())
	p.client.Close()
}

// exited reports whether the process has ended by itself.
func (p *process) exited() bool {
	select {
	case <-p.runner.ended:
		return true
	default:
		return false
	}
}
