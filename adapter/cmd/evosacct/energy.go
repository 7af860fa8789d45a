package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// drawn is the energy of some rows. Its zero value is that of none.
type drawn struct {
	kWh      float64
	rows     bool // there are any
	unknown  bool // of one of them
	modelled bool // by the configured watts for one of them, not measured by Slurm
}

// String returns the kWh, marked if they are not all measured, or "" if not all are known.
func (d drawn) String() string {
	switch text := strconv.FormatFloat(d.kWh, 'f', 3, 64); {
	case !d.known():
		return ""
	case d.modelled:
		return "~" + text
	default:
		return text
	}
}

func (d drawn) known() bool { return d.rows && !d.unknown }

func (d drawn) add(e drawn) drawn {
	return drawn{d.kWh + e.kWh, d.rows || e.rows, d.unknown || e.unknown, d.modelled || e.modelled}
}

// meter knows what rows drew.
type meter struct {
	power    config.Power
	cluster  string                                            // named by --clusters; "": the own one
	watts    func(node string, features []string) config.Watts // nil: all nodes are alike
	features map[string][]string                               // by node, if watts depend on them
	measured map[place]float64
}

// place identifies a step of a job.
type place struct {
	id     uint32
	submit int64
	step   int
}

func placeOf(j api.Job, step int) place { return place{j.ID, j.Submit.Unix(), step} }

// of returns what a step drew, as measured, else by the configured watts.
func (m *meter) of(r row) drawn {
	if joules, ok := m.measured[placeOf(r.job, r.step)]; ok {
		return drawn{kWh: joules / 3.6e6, rows: true}
	}
	return drawn{r.joules / 3.6e6, true, !m.power.Watts.Known(), true}
}

// busy returns the watts of all nodes of a span, by the configuration. Nodes without a name are of no type.
func (m *meter) busy(p api.Span) float64 {
	plain := m.power.Watts.Busy
	total := plain * float64(p.Nodes)
	if m.watts == nil {
		return total
	}
	nodes, _ := slurmctl.ExpandNodes(p.NodeList)
	for _, node := range nodes {
		total += m.watts(node, m.features[node]).Busy - plain
	}
	return total
}

// shown returns the energy of a job and its steps in the API's form, or nil if not all is known.
func (m *meter) shown(j api.Job, now time.Time) *api.Energy {
	steps := m.steps(j, nil, now)
	all := whole(j, steps, nil, now).energy
	if !all.known() {
		return nil
	}
	e := &api.Energy{KWh: all.kWh, Measured: !all.modelled}
	for _, r := range steps {
		e.Steps = append(e.Steps, api.StepEnergy{Step: r.step, KWh: r.energy.kWh, Measured: !r.energy.modelled})
	}
	return e
}

// ask asks Slurm what it measured, if it measures at all, and for the nodes' features if their watts depend on them. What it
// does not answer is left to the watts, with a warning.
func (m *meter) ask(ctx context.Context, slurm *slurmctl.Client, jobs []api.Job, warn io.Writer) {
	if len(m.power.Types) > 0 {
		m.watts = m.power.WattsOf()
	}
	if m.power.ByFeature() {
		nodes, _, err := slurm.Nodes(ctx)
		if err != nil {
			fmt.Fprintf(warn, "evosacct: warning: the nodes' features: %v; power.types without nodes do not count\n", err)
		}
		m.features = make(map[string][]string, len(nodes))
		for _, n := range nodes {
			m.features[n.Name] = n.Features
		}
	}
	if c, err := slurm.Config(ctx); err != nil || !c.GathersEnergy() {
		return
	}
	if err := m.measure(jobs, time.Now(), func(uid uint32, from, until time.Time) ([]slurmctl.MeasuredStep, error) {
		return slurm.MeasuredSteps(ctx, uid, from, until)
	}); err != nil {
		fmt.Fprintf(warn, "evosacct: warning: %v; energy is by power.watts there\n", err)
	}
}

// stepsOf reads the srun steps of a user's jobs in a period.
type stepsOf func(uid uint32, from, until time.Time) ([]slurmctl.MeasuredStep, error)

// mostTogether bounds the jobs for which Slurm is asked at once.
const mostTogether = 100

// mostFailed bounds the failures after which nothing more is read.
const mostFailed = 3

// measure adds what Slurm measured of these jobs. It reads the steps of a user's jobs that ran at the same time with one
// command. After a failure, it skips the user's further jobs.
func (m *meter) measure(jobs []api.Job, now time.Time, read stepsOf) error {
	var failed []error
	m.measured = map[place]float64{}
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(j api.Job) bool { return len(j.Past) == 0 })
	slices.SortFunc(jobs, func(a, b api.Job) int {
		return cmp.Or(cmp.Compare(a.UID, b.UID), a.Past[0].Start.Compare(b.Past[0].Start))
	})
	for len(jobs) > 0 {
		n, until := 0, time.Time{}
		for n < min(len(jobs), mostTogether) && jobs[n].UID == jobs[0].UID && (n == 0 || !jobs[n].Past[0].Start.After(until)) {
			for _, p := range jobs[n].Past {
				if end := spanEnd(p, now); end.After(until) {
					until = end
				}
			}
			n++
		}
		steps, err := read(jobs[0].UID, jobs[0].Past[0].Start, until)
		if err != nil {
			uid := jobs[0].UID
			failed = append(failed, fmt.Errorf("what Slurm measured of jobs of user %d: %w", uid, err))
			if len(failed) == mostFailed {
				break
			}
			jobs = slices.DeleteFunc(jobs, func(j api.Job) bool { return j.UID == uid })
			continue
		}
		t := tally{now: now, slots: map[string][]*slot{}}
		for _, j := range jobs[:n] {
			t.expect(j)
		}
		t.count(steps)
		t.settle(m.measured)
		jobs = jobs[n:]
	}
	return errors.Join(failed...)
}

func spanEnd(p api.Span, now time.Time) time.Time {
	if p.End.IsZero() {
		return now
	}
	return p.End
}

// slot is a time for which a step of a profile has a node.
type slot struct {
	from, until time.Time
	of          *counted
	last        time.Time // end of the last srun step on the node
}

// counted sums up a step of a profile.
type counted struct {
	place           place
	joules          float64
	had, covered    float64 // node-seconds: all of the step, and those in which srun steps ran
	shared, running bool    // srun steps ran beside each other on a node; some run, or have no end or no value
}

// tally assigns the energy of srun steps to steps of profiles, by node and time: whatever jobs Slurm has made of an evolving
// job, the user's steps on its nodes, while it had them, are its own.
type tally struct {
	now   time.Time
	slots map[string][]*slot // by node
	all   []*counted
	work  int
}

// mostWork bounds the nodes and slots that a tally looks at, and newSlot is the part of it that a slot takes. It is a second of
// work and 100 MB.
const (
	mostWork = 10_000_000
	newSlot  = 8
)

// spend reports whether the tally may look at n more nodes or slots.
func (t *tally) spend(n int) bool {
	t.work += n
	return t.work <= mostWork
}

// expect adds the nodes of a job.
func (t *tally) expect(j api.Job) {
	by := map[int]*counted{}
	for _, p := range j.Past {
		c := by[p.Step]
		if c == nil {
			c = &counted{place: placeOf(j, p.Step)}
			by[p.Step], t.all = c, append(t.all, c)
		}
		from, until := p.Start, spanEnd(p, t.now)
		c.had += max(until.Sub(from), 0).Seconds() * float64(p.Nodes)
		n, err := slurmctl.CountNodes(p.NodeList)
		if err != nil || n == 0 || !t.spend(newSlot*n) {
			continue
		}
		nodes, _ := slurmctl.ExpandNodes(p.NodeList)
		for _, node := range nodes {
			t.slots[node] = append(t.slots[node], &slot{from: from, until: until, of: c})
		}
	}
}

// count adds the srun steps.
func (t *tally) count(steps []slurmctl.MeasuredStep) {
	slices.SortStableFunc(steps, func(a, b slurmctl.MeasuredStep) int { return a.Start.Compare(b.Start) })
	for _, s := range steps {
		n, err := slurmctl.CountNodes(s.Nodes)
		if err != nil || n == 0 || !t.spend(n) {
			continue
		}
		nodes, _ := slurmctl.ExpandNodes(s.Nodes)
		for _, node := range nodes {
			if !t.spend(len(t.slots[node])) {
				return
			}
			if s.End.IsZero() {
				endless(t.slots[node], s.Start)
				continue
			}
			for _, x := range t.slots[node] {
				x.add(s, float64(s.Joules)/float64(n))
			}
		}
	}
}

// endless marks what a job has on a node from the start of an srun step on that runs, or whose end slurmdbd does not have.
func endless(slots []*slot, start time.Time) {
	of := slices.IndexFunc(slots, func(x *slot) bool { // slurmdbd rounds to seconds
		return start.Add(time.Second).After(x.from) && start.Before(x.until)
	})
	for _, x := range slots {
		mine := of >= 0 && x.of.place.id == slots[of].of.place.id && x.of.place.submit == slots[of].of.place.submit
		x.of.running = x.of.running || mine && x.until.After(start)
	}
}

// add adds a node's part of an srun step, in proportion to the time that falls into the slot.
func (x *slot) add(s slurmctl.MeasuredStep, joules float64) {
	from, until := s.Start, s.End
	if from.Before(x.from) {
		from = x.from
	}
	if until.After(x.until) {
		until = x.until
	}
	inside := until.Sub(from)
	if inside <= 0 {
		return
	}
	x.of.running = x.of.running || s.Joules < 0
	x.of.shared = x.of.shared || from.Add(time.Second).Before(x.last) // slurmdbd rounds to seconds
	x.of.joules += joules * float64(inside) / float64(s.End.Sub(s.Start))
	if s.Joules > 0 { // of a step that was running at a resize, slurmdbd has the time until then, and 0
		x.of.covered += inside.Seconds()
	}
	if until.After(x.last) {
		x.last = until
	}
}

// mostly is the part of a step's node-seconds in which srun steps must have run for their energy to stand for the step's.
// Otherwise, a user would hide what a job draws beside a short srun step.
const mostly = 0.9

// settle keeps the steps whose energy is measured.
func (t *tally) settle(measured map[place]float64) {
	if t.work > mostWork {
		return
	}
	for _, c := range t.all {
		if c.joules > 0 && !c.shared && !c.running && c.covered >= mostly*c.had {
			measured[c.place] = c.joules
		}
	}
}
