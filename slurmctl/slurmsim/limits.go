package slurmsim

import (
	"slices"
	"time"
)

// Bound is a limit of an association (an account or a user in it) or of a QOS; zero values set no
// limit. As in Slurm, a QOS's limits override those of associations. Jobs over a limit wait (no QOS
// has DenyOnLimit), except over MaxSubmit.
type Bound struct {
	Account, User string // of an association; without User, of the account
	QOS           string // or of a QOS

	MaxJobs         int           // running jobs per user
	MaxSubmit       int           // pending and running jobs per user
	MaxNodes        int           // per job
	MaxNodesPerUser int           // of a QOS
	GrpJobs         int           // running jobs in total
	GrpNodes        int           // nodes in total
	MaxWall         time.Duration // per job
}

// boundsOf finds the limits for a job: the QOS's limit, otherwise the limits of the user's association
// and, with up, of the account.
func boundsOf(all []Bound, j *job, most func(*Bound) int, up bool) []*Bound {
	var found []*Bound
	for i := range all {
		if b := &all[i]; b.QOS != "" && b.QOS == j.QOS && most(b) > 0 {
			return append(found, b)
		}
	}
	for i := range all {
		b := &all[i]
		if b.QOS != "" || b.Account != j.Account || most(b) == 0 {
			continue
		}
		if b.User == j.User || b.User == "" && (up || !hasOwnBound(all, j, most)) {
			found = append(found, b)
		}
	}
	return found
}

// hasOwnBound reports whether the user's own association has that limit, which overrides the
// account's.
func hasOwnBound(all []Bound, j *job, most func(*Bound) int) bool {
	return slices.ContainsFunc(all, func(b Bound) bool {
		return b.QOS == "" && b.Account == j.Account && b.User == j.User && most(&b) > 0
	})
}

// subject selects the jobs that count for a bound. For a QOS's limit per user, it selects those of
// j's user.
func (b *Bound) subject(j *job, perUser bool) func(*job) bool {
	return func(o *job) bool {
		switch {
		case b.QOS != "":
			return o.QOS == b.QOS && (!perUser || o.UID == j.UID)
		case o.Account != b.Account:
			return false
		}
		return o.User == b.User || b.User == "" && (!perUser || o.UID == j.UID)
	}
}

// limitReason returns the reason of the limit that blocks a pending job, or "".
func limitReason(c *Cluster, j *job) string {
	if !c.options.Enforce || len(c.options.Bounds) == 0 {
		return ""
	}
	name := func(b *Bound, assoc, qos string) string {
		if b.QOS != "" {
			return "QOS" + qos
		}
		return "Assoc" + assoc
	}
	for _, limit := range []struct {
		most       func(*Bound) int
		passes     func(n count, most int) bool
		up         bool
		perUser    bool
		assoc, qos string
	}{
		{func(b *Bound) int { return b.GrpJobs }, func(n count, most int) bool { return n.jobs >= most }, true, false, "GrpJobsLimit", "GrpJobsLimit"},
		{func(b *Bound) int { return b.MaxJobs }, func(n count, most int) bool { return n.jobs >= most }, false, true, "MaxJobsLimit", "MaxJobsPerUserLimit"},
		{func(b *Bound) int { return int(b.MaxWall / time.Minute) }, func(_ count, most int) bool { return j.TimeLimit > time.Duration(most)*time.Minute }, false, false,
			"MaxWallDurationPerJobLimit", "MaxWallDurationPerJobLimit"},
		{func(b *Bound) int { return b.GrpNodes }, func(n count, most int) bool { return n.nodes+j.NumNodes > most }, true, false, "GrpNodeLimit", "GrpNodeLimit"},
		{func(b *Bound) int { return b.MaxNodes }, func(_ count, most int) bool { return j.NumNodes > most }, false, false, "MaxNodePerJobLimit", "MaxNodePerJobLimit"},
		{func(b *Bound) int { return b.MaxNodesPerUser }, func(n count, most int) bool { return n.nodes+j.NumNodes > most }, false, true, "", "MaxNodePerUserLimit"},
	} {
		for _, b := range boundsOf(c.options.Bounds, j, limit.most, limit.up) {
			if limit.passes(c.counted(b.subject(j, limit.perUser)), limit.most(b)) {
				return name(b, limit.assoc, limit.qos)
			}
		}
	}
	return ""
}

// maySubmit refuses a job over a submit limit.
func maySubmit(c *Cluster, j *job) error {
	if !c.options.Enforce {
		return nil
	}
	most := func(b *Bound) int { return b.MaxSubmit }
	for _, b := range boundsOf(c.options.Bounds, j, most, false) {
		if n := c.counted(b.subject(j, true)); n.submitted+j.ArrayTasks > b.MaxSubmit {
			return refusal("Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)")
		}
	}
	return nil
}
