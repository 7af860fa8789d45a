package hold

import (
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// The ledger has a row for each hold: when it was made, changed, used, and given up, by whom and why, and what it
// held. Book compares the rows with the holds that are there, whatever brought these about.

// book brings the ledger up to date with the reservations.
func book(c *state.Core) {
	for _, h := range c.Ours {
		if j := c.ByID[h.Own.Job]; j != nil {
			bookHold(c, j, h)
		}
	}
	for _, name := range state.SortedKeys(c.Ledger) {
		r, there := c.Reservations[name]
		_, ours := state.ParseHold(r)
		if _, stuck := c.StuckHolds[name]; stuck { // its job stays in it
			bookBegin(c, c.Ledger[name])
		} else if (!there || !ours) && !lacks(c, c.Ledger[name]) {
			closeHold(c, c.Ledger[name])
		}
	}
}

// bookRefusal opens the row of a hold that Slurm refused to make, or counts a further refusal in it, which is saved with
// the row's end: the sidecar tries again every few seconds. A hold with a row was made after all, as a poll has shown.
func bookRefusal(c *state.Core, j *state.Job, r slurmctl.Reservation) {
	if b := c.Ledger[r.Name]; b != nil && b.Cause != row.CauseNotMade {
		return
	}
	own, _ := state.ParseHoldName(r.Name)
	var b *state.Booked
	for _, one := range c.Ledger {
		if one.Cause == row.CauseNotMade && one.Job == j.ID && one.Step == own.Step {
			b = one
		}
	}
	first := b == nil
	if first {
		c.LastHold++
		b = &state.Booked{Hold: row.Hold{ID: c.LastHold, Job: j.ID, Step: own.Step, Made: c.Now, Cause: row.CauseNotMade}}
	} else {
		delete(c.Ledger, b.Name)
		b.Changes, b.Changed = b.Changes+1, c.Now
	}
	b.Name, b.Nodes, b.NodeList, b.Planned, b.Counted = r.Name, len(r.Nodes), cutList(slurmctl.CompressNodes(r.Nodes)), r.Start, c.Now
	if c.Ledger[b.Name] = b; first {
		c.SaveHold(b)
	}
}

// lacks reports whether a job still needs a hold that Slurm refused to make, and has none in its place.
func lacks(c *state.Core, b *state.Booked) bool {
	own, _ := state.ParseHoldName(b.Name)
	j := c.ByID[own.Job]
	if b.Cause != row.CauseNotMade || j == nil || j.State == row.Ended || c.HoldNames[state.HoldKey{own.Job, own.Step}] != "" {
		return false
	}
	return b.Step == refit.LentStep && refit.OfferAt(j) != nil || slices.ContainsFunc(Gained(j), func(g state.Gain) bool { return g.Step == b.Step })
}

// bookBegin saves the row of a hold whose job has got the nodes.
func bookBegin(c *state.Core, b *state.Booked) {
	own, _ := state.ParseHoldName(b.Name)
	if j := c.ByID[own.Job]; j != nil && begins(j, b) {
		b.Begun = j.StepStarted
		c.SaveHold(b)
	}
}

// bookHold opens the row of a hold, or takes over what has changed.
func bookHold(c *state.Core, j *state.Job, h state.OwnHold) {
	r, b := c.Reservations[h.Name], c.Ledger[h.Name]
	list := cutList(slurmctl.CompressNodes(r.Nodes))
	switch {
	case b == nil || b.Cause == row.CauseNotMade: // Slurm made it after all
		if b == nil {
			c.LastHold++
			b = &state.Booked{Hold: row.Hold{ID: c.LastHold}}
		}
		b.Hold = row.Hold{ID: b.ID, Job: j.ID, Step: h.Own.Step, Name: h.Name, Made: c.Now, Counted: c.Now}
		c.Ledger[h.Name] = b
	case b.NodeList != list || !b.Planned.Equal(r.Start) && b.Begun.IsZero():
		b.Changes, b.Changed = b.Changes+1, c.Now
	case !begins(j, b):
		b.Size, b.Ran = len(r.Nodes), j.Runs()
		return
	}
	b.Ran = j.Runs()
	b.Count(c.Now)
	b.NodeList, b.Size, b.Nodes = list, len(r.Nodes), max(b.Nodes, len(r.Nodes))
	if b.Begun.IsZero() {
		b.Planned = r.Start
	}
	if begins(j, b) {
		b.Begun = j.StepStarted
	}
	c.SaveHold(b)
}

// begins reports whether the job has got the nodes of a hold, and the row does not say so yet.
func begins(j *state.Job, b *state.Booked) bool {
	return b.Begun.IsZero() && b.Cause == "" && b.Step != refit.LentStep && j.Runs() && j.Step >= b.Step
}

// cutList returns a list of nodes as rows have it.
func cutList(list string) string {
	if len(list) > row.MostListed {
		return list[:row.MostListed-1] + "…"
	}
	return list
}

// closeHold closes the row of a hold that is gone.
func closeHold(c *state.Core, b *state.Booked) {
	own, _ := state.ParseHoldName(b.Name)
	j := c.ByID[own.Job]
	b.Count(c.Now)
	if j != nil && begins(j, b) {
		b.Begun = j.StepStarted
	}
	b.Ended = c.Now
	if b.Cause == "" {
		b.Cause, b.By = closedFor(c, j, b)
	}
	delete(c.Ledger, b.Name)
	c.SaveHold(b)
}

// closedFor returns why a hold is gone, and which operator wanted it.
func closedFor(c *state.Core, j *state.Job, b *state.Booked) (cause, by string) {
	switch {
	case !b.Begun.IsZero():
		return row.CauseKept, ""
	case b.GivenUp && c.Releases():
		return row.CauseReleased, drainedBy(c)
	case j == nil || j.State == row.Ended || j.Ending:
		return row.CauseJobEnded, ""
	case !b.GivenUp:
		return row.CauseGone, ""
	case b.Refused:
		return row.CauseRefused, ""
	case b.Step == refit.LentStep:
		return row.CauseOffer, ""
	case b.Ran && !j.Runs():
		return row.CauseRequeued, ""
	}
	return notNeeded(c, j, b)
}

// notNeeded returns why a hold was given up that the plan of a living job no longer needs, and which operator wanted it.
func notNeeded(c *state.Core, j *state.Job, b *state.Booked) (cause, by string) {
	switch {
	case j.Open.Lapsed && len(j.Plan) < b.Step:
		return j.Open.Cause, j.Open.By
	case j.Kept != nil:
		return row.CauseKeptBack, ""
	case slices.Contains(j.Deferred, b.Step):
		return row.CauseShares, ""
	case failed(c, b):
		return row.CauseNodeFailed, ""
	case c.Drained():
		return row.CauseReleased, drainedBy(c)
	case needless(j, b):
		return row.CauseNotNeeded, ""
	}
	return row.CauseReplanned, ""
}

// needless reports whether the plan brings the job no nodes for the hold's step, and none of the hold's nodes: it grew
// before, or its profile was changed.
func needless(j *state.Job, b *state.Booked) bool {
	names, err := slurmctl.ExpandNodes(b.NodeList)
	return err == nil && len(j.Plan) == len(j.Profile) && !slices.ContainsFunc(Gained(j), func(g state.Gain) bool {
		return g.Step == b.Step || len(msg.Common(g.Nodes, names)) > 0
	})
}

// drainedBy returns the operator who drained the sidecar.
func drainedBy(c *state.Core) string {
	d, err := c.Config.Drain.Parse()
	if err != nil { // the configuration was checked
		return ""
	}
	return d.By
}

// failed reports whether a node of a hold cannot be used any more.
func failed(c *state.Core, b *state.Booked) bool {
	names, err := slurmctl.ExpandNodes(b.NodeList)
	return err == nil && c.Snapshot != nil && slices.ContainsFunc(names, func(name string) bool {
		n, known := c.Snapshot.Index[name]
		return !known || !c.Snapshot.Nodes[n].Usable()
	})
}
