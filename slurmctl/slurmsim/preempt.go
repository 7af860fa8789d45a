package slurmsim

import (
	"cmp"
	"slices"
)

// preempts reports whether Slurm ends the victim, or jobs like it, for the job.
func preempts(o *Options, j, victim *job) bool {
	switch o.Preempt {
	case "partition_prio":
		return victim.Part.Tier < j.Part.Tier && endsBy(o, victim) != ""
	case "qos":
		return slices.Contains(o.QOSPreempts[j.QOS], victim.QOS) && endsBy(o, victim) != ""
	}
	return false
}

// endsBy returns how a job is preempted, "REQUEUE" or "CANCEL", or "" if it is not.
func endsBy(o *Options, victim *job) string {
	mode := o.PreemptMode
	if o.Preempt == "partition_prio" && victim.Part.PreemptMode != "" {
		mode = victim.Part.PreemptMode
	}
	if mode == "REQUEUE" || mode == "CANCEL" {
		return mode
	}
	return ""
}

// victims returns the active jobs that would be ended for this one, least important first, and the
// nodes that it would get. It returns none if that does not help.
func victims(c *Cluster, j *job, from nodeSet) []*job {
	if c.options.Preempt == "" {
		return nil
	}
	var candidates []*job
	for _, v := range c.Active {
		if preempts(&c.options, j, v) {
			candidates = append(candidates, v)
		}
	}
	slices.SortStableFunc(candidates, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.Part.Tier, b.Part.Tier), cmp.Compare(a.Priority, b.Priority))
	})
	future := &c.room.future
	c.Usage.copyTo(future, true)
	for _, v := range candidates {
		if !v.Set.overlaps(from) {
			continue
		}
		c.book(future, v, v.Nodes, -1)
		set, ok := choose(c, j, future, from)
		if !ok {
			continue
		}
		return slices.DeleteFunc(candidates, func(v *job) bool { return !v.Set.overlaps(set) })
	}
	return nil
}

// makeRoom ends the jobs in the way of a job that may preempt them, and reports whether it did. The
// job starts once its nodes are free.
func makeRoom(c *Cluster, j *job, from nodeSet) bool {
	all := victims(c, j, from)
	for _, v := range all {
		if endsBy(&c.options, v) == "REQUEUE" && v.Request.Script != "" {
			requeue(c, v)
		} else {
			finish(c, v, "PREEMPTED")
		}
	}
	if len(all) > 0 {
		j.Reason = "Resources"
	}
	return len(all) > 0
}
