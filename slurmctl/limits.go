package slurmctl

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits holds the site's resource limits: of associations (user and account, up the account tree),
// QOS, and partitions, as far as the caller may see them (PrivateData).
type Limits struct {
	Enforced  bool // AccountingStorageEnforce has limits; otherwise only limits of partitions count
	Assocs    []limitSet
	QOS       map[string]*limitSet
	Parts     map[string]*partitionRules
	Accrual   bool           // some limit bounds accruing age: see Accruing
	Memory    bool           // memory is allocated to jobs, so limits on it count
	Whole     partitionRules // from slurm.conf, for all partitions
	Addresses int64          // how much of its memory, in percent, a job's processes may address (VSizeFactor); or noLimit
	Preempts  *Preemption
}

// limit is a bound and the amount already in use.
type limit struct{ Most, Used int64 }

// noLimit stands for the absence of a bound.
const noLimit = -1

// limitSet holds the limits of one association or QOS.
type limitSet struct {
	Account, User, Partition, Parent string // set for an association
	IsDefault                        bool
	Name                             string // set for a QOS
	Flags                            []string
	Limits                           map[string]limit            // "GrpTRES/node", "MaxJobs", …
	ByUser                           map[string]map[string]limit // for a QOS: use by single users
	ByAccount                        map[string]map[string]limit
}

// partitionRules holds what a partition admits.
type partitionRules struct {
	Name, QOS                                      string
	MinNodes, MaxNodes                             int64
	MaxMinutes, DefaultMinutes                     int64
	MemPerNode, MemPerCPU                          int64 // upper bounds, MiB; or noLimit
	DefMemPerNode, DefMemPerCPU                    int64 // MiB; or noLimit
	AllowAccounts, DenyAccounts, AllowQOS, DenyQOS []string
	Nodes                                          []string
	From                                           []string // hosts that may submit (AllocNodes); nil for all
	CPUs                                           int64    // of every node; 0 if they differ or are unknown
	Total                                          int64    // nodes; noLimit if unknown
	IsDefault                                      bool
	Open                                           bool // up, and open to all users from everywhere without a reservation
	Tier, Preempt, Billing, Shares                 string
	OneUser                                        bool  // ExclusiveUser
	CPUsPerNode                                    int64 // MaxCPUsPerNode; or noLimit
}

// Sharing says how jobs of a partition share nodes.
type Sharing struct {
	Whole   bool // they do not: OverSubscribe=EXCLUSIVE
	OneUser bool // only jobs of one user do: ExclusiveUser
	CPUs    int  // of each node that jobs of the partition may have (MaxCPUsPerNode); 0: all
}

// Sharing returns how jobs of a partition share nodes.
func (l *Limits) Sharing(partition string) Sharing {
	if l == nil || l.Parts[partition] == nil {
		return Sharing{}
	}
	p := l.Parts[partition]
	return Sharing{p.Shares == "EXCLUSIVE", p.OneUser, int(max(p.CPUsPerNode, 0))}
}

// Limits reads the limits by three commands, or four if QOS preempt each other. Limits that the
// caller may not see, or that slurmdbd does not return, count as absent. Only unreadable partitions
// are an error. If users are given, it reads only their associations. O(associations + QOS).
func (c *Client) Limits(ctx context.Context, cfg Config, users ...string) (*Limits, error) {
	var text LimitsText
	var err error
	if text.Partitions, err = c.output(ctx, "scontrol", "--oneliner", "--all", "show", "partition"); err != nil {
		return nil, err
	}
	if cfg.Values["PreemptType"] == "preempt/qos" {
		text.Preemption, _ = c.output(ctx, "sacctmgr", "--noheader", "--parsable2", "--readonly", "show", "qos", "format=Name,Preempt,PreemptMode")
	}
	if !enforces(cfg) {
		return ParseLimits(cfg, text), nil
	}
	args := []string{"show", "assoc_mgr", "flags=assoc,qos"}
	for _, u := range users {
		if err := checkUserName(u); err != nil {
			return nil, err
		}
	}
	if len(users) > 0 {
		args = append(args, "users="+strings.Join(users, ","))
	}
	if out, err := c.output(ctx, "scontrol", args...); err == nil {
		text.Assocs = out
	}
	if out, err := c.output(ctx, "sacctmgr", "--noheader", "--parsable2", "--readonly", "show", "qos", "format="+strings.Join(qosColumns, ",")); err == nil {
		text.QOS = out
	}
	return ParseLimits(cfg, text), nil
}

// LimitsText holds the output of the commands that limits are read from; "" if an output is not
// available.
type LimitsText struct {
	Partitions string // scontrol --oneliner --all show partition
	Assocs     string // scontrol show assoc_mgr flags=assoc,qos
	QOS        string // sacctmgr show qos, of qosColumns
	Preemption string // sacctmgr show qos format=Name,Preempt,PreemptMode
}

// ParseLimits reads limits from the commands' output.
func ParseLimits(cfg Config, text LimitsText) *Limits {
	l := &Limits{Enforced: enforces(cfg), QOS: map[string]*limitSet{}, Whole: partitionRules{
		MemPerNode: bound(cfg.Values["MaxMemPerNode"]), MemPerCPU: bound(cfg.Values["MaxMemPerCPU"]),
		DefMemPerNode: bound(cfg.Values["DefMemPerNode"]), DefMemPerCPU: bound(cfg.Values["DefMemPerCPU"])}}
	l.Parts = parsePartitionRules(text.Partitions)
	l.Addresses = bound(strings.TrimSuffix(cfg.Values["VSizeFactor"], " percent"))
	l.Preempts = readPreemption(cfg, l.Parts, text.Preemption)
	l.Memory = strings.Contains(strings.ToUpper(cfg.Values["SelectTypeParameters"]), "MEMORY")
	if l.Enforced && text.Assocs != "" {
		l.Assocs, l.QOS = parseAssocMgr(text.Assocs)
	}
	if l.Enforced && text.QOS != "" {
		l.addQOS(text.QOS)
	}
	l.Accrual = l.boundsAccrual()
	return l
}

// enforces reports whether limits of associations and QOS count.
func enforces(cfg Config) bool {
	if cfg.AccountingStorageType() != "slurmdbd" {
		return false
	}
	return slices.ContainsFunc(cfg.List("AccountingStorageEnforce"), func(s string) bool {
		s = strings.ToLower(s)
		return s == "limits" || s == "safe" || s == "all"
	})
}

// bound reads a number that may be UNLIMITED, or returns noLimit if there is none.
func bound(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 {
		return noLimit
	}
	return n
}

// parsePartitionRules reads scontrol --oneliner show partition.
func parsePartitionRules(out string) map[string]*partitionRules {
	all := map[string]*partitionRules{}
	for line := range strings.Lines(out) {
		v := map[string]string{}
		for field := range strings.FieldsSeq(line) {
			if name, value, ok := strings.Cut(field, "="); ok && v[name] == "" {
				v[name] = value
			}
		}
		name := v["PartitionName"]
		if name == "" {
			continue
		}
		names := func(key string) []string {
			if s := v[key]; s != "ALL" && s != "NONE" && !none(s) {
				return strings.Split(s, ",")
			}
			return nil
		}
		p := &partitionRules{Name: name, MinNodes: max(bound(v["MinNodes"]), 0), MaxNodes: bound(v["MaxNodes"]), MaxMinutes: noLimit, DefaultMinutes: noLimit,
			MemPerNode: bound(v["MaxMemPerNode"]), MemPerCPU: bound(v["MaxMemPerCPU"]), DefMemPerNode: bound(v["DefMemPerNode"]), DefMemPerCPU: bound(v["DefMemPerCPU"]),
			AllowAccounts: names("AllowAccounts"), DenyAccounts: names("DenyAccounts"), AllowQOS: names("AllowQos"), DenyQOS: names("DenyQos"),
			Tier: v["PriorityTier"], Preempt: v["PreemptMode"], Billing: v["TRESBillingWeights"], Shares: v["OverSubscribe"],
			OneUser: v["ExclusiveUser"] == "YES", CPUsPerNode: bound(v["MaxCPUsPerNode"])}
		if !none(v["QoS"]) {
			p.QOS = v["QoS"]
		}
		if d, err := parseLimit(v["MaxTime"]); err == nil && d != Unlimited && d > 0 {
			p.MaxMinutes = int64(d / time.Minute)
		}
		if d, err := parseLimit(v["DefaultTime"]); err == nil && d != Unlimited && d > 0 {
			p.DefaultMinutes = int64(d / time.Minute)
		}
		p.IsDefault, p.Total = v["Default"] == "YES", bound(v["TotalNodes"])
		if cpus, nodes := bound(v["TotalCPUs"]), bound(v["TotalNodes"]); cpus > 0 && nodes > 0 && cpus%nodes == 0 {
			p.CPUs = cpus / nodes
		}
		p.Nodes, _ = ExpandNodes(v["Nodes"])
		if from := v["AllocNodes"]; from != "ALL" {
			p.From, _ = ExpandNodes(from)
		}
		p.Open = v["State"] == "UP" && v["RootOnly"] == "NO" && v["ReqResv"] == "NO" && v["AllowGroups"] == "ALL" && v["AllocNodes"] == "ALL"
		all[name] = p
	}
	return all
}

// parseAssocMgr reads scontrol show assoc_mgr: records of Name=value words whose first line starts
// at the left margin. It skips what it cannot parse.
func parseAssocMgr(out string) ([]limitSet, map[string]*limitSet) {
	var assocs []limitSet
	qos := map[string]*limitSet{}
	var at *limitSet
	into := map[string]limit(nil)
	section := ""
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if line[0] != ' ' {
			at, into, section = nil, nil, ""
			switch {
			case strings.HasPrefix(line, "ClusterName="):
				s := limitSet{Limits: map[string]limit{}}
				for _, w := range words {
					switch name, value, _ := strings.Cut(w, "="); name {
					case "Account":
						s.Account = value
					case "UserName":
						s.User, _, _ = strings.Cut(value, "(")
					case "Partition":
						s.Partition = value
					}
				}
				assocs = append(assocs, s)
				at = &assocs[len(assocs)-1]
			case strings.HasPrefix(line, "QOS="):
				name, _, _ := strings.Cut(words[0][len("QOS="):], "(")
				at = &limitSet{Name: name, Limits: map[string]limit{}, ByUser: map[string]map[string]limit{}, ByAccount: map[string]map[string]limit{}}
				qos[name] = at
			}
			if at != nil {
				into = at.Limits
			}
			continue
		}
		if at == nil {
			continue
		}
		switch line {
		case "    Account Limits", "    User Limits":
			section, into = words[0], map[string]limit{}
			continue
		}
		if section != "" && strings.HasPrefix(line, "      ") && line[6] != ' ' && !strings.Contains(line, "=") {
			of := at.ByAccount
			if section == "User" {
				of = at.ByUser
			}
			who := words[0]
			if i := strings.IndexByte(who, '('); section == "User" && i >= 0 { // newer: name(uid)
				who = strings.Trim(who[i:], "()")
			}
			into = map[string]limit{}
			of[who] = into
			continue
		}
		for _, w := range words {
			name, value, ok := strings.Cut(w, "=")
			if !ok {
				continue
			}
			if name == "Comment" {
				break // free text
			}
			switch name {
			case "ParentAccount":
				at.Parent, _, _ = strings.Cut(value, "(")
			case "DefAssoc":
				at.IsDefault = value == "Yes"
			default:
				addLimit(into, name, value)
			}
		}
	}
	return assocs, qos
}

// addLimit reads "N(2)", "8(1)", "60" or "cpu=N(16),node=5(0)".
func addLimit(into map[string]limit, name, value string) {
	if !strings.Contains(value, "=") {
		if l, ok := parseBound(value); ok {
			into[name] = l
		}
		return
	}
	for part := range strings.SplitSeq(value, ",") {
		if tres, v, ok := strings.Cut(part, "="); ok {
			if l, ok := parseBound(v); ok {
				into[name+"/"+tres] = l
			}
		}
	}
}

func parseBound(s string) (limit, bool) {
	text, used, _ := strings.Cut(s, "(")
	l := limit{Most: noLimit}
	if text == "" {
		return l, false
	}
	if text != "N" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			if n, err = parseMemory(text); err != nil { // sacctmgr: 2G
				return l, false
			}
		}
		l.Most = n
	}
	if n, err := strconv.ParseFloat(strings.TrimSuffix(used, ")"), 64); err == nil {
		l.Used = int64(n)
	}
	return l, true
}

// qosColumns lists the columns requested from sacctmgr. scontrol shows no flags and, until a QOS is
// used, no limits on its users.
var qosColumns = []string{"Name", "Flags", "GrpTRES", "GrpJobs", "GrpSubmit", "MaxTRES", "MaxTRESPerNode", "MaxWall", "MaxTRESPU",
	"MaxJobsPU", "MaxSubmitPU", "MaxTRESPA", "MaxJobsPA", "MaxSubmitPA", "MinTRES", "GrpJobsAccrue", "MaxJobsAccruePA", "MaxJobsAccruePU"}

// qosNames lists scontrol's names for these columns.
var qosNames = []string{"", "", "GrpTRES", "GrpJobs", "GrpSubmitJobs", "MaxTRESPJ", "MaxTRESPN", "MaxWallPJ", "MaxTRESPU",
	"MaxJobsPU", "MaxSubmitJobsPU", "MaxTRESPA", "MaxJobsPA", "MaxSubmitJobsPA", "MinTRESPJ", "GrpJobsAccrue", "MaxJobsAccruePA", "MaxJobsAccruePU"}

// addQOS adds sacctmgr's data about QOS.
func (l *Limits) addQOS(out string) {
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "|")
		if len(fields) < 2 || len(fields) > len(qosColumns) {
			continue
		}
		q := l.QOS[fields[0]]
		if q == nil {
			q = &limitSet{Name: fields[0], Limits: map[string]limit{}}
			l.QOS[fields[0]] = q
		}
		q.Flags = list(fields[1])
		for i := 2; i < len(fields); i++ {
			if fields[i] == "" {
				continue
			}
			if qosNames[i] == "MaxWallPJ" {
				if d, err := parseDuration(fields[i]); err == nil {
					q.Limits["MaxWallPJ"] = limit{Most: int64(d / time.Minute)}
				}
				continue
			}
			found := map[string]limit{}
			addLimit(found, qosNames[i], fields[i])
			for name, v := range found {
				if old, ok := q.Limits[name]; ok {
					v.Used = old.Used
				}
				q.Limits[name] = v
			}
		}
	}
}

// has reports whether a QOS has a flag.
func (s *limitSet) has(flag string) bool {
	return s != nil && slices.ContainsFunc(s.Flags, func(f string) bool { return strings.EqualFold(f, flag) })
}

// at returns a bound of the set, or noLimit.
func (s *limitSet) at(name string) limit {
	if s != nil {
		if l, ok := s.Limits[name]; ok {
			return l
		}
	}
	return limit{Most: noLimit}
}

// who returns the association's name for messages.
func (s *limitSet) who() string {
	switch {
	case s.Name != "":
		return "QOS " + s.Name
	case s.User != "":
		return fmt.Sprintf("user %s in account %s", s.User, s.Account)
	}
	return "account " + s.Account
}

// path lists the associations that count for a user: the user's own, then the visible accounts up
// to the root.
func (l *Limits) path(s Subject) []*limitSet {
	var own *limitSet
	for i := range l.Assocs {
		a := &l.Assocs[i]
		if a.User != s.User || a.User == "" || s.Account != "" && a.Account != s.Account || s.Account == "" && !a.IsDefault {
			continue
		}
		if a.Partition == s.Partition || a.Partition == "" && own == nil {
			own = a
		}
	}
	if own == nil {
		return nil
	}
	all := []*limitSet{own}
	for account, seen := own.Account, 0; account != "" && seen < 100; seen++ {
		i := slices.IndexFunc(l.Assocs, func(a limitSet) bool { return a.User == "" && a.Account == account })
		if i < 0 {
			break
		}
		all, account = append(all, &l.Assocs[i]), l.Assocs[i].Parent
	}
	return all
}

// qosOf lists the QOS that count for a user, the deciding one first.
func (l *Limits) qosOf(s Subject) []*limitSet {
	var all []*limitSet
	job := l.QOS[s.QOS]
	if p := l.Parts[s.Partition]; p != nil && l.QOS[p.QOS] != nil {
		all = append(all, l.QOS[p.QOS])
	}
	switch {
	case job == nil || len(all) > 0 && all[0] == job:
	case job.has("OverPartQOS"):
		all = slices.Insert(all, 0, job)
	default:
		all = append(all, job)
	}
	return all
}

// Defaults returns the account and QOS of a user who names none. If account is given, it is the
// account that the user names.
func (c *Client) Defaults(ctx context.Context, user, account string) (string, string, error) {
	if err := checkUserName(user); err != nil {
		return "", "", err
	}
	args := []string{"--noheader", "--parsable2", "--readonly", "show", "user", "name=" + user, "withassoc", "format=DefaultAccount,Account,Partition,DefaultQOS"}
	out, err := c.output(ctx, "sacctmgr", args...)
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimRight(line, "\n"), "|")
		if len(f) != 4 || account != "" && f[1] != account || account == "" && f[1] != f[0] {
			continue
		}
		if f[3] == "" {
			f[3] = "normal" // Slurm's default
		}
		return f[1], f[3], nil
	}
	return "", "", fmt.Errorf("user %s has no account %s that can be seen", user, account)
}

// DefaultPartition returns the partition of a job that names none, or "" if unknown.
func (l *Limits) DefaultPartition() string {
	for name, p := range l.Parts {
		if p.IsDefault {
			return name
		}
	}
	return ""
}

// NodeCPUs returns how many CPUs every node of a partition has, or 0 if the nodes differ or this is
// unknown. CPUsOf is more precise if the nodes are visible.
func (l *Limits) NodeCPUs(partition string) int {
	if p := l.Parts[partition]; p != nil {
		return int(p.CPUs)
	}
	return 0
}

// CPUsOf returns the smallest and largest number of CPUs per node, or 0 without nodes.
func CPUsOf(nodes []Node) (least, most int) {
	for _, n := range nodes {
		if least == 0 || n.CPUs < least {
			least = n.CPUs
		}
		most = max(most, n.CPUs)
	}
	return least, most
}

// NodeMemory returns the MiB of memory that a job with whole nodes has on each node, from its
// --mem, its --mem-per-cpu, or the default. It also returns what the job requests per CPU. Either
// is 0 if unknown or if memory does not count.
func (l *Limits) NodeMemory(partition, perNode, perCPU string, cpus int) (node, each int64) {
	p := l.Parts[partition]
	if p == nil || !l.Memory {
		return 0, 0
	}
	given := func(text string) int64 {
		n, err := parseMemory(text)
		if text == "" || err != nil || n <= 0 {
			return noLimit
		}
		return n
	}
	node, each = given(perNode), given(perCPU)
	for _, from := range []*partitionRules{p, &l.Whole} {
		if perNode != "" || perCPU != "" || node > 0 || each > 0 {
			break
		}
		node, each = from.DefMemPerNode, from.DefMemPerCPU
	}
	switch {
	case node > 0:
		return node, 0
	case each > 0:
		return each * int64(cpus), each
	}
	return 0, 0
}

// NodeMemoryOf is NodeMemory for a job as Slurm describes it; it also returns what the job requests
// per CPU. A job that requests all memory of its nodes has whole.
func (l *Limits) NodeMemoryOf(r JobRequest, cpus int, whole int64) (node, perCPU int64) {
	switch {
	case !l.Memory || r.MemoryPerGPU > 0:
		return 0, 0
	case r.MemoryPerCPU > 0:
		return r.MemoryPerCPU * int64(cpus), r.MemoryPerCPU
	case r.MemoryPerNode > 0:
		return r.MemoryPerNode, 0
	}
	return whole, 0
}

// NeedOf returns the need of a profile with these node counts in its steps.
func NeedOf(steps []int, minutes int64, chain bool) Need {
	n := Need{Peak: slices.Max(steps), Least: slices.Min(steps), Minutes: minutes}
	for i := 1; i < len(steps) && !chain; i++ {
		if steps[i] > steps[i-1] {
			n.Growths = append(n.Growths, steps[i]-steps[i-1])
		}
	}
	return n
}
