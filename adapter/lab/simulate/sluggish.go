package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// sluggish makes slurmctld do what it is asked, but late.
type sluggish struct {
	least, most time.Duration // what each command of the sidecar takes; 0: no longer than usual
	commands    int           // so far
	changes     int           // among them
	under       []time.Time   // when the changes that are under way are answered
	looking     []time.Time   // the same for commands that change nothing
	peak        int           // how many changes were under way at once
	skips       bool          // polls without effect are skipped while it answers promptly
}

// mostLooks bounds the concurrent commands that change nothing: one for each of the core's sixteen
// tasks, and two for polls. Beyond that, they pile up.
const mostLooks = 18

// answers FROM TO; answers promptly
func (h *history) answers(words []string) (err error) {
	before := h.slow
	h.slow = sluggish{skips: before.skips || h.s.Skip}
	h.s.Skip, h.s.Paced = false, h.s.Cluster.Elapsed() // where a poll takes long, none is without effect
	if len(words) == 1 && words[0] == "promptly" {
		h.s.Skip = h.slow.skips
		h.say(fmt.Sprintf("slurmctld answers promptly again: %d changes asked for meanwhile, %d at once", before.changes, before.peak))
		return nil
	}
	if len(words) != 2 {
		return errors.New("answers FROM TO, or answers promptly")
	}
	var err1, err2 error
	h.slow.least, err1 = time.ParseDuration(words[0])
	h.slow.most, err2 = time.ParseDuration(words[1])
	return errors.Join(err1, err2)
}

// slows returns what befalls a command meanwhile: half of the delay before slurmctld acts, half
// before its answer is there.
func (h *history) slows(q slurmsim.Command) slurmsim.Fault {
	s := &h.slow
	if s.most == 0 {
		return slurmsim.Fault{}
	}
	s.commands++
	delay := s.least + time.Duration(s.commands*7%11)*(s.most-s.least)/10
	under := &s.looking
	if q.Changes() {
		s.changes++
		under = &s.under
	}
	*under = append(slices.DeleteFunc(*under, func(t time.Time) bool { return !t.After(q.At) }), q.At.Add(delay))
	s.peak = max(s.peak, len(s.under))
	if len(s.looking) > mostLooks {
		h.blame(fmt.Errorf("%d commands that only look are under way at once: %v", len(s.looking), q))
	}
	return slurmsim.Fault{Before: delay / 2, After: delay - delay/2}
}
