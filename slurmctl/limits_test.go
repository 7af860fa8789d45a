package slurmctl

import (
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// readLimits returns the limits of a cluster with recorded output.
func readLimits(t *testing.T, dir string) *Limits {
	t.Helper()
	read := func(name string) string {
		text := must.Read(t, "testdata/"+dir+"/"+name)
		return string(text)
	}
	l := &Limits{Enforced: true, Parts: parsePartitionRules(read("partitions.txt")),
		Whole: partitionRules{MemPerNode: noLimit, MemPerCPU: noLimit, DefMemPerNode: noLimit, DefMemPerCPU: noLimit}, Addresses: noLimit}
	l.Assocs, l.QOS = parseAssocMgr(read("assoc_mgr.txt"))
	l.addQOS(read("qos.txt"))
	return l
}

// The parts of a profile that can never run, on SeaWulf's partitions, for a user with
// GrpTRES=node=3, cpu=12, MaxTRES=node=2, MaxJobs=4 and MaxWall=1:00:00.
func TestNever(t *testing.T) {
	l := readLimits(t, "22.05")
	games := Subject{User: "games", UID: 5, Account: "proj", QOS: "normal"}
	own := l.path(games)[0].Limits
	addLimit(own, "GrpTRES", "cpu=12(0),gres/gpu=5(1)")
	addLimit(own, "MaxTRESPJ", "node=2,gres/gpu:a100=2")
	backup := Subject{User: "backup", UID: 34, Account: "proj", QOS: "normal"}
	for name, c := range map[string]struct {
		who       Subject
		partition string
		need      Need
		want      []string // words of the clauses in order
	}{
		"fits":             {backup, "medium-40core", Need{Peak: 6, Least: 3, Growths: []int{3}, CPUs: 4, Minutes: 60}, nil},
		"MaxNodes":         {backup, "medium-40core", Need{Peak: 7, Least: 3, Growths: []int{4}}, []string{"at most 6 (MaxNodes)"}},
		"MinNodes":         {backup, "medium-40core", Need{Peak: 6, Least: 1, Growths: []int{5}}, []string{"at least 3 (MinNodes)"}},
		"MaxTime":          {backup, "debug-40core", Need{Peak: 1, Least: 1, Minutes: 61}, []string{"allows 60 min (MaxTime)"}},
		"a growth by one":  {backup, "medium-40core", Need{Peak: 4, Least: 3, Growths: []int{1}}, nil}, // through extended-40core
		"its time too":     {backup, "large-40core", Need{Peak: 8, Least: 6, Growths: []int{2}, Minutes: 60}, nil},
		"second job":       {backup, "debug-40core", Need{Peak: 3, Least: 1, Growths: []int{2}}, []string{"QOS debug-40core-qos may have 1 job at once (MaxJobsPerUser), and a growth is a second one"}},
		"no growth":        {backup, "debug-40core", Need{Peak: 3, Least: 1}, nil},
		"QOS GrpTRES":      {backup, "long-40core", Need{Peak: 3, Least: 1, Growths: []int{2}}, nil},
		"QOS of the user":  {backup, "short-40core-shared", Need{Peak: 2, Least: 1, CPUs: 4}, []string{"8 CPUs, but QOS short-40core-shared-qos may have 6 for each user (MaxTRESPerUser=cpu=6)"}},
		"MaxTRES, GrpTRES": {games, "short-40core", Need{Peak: 4, Least: 1, CPUs: 4}, []string{"may have 2 in one job (MaxTRESPerJob=node=2)", "user games in account proj may have 3 in all (GrpTRES=node=3)", "GrpTRES=cpu=12"}},
		"MaxWall":          {games, "short-40core", Need{Peak: 2, Least: 1, Minutes: 90}, []string{"user games in account proj allows 60 min (MaxWall)"}},
		"too large":        {backup, "large-40core", Need{Peak: 9, Least: 9}, []string{"partition large-40core has 8", "at most 8 (MaxNodes)"}},
		"unknown":          {Subject{User: "nobody"}, "nowhere", Need{Peak: 100, Least: 1, Growths: []int{99}}, nil},
		"CPUs that differ": {games, "short-40core", Need{Peak: 2, Least: 1, CPUs: 6, Most: 8}, nil},
		"too many CPUs":    {games, "short-40core", Need{Peak: 2, Least: 1, CPUs: 7, Most: 8}, []string{"14 CPUs, but user games in account proj may have 12 in all (GrpTRES=cpu=12)"}},
		"GPUs":             {games, "short-40core", Need{Peak: 2, Least: 1, GRES: []GRES{{"gpu", "a100", 1}, {"gpu", "v100", 1}}}, nil},
		"too many GPUs":    {games, "short-40core", Need{Peak: 2, Least: 1, GRES: []GRES{{"gpu", "a100", 1}, {"gpu", "v100", 2}}}, []string{"6 gres/gpu, but user games in account proj may have 5 in all (GrpTRES=gres/gpu=5)"}},
		"of one type":      {games, "short-40core", Need{Peak: 1, Least: 1, GRES: []GRES{{"gpu", "a100", 3}}}, []string{"3 gres/gpu:a100, but user games in account proj may have 2 in one job (MaxTRESPerJob=gres/gpu:a100=2)"}},
		"memory":           {backup, "short-40core", Need{Peak: 1, Least: 1, Memory: 5000}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.who.Partition = c.partition
			got := l.Never(c.who, c.need)
			if len(got) != len(c.want) {
				t.Fatalf("%q, want %q", got, c.want)
			}
			for i := range got {
				if !strings.Contains(got[i], c.want[i]) {
					t.Errorf("%q, want %q", got[i], c.want[i])
				}
			}
		})
	}
	l.Enforced = false
	games.Partition = "short-40core"
	if got := l.Never(games, Need{Peak: 4, Least: 1, CPUs: 4}); got != nil {
		t.Errorf("limits that are not enforced: %q", got)
	}
}

// TestNeverGrows covers jobs that can start but never grow.
func TestNeverGrows(t *testing.T) {
	l := readLimits(t, "22.05")
	l.Parts["short-40core"].From = parsePartitionRules("PartitionName=p AllocNodes=login[1-3]\n")["p"].From
	l.QOS["normal"].Limits["MinTRESPJ/node"] = limit{Most: 2}
	who := Subject{User: "backup", UID: 34, Account: "proj", QOS: "normal", Partition: "short-40core"}
	for _, c := range []struct {
		need Need
		want string // words of the only clause; "" for none
	}{
		{Need{Peak: 4, Least: 2, Growths: []int{2}, From: "login2"}, ""},
		{Need{Peak: 4, Least: 2, From: "head"}, ""}, // a chain
		{Need{Peak: 4, Least: 2, Growths: []int{2}, From: "head"}, "takes jobs only from login[1-3] (AllocNodes), and nodes of growths are requested from head"},
		{Need{Peak: 3, Least: 2, Growths: []int{1}, From: "login2"}, "QOS normal takes jobs of at least 2 nodes (MinTRESPerJob), and a growth by 1 node"},
	} {
		got := l.Never(who, c.need)
		if len(got) > 1 || (len(got) == 1) != (c.want != "") || len(got) == 1 && !strings.Contains(got[0], c.want) {
			t.Errorf("%+v: %q, want %q", c.need, got, c.want)
		}
	}
}

// TestAddresses covers a job whose processes have too little address space for evosctl.
func TestAddresses(t *testing.T) {
	l := readLimits(t, "22.05")
	who := Subject{User: "backup", UID: 34, Account: "proj", QOS: "normal", Partition: "short-40core"}
	for _, c := range []struct {
		percent, memory int64
		refused         bool
	}{{noLimit, 100, false}, {110, 0, false}, {110, 1300, true}, {110, 1400, false}, {50, 2800, true}} {
		l.Addresses = c.percent
		got := l.Never(who, Need{Peak: 1, Least: 1, Memory: c.memory})
		if (len(got) > 0) != c.refused || c.refused && !strings.Contains(got[0], "VSizeFactor") {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestThrough checks which partition may replace one that rejects so small a job.
func TestThrough(t *testing.T) {
	l := readLimits(t, "22.05")
	backup := Subject{User: "backup", UID: 34, Account: "proj", QOS: "normal", Partition: "medium-40core"}
	for _, c := range []struct {
		nodes   int
		minutes int64
		want    string
	}{
		{1, 60, "short-40core"},
		{1, 300, "long-40core"}, // short-40core allows four hours
		{2, 60, "short-40core"},
		{1, 1 << 20, ""},
	} {
		if got, ok := l.Through(backup, []string{"n1", "n2"}, c.nodes, c.minutes); got != c.want || ok != (c.want != "") {
			t.Errorf("%d nodes for %d min: %q, %v; want %q", c.nodes, c.minutes, got, ok, c.want)
		}
	}
	if got, ok := l.Through(backup, []string{"n9"}, 1, 60); ok {
		t.Errorf("a node that is elsewhere: %q", got)
	}
}

func TestMostMinutes(t *testing.T) {
	l := readLimits(t, "22.05")
	for who, want := range map[Subject]int64{
		{User: "games", Account: "proj", QOS: "normal", Partition: "short-40core"}:         60,
		{User: "backup", Account: "proj", QOS: "normal", Partition: "short-40core"}:        240,
		{User: "backup", Account: "proj", QOS: "normal", Partition: "short-40core-shared"}: 30, // its QOS
		{User: "backup", Partition: "nowhere"}:                                             -1,
	} {
		if got := l.MostMinutes(who); got != want {
			t.Errorf("%+v: %d, want %d", who, got, want)
		}
	}
}

// The words and figures of pending reasons, from the output of 22.05 and of later releases, which
// name users in the QOS and end a record with a comment.
func TestExplain(t *testing.T) {
	later := &Limits{Enforced: true}
	later.Assocs, later.QOS = parseAssocMgr(`Current Association Manager state

Association Records

ClusterName=c Account=root UserName= Partition= Priority=0 ID=1
    ParentAccount= Lineage=/ DefAssoc=No
    GrpJobs=N(3) GrpJobsAccrue=N(0)
    GrpTRES=cpu=N(16),node=N(4)
    MaxJobs= MaxJobsAccrue= MaxSubmitJobs= MaxWallPJ=
    MaxTRESPJ=
    Comment=
ClusterName=c Account=proj UserName= Partition= Priority=0 ID=3
    ParentAccount=root(1) Lineage=/proj/ DefAssoc=No
    GrpTRES=cpu=N(16),node=6(4)
    Comment=GrpTRES=node=1(1) is what it once was
ClusterName=c Account=proj UserName=ann(1001) Partition= Priority=0 ID=4
    ParentAccount= Lineage=/proj/0-ann/ DefAssoc=Yes
    GrpTRES=cpu=N(8),node=N(2)
    MaxJobs=3(3) MaxJobsAccrue= MaxSubmitJobs= MaxWallPJ=90
    MaxTRESPJ=gres/gpu=2

QOS Records

QOS=debug(4)
    UsageRaw=0.000000
    GrpJobs=N(1) GrpJobsAccrue=N(0) GrpSubmitJobs=N(1) GrpWall=N(0.00)
    MaxTRESPJ=node=5
    Account Limits
      proj
        MaxJobsPA=N(1) MaxJobsAccruePA=N(0) MaxSubmitJobsPA=N(1)
    User Limits
      ann(1001)
        MaxJobsPU=2(1) MaxJobsAccruePU=N(0) MaxSubmitJobsPU=N(1)
        MaxTRESPU=cpu=N(4),node=4(3)
`)
	later.addQOS("debug|DenyOnLimit||||node=5|||node=4|2|||||\n")
	ann := Subject{User: "ann", UID: 1001, Account: "proj", QOS: "debug"}
	for reason, want := range map[string]struct {
		words string
		room  bool
		known bool
	}{
		"AssocGrpNodeLimit":       {"AssocGrpNodeLimit: account proj has GrpTRES=node=6, 4 in use", false, true},
		"AssocMaxJobsLimit":       {"AssocMaxJobsLimit: user ann in account proj has MaxJobs=3, 3 in use", false, true},
		"QOSMaxJobsPerUserLimit":  {"QOSMaxJobsPerUserLimit: QOS debug has MaxJobsPerUser=2, 1 in use", true, true},
		"QOSMaxNodePerUserLimit":  {"QOSMaxNodePerUserLimit: QOS debug has MaxTRESPerUser=node=4, 3 in use", false, true},
		"QOSMaxNodePerJobLimit":   {"QOSMaxNodePerJobLimit: QOS debug has MaxTRESPerJob=node=5", true, true},
		"AssocMaxGRESPerJob":      {"AssocMaxGRESPerJob: user ann in account proj has MaxTRESPerJob=gres/gpu=2", false, false},
		"AssocGrpGRES":            {"AssocGrpGRES", false, false},
		"AssocGrpGRESMinutes":     {"AssocGrpGRESMinutes", false, false},
		"AssocGrpCPUMinutesLimit": {"AssocGrpCPUMinutesLimit", false, false},
		"AssocGrpMemLimit":        {"AssocGrpMemLimit", false, false},
		"Licenses":                {"Licenses", false, false},
	} {
		words, room, known := later.Explain(reason, ann, 3, 12)
		if words != want.words || known != want.known || known && room != want.room {
			t.Errorf("%q, room %v, known %v; want %+v", words, room, known, want)
		}
	}
	if got := later.QOS["debug"].has("denyonlimit"); !got {
		t.Error("the flag DenyOnLimit is not seen")
	}
}

// FuzzAssocMgr checks that no output breaks the parser.
func FuzzAssocMgr(f *testing.F) {
	text := must.Read(f, "testdata/22.05/assoc_mgr.txt")
	f.Add(string(text))
	f.Add("QOS=a(1)\n    User Limits\n      (\n        MaxJobsPU=1(\nClusterName=\n    ParentAccount=x(\n")
	f.Fuzz(func(t *testing.T, text string) {
		l := &Limits{Enforced: true}
		l.Assocs, l.QOS = parseAssocMgr(text)
		l.Parts = parsePartitionRules(text)
		for _, a := range l.Assocs {
			l.Never(Subject{User: a.User, Account: a.Account, QOS: "a"}, Need{Peak: 3, Least: 1, Growths: []int{2}, CPUs: 4, Minutes: 9})
		}
	})
}

// TestMaxMemPerCPU checks that memory per CPU above the maximum is rejected only if no node has as
// many CPUs as Slurm would then allocate.
func TestMaxMemPerCPU(t *testing.T) {
	cfg := Config{Values: map[string]string{"SelectTypeParameters": "CR_CORE_MEMORY", "MaxMemPerCPU": "250", "DefMemPerCPU": "300"}}
	l := ParseLimits(cfg, LimitsText{Partitions: "PartitionName=main Nodes=n[1-8] TotalNodes=8 TotalCPUs=32\nPartitionName=small Nodes=n[1-8] TotalNodes=8 DefMemPerCPU=100\n"})
	for _, c := range []struct {
		partition, mem, perCPU string
		least, most            int
		want                   string
	}{
		{"main", "", "", 4, 4, ""}, // Slurm gives a task two CPUs
		{"main", "", "1100", 4, 4, "asks for 1100 MB of memory on nodes of 4 CPUs, but this cluster allows 250"},
		{"main", "", "1100", 4, 8, ""}, // on the larger nodes
		{"main", "1100", "", 4, 4, "asks for 1100 MB of memory on nodes of 4 CPUs"},
		{"main", "1100", "", 4, 8, ""},
		{"small", "", "", 4, 4, ""},
		{"small", "", "1001", 4, 0, "asks for 1001 MB"},
	} {
		n := Need{Peak: 1, Least: 1, CPUs: c.least, Most: c.most}
		n.Memory, n.PerCPU = l.NodeMemory(c.partition, c.mem, c.perCPU, c.least)
		got := strings.Join(l.Never(Subject{User: "user", Partition: c.partition}, n), "; ")
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestMostNodes checks how large a malleable job may become on SeaWulf's partitions.
func TestMostNodes(t *testing.T) {
	l := readLimits(t, "22.05")
	games := Subject{User: "games", UID: 5, Account: "proj", QOS: "normal"}
	backup := Subject{User: "backup", UID: 34, Account: "proj", QOS: "normal"}
	for _, c := range []struct {
		who       Subject
		partition string
		need      Need
		most      int
		want      int
		why       string
	}{
		{backup, "medium-40core", Need{Peak: 3, Least: 3, CPUs: 4}, 5, 5, ""},
		{backup, "medium-40core", Need{Peak: 3, Least: 3, CPUs: 4}, 99, 6, "at most 6 (MaxNodes)"},
		{backup, "short-40core-shared", Need{Peak: 1, Least: 1, CPUs: 4}, 8, 1, "8 CPUs, but QOS short-40core-shared-qos may have 6"},
		{backup, "debug-40core", Need{Peak: 1, Least: 1}, 3, 1, "a growth is a second one"},
		{games, "short-40core", Need{Peak: 1, Least: 1, CPUs: 4}, 64, 2, "may have 2 in one job"},
		{Subject{User: "nobody"}, "nowhere", Need{Peak: 1, Least: 1}, 100, 100, ""},
	} {
		c.who.Partition = c.partition
		got, why := l.MostNodes(c.who, c.need, c.most)
		if got != c.want || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%s in %s from %d to %d: %d, %q; want %d, %q", c.who.User, c.partition, c.need.Peak, c.most, got, why, c.want, c.why)
		}
	}
}

func TestGivenMinutes(t *testing.T) {
	l := readLimits(t, "22.05")
	for _, c := range []struct {
		user, partition string
		want            int64
	}{
		{"backup", "medium-40core", 240}, {"backup", "debug-40core", 60}, {"games", "medium-40core", 60}, {"backup", "nowhere", -1},
	} {
		if got := l.GivenMinutes(Subject{User: c.user, Account: "proj", QOS: "normal", Partition: c.partition}); got != c.want {
			t.Errorf("%s in %s: %d, want %d", c.user, c.partition, got, c.want)
		}
	}
}
