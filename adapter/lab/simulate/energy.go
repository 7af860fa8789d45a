package simulate

import (
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/energy"
	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// Power says what nodes draw in an experiment, and when Slurm switches them off. Times are seconds.
type Power struct {
	Watts    string `yaml:"watts"`   // as [energy.ParseWatts] reads them; "" without energy
	Suspend  int64  `yaml:"suspend"` // Slurm's SuspendTime; 0: nodes stay on
	Boot     int64  `yaml:"boot"`
	Shutdown int64  `yaml:"shutdown"`

	watts energy.Watts
}

// DefaultPower has the times of the thesis's machines.
var DefaultPower = Power{Boot: 154, Shutdown: 15}

// longestPower bounds the seconds of a boot, a shutdown, and SuspendTime.
const longestPower = 1e6

// Validate returns what cannot be modelled. Keys are named with a prefix.
func (p *Power) Validate(prefix string) (err error) {
	if p.Watts != "" {
		if p.watts, err = energy.ParseWatts(p.Watts); err != nil {
			return fmt.Errorf("%swatts: %w", prefix, err)
		}
	}
	for _, x := range []struct {
		name  string
		value int64
		least int64
	}{{"suspend", p.Suspend, 0}, {"boot", p.Boot, 1}, {"shutdown", p.Shutdown, 1}} {
		if x.value < x.least || x.value > longestPower {
			return fmt.Errorf("%s%s=%d: must be within %d … %.0f", prefix, x.name, x.value, x.least, longestPower)
		}
	}
	return nil
}

// Apply lets an experiment's Slurm switch nodes off.
func (p *Power) Apply(e *Experiment) {
	if p.Suspend > 0 {
		second := func(n int64) time.Duration { return time.Duration(n) * time.Second }
		e.Cluster.PowerSaving = slurmsim.PowerSaving{SuspendTime: second(p.Suspend), SuspendTimeout: second(p.Shutdown), Boot: second(p.Boot), ResumeTimeout: second(2*p.Boot + 60)}
	}
}

// Account computes the energy of a run, its jobs, and its users, if the watts are known. A job draws what a busy node does on every
// node that it has, from its start. What its expanders draw until they are merged counts for the run only.
func (p *Power) Account(r *Result) {
	if p.Watts == "" {
		return
	}
	m, drawn, users := &r.Metrics, r.Drawn, map[int]float64{}
	if drawn == (energy.Seconds{}) {
		drawn = energy.Seconds{energy.Busy: int64(m.Allocated), energy.Idle: int64(max(m.Idle, 0))}
	}
	jobs := r.Outcome()
	for i, o := range jobs {
		if o.Start < 0 {
			continue
		}
		if o.End < 0 {
			o.End = m.Makespan
		}
		j := &r.Jobs[i]
		j.KWh = p.watts[energy.Busy] * sinceStart(o) / 3.6e6
		users[j.User] += j.KWh
	}
	m.Energy = outcome.NewEnergy(p.watts, drawn, m.HeldIdle, users)
	if r.Drawn == (energy.Seconds{}) {
		run := outcome.Run{Nodes: r.Nodes, Jobs: jobs}
		m.Energy.ByPlan = run.OffByPlan(p.watts, m.Makespan, p.Shutdown, p.Boot)
	}
}

// drawing counts the nodes in each state.
func drawing(c *slurmsim.Cluster) energy.Seconds {
	all, busy := c.Powers()
	return energy.Seconds{
		energy.Busy: int64(busy[slurmctl.PowerOn]), energy.Idle: int64(all[slurmctl.PowerOn] - busy[slurmctl.PowerOn]),
		energy.Boot: int64(all[slurmctl.PowerUp]), energy.Shutdown: int64(all[slurmctl.PowerDown]), energy.Off: int64(all[slurmctl.PoweredDown]),
	}
}

// sinceStart returns the node-seconds that the job had from its start: without the time for which its nodes booted.
func sinceStart(j outcome.Job) (seconds float64) {
	for i, s := range j.Sizes {
		end := j.End
		if i+1 < len(j.Sizes) {
			end = j.Sizes[i+1].At
		}
		seconds += float64(s.Nodes) * float64(max(end-max(s.At, j.Start), 0))
	}
	return seconds
}
