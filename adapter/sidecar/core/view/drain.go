package view

import (
	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// drainShown returns how the sidecar is switched off and what is left, or nil if it is not.
func drainShown(c *state.Core) *api.Drain {
	if !c.Drained() {
		return nil
	}
	d, _ := c.Config.Drain.Parse()
	a := &api.Drain{DrainRequest: api.DrainRequest{Release: d.Release, Queued: d.Queued, As: d.As, Running: d.Running}, By: d.By, At: d.At, Words: d.Words()}
	if !d.Release {
		return a
	}
	a.Left.Holds = len(c.Ours) + len(c.StuckHolds)
	for _, j := range c.Active {
		if j.Runs() {
			a.Left.Running++
		} else {
			a.Left.Queued++
		}
	}
	for _, in := range c.Refused {
		if pending := in.State == string(row.Queued); pending && !in.LetGo && in.Drained {
			a.Left.Queued++
		} else if !in.LetGo && in.Drained {
			a.Left.Running++
		}
	}
	for _, k := range c.Calling {
		if k.Next != nil {
			a.Left.Calls++
		}
	}
	return a
}
