// Package release finds everything of Evoslurm's in Slurm and lets it go, without a sidecar and its database.
//
// Find is pure. It trusts nothing that a user can write further than that user: the marker in a comment and the name of
// an expander make root act on jobs of that very user, and only as this user could. A reservation is ours if it has the
// name and the flags of a hold (core.ParseHold); only administrators make reservations.
package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/drive"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Thing is something of Evoslurm's in Slurm.
type Thing struct {
	Kind  string `json:"kind"`            // hold, queued, running or companion
	Job   uint32 `json:"job,omitempty"`   // Slurm's number; of a hold: the job that it is for
	Name  string `json:"name,omitempty"`  // of a hold or a companion
	User  string `json:"user,omitempty"`  //
	Nodes string `json:"nodes,omitempty"` //
	Does  string `json:"does"`            // what becomes of it
	Error string `json:"error,omitempty"` // why that failed: it is left

	do msg.Command // nil: nothing
}

// String returns a line about the thing.
func (t Thing) String() string {
	text := t.Kind
	if t.Kind != "hold" {
		text += fmt.Sprintf(" %d", t.Job)
	}
	if t.Name != "" {
		text += " " + t.Name
	}
	if t.Nodes != "" {
		text += " on " + t.Nodes
	}
	if text += ": " + t.Does; t.Error != "" {
		text += ": failed: " + t.Error
	}
	return text
}

// Site holds what Slurm shows, and who acts on it.
type Site struct {
	Jobs         []slurmctl.Job
	Reservations []slurmctl.Reservation
	Scripts      map[slurmctl.JobID]request.Request // of jobs that are parked and have lost their markers
	Self         string                             // the user that acts
	Root         bool                               // as root
	Now          time.Time
}

// Find lists what is left of Evoslurm's in Slurm, in the order in which it must be let go: holds come last, because Slurm
// deletes none that a job refers to.
func Find(s Site, d config.Drained) (all []Thing) {
	byID := map[slurmctl.JobID]*slurmctl.Job{}
	for i := range s.Jobs {
		byID[s.Jobs[i].ID] = &s.Jobs[i]
	}
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if r.Ended() || r.State == slurmctl.Completing {
			continue
		}
		if base, is := isExpander(s, r); is {
			if t, ours := s.companion(r, byID[base]); ours {
				all = append(all, t)
			}
		} else if t, ours := s.job(r, byID, d); ours {
			all = append(all, t)
		}
	}
	for _, r := range s.Reservations {
		of, ours := core.ParseHold(r)
		if !ours {
			continue
		}
		do := msg.GiveUpHold{Name: r.Name}
		for i := range s.Jobs {
			if j := &s.Jobs[i]; j.State == slurmctl.Pending && j.Reservation != "" && s.withoutHolds(j.Reservation) != j.Reservation && slices.Contains(strings.Split(j.Reservation, ","), r.Name) {
				do.TakeOut = append(do.TakeOut, msg.TakenOut{Job: j.ID, Rest: s.withoutHolds(j.Reservation)})
			}
		}
		all = append(all, Thing{Kind: "hold", Name: r.Name, Job: uint32(of), Nodes: slurmctl.CompressNodes(r.Nodes), Does: "given up", do: do})
	}
	return all
}

// isExpander reports whether a job has the name and the mark of an expander. A user can write both.
func isExpander(s Site, r *slurmctl.Job) (slurmctl.JobID, bool) {
	base, named := core.ParseExpander(r.Name)
	return base, named && (strings.Contains(r.Comment, request.ExpanderMark) || r.User == s.Self)
}

// companion returns what becomes of a job that brings nodes to another one, or false if it only says so.
func (s Site) companion(r, base *slurmctl.Job) (Thing, bool) {
	t := Thing{Kind: "companion", Job: uint32(r.ID), Name: r.Name, User: r.User, Nodes: slurmctl.CompressNodes(r.NodeList)}
	switch {
	case base != nil && base.UID != r.UID && r.User != s.Self:
		return t, false
	case base == nil || base.Ended() || base.State == slurmctl.Completing:
		t.Does, t.do = "ended: its job has ended", msg.Cancel{Jobs: []slurmctl.JobID{r.ID}, Done: r.State != slurmctl.Pending}
		return t, true
	case base.State == slurmctl.Pending || r.State == slurmctl.Pending:
		t.Does, t.do = "cancelled", msg.Cancel{Jobs: []slurmctl.JobID{r.ID}}
		return t, true
	}
	t.Does = fmt.Sprintf("stays with job %d; cancel it if that job ends before %s", base.ID, r.EndTime.Local().Format(time.DateTime))
	var u slurmctl.JobUpdate
	if !base.EndTime.IsZero() && r.EndTime.After(base.EndTime) {
		u.EndTime = base.EndTime
		t.Does = fmt.Sprintf("stays with job %d; it ends by %s", base.ID, u.EndTime.Local().Format(time.DateTime))
	}
	if rest := s.withoutHolds(r.Reservation); rest != r.Reservation {
		u.Reservation = &rest
	}
	if u != (slurmctl.JobUpdate{}) {
		t.do = msg.Update{Job: r.ID, Change: u}
	}
	return t, true
}

// asks returns what a job asks of Evoslurm, and whether it does: by its marker, also a damaged one, or by its script. A
// job that was let go and is parked all the same is let go again.
func (s Site) asks(r *slurmctl.Job) (request.Request, bool) {
	if r.Heterogenous {
		return request.Request{}, false // no sidecar takes such a job
	}
	if sp, lost := s.Scripts[r.ID]; lost {
		return sp, true
	}
	sp, asks, _ := request.ParseMarker(r.Comment)
	return sp, asks || request.IsLetGo(r.Comment) && s.parked(r)
}

// job returns what becomes of a job with a marker, or of one that refers to a hold. It reports false for other jobs.
func (s Site) job(r *slurmctl.Job, byID map[slurmctl.JobID]*slurmctl.Job, d config.Drained) (Thing, bool) {
	t := Thing{Kind: "queued", Job: uint32(r.ID), User: r.User, Nodes: slurmctl.CompressNodes(r.NodeList)}
	sp, asks := s.asks(r)
	do := msg.Update{Job: r.ID}
	u := &do.Change
	if rest := s.withoutHolds(r.Reservation); rest != r.Reservation {
		u.Reservation = &rest
	}
	if comment := request.LetGo(r.Comment); asks && comment != r.Comment {
		u.Comment = &comment
	}
	switch {
	case !asks && u.Reservation == nil:
		return t, false
	case r.State != slurmctl.Pending:
		t.Kind, t.Does = "running", "keeps its nodes, as an ordinary job"
	case !asks:
		t.Does = "taken out of a hold that is not for it"
	case d.Queued == "cancel":
		t.Does, t.do = "cancelled", msg.Cancel{Jobs: []slurmctl.JobID{r.ID}}
		return t, true
	default:
		t.Does = s.letGo(r, sp, d, u)
		if u.NumNodes > 0 {
			do.As = r.UID // Slurm compares the size with the user's limits
		}
		if d.Queued == "hold" && (sp.Chain == nil || sp.Chain.First == 0 || isPending(byID[slurmctl.JobID(sp.Chain.First)])) {
			u.Comment = nil // a later sidecar may take it
		}
	}
	if *u == (slurmctl.JobUpdate{}) {
		return t, false
	}
	t.do = do
	return t, true
}

func isPending(r *slurmctl.Job) bool { return r != nil && r.State == slurmctl.Pending }

// letGo sets what a parked job needs to be an ordinary one, and says that in words.
func (s Site) letGo(r *slurmctl.Job, sp request.Request, d config.Drained, u *slurmctl.JobUpdate) string {
	words := "let go with the nodes of its first step"
	switch {
	case sp.Begin.After(s.Now):
		words += ", not before " + sp.Begin.Local().Format(time.DateTime)
		if !r.StartTime.Equal(sp.Begin) {
			u.StartTime = sp.Begin
		}
	case r.StartTime.After(s.Now):
		u.StartNow = true
	}
	if peak := sp.Profile.Peak(); d.As == "peak" && s.Root && sp.Chain == nil && peak > r.NumNodes {
		u.NumNodes = peak
		words = fmt.Sprintf("let go with the %d nodes of its largest step", peak)
	}
	if d.Queued == "hold" {
		u.Hold = r.Priority > 0
		words = "held (scontrol release starts it)"
	}
	return words
}

// withoutHolds returns a list of reservations without our holds.
func (s Site) withoutHolds(list string) string {
	if list == "" {
		return ""
	}
	return strings.Join(slices.DeleteFunc(strings.Split(list, ","), func(name string) bool {
		i := slices.IndexFunc(s.Reservations, func(r slurmctl.Reservation) bool { return r.Name == name })
		if i < 0 {
			return false
		}
		_, ours := core.ParseHold(s.Reservations[i])
		return ours
	}), ",")
}

const (
	parkedYears = 5 * 365 * 24 * time.Hour // evosbatch and the sidecar park for ten
	mostScripts = 200                      // that are read of one user's jobs
)

// parked reports whether a job waits for a start time that only a sidecar sets.
func (s Site) parked(r *slurmctl.Job) bool {
	return r.State == slurmctl.Pending && r.StartTime.After(s.Now.Add(parkedYears))
}

// Look reads what Slurm shows.
func Look(ctx context.Context, slurm drive.Slurm, self string, root bool) (Site, error) {
	s := Site{Self: self, Root: root, Scripts: map[slurmctl.JobID]request.Request{}}
	var err1, err2 error
	s.Jobs, err1 = slurm.Jobs(ctx)
	s.Reservations, err2 = slurm.Reservations(ctx)
	s.Now = time.Now()
	if err := cmp.Or(err1, err2); err != nil {
		return s, err
	}
	read := map[uint32]int{}
	for _, r := range s.Jobs {
		if !s.parked(&r) || request.MayBeMarked(r.Comment) || read[r.UID] >= mostScripts {
			continue
		}
		read[r.UID]++
		if text, err := slurm.BatchScript(ctx, r.ID); err == nil {
			if sp, asks, _ := request.FromStoredText(text); asks {
				s.Scripts[r.ID] = sp
			}
		}
	}
	return s, nil
}

// Do lets things go in their order, and calls done after each one. If Slurm does not give a job the nodes of its largest
// step, it gets those of its first. The same holds for all further jobs of a user in whose name a command did not end in
// time: users can stop what runs in their names.
func Do(ctx context.Context, d *drive.Driver, things []Thing, done func(Thing)) {
	late := map[uint32]bool{}
	for i := range things {
		if things[i].do != nil {
			things[i].let(ctx, d, late)
		}
		done(things[i])
	}
}

func (t *Thing) let(ctx context.Context, d *drive.Driver, late map[uint32]bool) {
	do, _ := t.do.(msg.Update)
	peak, err := do.Change.NumNodes > 0, context.DeadlineExceeded
	if !peak || !late[do.As] {
		_, err = d.Run(ctx, ctx, msg.Task{Command: t.do})
	}
	if peak && err != nil && !errors.Is(err, slurmctl.ErrUnreachable) {
		late[do.As] = errors.Is(err, context.DeadlineExceeded)
		t.Does = fmt.Sprintf("let go with the nodes of its first step (Slurm refuses %d: %v)", do.Change.NumNodes, err)
		do.Change.NumNodes, do.As = 0, 0
		_, err = d.Run(ctx, ctx, msg.Task{Command: do})
	}
	if err != nil && !errors.Is(err, slurmctl.ErrUnknownJob) && !errors.Is(err, slurmctl.ErrAlreadyDone) {
		t.Error = err.Error()
	}
}

// Changes reports whether letting the thing go changes anything.
func (t Thing) Changes() bool { return t.do != nil }
