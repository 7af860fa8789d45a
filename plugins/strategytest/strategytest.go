// Package strategytest is the conformance kit for strategies and malleability policies, built in or
// plugin processes in any language: C1, C2, sizes within bounds, determinism, deadlines, empty and
// huge inputs. In a Go test:
//
//	strategytest.Run(t, strategytest.Built(definition))
//	strategytest.Run(t, strategytest.Process("./mystrategy"))
//
// Without a Go test, use ../cmd/strategytest.
package strategytest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/plugins/strategy"
)

// Subject is a strategy under test. Open returns an instance of it that shares nothing with others.
type Subject struct {
	open func() (instance, error)
}

// instance is a process, or a strategy in this process.
type instance interface {
	describe(ctx context.Context, parameters map[string]string) (strategy.Description, error)
	// plan plans requests in one call, until one fails.
	plan(ctx context.Context, parameters map[string]string, d strategy.Description, r ...strategy.Request) ([]strategy.Answer, error)
	// resize asks for changes of malleable jobs.
	resize(ctx context.Context, parameters map[string]string, r strategy.ResizeRequest) ([]malleable.Change, error)
	close()
}

// Built returns a Go strategy in this process.
func Built(d strategy.Definition) Subject {
	return Subject{func() (instance, error) { return built{d}, d.Validate() }}
}

type built struct{ d strategy.Definition }

func (b built) make(parameters map[string]string) (planner.Strategy, error) {
	values, err := b.d.Values(parameters)
	if err != nil {
		return nil, err
	}
	return b.d.New(values)
}

func (b built) describe(_ context.Context, parameters map[string]string) (strategy.Description, error) {
	if b.d.New == nil {
		_, err := b.d.Values(parameters)
		return strategy.Describe(b.d, nil), err
	}
	s, err := b.make(parameters)
	if err != nil {
		return strategy.Description{}, err
	}
	return strategy.Describe(b.d, s), nil
}

func (b built) plan(ctx context.Context, parameters map[string]string, _ strategy.Description, requests ...strategy.Request) ([]strategy.Answer, error) {
	s, err := b.make(parameters)
	if err != nil {
		return nil, err
	}
	var all []strategy.Answer
	for _, r := range requests {
		a, err := strategy.Run(ctx, s, r)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

func (b built) resize(ctx context.Context, parameters map[string]string, r strategy.ResizeRequest) ([]malleable.Change, error) {
	values, err := b.d.Values(parameters)
	if err != nil {
		return nil, err
	}
	p, err := b.d.NewPolicy(values)
	if err != nil {
		return nil, err
	}
	changes, err := strategy.Resize(ctx, p, r)
	if err == nil {
		err = malleable.Check(r.Jobs, r.Asked, changes)
	}
	return changes, err
}

func (built) close() {}

// Process returns a plugin, given the path of its executable. It shares this process's standard
// error.
func Process(path string) Subject {
	return Subject{func() (instance, error) {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		cmd := exec.Command(absolute)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
		c, err := strategy.Start(strategy.Launch{Command: cmd, Timeout: 30 * time.Second})
		if err != nil {
			return nil, err
		}
		return process{c}, nil
	}}
}

type process struct{ *strategy.Client }

func (p process) describe(ctx context.Context, parameters map[string]string) (strategy.Description, error) {
	return p.Describe(ctx, parameters)
}

func (p process) plan(ctx context.Context, parameters map[string]string, d strategy.Description, requests ...strategy.Request) ([]strategy.Answer, error) {
	var most strategy.Size
	for _, r := range requests {
		most.Jobs, most.Steps = max(most.Jobs, r.Size().Jobs), max(most.Steps, r.Size().Steps)
	}
	call, err := p.Call(ctx, parameters, d, most)
	if err != nil {
		return nil, err
	}
	defer call.Close()
	var all []strategy.Answer
	for _, r := range requests {
		a, err := call.Plan(ctx, r)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

func (p process) resize(ctx context.Context, parameters map[string]string, r strategy.ResizeRequest) ([]malleable.Change, error) {
	return p.Resize(ctx, parameters, r)
}

func (p process) close() { p.Close() }

// Run runs every case that applies as a subtest.
func Run(t *testing.T, s Subject) {
	t.Helper()
	for _, c := range CasesFor(context.Background(), s) {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(context.Background(), s); err != nil {
				t.Error(err)
			}
		})
	}
}

// Case is one requirement for a strategy.
type Case struct {
	Name string
	run  func(*run) error
}

// caseTimeout bounds a case: a Python strategy on a slow and busy machine needs minutes for the
// largest.
const caseTimeout = 15 * time.Minute

// Run tries the case on a fresh instance of the strategy.
func (c Case) Run(ctx context.Context, s Subject) error {
	ctx, cancel := context.WithTimeout(ctx, caseTimeout)
	defer cancel()
	i, err := s.open()
	if err != nil {
		return err
	}
	defer i.close()
	return c.run(&run{ctx: ctx, subject: s, instance: i})
}

// run is one case on one instance.
type run struct {
	ctx      context.Context
	subject  Subject
	instance instance
}

// planned asks for a plan and checks it.
func (r *run) planned(parameters map[string]string, q strategy.Request) (strategy.Answer, error) {
	all, err := r.cycle(parameters, q)
	if err != nil {
		return strategy.Answer{}, err
	}
	return all[0], nil
}

// cycle asks for plans in one call and checks them.
func (r *run) cycle(parameters map[string]string, requests ...strategy.Request) ([]strategy.Answer, error) {
	d, err := r.instance.describe(r.ctx, parameters)
	if err != nil {
		return nil, fmt.Errorf("describe with %v: %w", parameters, err)
	}
	all, err := r.instance.plan(r.ctx, parameters, d, requests...)
	if err != nil {
		return nil, fmt.Errorf("plan with %v: %w", parameters, err)
	}
	limit := d.ExpandLimit
	if limit == 0 {
		limit = planner.Infinite
	}
	for i, q := range requests {
		if err := strategy.Check(q, d.Rigid, limit, all[i]); err != nil {
			return nil, fmt.Errorf("plan with %v of %d jobs on %d nodes: %w", parameters, len(q.Jobs), q.Nodes, err)
		}
	}
	return all, nil
}
