package adopt

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// requestOf returns what a Slurm job that is not adopted asks of Evoslurm: from the marker in its comment or, if
// a site's plugins removed the marker, from its script. It reports false while the script is still unread. A user
// writes how many steps there are, so the core joins and bounds the same texts only once.
func requestOf(c *state.Core, s *state.Snapshot, r *slurmctl.Job) (request.Request, bool, error) {
	sp, script, asked, err := textsOf(c, s, r)
	if !asked || err != nil {
		return sp, asked, err
	}
	from := state.Texts{Comment: r.Comment, Script: c.Scripts[r.ID], Nodes: len(s.Nodes)}
	if known, ok := c.Requests[r.ID]; ok && known.From == from {
		return known.Request, true, known.Err
	}
	if script != nil {
		sp, err = sp.Join(*script)
	}
	if err == nil {
		sp, err = bounded(s, sp)
	}
	if c.Requests == nil {
		c.Requests = map[slurmctl.JobID]state.Bounded{}
	}
	c.Requests[r.ID] = state.Bounded{From: from, Request: sp, Err: err}
	return sp, true, err
}

// bounded returns a request without the alternatives and the bounds of a malleable job that need more nodes
// than the cluster has, or why nothing of the request is left. Running jobs are no exception: a user wrote
// every number in the request.
func bounded(s *state.Snapshot, sp request.Request) (request.Request, error) {
	if len(sp.Profile) == 0 {
		return sp, errors.New("neither the marker nor the script has a profile")
	}
	size := len(s.Nodes)
	sp.CutMax(max(size, sp.Profile.Peak()))
	large := func(p planner.Profile) bool { return p.Peak() > size }
	if m := sp.Moldable; m != nil && slices.ContainsFunc(m.Alternatives, large) {
		var reasons []string
		if sp, reasons = plan.FeasibleAlternatives(sp, func(one request.Request) []string { return nonEmpty(one.Beyond(size)) }); len(reasons) > 0 {
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

// textsOf returns the request as the marker or the script has it, not yet compared with the cluster. If the
// marker had no room for the profile, it also returns the request in the script, which fills the gaps.
func textsOf(c *state.Core, s *state.Snapshot, r *slurmctl.Job) (sp request.Request, script *request.Request, asked bool, err error) {
	sp, asked, err = plan.Mark(c, r)
	switch {
	case asked && err == nil && len(sp.Profile) > 0, errors.Is(err, request.ErrVersion):
		return sp, nil, asked, err
	case !asked && !mayHaveLost(c, r, s.Taken) && !s.Holders[r.ID] || c.Owner(r.ID) != nil:
		return sp, nil, false, nil
	}
	read := ReadScript(c, r)
	switch {
	case !read.Known:
		c.Coming[r.ID] = r.UID
		return request.Request{}, nil, false, nil
	case asked && err == nil: // the marker had no room for the profile
		if read.Err != nil {
			return request.Request{}, nil, true, read.Err
		}
		return sp, &c.Scripts[r.ID].Given, true, nil
	case asked && (read.Err != nil || !read.Asked):
		return request.Request{}, nil, true, err
	}
	return read.Given, nil, read.Asked, read.Err
}

// mayHaveLost reports whether a job without a marker may have had one: it is parked years ahead, as evosbatch
// and the sidecar park jobs.
func mayHaveLost(c *state.Core, r *slurmctl.Job, now time.Time) bool {
	return r.State == slurmctl.Pending && !c.Reached(now, r.StartTime.Add(-Parked/2))
}

// ReadScript returns what a job's script asks for, or starts to read it: then a later cycle has the result. A
// failed read is repeated as often as that of a request.
func ReadScript(c *state.Core, r *slurmctl.Job) state.Script {
	id := r.ID
	read := c.Scripts[id]
	if read == nil {
		read = &state.Script{}
	}
	key := fmt.Sprint("script ", id)
	if read.Known || !c.Reached(c.Now, read.Again) || c.Work.Keys[key] {
		return *read
	}
	if !roomForScript(c, r.UID) {
		c.Work.PutOff = true
		return *read
	}
	if c.Ask(nil, key, state.KindScript, msg.Task{Command: msg.ReadScript{id}}, state.Args{Of: id, UID: r.UID}) {
		c.Scripts[id] = read
	}
	return state.Script{}
}

// scriptsAtOnce is how many scripts are read at once.
const scriptsAtOnce = 2

// roomForScript does what RoomToRead does for a script, which may have megabytes: two are read at once, in
// turns one per user.
func roomForScript(c *state.Core, uid uint32) bool {
	scripts, own := 0, 0
	for id, r := range c.Work.Reads {
		if c.Work.Pending[id].Kind != state.KindScript {
			continue
		}
		if scripts++; r.UID == uid {
			own++
		}
	}
	return scripts < scriptsAtOnce && (own == 0 || !c.Work.InTurns) && c.RoomToRead(uid)
}

// SettleScript records what a job's script asks for.
func SettleScript(c *state.Core, _ *state.Job, p *state.Pending, o msg.Outcome) {
	read := c.Scripts[state.CommandOf[msg.ReadScript](p).Job]
	if read == nil {
		read = &state.Script{} // the job is gone
	}
	switch answer, ok := o.Result.(msg.Scripted); {
	case state.Transient(o.Err):
		return // again, a little later
	case ok && o.Err == nil:
		read.Given, read.Asked, read.Err = answer.Request, answer.Asked, answer.Err
	case read.Tries+1 < AskTries:
		read.Again = c.Now.Add(askPauseAfter(read.Tries))
		read.Tries++
		return
	}
	read.Known = true
	c.NextCycle = c.Now
}

// See stores Slurm's record of the job's base job. The nodes to which an evolving job is bound are in its
// marker, or in its script if the marker is gone.
func See(j *state.Job, r *slurmctl.Job) { j.Saw(r, Without(j, r.ExcNodes)) }

// bindTo restricts the job to the nodes of a list that was compared with the cluster before; "": it may have
// any.
func bindTo(j *state.Job, list string) { j.Bound, j.May = list, expanded(list) }
