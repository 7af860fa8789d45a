package adopt

import (
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// denial says why the site's lists keep a job from evolving.
type denial struct{ error }

// denied returns why the site's lists keep a Slurm job from evolving, or nil. The groups are those of the
// lists with its user in them; nil: not known.
func denied(c *state.Core, r *slurmctl.Job, groups []string) error {
	job := config.Names{Users: []string{r.User}, Groups: groups, Accounts: []string{r.Account}, QOS: []string{r.QOS}, Partitions: strings.Split(r.Partition, ",")}
	if err := c.Config.MayEvolve(job); err != nil {
		return denial{err}
	}
	return nil
}

// MayEvolve returns why the site's lists keep an adopted job from evolving further, or nil.
func MayEvolve(c *state.Core, j *state.Job) error { return denied(c, &j.Record, j.Groups) }

// groupsOf returns the groups of a job's user that matter here, or nil if the user is not known.
func groupsOf(a state.RequestRead) []string {
	if a.User == nil {
		return nil
	}
	return append([]string{}, a.Groups...)
}

// Denied returns why the site's lists keep a queued job from evolving that was adopted before, or nil. Users can move
// their pending jobs, and each link of a chain.
func Denied(c *state.Core, s *state.Snapshot, j *state.Job) error {
	at := func(r *slurmctl.Job) state.Place {
		return state.Place{Account: r.Account, QOS: r.QOS, Partition: r.Partition}
	}
	seen := map[state.Place]bool{j.Admitted: true}
	for _, id := range append([]slurmctl.JobID{PresentJob(c, j)}, j.Chain...) {
		r := s.ByID[id]
		if r == nil || r.UID != j.UID || seen[at(r)] {
			continue
		}
		if err := denied(c, r, j.Groups); err != nil {
			return err
		}
		seen[at(r)] = true
	}
	j.Admitted = at(s.ByID[PresentJob(c, j)])
	return nil
}

// RefuseAdopted does what Refuse does with a job that was adopted, and may have a planned start time.
func RefuseAdopted(c *state.Core, r *slurmctl.Job, why error) {
	Refuse(c, r, why)
	in := c.Refused[r.ID]
	in.Was = true
	c.Refused[r.ID] = in
}

// AccessChanged makes the core compare the jobs that have not begun with changed lists again, those that were
// refused included. If the lists name other groups, it reads the users' groups again.
func AccessChanged(c *state.Core, before config.Config) {
	if before.Allow.Equal(c.Config.Allow) && before.Deny.Equal(c.Config.Deny) {
		return
	}
	for id, in := range c.Refused {
		if in.Denied {
			delete(c.Refused, id)
		}
	}
	regrouped := !slices.Equal(before.AccessGroups(), c.Config.AccessGroups())
	if regrouped {
		clear(c.Asked)
	}
	for _, j := range c.Active {
		if j.Admitted = (state.Place{}); regrouped {
			j.Groups = nil // of a running job they are read again if it is requeued
		}
		if regrouped && j.State == row.Queued {
			j.Asked = nil
		}
	}
}
