package observed

import (
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/adapter/sidecar/observed"
	"github.com/evoslurm/evoslurm/planner"
)

// Evolve says which jobs evolve in the model, and how.
type Evolve struct {
	Share    float64 // of the jobs, 0 … 1, without Rules
	Shape    string  // of [trace.Shapes]
	Seed     uint64
	Shortest int64  // seconds that a job runs at least
	Peak     bool   // a job's size was that of its largest step; otherwise shapes keep its node-seconds
	Rules    []Rule // the first that matches counts; all other jobs stay as they were
}

// Check returns what is wrong with it.
func (e Evolve) Check() error {
	switch {
	case !(e.Share >= 0 && e.Share <= 1):
		return fmt.Errorf("--share=%v: must be within 0 … 1", e.Share)
	case !slices.Contains(trace.Shapes, e.Shape):
		return fmt.Errorf("--shape=%s: must be %s", e.Shape, strings.Join(trace.Shapes, ", "))
	}
	return nil
}

// Rule matches jobs to a profile. Patterns are those of path.Match; an empty one matches all.
type Rule struct {
	Name    string `yaml:"name"`
	User    string `yaml:"user"`
	Account string `yaml:"account"`

	Profile string `yaml:"profile"` // such as 2@10m,4@1h, or in parts of the job's nodes and run time: 25%@40%,100%@60%
	Shape   string `yaml:"shape"`   // or one of [trace.Shapes]

	steps [][2]float64    // of a profile in parts
	whole planner.Profile // or a profile
}

// mostRules bounds the rules of a file.
const mostRules = 1000

// ReadRules reads a YAML list of rules.
func ReadRules(in io.Reader) ([]Rule, error) {
	var rules []Rule
	d := yaml.NewDecoder(io.LimitReader(in, 1<<20))
	d.KnownFields(true)
	if err := d.Decode(&rules); err != nil {
		return nil, fmt.Errorf("no list of rules: %w", err)
	}
	if len(rules) > mostRules {
		return nil, fmt.Errorf("%d rules: at most %d", len(rules), mostRules)
	}
	for i := range rules {
		if err := rules[i].parse(); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return rules, nil
}

func (r *Rule) parse() (err error) {
	for _, pattern := range []string{r.Name, r.User, r.Account} {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("pattern %q: %w", pattern, err)
		}
	}
	switch {
	case (r.Profile == "") == (r.Shape == ""):
		return fmt.Errorf("give a profile or a shape (%s)", strings.Join(trace.Shapes, ", "))
	case r.Shape != "":
		return Evolve{Shape: r.Shape}.Check()
	case !strings.Contains(r.Profile, "%"):
		r.whole, err = planner.ParseProfile(r.Profile)
		return err
	}
	for part := range strings.SplitSeq(r.Profile, ",") {
		nodes, lasts, _ := strings.Cut(part, "@")
		step := [2]float64{}
		for i, text := range []string{nodes, lasts} {
			n, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
			if step[i], err = strconv.ParseFloat(n, 64); err != nil || !percent || !(step[i] > 0 && step[i] <= 1000) {
				return fmt.Errorf("step %q of the profile: want NODES%%@TIME%%, each above 0 and at most 1000 %%", part)
			}
		}
		if r.steps = append(r.steps, step); len(r.steps) > planner.MaxSteps {
			return fmt.Errorf("the profile has more than %d steps", planner.MaxSteps)
		}
	}
	return nil
}

func (r *Rule) matches(j *observed.Job) bool {
	for _, p := range [][2]string{{r.Name, j.Name}, {r.User, j.User}, {r.Account, j.Account}} {
		if ok, _ := path.Match(p[0], p[1]); p[0] != "" && !ok {
			return false
		}
	}
	return true
}

// evolver makes submissions evolve.
type evolver struct {
	Evolve
	shapes map[string]*trace.Evolve
}

func (e Evolve) evolver() *evolver { return &evolver{e, map[string]*trace.Evolve{}} }

// apply makes a submission evolve, if it is one of those, and reports whether it is.
func (e *evolver) apply(s *simulate.Submission, j *observed.Job, machine int) bool {
	shape, share := e.Shape, e.Share
	if e.Rules != nil {
		i := slices.IndexFunc(e.Rules, func(r Rule) bool { return r.matches(j) })
		if i < 0 || s.Profile[0].Duration < e.Shortest {
			return false
		}
		r := &e.Rules[i]
		if r.Shape == "" {
			return bend(s, r.profile(s.Profile[0]), machine)
		}
		shape, share = r.Shape, 1
	}
	model := e.shapes[shape]
	if model == nil {
		model = &trace.Evolve{Share: share, Shape: shape, Seed: e.Seed, Shortest: e.Shortest}
		e.shapes[shape] = model
	}
	t := trace.Unknown
	t.Submit, t.Run, t.Processors = float64(s.Submit), float64(s.Profile[0].Duration), int64(s.Profile[0].Nodes)
	if err := model.Job(&t, machine); err != nil || t.Kind() == trace.Rigid {
		return false
	}
	evolved := simulate.FromTrace(trace.Trace{Jobs: []trace.Job{t}}, 1, machine, 0, 0)[0]
	if e.Peak && len(evolved.Profile) > 1 {
		had, peak := s.Profile[0].Nodes, evolved.Profile.Peak()
		for i := range evolved.Profile {
			evolved.Profile[i].Nodes = max(evolved.Profile[i].Nodes*had/peak, 1)
		}
		return bend(s, evolved.Profile, machine)
	}
	evolved.ID, evolved.Submit, evolved.User, evolved.Partition, evolved.Nice, evolved.Limit = s.ID, s.Submit, s.User, s.Partition, s.Nice, 0
	*s = evolved
	return true
}

// profile returns the rule's profile for a job that had a size for some time.
func (r *Rule) profile(had planner.Step) planner.Profile {
	if r.whole != nil {
		return r.whole
	}
	var p planner.Profile
	for _, s := range r.steps {
		p = append(p, planner.Step{Nodes: max(int(math.Round(float64(had.Nodes)*s[0]/100)), 1), Duration: max(int64(math.Round(float64(had.Duration)*s[1]/100)), 1)})
	}
	return p
}

// bend gives a submission a profile, with equal neighbouring steps as one.
func bend(s *simulate.Submission, p planner.Profile, machine int) bool {
	var merged planner.Profile
	for _, step := range p {
		if last := len(merged) - 1; last >= 0 && merged[last].Nodes == step.Nodes {
			merged[last].Duration += step.Duration
		} else {
			merged = append(merged, step)
		}
	}
	if len(merged) < 2 || merged.Peak() > machine || merged.Validate() != nil {
		return false
	}
	s.Profile, s.Limit, s.CPUs = merged, 0, 0
	return true
}

// name describes it for people.
func (e Evolve) name() string {
	if e.Rules != nil {
		return fmt.Sprintf("jobs that match %d rules", len(e.Rules))
	}
	text := fmt.Sprintf("%g %% of the jobs, of shape %s", 100*e.Share, e.Shape)
	if e.Peak {
		text += " below their size"
	}
	return text
}
