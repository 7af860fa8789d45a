package core

import (
	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// mostOthers limits the jobs and the reservations of others that are shown.
const mostOthers = 20_000

// Cluster returns what the last poll has seen beside evolving jobs, or nil before the first poll. The
// result never changes, and is the same until the next poll. O(nodes of running jobs), once a poll.
func (c *Core) Cluster() *api.Cluster {
	s := c.snapshot
	if s == nil {
		return nil
	}
	if c.survey != nil && c.surveyOf == s {
		return c.survey
	}
	a := &api.Cluster{Taken: c.wall(s.taken), Nodes: make([]api.Node, len(s.nodes)), Others: []api.OtherJob{}, Reservations: []api.Reservation{}}
	for i, n := range s.nodes {
		a.Nodes[i] = api.Node{Name: n.Name, State: n.State, Usable: n.Usable(), Partitions: n.Partitions}
	}
	for i := range s.jobs {
		r := &s.jobs[i]
		if len(r.NodeList) == 0 || c.owner(r.ID) != nil {
			continue
		}
		if len(a.Others) == mostOthers {
			a.More++
			continue
		}
		a.Others = append(a.Others, api.OtherJob{ID: uint32(r.ID), Name: r.Name, User: r.User, UID: r.UID, Account: r.Account, Partition: r.Partition,
			Start: c.wall(r.StartTime), End: c.wall(r.EndTime), NodeList: slurmctl.CompressNodes(r.NodeList)})
	}
	for _, name := range sortedKeys(s.reservations) {
		if len(a.Reservations) == mostOthers {
			break
		}
		r := s.reservations[name]
		shown := api.Reservation{Name: r.Name, Start: c.wall(r.Start), End: c.wall(r.End), NodeList: slurmctl.CompressNodes(r.Nodes), Users: r.Users, Accounts: r.Accounts}
		own, ours := parseHold(r)
		if _, stuck := c.stuckHolds[name]; stuck {
			continue // hidden: it only covers the job's own time
		}
		if ours {
			shown.Hold, shown.Job, shown.Step = true, uint32(own.job), own.step
			if j := c.owner(own.job); j != nil {
				shown.Job, shown.UID = j.SlurmID, j.UID
			}
		}
		a.Reservations = append(a.Reservations, shown)
	}
	c.survey, c.surveyOf = a, s
	return a
}
