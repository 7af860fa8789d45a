// Package strategytest is the conformance kit for strategies, built in or plugin
// processes in any language: C1, C2, determinism, deadlines, empty and huge
// inputs. In a Go test:
//
//	strategytest.Run(t, strategytest.Built(definition))
//	strategytest.Run(t, strategytest.Process("./mystrategy"))
//
// ../cmd/strategytest runs it where there is no Go test.
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
	"github.com/evoslurm/evoslurm/plugins/strategy"
)

// Subject is a strategy under test. Open gets an instance of it that shares
// nothing with others.
type Subject struct {
	open func() (instance, error)
}

// instance is one process, or one made in this.
type instance interface {
	describe(ctx context.Context, parameters map[string]string) (strategy.Description, error)
	plan(ctx context.Context, parameters map[string]string, d strategy.Description, r strategy.Request) (strategy.Answer, error)
	close()
}

// Built is a Go strategy in this process.
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
	s, err := b.make(parameters)
	if err != nil {
		return strategy.Description{}, err
	}
	return strategy.Describe(b.d, s), nil
}

func (b built) plan(ctx context.Context, parameters map[string]string, _ strategy.Description, r strategy.Request) (strategy.Answer, error) {
	s, err := b.make(parameters)
	if err != nil {
		return strategy.Answer{}, err
	}
	return strategy.Run(ctx, s, r)
}

func (built) close() {}

// Process is a plugin: the path of its executable. What it writes on standard
// error is this process's.
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

func (p process) plan(ctx context.Context, parameters map[string]string, d strategy.Description, r strategy.Request) (strategy.Answer, error) {
	return p.Plan(ctx, parameters, d, r)
}

func (p process) close() { p.Close() }

// Run runs every case as a subtest.
func Run(t *testing.T, s Subject) {
	t.Helper()
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(context.Background(), s); err != nil {
				t.Error(err)
			}
		})
	}
}

// Case is one thing that a strategy must get right.
type Case struct {
	Name string
	run  func(*run) error
}

// caseTimeout bounds one case.
const caseTimeout = 3 * time.Minute

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
	d, err := r.instance.describe(r.ctx, parameters)
	if err != nil {
		return strategy.Answer{}, fmt.Errorf("describe with %v: %w", parameters, err)
	}
	a, err := r.instance.plan(r.ctx, parameters, d, q)
	if err != nil {
		return strategy.Answer{}, fmt.Errorf("plan with %v: %w", parameters, err)
	}
	limit := d.ExpandLimit
	if limit == 0 {
		limit = planner.Infinite
	}
	if err := strategy.Check(q, d.Rigid, limit, a); err != nil {
		return strategy.Answer{}, fmt.Errorf("plan with %v of %d jobs on %d nodes: %w", parameters, len(q.Jobs), q.Nodes, err)
	}
	return a, nil
}
