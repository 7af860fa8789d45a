package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// App is an application that evolves.
type App struct {
	User        slurmsim.User
	Name        string
	Profile     planner.Profile
	Drive       drivemode.Mode
	ExpandLimit planner.ExpandLimit
	Limit       time.Duration // 0: the profile's length and two minutes more
	Begin       time.Time
	Claim       int
	Prefer      string
	Aim         planner.Aim
	Components  []request.Component // of coupled codes
	Frequencies []string            // of its steps' CPUs; nil: none
	Partition   string              // "": the default one
	Asks        slurmsim.Job        // what else it asks for: memory, GRES, a QOS
	Tasks       []*App              // of an array: its tasks, in order; each follows the profile on its own
	Array       slurmctl.JobID      // of a task: its array
	Task        uint32              // and its number there, from 1 on
	Stored      bool                // its script also has the request, for sites whose plugins overwrite comments

	// Alternatives holds the profiles of a moldable job; Profile is the one that it got.
	Alternatives []planner.Profile
	By           planner.Preference

	// Lasts returns how long a step (from 1) really takes; nil if as the profile says.
	Lasts func(step int) time.Duration `codec:"-"`
	// Deaf means that it never calls next; Abrupt is the step after which it ends without calling
	// next.
	Deaf   bool
	Abrupt int
	Fails  int   // the step after which it fails
	Hands  hands // how its processes submit where the sidecar does not

	// Malleable holds its bounds beyond the profile; Says holds its answers to offers, in turn.
	Malleable *request.Malleable
	Says      []Says
	Work      *work // what its step has to do; nil: it lasts as long on any size

	// Acts holds what it does on its own, instead of following its profile.
	Acts     []Act
	Demand   *Demand // or this
	Refusals int     // of its changes

	PeaksFrom time.Duration // from when on it may begin on the nodes of its largest step: everything was released; 0: never

	Steps  []Begun  // what became of it
	Asking bool     // its step is over: it asks for the next
	First  int      // the current run's first entry: a requeued job starts over, with a profile that others may have changed, or another alternative
	Wrong  []string // what was wrong in the runs before
	Err    error    // of next, if any

	Before   []request.Request // what it asked for before each of its changes
	Over     int               // number of first steps for which the sidecar knows only the peak
	Failed   int               // nodes that it has lost since its step began
	Regained int               // nodes that it has again, because slurmctld forgot that they were given back
	Booted   time.Duration     // when slurmctld was back after a crash, last; 0: it has not crashed
}

// Begun is a step that an application saw begin.
type Begun struct {
	Step, Nodes int
	At          time.Duration // of the cluster, see slurmsim.Cluster.Elapsed
	Bound       bool          // slurmctld releases no node except its script's
	Failed      int           // nodes that it had lost by then, since the step began
	Regained    int           // and those that it had again
}

// parkedFor is how far ahead evosbatch parks jobs.
const parkedFor = 3650 * 24 * time.Hour

// limitFor returns the time limit of a job that asks for none.
func limitFor(p planner.Profile) time.Duration {
	return time.Duration(p.Duration()/60+2) * time.Minute
}

// mold makes the request moldable, as evosbatch does.
func (a *App) mold(sp *request.Request) {
	m := &request.Moldable{Alternatives: a.Alternatives, By: a.By}
	for _, p := range a.Alternatives {
		var minutes []int64
		if !a.Drive.Means().StepsAreJobs {
			minutes = []int64{int64(limitFor(p) / time.Minute)}
		}
		for i := range p {
			if a.Drive.Means().StepsAreJobs {
				minutes = append(minutes, int64(limitFor(p[i:i+1])/time.Minute))
			}
		}
		if a.Limit > 0 {
			minutes = []int64{int64(a.Limit / time.Minute)}
		}
		m.Minutes = append(m.Minutes, minutes)
	}
	sp.Moldable = m
	a.Profile = a.Alternatives[m.Submitted()]
	sp.Profile = a.Profile
}

// began finds out which alternative a moldable job got. If everything was released, it may begin on the nodes of the largest
// step of one.
func (a *App) began(nodes int, limit time.Duration) {
	found := -1
	for k, p := range a.Alternatives {
		if p[0].Nodes == nodes && (found < 0 || limitFor(p) == limit) {
			found = k
		}
	}
	if found < 0 && a.PeaksFrom > 0 {
		found = slices.IndexFunc(a.Alternatives, func(p planner.Profile) bool { return p.Peak() == nodes })
	}
	a.startsOver()
	if found >= 0 {
		a.Profile = a.Alternatives[found]
	}
}

// step returns the current step, 0 before the first.
func (a *App) step() int {
	if len(a.Steps) == a.First {
		return 0
	}
	return a.Steps[len(a.Steps)-1].Step
}

// job returns a Slurm job of the application.
func (a *App) job(sp request.Request, marker string, nodes int, limit time.Duration) slurmsim.Job {
	q := a.Asks
	q.User, q.Name, q.Comment, q.Partition, q.Nodes, q.TimeLimit = a.User, a.Name, marker, a.Partition, nodes, limit
	q.Script = "#!/bin/bash\n"
	if a.Stored {
		q.Script += sp.ScriptLine()
	}
	return q
}

func (a *App) lasts(step int) time.Duration {
	if a.Lasts != nil {
		return a.Lasts(step)
	}
	return a.says(step)
}

// says returns how long a step takes by the profile. A step from a change whose answer is still to
// come has no known duration yet: it counts as long as the last one.
func (a *App) says(step int) time.Duration {
	return time.Duration(a.Profile[min(step, len(a.Profile))-1].Duration) * time.Second
}

// Says is a malleable application's answer to an offer.
type Says struct {
	After time.Duration // time that it takes to answer
	Mute  bool          // it does not answer
	Nodes int           // largest number of nodes that it accepts; below 0 for all
	Until time.Duration // promises to give accepted nodes back by then, from its answer on; 0: no promise
	Bound bool          // promises to give them back by the time until which they are offered
}

// Act is an application's action some time into a step, which ends the step.
type Act struct {
	After  time.Duration
	Change *api.ChangeRequest // nil for evosctl next
}

// Demand makes a job with one step ask for more nodes as it runs (evosctl grow), at these seconds
// in turn, until it gets them or is refused for the last time. Left returns how many seconds it
// continues if it gets them at such a second, instead of the rest of its step.
type Demand struct {
	Nodes int
	At    []int64
	Left  func(at int64) int64 `codec:"-"`
}

// work is the work of a malleable application: the more nodes it has, the sooner it ends.
type work struct {
	Total   float64 // seconds that it takes at the speed of one node
	Speedup malleable.Speedup
	Nodes   int
	Changed slurmsim.Wake // wakes it when it has other nodes

	Left  float64       // to do, when the wait began
	Speed float64       // since then
	Since time.Duration // the wait began
}

// on sets the number of nodes that it works on from now on.
func (w *work) on(c *slurmsim.Cluster, nodes int) {
	if w == nil || w.Nodes == nodes {
		return
	}
	w.Nodes = nodes
	w.Changed.Act(c)
}

// bend makes the application of a malleable job, on a cluster of so many nodes. It takes every offer.
func (a *App) bend(s *Submission, size int) {
	up, rigid := s.speedup(), s.Profile[0]
	a.Profile, a.Says = s.least(), []Says{{Nodes: -1}}
	a.Malleable = &request.Malleable{Max: []int{min(s.Most, size)}}
	if s.Speedup != nil {
		a.Malleable.Speedup = fmt.Sprint(s.Speedup)
	}
	a.Work = &work{Total: float64(rigid.Duration) * up.At(rigid.Nodes), Speedup: up}
}
