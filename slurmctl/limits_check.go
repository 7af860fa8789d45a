package slurmctl

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Subject identifies whose limits count.
type Subject struct {
	User      string
	UID       uint32
	Account   string // "" for the user's default account
	QOS       string // "" if unknown
	Partition string
}

// Need holds what an evolving job needs over its life. Its limits are those of a rigid job with its
// peak: although companions are separate jobs, they must not get a user more than the limits allow.
type Need struct {
	Peak    int    // largest number of nodes
	Least   int    // smallest number of nodes
	Growths []int  // nodes that each growth adds; none for a chain
	CPUs    int    // per node, the smallest number where nodes differ; 0 if unknown
	Most    int    // largest number of CPUs per node; 0 for the same as CPUs
	Memory  int64  // MiB per node; 0 if unknown
	PerCPU  int64  // MiB requested per CPU; 0 for a request per node
	GRES    []GRES // requested on each node
	Minutes int64  // of the whole job; 0 if unknown
	From    string // host that requests the nodes of growths; "" if unknown
}

// Never lists the limits under which a job can never run, even as the user's only job. Each is a
// clause with its remedy. It leaves out what depends on the user's other jobs.
func (l *Limits) Never(s Subject, n Need) []string {
	var all []string
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	qos := l.qosOf(s)
	flag := func(name string) bool { return l.Enforced && l.QOS[s.QOS].has(name) }
	p := l.Parts[s.Partition]
	if p != nil {
		if p.Total > 0 && int64(n.Peak) > p.Total {
			say("the profile goes up to %s, but partition %s has %d: choose another partition or fewer nodes", nodesOf(n.Peak), p.Name, p.Total)
		}
		if p.MaxNodes != noLimit && int64(n.Peak) > p.MaxNodes && !flag("PartitionMaxNodes") {
			say("the profile goes up to %s, but partition %s takes jobs of at most %d (MaxNodes): choose another partition or fewer nodes", nodesOf(n.Peak), p.Name, p.MaxNodes)
		}
		if int64(n.Least) < p.MinNodes && !flag("PartitionMinNodes") {
			say("the profile goes down to %s, but partition %s takes jobs of at least %d (MinNodes): choose another partition or more nodes", nodesOf(n.Least), p.Name, p.MinNodes)
		} else if g := l.tooSmall(s, n); g > 0 {
			if _, ok := l.Through(s, p.Nodes, g, n.Minutes); !ok {
				say("partition %s takes no job below %s (MinNodes), and a growth by %s is a job of %s to Slurm: let every growth add at least %d, choose another partition, or have the administrator give the QOS the flag PartitionMinNodes",
					p.Name, nodesOf(int(p.MinNodes)), nodesOf(g), nodesOf(g), p.MinNodes)
			}
		}
		if n.From != "" && len(n.Growths) > 0 && p.From != nil && !slices.Contains(p.From, n.From) {
			say("partition %s takes jobs only from %s (AllocNodes), and nodes of growths are requested from %s: have the administrator add that host, choose another partition or --drive=chain",
				p.Name, CompressNodes(p.From), n.From)
		}
		if p.MaxMinutes != noLimit && n.Minutes > p.MaxMinutes && !flag("PartitionTimeLimit") {
			say("the job may take %s, but partition %s allows %s (MaxTime): choose another partition or a shorter profile", minutesOf(n.Minutes), p.Name, minutesOf(p.MaxMinutes))
		}
		if s.Account != "" && (len(p.AllowAccounts) > 0 && !containsFold(p.AllowAccounts, s.Account) || containsFold(p.DenyAccounts, s.Account)) {
			say("partition %s is not for account %s (AllowAccounts, DenyAccounts): choose another --account or --partition", p.Name, s.Account)
		}
		if s.QOS != "" && (len(p.AllowQOS) > 0 && !containsFold(p.AllowQOS, s.QOS) || containsFold(p.DenyQOS, s.QOS)) {
			say("partition %s is not for QOS %s (AllowQos, DenyQos): choose another --qos or --partition", p.Name, s.QOS)
		}
		all = append(all, l.tooMuchMemory(p, n)...)
	}
	if l.Addresses != noLimit && n.Memory > 0 && n.Memory*l.Addresses/100 < leastAddresses {
		say("processes of a job with %d MB of memory may address %d MB here (VSizeFactor), and evosctl, which runs in it, does not start below %d: ask for more with --mem",
			n.Memory, n.Memory*l.Addresses/100, leastAddresses)
	}
	if !l.Enforced {
		return all
	}
	path := l.path(s)
	for _, tres := range n.tres() {
		for _, f := range sizeLimits {
			if who, b := l.deciding(qos, path, f, "/"+tres.name, func(b limit) bool { return tres.need > b.Most }); who != nil {
				say("the profile goes up to %d %s, but %s may have %d%s (%s=%s=%d): ask for fewer nodes, or the administrator for more",
					tres.need, tres.unit, who.who(), b.Most, f.of, f.name(who), tres.name, b.Most)
			}
		}
	}
	for _, q := range qos {
		if b := q.at("MinTRESPJ/node"); b.Most > int64(n.Least) {
			say("the profile goes down to %s, but %s takes jobs of at least %d (MinTRESPerJob): choose another --qos or more nodes", nodesOf(n.Least), q.who(), b.Most)
		} else if len(n.Growths) > 0 && b.Most > int64(slices.Min(n.Growths)) {
			g := nodesOf(slices.Min(n.Growths))
			say("%s takes jobs of at least %s (MinTRESPerJob), and a growth by %s is a job of %s to Slurm: let every growth add as many, or choose another --qos or --drive=chain",
				q.who(), nodesOf(int(b.Most)), g, g)
		}
	}
	if who, b := l.deciding(qos, path, family{qos: "MaxWallPJ", assoc: "MaxWallPJ"}, "", func(b limit) bool { return n.Minutes > b.Most }); who != nil {
		say("the job may take %s, but %s allows %s (MaxWall): a shorter profile, or another --qos", minutesOf(n.Minutes), who.who(), minutesOf(b.Most))
	}
	if len(n.Growths) > 0 {
		counted := qos
		if p != nil && l.tooSmall(s, n) > 0 && int64(slices.Max(n.Growths)) < p.MinNodes { // all its nodes belong to other partitions
			counted = l.qosOf(Subject{QOS: s.QOS})
		}
		for _, f := range jobLimits {
			if who, b := l.deciding(counted, path, f, "", func(b limit) bool { return b.Most < 2 }); who != nil {
				say("%s may have %s%s (%s), and a growth is a second one to Slurm: choose another --qos or --partition, --drive=chain, or a profile that does not grow",
					who.who(), jobsOf(b.Most), f.of, f.name(who))
			}
		}
	}
	return all
}

// amount is how much a job needs, at its peak, of something that limits count.
type amount struct {
	name, unit string
	need       int64
}

func (n Need) tres() []amount {
	all := []amount{{"node", "nodes", int64(n.Peak)}, {"cpu", "CPUs", int64(n.Peak * n.CPUs)}, {"mem", "MB of memory", int64(n.Peak) * n.Memory}}
	sums := map[string]int64{} // sums per name: over all types, and for each type
	for _, g := range n.GRES {
		sums["gres/"+g.Name] += g.Count
		if g.Type != "" {
			sums["gres/"+g.Name+":"+g.Type] += g.Count
		}
	}
	for _, name := range sortedNames(sums) {
		all = append(all, amount{name, name, int64(n.Peak) * sums[name]})
	}
	return all
}

// tooMuchMemory reports that a job has more memory than its partition, or otherwise the cluster,
// allows. If a job requests more per CPU than allowed, Slurm gives it further CPUs, as long as a
// node has that many.
func (l *Limits) tooMuchMemory(p *partitionRules, n Need) []string {
	perNode, perCPU, of := p.MemPerNode, p.MemPerCPU, "partition "+p.Name
	if perNode == noLimit && perCPU == noLimit {
		perNode, perCPU, of = l.Whole.MemPerNode, l.Whole.MemPerCPU, "this cluster"
	}
	wants, cpus := n.Memory, max(n.CPUs, n.Most)
	if n.PerCPU > 0 {
		wants = n.PerCPU
	}
	switch {
	case perNode != noLimit && n.Memory > perNode:
		return []string{fmt.Sprintf("a node of the job has %d MB of memory, but %s allows %d (MaxMemPerNode): ask for less with --mem", n.Memory, of, perNode)}
	case perCPU != noLimit && cpus > 0 && wants > perCPU*int64(cpus):
		return []string{fmt.Sprintf("the job asks for %d MB of memory on nodes of %d CPUs, but %s allows %d for each (MaxMemPerCPU): ask for less with --mem or --mem-per-cpu",
			wants, cpus, of, perCPU)}
	}
	return nil
}

// leastAddresses is the address space in MiB with which a Go program with cgo reliably starts: it
// reserves much more than it uses (Go 1.26: 20 of 20 starts from 1,500 on; below that, some).
const leastAddresses = 1500

// MostMinutes returns the longest time limit that a job may have, or noLimit (-1).
func (l *Limits) MostMinutes(s Subject) int64 {
	most := int64(noLimit)
	if p := l.Parts[s.Partition]; p != nil && !(l.Enforced && l.QOS[s.QOS].has("PartitionTimeLimit")) {
		most = p.MaxMinutes
	}
	if l.Enforced {
		if who, b := l.deciding(l.qosOf(s), l.path(s), family{qos: "MaxWallPJ", assoc: "MaxWallPJ"}, "", func(limit) bool { return true }); who != nil && (most == noLimit || b.Most < most) {
			most = b.Most
		}
	}
	return most
}

// family is a limit that both QOS and associations can set. A QOS overrides associations.
type family struct {
	qos, assoc string // "" if it has none
	up         bool   // accounts up the tree have the limit too, each with its own count
	of         string // whose jobs it limits, for messages
}

// name returns sacctmgr's name for the limit of a set.
func (f family) name(of *limitSet) string {
	name := f.assoc
	if of.Name != "" {
		name = f.qos
	}
	return strings.NewReplacer("PJ", "PerJob", "PU", "PerUser", "PA", "PerAccount").Replace(name)
}

var (
	sizeLimits = []family{
		{"MaxTRESPJ", "MaxTRESPJ", false, " in one job"}, {"MaxTRESPU", "", false, " for each user"},
		{"MaxTRESPA", "", false, " for each account"}, {"GrpTRES", "GrpTRES", true, " in all"},
	}
	jobLimits = []family{
		{"MaxJobsPU", "MaxJobs", false, " at once"}, {"MaxJobsPA", "", false, " at once"}, {"GrpJobs", "GrpJobs", true, " at once"},
		{"MaxSubmitJobsPU", "MaxSubmitJobs", false, " submitted"}, {"MaxSubmitJobsPA", "", false, " submitted"}, {"GrpSubmitJobs", "GrpSubmitJobs", true, " submitted"},
	}
)

// deciding finds the set whose bound counts and for which passes is true. It is the first QOS with
// a bound. If no QOS has one, it is the user's association or, with up, any association up the
// tree.
func (l *Limits) deciding(qos, path []*limitSet, f family, tres string, passes func(limit) bool) (*limitSet, limit) {
	for _, q := range qos {
		if b := q.at(f.qos + tres); f.qos != "" && b.Most != noLimit {
			if passes(b) {
				return q, b
			}
			return nil, limit{}
		}
	}
	for i, a := range path {
		if f.assoc == "" || i > 0 && !f.up {
			break
		}
		if b := a.at(f.assoc + tres); b.Most != noLimit && passes(b) {
			return a, b
		}
	}
	return nil, limit{}
}

// CountsJobs reports whether a limit on the number of a user's jobs applies, and which.
func (l *Limits) CountsJobs(s Subject) (string, bool) {
	if !l.Enforced {
		return "", false
	}
	for _, f := range jobLimits {
		if who, b := l.deciding(l.qosOf(s), l.path(s), f, "", func(limit) bool { return true }); who != nil {
			return fmt.Sprintf("%s of %s is %d", f.name(who), who.who(), b.Most), true
		}
	}
	return "", false
}

// tooSmall returns the smallest growth if the partition rejects it as a job of its own, otherwise
// 0.
func (l *Limits) tooSmall(s Subject, n Need) int {
	p := l.Parts[s.Partition]
	if p == nil || len(n.Growths) == 0 || l.Enforced && l.QOS[s.QOS].has("PartitionMinNodes") {
		return 0
	}
	if g := slices.Min(n.Growths); int64(g) < p.MinNodes {
		return g
	}
	return 0
}

// TooSmall reports whether the partition rejects a job of this few nodes.
func (l *Limits) TooSmall(s Subject, nodes int) bool {
	return l.tooSmall(s, Need{Growths: []int{nodes}}) > 0
}

// Through finds another partition with these nodes that admits the user's job of n nodes if the
// user's own partition rejects it as too small. Its terms must be equal: open to all, same
// priority, same sharing, preemption, and billing. The job then counts against that partition's
// limits. Of several partitions, Through returns the one that allows most jobs.
func (l *Limits) Through(s Subject, nodes []string, n int, minutes int64) (partition string, ok bool) {
	own := l.Parts[s.Partition]
	if own == nil {
		return "", false
	}
	most := int64(0)
	for _, name := range sortedNames(l.Parts) {
		p := l.Parts[name]
		if p == own || !p.Open || p.Shares != own.Shares || p.Tier != own.Tier || p.Preempt != own.Preempt || p.Billing != own.Billing {
			continue
		}
		has := map[string]bool{}
		for _, node := range p.Nodes {
			has[node] = true
		}
		if slices.ContainsFunc(nodes, func(node string) bool { return !has[node] }) {
			continue
		}
		as := s
		as.Partition = name
		if jobs := l.mostJobs(as); jobs > most && len(l.Never(as, Need{Peak: n, Least: n, Minutes: minutes})) == 0 {
			partition, most = name, jobs
		}
	}
	return partition, partition != ""
}

// mostJobs returns how many jobs the user may have in the partition.
func (l *Limits) mostJobs(s Subject) int64 {
	most := int64(math.MaxInt64)
	if !l.Enforced {
		return most
	}
	for _, f := range jobLimits {
		l.deciding(l.qosOf(s), l.path(s), f, "", func(b limit) bool { most = min(most, b.Most); return false })
	}
	return most
}

func sortedNames[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func containsFold(list []string, s string) bool {
	return slices.ContainsFunc(list, func(x string) bool { return strings.EqualFold(x, s) })
}

func nodesOf(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

func jobsOf(n int64) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}

func minutesOf(m int64) string {
	switch {
	case m < 120:
		return fmt.Sprintf("%d min", m)
	case m < 48*60:
		return fmt.Sprintf("%d:%02d h", m/60, m%60)
	}
	return fmt.Sprintf("%d-%02d:%02d", m/1440, m/60%24, m%60)
}

// gpus stands for whatever a limit on GRES counts: reasons do not say which GRES.
const gpus = "/gres/gpu"

// reasonFamilies lists squeue's reasons by their beginnings after Assoc or QOS.
var reasonFamilies = []struct {
	prefix, key string
	family      family
}{
	{"AssocGrpNode", "/node", family{"", "GrpTRES", true, ""}}, {"AssocGrpCpu", "/cpu", family{"", "GrpTRES", true, ""}}, {"AssocGrpMem", "/mem", family{"", "GrpTRES", true, ""}},
	{"AssocGrpJobs", "", family{"", "GrpJobs", true, ""}}, {"AssocGrpSubmit", "", family{"", "GrpSubmitJobs", true, ""}},
	{"AssocMaxJobs", "", family{"", "MaxJobs", false, ""}}, {"AssocMaxSubmit", "", family{"", "MaxSubmitJobs", false, ""}},
	{"AssocMaxNodePerJob", "/node", family{"", "MaxTRESPJ", false, ""}}, {"AssocMaxCpuPerJob", "/cpu", family{"", "MaxTRESPJ", false, ""}},
	{"AssocMaxWall", "", family{"", "MaxWallPJ", false, ""}},
	{"QOSGrpNode", "/node", family{"GrpTRES", "", false, ""}}, {"QOSGrpCpu", "/cpu", family{"GrpTRES", "", false, ""}}, {"QOSGrpMem", "/mem", family{"GrpTRES", "", false, ""}},
	{"QOSGrpJobs", "", family{"GrpJobs", "", false, ""}}, {"QOSGrpSubmit", "", family{"GrpSubmitJobs", "", false, ""}},
	{"QOSMaxNodePerUser", "/node", family{"MaxTRESPU", "", false, ""}}, {"QOSMaxCpuPerUser", "/cpu", family{"MaxTRESPU", "", false, ""}}, {"QOSMaxMemoryPerUser", "/mem", family{"MaxTRESPU", "", false, ""}},
	{"QOSMaxJobsPerUser", "", family{"MaxJobsPU", "", false, ""}}, {"QOSMaxSubmitJobPerUser", "", family{"MaxSubmitJobsPU", "", false, ""}},
	{"QOSMaxNodePerJob", "/node", family{"MaxTRESPJ", "", false, ""}}, {"QOSMaxCpuPerJob", "/cpu", family{"MaxTRESPJ", "", false, ""}},
	{"QOSMaxWall", "", family{"MaxWallPJ", "", false, ""}},
	{"AssocGrpGRES", gpus, family{"", "GrpTRES", true, ""}}, {"AssocMaxGRESPerJob", gpus, family{"", "MaxTRESPJ", false, ""}},
	{"QOSGrpGRES", gpus, family{"GrpTRES", "", false, ""}}, {"QOSMaxGRESPerUser", gpus, family{"MaxTRESPU", "", false, ""}},
	{"QOSMaxGRESPerJob", gpus, family{"MaxTRESPJ", "", false, ""}}, {"MaxGRESPerAccount", gpus, family{"MaxTRESPA", "", false, ""}},
	{"MaxNodePerAccount", "/node", family{"MaxTRESPA", "", false, ""}}, {"MaxCpuPerAccount", "/cpu", family{"MaxTRESPA", "", false, ""}}, {"MaxJobsPerAccount", "", family{"MaxJobsPA", "", false, ""}},
}

// Explain describes a pending job's reason: whose limit it is, the limit's value, and its current
// use, as far as known. It also returns whether there is room by now for more nodes, CPUs, or jobs;
// this is unknown if the limit is unknown.
func (l *Limits) Explain(reason string, s Subject, nodes, cpus int) (words string, room, known bool) {
	for _, r := range reasonFamilies {
		if !strings.HasPrefix(reason, r.prefix) || strings.Contains(reason, "Minutes") {
			continue
		}
		more := int64(1)
		switch r.key {
		case "/node":
			more = int64(nodes)
		case "/cpu":
			more = int64(cpus)
		case "/mem", gpus:
			more = 0
		}
		qos, path := l.qosOf(s), l.path(s)
		used := func(of *limitSet, b limit) limit {
			if of.Name == "" {
				return b
			}
			key := r.family.qos + r.key
			if who, ok := of.ByUser[fmt.Sprint(s.UID)][key]; ok {
				b.Used = who.Used
			} else if who, ok := of.ByAccount[s.Account][key]; ok {
				b.Used = who.Used
			}
			return b
		}
		var found *limitSet
		var b limit
		if r.family.qos != "" {
			found, b = l.deciding(qos, nil, r.family, r.key, func(limit) bool { return true })
		} else if found, b = l.deciding(nil, path, r.family, r.key, func(b limit) bool { return b.Used+more > b.Most }); found == nil {
			found, b = l.deciding(nil, path, r.family, r.key, func(limit) bool { return true })
		}
		if found == nil {
			return reason, false, false
		}
		b = used(found, b)
		name := r.family.name(found)
		if r.key != "" {
			name += "=" + r.key[1:]
		}
		text := fmt.Sprintf("%s: %s has %s=%d", reason, found.who(), name, b.Most)
		if !strings.Contains(name, "PerJob") && !strings.Contains(name, "Wall") {
			text += fmt.Sprintf(", %d in use", b.Used)
		}
		return text, b.Used+more <= b.Most, more > 0
	}
	return reason, false, false
}

// Describe lists, for an administrator, the bounds of a partition and of its QOS.
func (l *Limits) Describe(partition string) []string {
	p := l.Parts[partition]
	if p == nil {
		return nil
	}
	var all []string
	if p.MinNodes > 1 {
		all = append(all, fmt.Sprintf("MinNodes=%d", p.MinNodes))
	}
	if p.MaxNodes != noLimit {
		all = append(all, fmt.Sprintf("MaxNodes=%d", p.MaxNodes))
	}
	if p.MaxMinutes != noLimit {
		all = append(all, "MaxTime="+minutesOf(p.MaxMinutes))
	}
	for _, names := range []struct {
		name string
		list []string
	}{{"AllowAccounts", p.AllowAccounts}, {"DenyAccounts", p.DenyAccounts}, {"AllowQos", p.AllowQOS}, {"DenyQos", p.DenyQOS}} {
		if len(names.list) > 0 {
			all = append(all, names.name+"="+strings.Join(names.list, ","))
		}
	}
	if !p.Open {
		all = append(all, "not open to all users")
	}
	if q := l.QOS[p.QOS]; p.QOS != "" && q != nil && l.Enforced {
		text := ""
		for _, key := range sortedNames(q.Limits) {
			if b := q.Limits[key]; b.Most != noLimit {
				text += fmt.Sprintf(" %s=%d", strings.Replace(key, "/", "=", 1), b.Most)
			}
		}
		all = append(all, strings.TrimSpace("QOS "+p.QOS+text))
	}
	return all
}

// Partitions returns the names of all partitions.
func (l *Limits) Partitions() []string { return sortedNames(l.Parts) }
