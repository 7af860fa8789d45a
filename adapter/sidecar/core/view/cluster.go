package view

import (
	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// mostOthers limits the jobs and the reservations of others that are shown.
const mostOthers = 20_000

// Cluster returns what the last poll has seen beside evolving jobs, or nil before the first poll. The
// result never changes, and is the same until the next poll. O(nodes of running jobs), once a poll.
func Cluster(c *state.Core) *api.Cluster {
	s := c.Snapshot
	if s == nil {
		return nil
	}
	if c.Survey != nil && c.SurveyOf == s {
		return c.Survey
	}
	a := &api.Cluster{Taken: c.Wall(s.Taken), Nodes: make([]api.Node, len(s.Nodes)), Others: []api.OtherJob{}, Reservations: []api.Reservation{}}
	for i, n := range s.Nodes {
		a.Nodes[i] = api.Node{Name: n.Name, State: n.State, Usable: n.Usable(), Partitions: n.Partitions}
	}
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if len(r.NodeList) == 0 || c.Owner(r.ID) != nil {
			continue
		}
		if len(a.Others) == mostOthers {
			a.More++
			continue
		}
		a.Others = append(a.Others, api.OtherJob{ID: uint32(r.ID), Name: r.Name, User: r.User, UID: r.UID, Account: r.Account, Partition: r.Partition,
			Start: c.Wall(r.StartTime), End: c.Wall(r.EndTime), NodeList: slurmctl.CompressNodes(r.NodeList)})
	}
	for _, name := range state.SortedKeys(s.Reservations) {
		if len(a.Reservations) == mostOthers {
			break
		}
		r := s.Reservations[name]
		shown := api.Reservation{Name: r.Name, Start: c.Wall(r.Start), End: c.Wall(r.End), NodeList: slurmctl.CompressNodes(r.Nodes), Users: r.Users, Accounts: r.Accounts}
		own, ours := s.Holds[name]
		if _, stuck := c.StuckHolds[name]; stuck {
			continue // hidden: it only covers the job's own time
		}
		if ours {
			shown.Hold, shown.Job, shown.Step = true, uint32(own.Job), own.Step
			if j := c.Owner(own.Job); j != nil {
				shown.Job, shown.UID = j.SlurmID, j.UID
			}
		}
		a.Reservations = append(a.Reservations, shown)
	}
	c.Survey, c.SurveyOf = a, s
	return a
}
