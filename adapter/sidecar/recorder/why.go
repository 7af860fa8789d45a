package recorder

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/show/display"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Story collects what a recording says about one job. It must see every step.
type Story struct {
	Job slurmctl.JobID

	row     int64
	last    slurmctl.Job // as Slurm showed it last
	seen    time.Time
	holds   []slurmctl.Reservation // of it, as Slurm showed them last
	pending map[int64]started
	did     []entry // events and commands
	reason  []entry // what the core decided by: failed commands, answers
	lost    []entry // polls that failed
	ended   bool
}

type started struct {
	at   time.Time
	what string
}

type entry struct {
	at   time.Time
	text string
}

// See takes a step and returns the lines that concern the job.
func (s *Story) See(step Step) (lines []string) {
	if s.pending == nil {
		s.pending = map[int64]started{}
	}
	say := func(text string) { lines = append(lines, text) }
	for _, in := range step.Inputs {
		switch in := in.(type) {
		case msg.Books:
			for _, b := range slices.Concat(in.Active, in.Ended) {
				if b.Job.SlurmID == uint32(s.Job) {
					s.row = b.Job.ID
					say("the database has it: " + string(b.Job.State))
				}
			}
		case msg.Observation:
			s.poll(step.At, in, say)
		case msg.Planned:
			for _, p := range in.Jobs {
				if p.Job == s.Job && p.Unfit != "" {
					s.reason = append(s.reason, entry{step.At, "the strategy has no plan for it: " + p.Unfit})
				}
			}
		case msg.Outcome:
			if was, ours := s.pending[in.Task]; ours {
				delete(s.pending, in.Task)
				text := was.what + ": done"
				if in.Err != nil {
					text = was.what + ": failed: " + in.Err.Error()
				}
				say(text)
				s.reason = append(s.reason, entry{step.At, text})
			}
		case msg.Call:
			if in.Job == uint32(s.Job) {
				say(TellInput(in))
			}
		}
	}
	for _, e := range step.Effects {
		if add, ok := e.(msg.AddJob); ok && add.Job.SlurmID == uint32(s.Job) {
			s.row = add.Job.ID
		}
		if !concerns(reflect.ValueOf(e), s.Job, s.row, nil) {
			continue
		}
		switch e := e.(type) {
		case msg.Task:
			s.pending[e.ID] = started{step.At, fmt.Sprint(e.Command)}
			s.did = append(s.did, entry{step.At, fmt.Sprint(e.Command)})
		case msg.AddEvent:
			s.did = append(s.did, entry{step.At, tell(e)})
		}
		say(tell(e))
	}
	return lines
}

func (s *Story) poll(at time.Time, in msg.Observation, say func(string)) {
	if in.Err != nil {
		s.lost = append(s.lost, entry{at, in.Err.Error()})
		return
	}
	there := false
	for i := range in.Jobs {
		if j := &in.Jobs[i]; j.ID == s.Job {
			if there = true; j.State != s.last.State || !slices.Equal(j.NodeList, s.last.NodeList) || j.Reason != s.last.Reason {
				say(fmt.Sprintf("Slurm has it %s on %s (%s)", j.State, cmp.Or(slurmctl.CompressNodes(j.NodeList), "no nodes"), j.Reason))
			}
			s.last, s.seen = *j, at
		}
	}
	s.ended = !there && !s.seen.IsZero()
	s.holds = nil
	for _, r := range in.Reservations {
		if strings.HasPrefix(r.Name, fmt.Sprintf("evo_%d_", s.Job)) {
			s.holds = append(s.holds, r)
		}
	}
}

// mostTold bounds the lists of a story.
const mostTold = 20

// Why explains where the job is at the end of what was seen, and why. View is the core's state
// there, or nil if unknown. It reports whether the job is known.
func (s *Story) Why(w io.Writer, at time.Time, view *msg.View) bool {
	var job *api.Job
	if view != nil {
		for _, j := range slices.Concat(view.Ended, view.Jobs) {
			if j.ID == uint32(s.Job) || view.Base[uint32(s.Job)] == j.ID {
				job = &j
			}
		}
	}
	if job == nil && s.seen.IsZero() && len(s.did) == 0 {
		return false
	}
	writeLine(w, "job %d at %s", s.Job, at.Format(time.DateTime))
	if job != nil {
		for _, line := range display.Where(*job) {
			writeLine(w, "  %s", line)
		}
	} else if view != nil {
		writeLine(w, "  it is not an evolving job that the sidecar has adopted")
	}
	switch {
	case s.ended:
		writeLine(w, "  Slurm shows it no more; last seen %s at %s", s.last.State, s.seen.Format(time.DateTime))
	case !s.seen.IsZero():
		writeLine(w, "  Slurm had it %s, reason %q, priority %d, as of %s", s.last.State, s.last.Reason, s.last.Priority, s.seen.Format(time.TimeOnly))
	}
	for _, h := range s.holds {
		writeLine(w, "  %s", display.Hold(h.Name, slurmctl.CompressNodes(h.Nodes), h.Start, h.End))
	}
	tasks := make([]int64, 0, len(s.pending))
	for id := range s.pending {
		tasks = append(tasks, id)
	}
	slices.Sort(tasks)
	for _, id := range tasks {
		writeLine(w, "  under way since %s: %s", s.pending[id].at.Format(time.TimeOnly), s.pending[id].what)
	}
	list(w, "what was decided", s.did)
	list(w, "what that rested on", s.reason)
	list(w, "polls of Slurm that failed", s.lost)
	return true
}

// writeLine writes a line. Recorded texts are those of users: they must not steer a terminal.
func writeLine(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, legible.Printable(fmt.Sprintf(format, args...), false))
}

func list(w io.Writer, title string, all []entry) {
	if len(all) == 0 {
		return
	}
	writeLine(w, "%s:", title)
	if left := len(all) - mostTold; left > 0 {
		writeLine(w, "  (%d before)", left)
		all = all[left:]
	}
	for _, e := range all {
		writeLine(w, "  %s  %s", e.at.Format(time.TimeOnly), e.text)
	}
}
