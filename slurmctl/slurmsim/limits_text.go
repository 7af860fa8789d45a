package slurmsim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// limitsText returns what Slurm's commands would print about the limits.
func limitsText(c *Cluster) slurmctl.LimitsText {
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
