package slurmsim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
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

// count is the use of a bound: running jobs, their nodes, and submitted jobs.
type count struct{ jobs, nodes, submitted int }

// counted counts the active jobs that f selects. Slurm keeps counting merged expanders until it
// rereads its configuration (measured on 22.05).
func (c *Cluster) counted(f func(*job) bool) (n count) {
	for _, j := range c.active {
		if f(j) {
			n.jobs++
			n.submitted++
			n.nodes += len(j.nodes)
		}
	}
	for _, j := range c.merged {
		if f(j) {
			n.jobs++
			n.submitted++
		}
	}
	for _, j := range c.pending {
		if f(j) {
			n.submitted += j.ArrayTasks
		}
	}
	return n
}

// bound finds the limits for a job: the QOS's limit, otherwise the limits of the user's association
// and, with up, of the account.
func (c *Cluster) bound(j *job, most func(*Bound) int, up bool) []*Bound {
	var found []*Bound
	for i := range c.options.Bounds {
		if b := &c.options.Bounds[i]; b.QOS != "" && b.QOS == j.QOS && most(b) > 0 {
			return append(found, b)
		}
	}
	for i := range c.options.Bounds {
		b := &c.options.Bounds[i]
		if b.QOS != "" || b.Account != j.Account || most(b) == 0 {
			continue
		}
		if b.User == j.User || b.User == "" && (up || !c.ownBound(j, most)) {
			found = append(found, b)
		}
	}
	return found
}

// ownBound reports whether the user's own association has that limit, which overrides the
// account's.
func (c *Cluster) ownBound(j *job, most func(*Bound) int) bool {
	return slices.ContainsFunc(c.options.Bounds, func(b Bound) bool {
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

// limited returns the reason of the limit that blocks a pending job, or "".
func (c *Cluster) limited(j *job) string {
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
		for _, b := range c.bound(j, limit.most, limit.up) {
			if limit.passes(c.counted(b.subject(j, limit.perUser)), limit.most(b)) {
				return name(b, limit.assoc, limit.qos)
			}
		}
	}
	return ""
}

// submits refuses a job over a submit limit.
func (c *Cluster) submits(j *job) error {
	if !c.options.Enforce {
		return nil
	}
	most := func(b *Bound) int { return b.MaxSubmit }
	for _, b := range c.bound(j, most, false) {
		if n := c.counted(b.subject(j, true)); n.submitted+j.ArrayTasks > b.MaxSubmit {
			return refusal("Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)")
		}
	}
	return nil
}

// limitsText returns what Slurm's commands would print about the limits.
func (c *Cluster) limitsText() slurmctl.LimitsText {
	var parts, assocs, all, qos, preempt strings.Builder
	unlimited := func(n int) string {
		if n == 0 {
			return "UNLIMITED"
		}
		return fmt.Sprint(n)
	}
	yes := map[bool]string{true: "YES", false: "NO"}
	for _, p := range c.partitions {
		most := "UNLIMITED"
		if p.MaxTime > 0 {
			m := int(p.MaxTime / time.Minute)
			most = fmt.Sprintf("%d-%02d:%02d:00", m/1440, m/60%24, m%60)
		}
		mode := cmp.Or(p.PreemptMode, "OFF")
		state := map[bool]string{true: "UP", false: "DOWN"}[p.Up]
		fmt.Fprintf(&parts, "PartitionName=%s AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=%s QoS=N/A MaxNodes=%s MaxTime=%s MinNodes=%d "+
			"Nodes=%s PriorityTier=%d RootOnly=NO ReqResv=NO OverSubscribe=%s PreemptMode=%s State=%s TotalCPUs=%d TotalNodes=%d DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED\n",
			p.Name, yes[p.Default], unlimited(p.MaxNodes), most, p.MinNodes, slurmctl.CompressNodes(p.Nodes), p.Tier, p.OverSubscribe, mode, state,
			len(p.Nodes)*c.nodes[0].CPUs, len(p.Nodes))
	}
	some := func(most, used int) string {
		if most == 0 {
			return fmt.Sprintf("N(%d)", used)
		}
		return fmt.Sprintf("%d(%d)", most, used)
	}
	given := func(most int, used int) string {
		if most == 0 {
			return ""
		}
		return fmt.Sprintf("%d(%d)", most, used)
	}
	alone := func(prefix string, most int) string {
		if most == 0 {
			return ""
		}
		return fmt.Sprint(prefix, most)
	}
	record := func(w *strings.Builder, b Bound, n count) {
		wall := alone("", int(b.MaxWall/time.Minute))
		fmt.Fprintf(w, "    GrpJobs=%s GrpSubmitJobs=N(%d)\n    GrpTRES=node=%s\n    MaxJobs=%s MaxSubmitJobs=%s MaxWallPJ=%s\n    MaxTRESPJ=%s\n",
			some(b.GrpJobs, n.jobs), n.submitted, some(b.GrpNodes, n.nodes), given(b.MaxJobs, n.jobs), given(b.MaxSubmit, n.submitted), wall, alone("node=", b.MaxNodes))
	}
	type key struct{ account, user string }
	bounds := map[key]Bound{}
	var keys []key
	note := func(k key, b Bound) {
		if _, known := bounds[k]; !known {
			keys = append(keys, k)
			bounds[k] = b
		} else if b != (Bound{Account: b.Account, User: b.User}) {
			bounds[k] = b
		}
	}
	note(key{"root", ""}, Bound{})
	for _, u := range c.users {
		note(key{u.Account, ""}, Bound{Account: u.Account})
		note(key{u.Account, u.Name}, Bound{Account: u.Account, User: u.Name})
	}
	for _, b := range c.options.Bounds {
		if b.QOS == "" {
			note(key{b.Account, ""}, Bound{Account: b.Account})
			note(key{b.Account, b.User}, b)
		}
	}
	uid := map[string]uint32{}
	for _, u := range c.users {
		uid[u.Name] = u.UID
	}
	for i, k := range keys {
		who, parent := "", "root(1)"
		if k.user != "" {
			who, parent = fmt.Sprintf("%s(%d)", k.user, uid[k.user]), ""
		}
		if k.account == "root" {
			parent = ""
		}
		b := bounds[k]
		fmt.Fprintf(&assocs, "ClusterName=model Account=%s UserName=%s Partition= Priority=0 ID=%d\n    ParentAccount=%s Lft=0 DefAssoc=%s\n", k.account, who, i+1, parent,
			map[bool]string{true: "Yes", false: "No"}[k.user != ""])
		record(&assocs, b, c.counted(func(j *job) bool { return j.Account == k.account && (k.user == "" || j.User == k.user) }))
	}
	names := []string{defaultQOS}
	for _, b := range c.options.Bounds {
		if b.QOS != "" && !slices.Contains(names, b.QOS) {
			names = append(names, b.QOS)
		}
	}
	for i, name := range names {
		var b Bound
		for _, o := range c.options.Bounds {
			if o.QOS == name {
				b = o
			}
		}
		fmt.Fprintf(&all, "QOS=%s(%d)\n", name, i+1)
		inQOS := func(j *job) bool { return j.QOS == name }
		perUser := b
		perUser.MaxJobs, perUser.MaxSubmit = 0, 0
		record(&all, perUser, c.counted(inQOS))
		all.WriteString("    User Limits\n")
		for _, u := range c.users {
			n := c.counted(func(j *job) bool { return inQOS(j) && j.UID == u.UID })
			fmt.Fprintf(&all, "      %d\n        MaxJobsPU=%s MaxSubmitJobsPU=%s\n        MaxTRESPU=node=%s\n", u.UID, some(b.MaxJobs, n.jobs), some(b.MaxSubmit, n.submitted), some(b.MaxNodesPerUser, n.nodes))
		}
		wall := ""
		if b.MaxWall > 0 {
			wall = fmt.Sprintf("%02d:%02d:00", int(b.MaxWall.Hours()), int(b.MaxWall.Minutes())%60)
		}
		fmt.Fprintf(&qos, "%s||%s|%s||%s||%s|%s|%s|%s||||\n", name, alone("node=", b.GrpNodes), alone("", b.GrpJobs), alone("node=", b.MaxNodes), wall,
			alone("node=", b.MaxNodesPerUser), alone("", b.MaxJobs), alone("", b.MaxSubmit))
		fmt.Fprintf(&preempt, "%s|%s|cluster\n", name, strings.Join(c.options.QOSPreempts[name], ","))
	}
	return slurmctl.LimitsText{Partitions: parts.String(), Assocs: assocs.String() + all.String(), QOS: qos.String(), Preemption: preempt.String()}
}

// defaultQOS is the QOS of jobs that name none.
const defaultQOS = "normal"
