// Package statetest builds small states for the tests of the core's rooms: a cluster with idle nodes, stock jobs, and
// evolving jobs. Nothing here runs, waits, or reads a clock.
package statetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Second is the Unix second at which every bench begins.
const Second = 1_800_000_000

// Start is the same time.
var Start = time.Unix(Second, 0)

// Parked is how far in the future a parked job's start is.
const Parked = 10 * 365 * 24 * time.Hour

// mostJobs bounds the Slurm jobs of a bench, so that pointers to their records stay valid.
const mostJobs = 600

// Bench is a core without a Slurm, and what it sees: idle nodes n1, n2, … in partition main.
type Bench struct {
	*state.Core
	Seen *state.Snapshot
	t    testing.TB
}

// New returns a bench with some nodes. No limits are known to it.
func New(t testing.TB, nodes int) *Bench {
	t.Helper()
	c := NewCore(config.Default(), Start)
	s := &state.Snapshot{Taken: Start, ByID: map[slurmctl.JobID]*slurmctl.Job{}, Index: map[string]int{}, Jobs: make([]slurmctl.Job, 0, mostJobs),
		Partitions: map[string]slurmctl.Partition{}, Reservations: map[string]slurmctl.Reservation{}, InUse: msg.Set{}}
	for i, name := range Names(1, nodes) {
		s.Nodes = append(s.Nodes, slurmctl.Node{Name: name, State: "idle", CPUs: 4, Memory: 1000})
		s.Index[name] = i
	}
	b := &Bench{c, s, t}
	b.Partition("main", 1, nodes)
	c.Snapshot, c.Rules.Read = s, Start
	return b
}

// NewCore returns a core with a strategy that keeps to the jobs' own expand limits.
func NewCore(cfg config.Config, now time.Time) *state.Core {
	return state.New(msg.Site{Version: "test", User: "root", Root: true}, cfg, msg.Strategy{ExpandLimit: 1}, now)
}

// Names lists the nodes from n<first> to n<last>.
func Names(first, last int) (names []string) {
	for i := first; i <= last; i++ {
		names = append(names, fmt.Sprintf("n%d", i))
	}
	return names
}

// Nodes expands a node list; "": none.
func Nodes(list string) []string {
	names, err := slurmctl.ExpandNodes(list)
	if err != nil && list != "" {
		panic(err)
	}
	return names
}

// Partition adds a partition of the nodes from first to last.
func (b *Bench) Partition(name string, first, last int) {
	b.Seen.Partitions[name] = slurmctl.Partition{Name: name, Up: true, MaxTime: slurmctl.Unlimited, Nodes: Names(first, last)}
}

// Reserve adds a reservation of the nodes from first to last.
func (b *Bench) Reserve(name string, in, duration time.Duration, first, last int) {
	b.Seen.Reservations[name] = slurmctl.Reservation{Name: name, Start: b.Seen.Taken.Add(in), End: b.Seen.Taken.Add(in + duration), Nodes: Names(first, last)}
}

// enforced is a configuration in which limits count, and memory is given to jobs.
var enforced = slurmctl.Config{Values: map[string]string{"AccountingStorageType": "accounting_storage/slurmdbd",
	"AccountingStorageEnforce": "associations,limits,qos", "SelectTypeParameters": "CR_CORE_MEMORY"}}

// SavesPower is the configuration of a site that switches off nodes after five minutes without a job. They take half a
// minute to go off, and a minute to come up.
var SavesPower = slurmctl.Config{Values: map[string]string{"ResumeProgram": "/r", "SuspendProgram": "/s",
	"SuspendTime": "300 sec", "SuspendTimeout": "30 sec", "ResumeTimeout": "60 sec"}}

// Limited sets the limits of the site, as Slurm's commands print them.
func (b *Bench) Limited(partitions, assocs, qos string) {
	b.Rules = state.RuleBook{Limits: slurmctl.ParseLimits(enforced, slurmctl.LimitsText{Partitions: partitions, Assocs: assocs, QOS: qos}), Read: b.Rules.Read.Add(time.Second)}
}

// Stock adds a pending stock job.
func (b *Bench) Stock(id int, priority uint64, nodes int, limit time.Duration) *slurmctl.Job {
	return b.add(slurmctl.Job{ID: slurmctl.JobID(id), State: slurmctl.Pending, Reason: "Priority", Priority: priority, NumNodes: nodes, NumCPUs: 4 * nodes,
		ArrayTasks: 1, Exclusive: true, Partition: "main", TimeLimit: limit, SubmitTime: b.Seen.Taken})
}

// StockRuns adds a stock job that runs on a node list, and ends in some time.
func (b *Bench) StockRuns(id int, list string, left time.Duration) *slurmctl.Job {
	r := b.Stock(id, 1, len(Nodes(list)), left)
	r.State, r.Reason, r.NodeList, r.StartTime, r.EndTime = slurmctl.Running, "None", Nodes(list), b.Seen.Taken, b.Seen.Taken.Add(left)
	b.Seen.InUse.Add(r.NodeList)
	return r
}

func (b *Bench) add(r slurmctl.Job) *slurmctl.Job {
	b.t.Helper()
	if len(b.Seen.Jobs) == mostJobs {
		b.t.Fatal("too many jobs for a bench")
	}
	b.Seen.Jobs = append(b.Seen.Jobs, r)
	added := &b.Seen.Jobs[len(b.Seen.Jobs)-1]
	b.Seen.ByID[r.ID] = added
	return added
}

// Evolving adds a parked evolving job of user 1000.
func (b *Bench) Evolving(id int, priority uint64, profile string, limit time.Duration) *state.Job {
	b.t.Helper()
	p, err := planner.ParseProfile(profile)
	if err != nil {
		b.t.Fatal(err)
	}
	r := slurmctl.Job{ID: slurmctl.JobID(id), UID: 1000, User: "user", State: slurmctl.Pending, Reason: "BeginTime", Priority: priority, NumNodes: p[0].Nodes, ArrayTasks: 1,
		Exclusive: true, Partition: "main", TimeLimit: limit, SubmitTime: b.Seen.Taken, StartTime: b.Seen.Taken.Add(Parked)}
	j := &state.Job{}
	j.Job = &row.Job{Owned: row.Owned{ID: int64(id), SlurmID: uint32(id), User: "user", UID: 1000, Submitted: r.SubmitTime, Partition: "main"}, Terms: row.Terms{Drive: "merge", Profile: p}, Life: row.Life{State: row.Queued}}
	j.Record, j.Priority, j.Asked = r, priority, &slurmctl.JobRequest{}
	state.SetMode(b.Core, j)
	b.Active = append(b.Active, j)
	b.ByID[j.BaseID()] = j
	b.add(r)
	return j
}

// Runs has a job begin its first step now, on a node list.
func (b *Bench) Runs(j *state.Job, list string) {
	j.State, j.Step, j.Started, j.StepStarted = row.Running, 1, b.Now, b.Now
	j.Record.State, j.Record.Reason, j.Record.NodeList, j.Record.BatchHost = slurmctl.Running, "None", Nodes(list), Nodes(list)[0]
	j.Record.StartTime, j.Record.EndTime = b.Now, b.Now.Add(j.Record.TimeLimit)
	j.BatchHost = j.Record.BatchHost
	b.Has(j, list)
	b.Show(j)
}

// Has gives a job the nodes of some lists: those of its base job, and of companions with the next job IDs.
func (b *Bench) Has(j *state.Job, lists ...string) {
	j.Held = nil
	for i, list := range lists {
		part := msg.Part{ID: j.BaseID() + slurmctl.JobID(i), Step: i + 1, Nodes: Nodes(list)}
		j.Held = append(j.Held, part)
		b.ByID[part.ID] = j
		b.Seen.InUse.Add(part.Nodes)
	}
}

// Show has Slurm show a job's record as the job knows it.
func (b *Bench) Show(j *state.Job) { *b.Seen.ByID[j.Record.ID] = j.Record }

// Waits has a running job wait for its next step from now on.
func (b *Bench) Waits(j *state.Job) { j.State, j.StepEnded = row.Waiting, b.Now }

// Plans sets a job's plan: for each step its first and last second since the start of the bench, and its nodes, as in
// "0-600 n[1-2]".
func (b *Bench) Plans(j *state.Job, steps ...string) {
	b.t.Helper()
	var all []msg.PlannedStep
	for _, text := range steps {
		var start, end int64
		var list string
		if _, err := fmt.Sscanf(text, "%d-%d %s", &start, &end, &list); err != nil {
			b.t.Fatalf("step %q: %v", text, err)
		}
		all = append(all, msg.PlannedStep{Start: Second + start, End: Second + end, Nodes: Nodes(list)})
	}
	b.StorePlan(j, all)
}

// Planned returns a job's plan in the form that Plans takes, or why there is none.
func Planned(j *state.Job) string {
	if len(j.Plan) == 0 {
		return strings.TrimSpace("no plan: " + j.Reason().Words())
	}
	steps := make([]string, len(j.Plan))
	for i, p := range j.Plan {
		steps[i] = fmt.Sprintf("%d-%d %s", p.Start-Second, p.End-Second, slurmctl.CompressNodes(p.Nodes))
	}
	return strings.Join(steps, ", ")
}

// Later lets time go by. The snapshot shows the same as before.
func (b *Bench) Later(by time.Duration) {
	b.Now = b.Now.Add(by)
	b.Seen.Taken = b.Now
}

// Tasks returns in words the tasks that the core has asked for since the last call.
func (b *Bench) Tasks() []string {
	var all []string
	for _, e := range b.Effects {
		if task, ok := e.(msg.Task); ok {
			all = append(all, task.String())
		}
	}
	b.Effects = nil
	return all
}

// Events returns the kinds of the events since the last call of Tasks or Replies.
func (b *Bench) Events() []string {
	var all []string
	for _, e := range b.Effects {
		if event, ok := e.(msg.AddEvent); ok {
			all = append(all, event.Kind)
		}
	}
	return all
}

// Replies returns in words the replies since the last call.
func (b *Bench) Replies() []string {
	var all []string
	for _, e := range b.Effects {
		if reply, ok := e.(msg.Reply); ok {
			all = append(all, reply.String())
		}
	}
	b.Effects = nil
	return all
}

// Newest returns the newest task under way, or nil if there is none.
func (b *Bench) Newest() *state.Pending { return b.Work.Pending[b.Work.Last] }

// Ends has the newest task end, as the core does before the settle function of its kind takes the outcome.
func (b *Bench) Ends(err error, result any) (*state.Job, *state.Pending, msg.Outcome) {
	p := b.Newest()
	delete(b.Work.Pending, b.Work.Last)
	b.Work.TakeBack(b.Work.Last)
	j := b.JobOf(p)
	b.Finish(j, p, err)
	return j, p, msg.Outcome{Task: p.Task.ID, Err: err, Result: result}
}

// Builtin is a strategy of the planner, at work.
type Builtin struct{ planner.Strategy }

// Pin takes no notice of running jobs.
func (Builtin) Pin([]planner.Placement) {}

// Rigid reports whether the strategy plans jobs as if they did not evolve.
func (b Builtin) Rigid() bool { return planner.IsRigid(b.Strategy) }

// Steady reports whether the strategy gives the same plan for the same problem.
func (b Builtin) Steady() bool { return planner.IsSteady(b.Strategy) }

// NoX returns the strategy that expands no step.
func NoX() Builtin {
	s, err := planner.StrategyByName("noX")
	if err != nil {
		panic(err)
	}
	return Builtin{s}
}

// Told returns how many events, and lines of the log, the core has written.
func (b *Bench) Told() (events, lines int) {
	for _, e := range b.Effects {
		switch e.(type) {
		case msg.AddEvent:
			events++
		case msg.Log:
			lines++
		}
	}
	return events, lines
}

// Growing returns a bench of eight nodes with job 1, which runs in the first of three steps on n1 and n2.
func Growing(t testing.TB) (*Bench, *state.Job) {
	b := New(t, 8)
	j := b.Evolving(1, 1, "2@10m,4@10m,1@10m", time.Hour)
	b.Runs(j, "n[1-2]")
	b.Plans(j, "0-600 n[1-2]", "600-1200 n[1-4]", "1200-1800 n1")
	return b, j
}
