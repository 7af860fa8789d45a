package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// Users of the model.
var (
	Alice = slurmsim.User{Name: "alice", UID: 1001, Account: "physics"}
	Bob   = slurmsim.User{Name: "bob", UID: 1002, Account: "chemistry"}

	Mallory = slurmsim.User{Name: "mallory", UID: 1003, Account: "chemistry"} // attacks
)

func userOf(uid uint32) (*slurmctl.User, error) {
	for _, u := range []slurmsim.User{Alice, Bob, Mallory, {Name: "root"}} {
		if u.UID == uid {
			return &slurmctl.User{Name: u.Name, UID: uid, GID: uid}, nil
		}
	}
	if uid >= firstUser && uid < firstUser+mostUsers {
		return &slurmctl.User{Name: experimenter(int(uid - firstUser)).Name, UID: uid, GID: uid}, nil
	}
	return nil, fmt.Errorf("user %d: unknown", uid)
}

func unavailable(err error) bool { return errors.Is(err, api.ErrUnavailable) }

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
	Partition   string       // "": the default one
	Asks        slurmsim.Job // what else it asks for: memory, GRES, a QOS
	Stored      bool         // its script also has the request, for sites whose plugins overwrite comments

	// Alternatives holds the profiles of a moldable job; Profile is the one that it got.
	Alternatives []planner.Profile
	By           planner.Preference

	// Lasts returns how long a step (from 1) really takes; nil if as the profile says.
	Lasts func(step int) time.Duration
	// Deaf means that it never calls next; Abrupt is the step after which it ends without calling
	// next.
	Deaf   bool
	Abrupt int

	// Malleable holds its bounds beyond the profile; Says holds its answers to offers, in turn.
	Malleable *request.Malleable
	Says      []Says
	work      *work // what its step has to do; nil: it lasts as long on any size

	// Acts holds what it does on its own, instead of following its profile.
	Acts     []Act
	Demand   *Demand // or this
	Refusals int     // of its changes

	Steps []Begun  // what became of it
	first int      // the current run's first entry: a requeued job starts over, with a profile that others may have changed, or another alternative
	wrong []string // what was wrong in the runs before
	Err   error    // of next, if any

	before   []request.Request // what it asked for before each of its changes
	over     int               // number of first steps for which the sidecar knows only the peak
	failed   int               // nodes that it has lost since its step began
	regained int               // nodes that it has again, because slurmctld forgot that they were given back
	booted   time.Duration     // when slurmctld was back after a crash, last; 0: it has not crashed
}

// Begun is a step that an application saw begin.
type Begun struct {
	Step, Nodes int
	At          time.Duration // of the cluster, see slurmsim.Cluster.Elapsed
	Bound       bool          // slurmctld releases no node except its script's
	Failed      int           // nodes that it had lost by then, since the step began
	Regained    int           // and those that it had again
}

// begun returns a step that begins now.
func (s *Sidecar) begun(script *slurmsim.Process, a *App, step, nodes int) Begun {
	if nodes := s.Cluster.Revoked(script.Job().ID); len(nodes) > 0 {
		a.wrong = append(a.wrong, fmt.Sprintf("%s began step %d, and Slurm starts nothing of it on %v, which it had given back in the same second", a.Name, step, nodes))
	}
	return Begun{step, nodes, s.Cluster.Elapsed(), script.Job().BatchHost != script.Host(), a.failed, a.regained}
}

// parkedFor is how far ahead evosbatch parks jobs.
const parkedFor = 3650 * 24 * time.Hour

// Submit submits an evolving job as evosbatch does.
func (s *Sidecar) Submit(a *App) (slurmctl.JobID, error) {
	sp := request.Request{Profile: a.Profile, Drive: a.Drive, ExpandLimit: a.ExpandLimit, Begin: a.Begin, MaxNodes: a.Claim, Malleable: a.Malleable}
	if len(a.Alternatives) > 0 {
		a.mold(&sp)
	}
	if a.Drive == drivemode.Chain {
		return s.submitChain(a, sp)
	}
	marker, ok := sp.Marker()
	if !ok {
		return 0, fmt.Errorf("no marker for %v", a.Profile)
	}
	limit := a.Limit
	if limit == 0 {
		limit = limitFor(a.Profile)
	}
	q := a.job(sp, marker, a.Profile[0].Nodes, limit)
	q.Begin, q.Program = s.Cluster.Now().Add(parkedFor), func(p *slurmsim.Process) { s.run(p, a) }
	return s.Cluster.Submit(q)
}

// limitFor returns the time limit of a job that asks for none.
func limitFor(p planner.Profile) time.Duration {
	return time.Duration(p.Duration()/60+2) * time.Minute
}

// mold makes the request moldable, as evosbatch does.
func (a *App) mold(sp *request.Request) {
	m := &request.Moldable{Alternatives: a.Alternatives, By: a.By}
	for _, p := range a.Alternatives {
		var minutes []int64
		if a.Drive != drivemode.Chain {
			minutes = []int64{int64(limitFor(p) / time.Minute)}
		}
		for i := range p {
			if a.Drive == drivemode.Chain {
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

// began finds out which alternative a moldable job got.
func (a *App) began(nodes int, limit time.Duration) {
	found := -1
	for k, p := range a.Alternatives {
		if p[0].Nodes == nodes && (found < 0 || limitFor(p) == limit) {
			found = k
		}
	}
	a.startsOver()
	if found >= 0 {
		a.Profile = a.Alternatives[found]
	}
}

// startsOver judges the run before by the profile that it had.
func (a *App) startsOver() {
	a.wrong, a.first = append(a.wrong, a.judged()...), len(a.Steps)
}

// judged returns the steps of the current run in which it did not get what its profile says.
func (a *App) judged() (wrong []string) {
	for _, b := range a.Steps[a.first:] {
		if b.Step > len(a.Profile) {
			wrong = append(wrong, fmt.Sprintf("%s began step %d, and has %d", a.Name, b.Step, len(a.Profile)))
		} else if want := a.Profile[b.Step-1].Nodes; !a.within(b.Step, b.Nodes) && !(b.Bound && b.Nodes == 2 && want == 1) && !a.standsIn(b) && !a.withFailed(b) && !a.beganAsBefore(b) {
			wrong = append(wrong, fmt.Sprintf("%s began step %d on %d nodes, want %d", a.Name, b.Step, b.Nodes, want))
		}
	}
	return wrong
}

// step returns the current step, 0 before the first.
func (a *App) step() int {
	if len(a.Steps) == a.first {
		return 0
	}
	return a.Steps[len(a.Steps)-1].Step
}

// submitChain submits one job a step.
func (s *Sidecar) submitChain(a *App, sp request.Request) (first slurmctl.JobID, err error) {
	var before slurmctl.JobID
	for i, step := range a.Profile {
		sp.Chain = &request.ChainLink{Step: i + 1, First: uint32(first)}
		marker, ok := sp.Marker()
		if !ok {
			return 0, fmt.Errorf("no marker for %v", a.Profile)
		}
		q := a.job(sp, marker, step.Nodes, time.Duration(step.Duration/60+2)*time.Minute)
		q.Begin, q.Program = s.Cluster.Now().Add(parkedFor), func(p *slurmsim.Process) {
			if i == 0 {
				a.began(len(p.Job().NodeList), 0)
			}
			a.Steps = append(a.Steps, s.begun(p, a, i+1, len(p.Job().NodeList)))
			p.Sleep(a.lasts(i + 1))
		}
		if i > 0 {
			q.After, q.KillOnInvalidDep = []slurmsim.Dependency{{Kind: "afterok", Job: before}}, true
		}
		if before, err = s.Cluster.Submit(q); err != nil {
			return first, err
		}
		if i == 0 {
			first = before
		}
	}
	return first, nil
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

// run is the application's script.
func (s *Sidecar) run(p *slurmsim.Process, a *App) {
	if a.Malleable != nil {
		s.listen(p, a)
	}
	switch {
	case a.Acts != nil:
		s.runActs(p, a)
		return
	case a.Demand != nil:
		s.demands(p, a)
		return
	}
	nodes := len(p.Job().NodeList)
	a.began(nodes, p.Job().TimeLimit)
	for step := 1; ; {
		a.Steps = append(a.Steps, s.begun(p, a, step, nodes))
		if a.work != nil {
			s.work(p, a.work, nodes)
		} else {
			s.appoint(a.lasts(step))
			p.Sleep(a.lasts(step))
		}
		switch {
		case a.Deaf:
			p.Sleep(1000 * time.Hour) // until it is ended
			return
		case a.Abrupt == step:
			return
		}
		got, err := s.Next(p, p.Job().ID, step)
		if err != nil {
			a.Err = err
			p.Exit(1)
			return
		}
		if got.Done {
			return
		}
		step, nodes = got.Step, got.Nodes // which others may have changed
	}
}
