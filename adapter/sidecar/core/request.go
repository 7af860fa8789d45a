package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// script holds what the batch script of a job asks for, if the job's comment does not have the whole request.
type script struct {
	given request.Request
	asked bool
	err   error
	known bool

	tries int       // failed tries
	again time.Time // when it is read again
}

// request returns what a Slurm job that is not adopted asks of Evoslurm: from the marker in its comment or, if
// a site's plugins removed the marker, from its script. It reports false while the script is still unread.
func (c *Core) request(s *snapshot, r *slurmctl.Job) (sp request.Request, asked bool, err error) {
	if sp, asked, err = c.unbounded(s, r); asked && err == nil {
		sp, err = s.bounded(sp)
	}
	return sp, asked, err
}

// bounded returns a request without the alternatives and the bounds of a malleable job that need more nodes
// than the cluster has, or why nothing of the request is left. Running jobs are no exception: a user wrote
// every number in the request.
func (s *snapshot) bounded(sp request.Request) (request.Request, error) {
	if len(sp.Profile) == 0 {
		return sp, errors.New("neither the marker nor the script has a profile")
	}
	size := len(s.nodes)
	sp.CutMax(max(size, sp.Profile.Peak()))
	large := func(p planner.Profile) bool { return p.Peak() > size }
	if m := sp.Moldable; m != nil && slices.ContainsFunc(m.Alternatives, large) {
		var reasons []string
		if sp, reasons = feasibleAlternatives(sp, func(one request.Request) []string { return nonEmpty(one.Beyond(size)) }); len(reasons) > 0 {
			return sp, errors.New(strings.Join(reasons, "; "))
		}
	}
	if why := sp.Beyond(size); why != "" {
		return sp, errors.New(why)
	}
	if n, err := slurmctl.CountNodes(sp.Nodes); err != nil || n > size {
		return sp, fmt.Errorf("its --nodelist names %d nodes, and the cluster has %d: name those that it may have", n, size)
	}
	return sp, nil
}

// nonEmpty returns a text as a list, which is empty if the text is.
func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// unbounded does what request does, but does not compare the numbers with the cluster.
func (c *Core) unbounded(s *snapshot, r *slurmctl.Job) (sp request.Request, asked bool, err error) {
	sp, asked, err = c.mark(r)
	switch {
	case asked && err == nil && len(sp.Profile) > 0, errors.Is(err, request.ErrVersion):
		return sp, asked, err
	case !asked && !mayHaveLost(r, s.taken) && !s.heldFor()[r.ID] || c.owner(r.ID) != nil:
		return sp, false, nil
	}
	read := c.readScript(r.ID)
	switch {
	case !read.known:
		c.coming[r.ID] = r.UID
		return request.Request{}, false, nil
	case asked && err == nil: // the marker had no room for the profile
		if read.err != nil {
			return request.Request{}, true, read.err
		}
		sp, err = sp.Join(read.given)
		return sp, true, err
	case asked && (read.err != nil || !read.asked):
		return request.Request{}, true, err
	}
	return read.given, read.asked, read.err
}

// mayHaveLost reports whether a job without a marker may have had one: it is parked years ahead, as evosbatch
// and the sidecar park jobs.
func mayHaveLost(r *slurmctl.Job, now time.Time) bool {
	return r.State == slurmctl.Pending && r.StartTime.Sub(now) > parked/2
}

// heldFor returns the jobs that have holds. If the database was lost, such a job may run without a marker.
func (s *snapshot) heldFor() map[slurmctl.JobID]bool {
	if s.holders == nil {
		s.holders = map[slurmctl.JobID]bool{}
		for _, r := range s.reservations {
			if own, ours := parseHold(r); ours {
				s.holders[own.job] = true
			}
		}
	}
	return s.holders
}

// readScript returns what a job's script asks for, or starts to read it: then a later cycle has the result. A
// failed read is repeated as often as that of a request.
func (c *Core) readScript(id slurmctl.JobID) script {
	read := c.scripts[id]
	if read == nil {
		read = &script{}
	}
	if read.known || c.now.Before(read.again) || !c.work.room() {
		return *read
	}
	if c.ask(nil, fmt.Sprint("script ", id), KindScript, Task{Command: ReadScript{id}}, Args{}) {
		c.scripts[id] = read
	}
	return script{}
}

// settleScript records what a job's script asks for.
func (c *Core) settleScript(_ *job, p *Pending, o Outcome) {
	read := c.scripts[commandOf[ReadScript](p).Job]
	if read == nil {
		read = &script{} // the job is gone
	}
	switch answer, ok := o.Result.(Scripted); {
	case transient(o.Err):
		return // again, a little later
	case ok && o.Err == nil:
		read.given, read.asked, read.err = answer.Request, answer.Asked, answer.Err
	case read.tries+1 < askTries:
		read.again = c.now.Add(askPauseAfter(read.tries))
		read.tries++
		return
	}
	read.known = true
	c.nextCycle = c.now
}

// see stores Slurm's record of the job's base job. The nodes to which an evolving job is bound are in its
// marker, or in its script if the marker is gone.
func (j *job) see(r *slurmctl.Job) {
	j.record = *r
	j.record.ExcNodes = j.without(r.ExcNodes)
	if j.bound != "" {
		j.record.ReqNodes = j.may
	}
}

// bindTo restricts the job to the nodes of a list that was compared with the cluster before; "": it may have
// any.
func (j *job) bindTo(list string) { j.bound, j.may = list, expanded(list) }
