package sweep

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// Sweep is a declared grid.
type Sweep struct {
	Traces     []Trace        `yaml:"traces"`
	Shapes     []string       `yaml:"shapes"`     // how jobs evolve; default: steps
	Shares     []float64      `yaml:"shares"`     // of jobs that evolve
	Strategies []string       `yaml:"strategies"` // the sidecar's, and what else a site would use
	Seeds      []uint64       `yaml:"seeds"`      // default: 1
	Beside     string         `yaml:"beside"`     // with which the others are compared; default: slurm
	Config     string         `yaml:"config"`     // the sidecar's configuration; default: its defaults
	Scheduler  string         `yaml:"scheduler_parameters"`
	Power      simulate.Power `yaml:",inline"` // what nodes draw, and when they go off
	Fill       []string       `yaml:"fill"`    // durations of best-effort tasks
	Speedup    string         `yaml:"speedup"` // of moldable and malleable jobs; default: n times as fast on n nodes

	speedup malleable.Speedup
	lengths []int64 // of Fill
	digest  string  // of all that a cell's outcome rests on
}

// Trace is a trace, or a part of it.
type Trace struct {
	File        string `yaml:"file"` // relative to the declaration, unless absolute
	Name        string `yaml:"name"` // default: the file's, up to the first dot
	Skip        int    `yaml:"skip"` // jobs that ran, before the first that is taken
	Jobs        int    `yaml:"jobs"` // so many from there on; 0: all
	Nodes       int    `yaml:"nodes"`
	CPUsPerNode int    `yaml:"cpus_per_node"` // default: 1

	digest string // of the file
}

// Steps is the shape of [simulate.FromTrace]: three steps.
const Steps = "steps"

// Bounds of a sweep.
const mostCells = 100_000

// Read reads a declaration; files that it names are beside it.
func Read(name string) (*Sweep, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s := &Sweep{Shapes: []string{Steps}, Seeds: []uint64{1}, Beside: simulate.Slurm, Power: simulate.DefaultPower}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(s); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s is empty; want traces, shares and strategies", name)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	beside := func(file string) string {
		if file == "" || filepath.IsAbs(file) {
			return file
		}
		return filepath.Join(filepath.Dir(name), file)
	}
	s.Config = beside(s.Config)
	for i := range s.Traces {
		t := &s.Traces[i]
		if t.Name == "" {
			t.Name, _, _ = strings.Cut(filepath.Base(t.File), ".")
		}
		t.File = beside(t.File)
		if t.CPUsPerNode == 0 {
			t.CPUsPerNode = 1
		}
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i := range s.Traces {
		if s.Traces[i].digest, err = sumOf(s.Traces[i].File); err != nil {
			return nil, err
		}
	}
	sum := sha256.New()
	if s.Config != "" {
		config, err := os.ReadFile(s.Config)
		if err != nil {
			return nil, err
		}
		sum.Write(config)
	}
	fmt.Fprint(sum, "\n", s.Scheduler)
	if s.Speedup != "" {
		fmt.Fprint(sum, "\n", s.Speedup)
	}
	fmt.Fprint(sum, s.extras())
	s.digest = fmt.Sprintf("%x", sum.Sum(nil)[:6])
	return s, nil
}

// extras returns what the digest has of keys that few declarations have: "" without them.
func (s *Sweep) extras() (text string) {
	if p, d := s.Power, simulate.DefaultPower; p.Watts != "" || p.Suspend != d.Suspend || p.Boot != d.Boot || p.Shutdown != d.Shutdown {
		text += fmt.Sprint("\n", p.Watts, p.Suspend, p.Boot, p.Shutdown)
	}
	if s.Fill != nil {
		text += fmt.Sprint("\n", s.Fill)
	}
	return text
}

func (s *Sweep) check() error {
	names := map[string]bool{}
	for i, t := range s.Traces {
		switch {
		case t.File == "":
			return fmt.Errorf("traces[%d]: file is missing", i)
		case names[t.Name]:
			return fmt.Errorf("traces[%d]: there are two named %s; give one another name", i, t.Name)
		case strings.ContainsAny(t.Name, "/,\"\n") || t.Name == "" || t.Name[0] == '.':
			return fmt.Errorf("traces[%d]: name: %q", i, t.Name)
		case t.Skip < 0 || t.Jobs < 0 || t.Nodes < 0 || t.Nodes > planner.MaxNodes || t.CPUsPerNode < 1 || t.CPUsPerNode > 1<<16:
			return fmt.Errorf("traces[%d]: skip, jobs, nodes and cpus_per_node are at least 0", i)
		}
		names[t.Name] = true
	}
	for _, shape := range s.Shapes {
		if shape != Steps && !slices.Contains(trace.Shapes, shape) {
			return fmt.Errorf("shapes: %q: must be %s, %s", shape, Steps, strings.Join(trace.Shapes, ", "))
		}
	}
	if s.Speedup != "" {
		var err error
		if s.speedup, err = malleable.ParseDeclared(s.Speedup); err != nil {
			return fmt.Errorf("speedup: %w", err)
		}
		if !slices.Contains(s.Shapes, "moldable") && !slices.Contains(s.Shapes, "malleable") {
			return errors.New("speedup: is of moldable and malleable jobs; shapes has neither")
		}
	}
	c, err := s.config()
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if err := s.Power.Validate("", c.Power); err != nil {
		return err
	}
	for _, text := range s.Fill {
		length, err := planner.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("fill: %w", err)
		}
		s.lengths = append(s.lengths, length)
	}
	for _, share := range s.Shares {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("shares: %v: must be within 0 … 1", share)
		}
	}
	for _, name := range s.Strategies {
		if _, err := planner.StrategyByName(name); err != nil && !slices.Contains(simulate.Besides, name) {
			return fmt.Errorf("strategies: %w; or %s", err, strings.Join(simulate.Besides, ", "))
		}
	}
	if s.Beside != "" && !slices.Contains(s.Strategies, s.Beside) && !slices.Contains(simulate.Besides, s.Beside) {
		return fmt.Errorf("beside: %q: must be one of the strategies, or %s", s.Beside, strings.Join(simulate.Besides, ", "))
	}
	for name, n := range map[string]int{"traces": len(s.Traces), "shapes": len(s.Shapes), "shares": len(s.Shares), "strategies": len(s.Strategies), "seeds": len(s.Seeds)} {
		if n == 0 {
			return fmt.Errorf("%s: there is none", name)
		}
	}
	for _, twice := range []bool{twice(s.Shapes), twice(s.Shares), twice(s.Strategies), twice(s.Seeds)} {
		if twice {
			return errors.New("something is named twice")
		}
	}
	if n := len(s.Cells()); n > mostCells {
		return fmt.Errorf("%d experiments are more than %d", n, mostCells)
	}
	return nil
}

func twice[T comparable](all []T) bool {
	seen := make(map[T]bool)
	for _, x := range all {
		seen[x] = true
	}
	return len(seen) < len(all)
}

// Cell is one experiment of a grid.
type Cell struct {
	Trace    string  `json:"trace"`
	Shape    string  `json:"shape"`
	Share    float64 `json:"share"`
	Seed     uint64  `json:"seed"`
	Strategy string  `json:"strategy"`

	trace int
}

// Cells returns all experiments; that with which others are compared comes before them.
func (s *Sweep) Cells() (all []Cell) {
	strategies := s.Strategies
	if s.Beside != "" {
		strategies = append([]string{s.Beside}, slices.DeleteFunc(slices.Clone(strategies), func(name string) bool { return name == s.Beside })...)
	}
	for t, one := range s.Traces {
		for _, shape := range s.Shapes {
			for _, share := range s.Shares {
				for _, seed := range s.Seeds {
					for _, strategy := range strategies {
						all = append(all, Cell{one.Name, shape, share, seed, strategy, t})
					}
				}
			}
		}
	}
	return all
}

// file returns the name of a cell's outcome.
func (s *Sweep) file(c Cell) string {
	t := s.Traces[c.trace]
	digest := sha256.Sum256(fmt.Appendf(nil, "%s %s %d %d %d %d", s.digest, t.digest, t.Skip, t.Jobs, t.Nodes, t.CPUsPerNode))
	return fmt.Sprintf("%s_%s_%g_%d_%s_%x.json", c.Trace, c.Shape, c.Share, c.Seed, c.Strategy, digest[:4])
}

func sumOf(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:6]), nil
}
