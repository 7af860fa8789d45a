package slurmsim

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// limitsText returns what Slurm's commands would print about the limits.
func limitsText(c *Cluster) slurmctl.LimitsText {
	text := slurmctl.LimitsText{Partitions: partitionsText(c), Assocs: assocsText(c)}
	for i, name := range qosNames(c.options.Bounds) {
		var b Bound
		for _, o := range c.options.Bounds {
			if o.QOS == name {
				b = o
			}
		}
		text.Assocs += qosUsageText(c, i+1, name, b)
		text.QOS += qosText(name, b)
		text.Preemption += fmt.Sprintf("%s|%s|cluster\n", name, strings.Join(c.options.QOSPreempts[name], ","))
	}
	return text
}

// partitionsText returns what scontrol show partition prints.
func partitionsText(c *Cluster) string {
	var text strings.Builder
	yes := map[bool]string{true: "YES", false: "NO"}
	up := map[bool]string{true: "UP", false: "DOWN"}
	for _, p := range c.Partitions {
		nodes, limit := "UNLIMITED", "UNLIMITED"
		if p.MaxNodes > 0 {
			nodes = fmt.Sprint(p.MaxNodes)
		}
		if p.MaxTime > 0 {
			m := int(p.MaxTime / time.Minute)
			limit = fmt.Sprintf("%d-%02d:%02d:00", m/1440, m/60%24, m%60)
		}
		fmt.Fprintf(&text, "PartitionName=%s AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=%s QoS=N/A MaxNodes=%s MaxTime=%s MinNodes=%d "+
			"Nodes=%s PriorityTier=%d RootOnly=NO ReqResv=NO OverSubscribe=%s PreemptMode=%s State=%s TotalCPUs=%d TotalNodes=%d DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED\n",
			p.Name, yes[p.Default], nodes, limit, p.MinNodes, slurmctl.CompressNodes(p.Nodes), p.Tier, p.OverSubscribe, cmp.Or(p.PreemptMode, "OFF"), up[p.Up],
			len(p.Nodes)*c.Nodes[0].CPUs, len(p.Nodes))
	}
	return text.String()
}

// assoc names an association: an account, or a user in it.
type assoc struct{ account, user string }

// assocsOf returns all associations in the order of their numbers, with their limits.
func assocsOf(c *Cluster) ([]assoc, map[assoc]Bound) {
	bounds := map[assoc]Bound{}
	var all []assoc
	note := func(k assoc, b Bound) {
		if _, known := bounds[k]; !known {
			all = append(all, k)
			bounds[k] = b
		} else if b != (Bound{Account: b.Account, User: b.User}) {
			bounds[k] = b
		}
	}
	note(assoc{"root", ""}, Bound{})
	for _, u := range c.Users {
		note(assoc{u.Account, ""}, Bound{Account: u.Account})
		note(assoc{u.Account, u.Name}, Bound{Account: u.Account, User: u.Name})
	}
	for _, b := range c.options.Bounds {
		if b.QOS == "" {
			note(assoc{b.Account, ""}, Bound{Account: b.Account})
			note(assoc{b.Account, b.User}, b)
		}
	}
	return all, bounds
}

// assocsText returns the associations as scontrol show assoc_mgr prints them.
func assocsText(c *Cluster) string {
	var text strings.Builder
	uid := map[string]uint32{}
	for _, u := range c.Users {
		uid[u.Name] = u.UID
	}
	all, bounds := assocsOf(c)
	for i, k := range all {
		who, parent, isDefault := "", "root(1)", "No"
		if k.user != "" {
			who, parent, isDefault = fmt.Sprintf("%s(%d)", k.user, uid[k.user]), "", "Yes"
		}
		if k.account == "root" {
			parent = ""
		}
		fmt.Fprintf(&text, "ClusterName=model Account=%s UserName=%s Partition= Priority=0 ID=%d\n    ParentAccount=%s Lft=0 DefAssoc=%s\n", k.account, who, i+1, parent, isDefault)
		printUsage(&text, bounds[k], c.counted(func(j *job) bool { return j.Account == k.account && (k.user == "" || j.User == k.user) }))
	}
	return text.String()
}

// qosNames returns the names of all QOS.
func qosNames(bounds []Bound) []string {
	names := []string{defaultQOS}
	for _, b := range bounds {
		if b.QOS != "" && !slices.Contains(names, b.QOS) {
			names = append(names, b.QOS)
		}
	}
	return names
}

// qosUsageText returns a QOS as scontrol show assoc_mgr prints it.
func qosUsageText(c *Cluster, number int, name string, b Bound) string {
	var text strings.Builder
	fmt.Fprintf(&text, "QOS=%s(%d)\n", name, number)
	inQOS := func(j *job) bool { return j.QOS == name }
	all := b
	all.MaxJobs, all.MaxSubmit = 0, 0 // limits per user
	printUsage(&text, all, c.counted(inQOS))
	text.WriteString("    User Limits\n")
	for _, u := range c.Users {
		n := c.counted(func(j *job) bool { return inQOS(j) && j.UID == u.UID })
		fmt.Fprintf(&text, "      %d\n        MaxJobsPU=%s MaxSubmitJobsPU=%s\n        MaxTRESPU=node=%s\n", u.UID,
			used(b.MaxJobs, n.jobs), used(b.MaxSubmit, n.submitted), used(b.MaxNodesPerUser, n.nodes))
	}
	return text.String()
}

// qosText returns a QOS as sacctmgr show qos prints it.
func qosText(name string, b Bound) string {
	wall := ""
	if b.MaxWall > 0 {
		wall = fmt.Sprintf("%02d:%02d:00", int(b.MaxWall.Hours()), int(b.MaxWall.Minutes())%60)
	}
	return fmt.Sprintf("%s||%s|%s||%s||%s|%s|%s|%s||||\n", name, ifSet("node=", b.GrpNodes), ifSet("", b.GrpJobs), ifSet("node=", b.MaxNodes), wall,
		ifSet("node=", b.MaxNodesPerUser), ifSet("", b.MaxJobs), ifSet("", b.MaxSubmit))
}

// printUsage prints limits with their use.
func printUsage(w io.Writer, b Bound, n count) {
	perUser := func(most, now int) string {
		if most == 0 {
			return ""
		}
		return used(most, now)
	}
	fmt.Fprintf(w, "    GrpJobs=%s GrpSubmitJobs=N(%d)\n    GrpTRES=node=%s\n    MaxJobs=%s MaxSubmitJobs=%s MaxWallPJ=%s\n    MaxTRESPJ=%s\n",
		used(b.GrpJobs, n.jobs), n.submitted, used(b.GrpNodes, n.nodes), perUser(b.MaxJobs, n.jobs), perUser(b.MaxSubmit, n.submitted),
		ifSet("", int(b.MaxWall/time.Minute)), ifSet("node=", b.MaxNodes))
}

// used returns a limit with its use.
func used(most, now int) string {
	if most == 0 {
		return fmt.Sprintf("N(%d)", now)
	}
	return fmt.Sprintf("%d(%d)", most, now)
}

// ifSet returns a limit after the prefix, or "" if there is none.
func ifSet(prefix string, most int) string {
	if most == 0 {
		return ""
	}
	return fmt.Sprint(prefix, most)
}
