package core

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// askMore makes the request for a growth's expander: all that the base job itself asked
// for, for as long as that may still run. Where its hold consists of the very nodes it
// needs not name them: there are sites that forbid that.
func (c *Core) askMore(j *job, g *Grow, parked bool) {
	q := j.asked.More(len(g.Nodes), j.gres)
	q.Partition, q.Account, q.QOS = partitionOf(j), j.Account, j.QOS
	q.Name, q.Comment, q.Exclusive, q.WorkDir = g.Name, expanderMark, true, "/"
	hold, ok := c.reservations[g.Hold]
	exact := ok && g.Hold != "" && sameSet(hold.Nodes, g.Nodes) && !c.bare // see Grow
	if !exact {
		q.NodeList = g.Nodes
	}
	q.Parked = parked && exact
	g.MayPark = exact
	if g.Merge {
		q.ExpandJob = g.Base
	}
	q.TimeLimit = max(j.record.EndTime.Sub(c.now).Truncate(time.Minute)+time.Minute, time.Minute)
	if j.record.TimeLimit == slurmctl.Unlimited {
		q.TimeLimit = slurmctl.Unlimited
	}
	g.Request = q
}

// turn makes the job one of companions, for good.
func (c *Core) turn(j *job, why error) {
	if request.Drive(j.Drive) != request.Merge {
		return
	}
	j.Drive = string(request.Companion)
	c.save(j)
	c.event(j, "drive changed", map[string]any{"from": request.Merge, "to": request.Companion, "why": why.Error()})
	c.logJob(j).WithError(why).Warn("Slurm merges nothing into this job: it grows by companions from now on")
}
