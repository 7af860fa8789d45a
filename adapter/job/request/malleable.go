package request

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// Malleable holds what a malleable job accepts beyond its profile. The profile holds the smallest
// size of every step, which is planned and promised.
type Malleable struct {
	Max     []int           // largest size of each step; equal to the profile's if the step is not malleable
	Sizes   malleable.Sizes // that the application can use; all that is in the profile and in Max is one of them
	Grace   int             // seconds that it needs to give nodes back; 0 for the site's default
	Speedup string          // as declared, for malleable.ParseDeclared; "": not

	// BestEffort says that nobody promises the smallest size either, and what becomes of the job once its last nodes are
	// wanted: Requeued or Cancelled. "": the smallest size is promised.
	BestEffort string
}

// MaxSpeedup bounds the text of a declared speed-up, in bytes: it must fit into a marker with the
// rest.
const MaxSpeedup = 512

// speedupFile begins a speed-up in a file that is still to be read.
const speedupFile = "file:"

// SpeedupFile returns the file with the speed-up until it is read, otherwise "".
func (m *Malleable) SpeedupFile() string {
	file, _ := strings.CutPrefix(m.Speedup, speedupFile)
	if file == m.Speedup {
		return ""
	}
	return file
}

// Declared returns the speed-up that was declared, nil if none was.
func (m *Malleable) Declared() malleable.Speedup {
	s, err := malleable.ParseDeclared(m.Speedup)
	if err != nil {
		return nil
	}
	return s
}

// Bounds returns the profile with the bounds of a malleable job: MIN-MAX@DURATION.
func (r Request) Bounds() malleable.Profile { return BoundsOf(r.Profile, r.most()) }

// BoundsOf returns the steps of a profile with most nodes of each; nil: none is malleable.
func BoundsOf(p planner.Profile, most []int) malleable.Profile {
	all := make(malleable.Profile, len(p))
	for i, step := range p {
		all[i] = malleable.Step{Duration: step.Duration, Bounds: malleable.Bounds{Min: step.Nodes, Max: step.Nodes}}
		if i < len(most) {
			all[i].Max = most[i]
		}
	}
	return all
}

func (r Request) most() []int {
	if r.Malleable == nil {
		return nil
	}
	return r.Malleable.Max
}

// WholeMax is Malleable.Max for Whole.
func (r Request) WholeMax() []int {
	if r.Malleable == nil {
		return nil
	}
	whole := r.Whole()
	return append(Sizes(whole[:len(whole)-len(r.Profile)]), r.Malleable.Max...)
}

// malleability is r's, which may be changed.
func (r *Request) malleability() *Malleable {
	m := Malleable{}
	if r.Malleable != nil {
		m = *r.Malleable
	}
	r.Malleable = &m
	return r.Malleable
}

// ranged reports whether a profile has bounds: MIN-MAX@DURATION.
func ranged(text string) bool {
	for part := range strings.SplitSeq(text, ",") {
		if nodes, _, _ := strings.Cut(part, "@"); strings.Contains(nodes, "-") {
			return true
		}
	}
	return false
}

// setSteps reads a profile, with or without bounds.
func (r *Request) setSteps(text string) error {
	r.Tail = 0
	if at := strings.Index(text, openTail); at >= 0 {
		return r.setOpen(text, at)
	}
	if !ranged(text) {
		p, err := planner.ParseProfile(text)
		r.Profile = p
		if r.Malleable != nil {
			r.malleability().Max = nil
		}
		return errors.Join(err, CheckSteps(p))
	}
	p, err := malleable.ParseProfile(text)
	if err != nil {
		return err
	}
	r.setBounds(p)
	return CheckSteps(r.Profile)
}

func (r *Request) setBounds(p malleable.Profile) {
	m := r.malleability()
	r.Profile, m.Max = make(planner.Profile, len(p)), make([]int, len(p))
	for i, step := range p {
		r.Profile[i], m.Max[i] = planner.Step{Duration: step.Duration, Nodes: step.Min}, step.Max
	}
}

// setMalleable reads the value of --malleable: bounds for as long as the job may run, which
// Lasts says.
func (r *Request) setMalleable(text string) error {
	b, err := malleable.ParseBounds(text)
	if err != nil {
		return err
	}
	r.setBounds(malleable.Profile{{Bounds: b}})
	return nil
}

// Endless reports whether the request has --malleable but no duration yet.
func (r Request) Endless() bool {
	return len(r.Profile) == 1 && r.Profile[0].Duration == 0
}

// Lasts sets how long a job that has only --malleable runs, in seconds.
func (r *Request) Lasts(seconds int64) {
	r.Profile = planner.Profile{{Duration: seconds, Nodes: r.Profile[0].Nodes}}
}

// setOption reads an option of malleable jobs.
func (m *Malleable) setOption(name, value string) (err error) {
	switch name {
	case "size":
		m.Sizes, err = malleable.ParseSizes(value)
	case "best-effort":
		m.BestEffort = Requeued
	case "grace":
		var seconds int64
		seconds, err = planner.ParseDuration(value)
		m.Grace = int(seconds)
	case "speedup":
		var s malleable.Speedup
		var file string
		if s, file, err = malleable.ParseSpeedup(value); err == nil {
			if m.Speedup = speedupFile + file; s != nil {
				m.Speedup = fmt.Sprint(s)
			}
		}
	}
	return err
}

// SetSpeedup takes over a table that was read from the file, to five digits.
func (m *Malleable) SetSpeedup(t malleable.Table) error {
	t = slices.Clone(t)
	for i, p := range t {
		t[i].Speedup, _ = strconv.ParseFloat(strconv.FormatFloat(p.Speedup, 'g', 5, 64), 64)
	}
	if text := t.String(); len(text) <= MaxSpeedup {
		m.Speedup = text
		return nil
	}
	return fmt.Errorf("%d points are too many to travel with the job (%d bytes, at most %d): leave some out", len(t), len(t.String()), MaxSpeedup)
}

// marker writes the fields z, t, e and y.
func (m *Malleable) marker(b *strings.Builder) {
	if m.Sizes != malleable.Any {
		b.WriteString(";z=" + m.Sizes.String())
	}
	if m.Grace > 0 {
		b.WriteString(";t=" + strconv.Itoa(m.Grace))
	}
	if m.Speedup != "" {
		b.WriteString(";e=" + m.Speedup)
	}
	if m.BestEffort != "" {
		b.WriteString(";y=" + m.BestEffort)
	}
}

// setField reads one of them.
func (m *Malleable) setField(key, value string) (err error) {
	switch key {
	case "z":
		if m.Sizes, err = malleable.ParseSizes(value); err == nil && m.Sizes == malleable.Any {
			err = errors.New("any is what it is without")
		}
	case "t":
		var seconds int64
		seconds, err = parseNumber(value, planner.MaxDuration)
		m.Grace = int(seconds)
	case "e":
		var s malleable.Speedup
		if s, err = malleable.ParseDeclared(value); err == nil {
			m.Speedup = fmt.Sprint(s)
		}
		if err == nil && len(m.Speedup) > MaxSpeedup {
			err = fmt.Errorf("%d bytes, at most %d", len(m.Speedup), MaxSpeedup)
		}
	case "y":
		if m.BestEffort = value; value != Requeued && value != Cancelled {
			err = fmt.Errorf("%q is neither %s nor %s", legible.Brief(value), Requeued, Cancelled)
		}
	}
	return err
}

// Settle checks that the parts of a malleable job's request agree, and rounds its bounds to sizes
// that it can use. A job whose steps all have one size is not malleable.
func (r *Request) Settle() error {
	if err := r.SettleTail(); err != nil {
		return err
	}
	if r.Malleable == nil || r.Profile == nil { // the script holds it
		return nil
	}
	return r.settleSizes(*r.Malleable)
}

// settleSizes does Settle's work for the bounds of a malleable job whose profile is known.
func (r *Request) settleSizes(m Malleable) error {
	if m.BestEffort != "" && m.Max == nil { // it may have one size
		m.Max = Sizes(r.Profile)
	}
	switch {
	case m.Max == nil && m.Sizes == malleable.Any && m.Grace == 0 && m.Speedup == "":
		r.Malleable = nil
		return nil
	case r.Moldable != nil:
		return errors.New("a malleable job cannot be moldable, too: --malleable and --moldable exclude each other")
	case m.Max == nil:
		return errors.New("--size, --grace and --speedup are of malleable jobs: give --malleable=MIN-MAX, or --profile=MIN-MAX@DURATION")
	case len(m.Max) != len(r.Profile):
		return fmt.Errorf("bounds of %d steps for a profile of %d", len(m.Max), len(r.Profile))
	}
	profile := slices.Clone(r.Profile)
	m.Max = slices.Clone(m.Max)
	for i, step := range r.Bounds() {
		if err := step.Bounds.Validate(m.Sizes); err != nil {
			return inStep(i, len(profile), err)
		}
		profile[i].Nodes, m.Max[i] = step.Least(m.Sizes), step.Most(m.Sizes)
	}
	if !r.Endless() {
		if err := profile.Validate(); err != nil {
			return err
		}
	}
	r.Profile, r.Malleable = profile, &m
	r.dropBounds()
	return nil
}

// inStep adds to an error which of several steps it is about.
func inStep(i, steps int, err error) error {
	if steps == 1 {
		return err
	}
	return fmt.Errorf("step %d: %w", i+1, err)
}

// CutMax limits the job to at most that many nodes, which must be at least its profile's; it
// reports whether that changes anything.
func (r *Request) CutMax(most int) bool {
	if r.Malleable == nil || len(r.Malleable.Max) == 0 || slices.Max(r.Malleable.Max) <= most {
		return false
	}
	m := r.malleability()
	m.Max = slices.Clone(m.Max)
	for i, n := range m.Max {
		m.Max[i] = max(m.Sizes.Floor(min(n, most)), r.Profile[i].Nodes)
	}
	r.dropBounds()
	return true
}

// dropBounds makes a job whose steps all have one size an ordinary one, unless it is a best-effort job.
func (r *Request) dropBounds() {
	if !r.BestEffort() && !r.Bounds().Malleable() {
		r.Malleable = nil
	}
}

// MostNodes returns the largest number of nodes that the job may come to have by its profile and
// its bounds.
func (r Request) MostNodes() int {
	if r.Malleable == nil || len(r.Malleable.Max) == 0 {
		return r.Profile.Peak()
	}
	return slices.Max(r.Malleable.Max)
}

// CheckMalleable checks that the malleable parts agree with the rest.
func (r Request) CheckMalleable() error {
	switch {
	case r.Endless():
		return errors.New("--malleable: the duration is not known: let evosbatch submit the job, or give --profile=MIN-MAX@DURATION")
	case r.Malleable == nil:
		return nil
	case r.BestEffort():
		return r.CheckBestEffort()
	case r.Drive.Means().StepsAreJobs:
		return errors.New("a chain cannot be malleable: its steps are Slurm jobs of their own, which are not resized while they run")
	case r.MaxNodes > 0 && r.Profile != nil:
		return fmt.Errorf("--max-nodes=%d: a malleable job makes no claim: it is lent what is free, up to %d nodes", r.MaxNodes, r.MostNodes())
	}
	return nil
}

// joinMalleable adopts the script's data about a malleable job whose profile did not fit into the
// marker. A file named in the script was read at submission.
func (r *Request) joinMalleable(given Request) error {
	if given.Malleable != nil {
		m := r.malleability()
		m.Max = given.Malleable.Max
		if m.Sizes == malleable.Any {
			m.Sizes = given.Malleable.Sizes
		}
		if m.Grace == 0 {
			m.Grace = given.Malleable.Grace
		}
		if m.Speedup == "" && given.Malleable.SpeedupFile() == "" {
			m.Speedup = given.Malleable.Speedup
		}
		m.BestEffort = cmp.Or(m.BestEffort, given.Malleable.BestEffort)
	}
	return r.Settle()
}
