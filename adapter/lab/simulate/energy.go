package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/energy"
	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// Power says what nodes draw in an experiment, and when Slurm switches them off. Times are seconds.
type Power struct {
	Watts    string `yaml:"watts"`   // as [energy.ParseWatts] reads them, or [ByConfig]; "" without energy
	Suspend  int64  `yaml:"suspend"` // Slurm's SuspendTime; 0: nodes stay on
	Boot     int64  `yaml:"boot"`
	Shutdown int64  `yaml:"shutdown"`

	types  config.Power   // with ByConfig
	kinds  []energy.Watts // of the types, and of nodes without one
	typeOf func(node string, features []string) int
}

// ByConfig stands for the watts of the sidecar's configuration, power.watts and power.types.
const ByConfig = "config"

// DefaultPower has the times of the thesis's machines.
var DefaultPower = Power{Boot: 154, Shutdown: 15}

// longestPower bounds the seconds of a boot, a shutdown, and SuspendTime.
const longestPower = 1e6

// Validate returns what cannot be modelled, where the sidecar has this configuration. Keys are named with a prefix.
func (p *Power) Validate(prefix string, c config.Power) error {
	if err := p.read(c); err != nil {
		return fmt.Errorf("%swatts: %w", prefix, err)
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

// read reads the watts.
func (p *Power) read(c config.Power) error {
	p.types, p.kinds = config.Power{}, make([]energy.Watts, 1)
	switch {
	case p.Watts == "":
	case p.Watts != ByConfig:
		w, err := energy.ParseWatts(p.Watts)
		p.kinds[0] = w
		return err
	case !c.Watts.Known():
		return errors.New("the configuration has no power.watts, such as {busy: 350, idle: 180, off: 10, booting: 250}")
	default:
		p.types, p.typeOf, p.kinds = c, c.TypeOf(), p.kinds[:0]
		for _, t := range c.Types {
			p.kinds = append(p.kinds, t.Watts.Model())
		}
		p.kinds = append(p.kinds, c.Watts.Model())
	}
	return nil
}

// Types returns the names of the types, which are their nodes or features; the last is of nodes without one.
func (p *Power) Types() (names []string) {
	for _, t := range p.types.Types {
		names = append(names, cmp.Or(t.Nodes, t.Feature))
	}
	return append(names, "others")
}

// Apply lets an experiment's Slurm switch nodes off, and has it count by the types of its nodes.
func (p *Power) Apply(e *Experiment) {
	if p.Suspend > 0 {
		second := func(n int64) time.Duration { return time.Duration(n) * time.Second }
		e.Cluster.PowerSaving = slurmsim.PowerSaving{SuspendTime: second(p.Suspend), SuspendTimeout: second(p.Shutdown), Boot: second(p.Boot), ResumeTimeout: second(2*p.Boot + 60)}
	}
	if len(p.kinds) == 1 {
		return
	}
	for i := range max(len(e.Cluster.NodeList), e.Cluster.Nodes) {
		name, features := fmt.Sprint("n", i+1), []string(nil)
		if e.Cluster.NodeList != nil {
			name, features = e.Cluster.NodeList[i].Name, e.Cluster.NodeList[i].Features
		}
		e.Kinds = append(e.Kinds, p.typeOf(name, features))
	}
}

// Account computes the energy of a run, its jobs, and its users, if the watts are known. A job draws what a busy node does on every
// node that it has, from its start. What its expanders draw until they are merged counts for the run only.
func (p *Power) Account(r *Result) {
	if p.Watts == "" {
		return
	}
	m, users, uses := &r.Metrics, map[int]float64{}, make([][]outcome.Use, len(p.kinds))
	for i := range r.Jobs {
		j, joules := &r.Jobs[i], 0.
		for _, u := range r.usesOf(i) {
			uses[u.Kind] = append(uses[u.Kind], u.Use)
			joules += p.kinds[u.Kind][energy.Busy] * float64(u.Nodes) * float64(max(u.To-max(u.From, j.Start), 0))
		}
		if j.Start >= 0 {
			j.KWh = joules / 3.6e6
			users[j.User] += j.KWh
		}
	}
	m.Energy = outcome.NewEnergy(users)
	for i, w := range p.kinds {
		k := r.kind(i)
		m.Energy.Add(p.Types()[i], k.Nodes, w, k.Drawn, k.HeldIdle)
		if !r.Saving {
			m.Energy.AddByPlan(w, k.Nodes, m.Makespan, uses[i], p.Shutdown, p.Boot)
		}
	}
	if len(p.kinds) == 1 {
		m.Energy.Types = nil
	}
}

// kind returns a kind of nodes.
func (r *Result) kind(i int) Kind {
	m := &r.Metrics
	switch {
	case i < len(r.Kinds):
		return r.Kinds[i]
	case i > 0: // no node is of it
		return Kind{}
	}
	return Kind{Nodes: r.Nodes, Drawn: energy.Seconds{energy.Busy: int64(m.Allocated), energy.Idle: int64(max(m.Idle, 0))}, HeldIdle: int64(m.HeldIdle)}
}

// Kind counts the nodes of one kind: of one type, if the watts differ.
type Kind struct {
	Nodes    int
	Drawing  energy.Seconds // nodes in each state, at present
	Drawn    energy.Seconds // node-microseconds in each state, and node-seconds in a result
	HeldIdle int64          // node-microseconds of held and idle nodes, and node-seconds in a result
}

// KindUse is a period in which a job has nodes of a kind. To is negative while it does.
type KindUse struct {
	Kind int
	outcome.Use
}

// kindOf returns the kind of a node.
func (e *Experiment) kindOf(node int) int {
	if e.Kinds == nil {
		return 0
	}
	return e.Kinds[node]
}

// look notes which states nodes have now.
func (t *trial) look() {
	if t.Kinds == nil && t.Cluster.PowerSaving.SuspendTime == 0 {
		return
	}
	if t.ByKind == nil {
		t.ByKind = t.newKinds(t.cluster.Size())
	}
	for k := range t.ByKind {
		t.ByKind[k].Drawing = energy.Seconds{}
	}
	t.cluster.Powers(func(node int, p slurmctl.Power, busy bool) {
		state := energy.Idle
		switch {
		case p == slurmctl.PowerUp:
			state = energy.Boot
		case p == slurmctl.PowerDown:
			state = energy.Shutdown
		case p == slurmctl.PoweredDown:
			state = energy.Off
		case busy:
			state = energy.Busy
		}
		t.ByKind[t.kindOf(node)].Drawing[state]++
	})
}

// newKinds returns the kinds of that many nodes.
func (e *Experiment) newKinds(nodes int) []Kind {
	if e.Kinds == nil {
		return []Kind{{Nodes: nodes}}
	}
	kinds := make([]Kind, slices.Max(e.Kinds)+1)
	for _, k := range e.Kinds {
		kinds[k].Nodes++
	}
	return kinds
}

// draw counts that many microseconds.
func (t *trial) draw(micros int64) {
	for i := range t.ByKind {
		k := &t.ByKind[i]
		for s, nodes := range k.Drawing {
			k.Drawn[s] += micros * nodes
		}
	}
	if t.ByKind != nil {
		for _, node := range t.Kept {
			t.ByKind[t.kindOf(node)].HeldIdle += micros
		}
	}
}

// use notes which nodes the job has from a second on.
func (j *subject) use(kinds, nodes []int, at int64) {
	if kinds == nil {
		return
	}
	for i := len(j.Uses) - 1; i >= 0 && j.Uses[i].To < 0; i-- {
		j.Uses[i].To = at
	}
	counts := map[int]int{}
	for _, node := range nodes {
		counts[kinds[node]]++
	}
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		j.Uses = append(j.Uses, KindUse{k, outcome.Use{From: at, To: -1, Nodes: counts[k]}})
	}
}

// share writes the kinds of nodes into the result.
func (t *trial) share(r *Result) {
	r.Saving = t.Cluster.PowerSaving.SuspendTime > 0
	for _, k := range t.ByKind {
		for s := range k.Drawn {
			k.Drawn[s] /= 1e6
		}
		k.HeldIdle /= 1e6
		r.Kinds = append(r.Kinds, k)
	}
	if t.Kinds == nil {
		return
	}
	for _, j := range t.Subjects {
		r.Uses = append(r.Uses, j.Uses)
	}
}

// place assigns nodes of each kind to the jobs of a machine whose nodes have no names: the lowest that are free beside each other.
func (e *Experiment) place(r *Result) error {
	if e.Kinds == nil {
		return nil
	}
	run := outcome.Run{Nodes: r.Nodes, Jobs: r.Outcome()}
	blocks, err := run.Layout()
	if err != nil {
		return err
	}
	r.Kinds, r.Uses = e.newKinds(r.Nodes), make([][]KindUse, len(r.Jobs))
	for _, b := range blocks {
		for node := b.First; node <= b.Last; node++ {
			k := e.Kinds[node]
			r.Kinds[k].Drawn[energy.Busy] += b.End - b.Start
			r.Uses[b.Job] = append(r.Uses[b.Job], KindUse{k, outcome.Use{From: b.Start, To: b.End, Nodes: 1}})
		}
	}
	for i := range r.Kinds {
		k := &r.Kinds[i]
		k.Drawn[energy.Idle] = int64(k.Nodes)*r.Metrics.Makespan - k.Drawn[energy.Busy]
	}
	return nil
}

// usesOf returns when a job had nodes, by kind, up to the end of the run.
func (r *Result) usesOf(job int) (uses []KindUse) {
	if r.Uses == nil {
		j := r.Jobs[job]
		run := outcome.Run{Jobs: []outcome.Job{{End: j.End, Sizes: j.Sizes}}}
		for _, u := range run.Uses(r.Metrics.Makespan) {
			uses = append(uses, KindUse{Use: u})
		}
		return uses
	}
	for _, u := range r.Uses[job] {
		if u.To < 0 {
			u.To = r.Metrics.Makespan
		}
		uses = append(uses, u)
	}
	return uses
}
