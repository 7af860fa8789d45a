package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/stock"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestThreeJobs plans a state of three evolving jobs on four nodes: job 1 has priority 30, job 2 has 20, and job 3 has
// 10. Plans are in seconds from now.
func TestThreeJobs(t *testing.T) {
	three := []string{"2@1m,4@1m", "2@1m,4@1m", "1@1m"}
	for name, c := range map[string]struct {
		profiles []string
		change   func(b *statetest.Bench, all []*state.Job)
		want     []string
	}{
		"the first comes first": {three, nil, []string{"0-60 n[1-2], 60-120 n[1-4]", "120-180 n[1-2], 180-240 n[1-4]", "0-60 n3"}},
		"the last one has most": {three, func(_ *statetest.Bench, all []*state.Job) { all[2].Record.Priority = 40 },
			[]string{"0-60 n[2-3], 60-120 n[1-4]", "120-180 n[1-2], 180-240 n[1-4]", "0-60 n1"}},
		"the same priority: by submission": {three, func(b *statetest.Bench, all []*state.Job) {
			all[0].Record.Priority = 20
			all[0].Record.SubmitTime = b.Now.Add(time.Second)
		}, []string{"120-180 n[1-2], 180-240 n[1-4]", "0-60 n[1-2], 60-120 n[1-4]", "0-60 n3"}},
		"the same second: by number": {three, func(_ *statetest.Bench, all []*state.Job) { all[0].Record.Priority = 20 },
			[]string{"0-60 n[1-2], 60-120 n[1-4]", "120-180 n[1-2], 180-240 n[1-4]", "0-60 n3"}},
		"its user's begin time": {three, func(b *statetest.Bench, all []*state.Job) { all[0].Begin = b.Now.Add(60 * time.Second) },
			[]string{"60-120 n[1-2], 120-180 n[1-4]", "180-240 n[1-2], 240-300 n[1-4]", "0-60 n1"}},
		"a stock job of higher priority": {three, func(b *statetest.Bench, _ []*state.Job) { b.Stock(9, 99, 4, time.Minute) },
			[]string{"90-150 n[1-2], 150-210 n[1-4]", "210-270 n[1-2], 270-330 n[1-4]", "90-150 n3"}},
		"a stock job of lower priority": {three, func(b *statetest.Bench, _ []*state.Job) { b.Stock(9, 5, 4, time.Minute) },
			[]string{"0-60 n[1-2], 60-120 n[1-4]", "120-180 n[1-2], 180-240 n[1-4]", "0-60 n3"}},
		"held": {three, func(_ *statetest.Bench, all []*state.Job) {
			all[0].Record.Priority, all[0].Record.Reason = 0, "JobHeldUser"
		},
			[]string{"no plan: held: JobHeldUser", "0-60 n[1-2], 60-120 n[1-4]", "0-60 n3"}},
		"it waits for another job": {three, func(_ *statetest.Bench, all []*state.Job) { all[0].Record.Reason = "Dependency" },
			[]string{"no plan: waits for another job (Dependency)", "0-60 n[1-2], 60-120 n[1-4]", "0-60 n3"}},
		"a limit keeps it back": {three, func(b *statetest.Bench, all []*state.Job) {
			all[0].Kept = &state.KeptBack{Text: "no room", Again: b.Now.Add(time.Second)}
		},
			[]string{"no plan: no room", "0-60 n[1-2], 60-120 n[1-4]", "0-60 n3"}},
		"its request is not read": {three, func(_ *statetest.Bench, all []*state.Job) { all[0].Asked = nil },
			[]string{"no plan: its request is being read", "0-60 n[1-2], 60-120 n[1-4]", "0-60 n3"}},
		"more nodes than there are": {[]string{"2@1m,5@1m", "2@1m,4@1m", "1@1m"}, nil,
			[]string{"no plan: it needs 5 nodes, the pool has 4", "0-60 n[1-2], 60-120 n[1-4]", "0-60 n3"}},
		"the whole cluster in each step":   {[]string{"4@1m", "4@1m", "4@1m"}, nil, []string{"0-60 n[1-4]", "60-120 n[1-4]", "120-180 n[1-4]"}},
		"a short one fits before a growth": {[]string{"2@2m,4@1m", "2@2m", "2@3m"}, nil, []string{"0-120 n[1-2], 120-180 n[1-4]", "0-120 n[3-4]", "180-360 n[1-2]"}},
		"the first of two nodes is drained": {[]string{"1@1m", "1@1m", "2@1m"}, func(b *statetest.Bench, _ []*state.Job) { b.Seen.Nodes[0].State = "drained" },
			[]string{"0-60 n2", "0-60 n3", "60-120 n[2-3]"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 4)
			b.Config.Margin = 0
			var all []*state.Job
			for i, profile := range c.profiles {
				all = append(all, b.Evolving(i+1, uint64(30-10*i), profile, 10*time.Minute))
			}
			if c.change != nil {
				c.change(b, all)
			}
			planAll(b)
			for i, j := range all {
				if got := statetest.Planned(j); got != c.want[i] {
					t.Errorf("job %d: %s\nwant %s", i+1, got, c.want[i])
				}
			}
		})
	}
}

// TestBehind checks where a job goes that asked for more while it waited: behind those that were submitted before that,
// and nowhere else. Jobs are named by when they were submitted, and with + when they grew.
func TestBehind(t *testing.T) {
	for _, c := range []struct{ list, want string }{
		{"1 2 3", "1 2 3"},
		{"1+9 2 3", "2 3 1+9"},
		{"1+2 2 3", "1+2 2 3"}, // submitted at the same time, not before
		{"1+3 2 3", "2 1+3 3"},
		{"1+9 2 10 3", "2 10 3 1+9"}, // job 10 has gone before one that it does not wait for
		{"3+9 1+9 2", "2 3+9 1+9"},
		{"1+9", "1+9"},
		{"", ""},
	} {
		var list []slurm.Candidate
		for _, text := range strings.Fields(c.list) {
			at, grew, _ := strings.Cut(text, "+")
			second := func(text string) time.Time {
				n, err := strconv.Atoi(text)
				if err != nil {
					return time.Time{}
				}
				return time.Unix(int64(n), 0)
			}
			j := &state.Job{}
			j.Job = &row.Job{Owned: row.Owned{Name: text}, Terms: row.Terms{Behind: second(grew)}}
			list = append(list, slurm.Candidate{Job: j, Record: &slurmctl.Job{SubmitTime: second(at)}})
		}
		var got []string
		for _, cand := range Behind(list) {
			got = append(got, cand.Job.Name)
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s, want %s", c.list, text, c.want)
		}
	}
}

// inCourse has a job ask for the three nodes of a reservation.
func inCourse(b *statetest.Bench, r *slurmctl.Job) {
	b.Reserve("course", time.Hour, 2*time.Hour, 2, 4)
	r.Reservation, r.NumNodes = "course", 3
}

// read1 has the sidecar know of one licence.
func read1(b *statetest.Bench) {
	b.Licenses = state.LicenseBook{Stock: []slurmctl.LicenseStock{{License: slurmctl.License{Name: "foo", Count: 1}}}, Known: true, Read: b.Now}
}

// TestStockCandidates checks which stock jobs the plan keeps nodes for, and how many. The lowest evolving job has
// priority 50.
func TestStockCandidates(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *statetest.Bench, r *slurmctl.Job)
		want   string // nodes and seconds; "": it is left out
	}{
		"of higher priority":           {nil, "2 nodes for 3630 s"},
		"of the same priority":         {func(_ *statetest.Bench, r *slurmctl.Job) { r.Priority = 50 }, "2 nodes for 3630 s"},
		"of lower priority":            {func(_ *statetest.Bench, r *slurmctl.Job) { r.Priority = 49 }, ""},
		"it runs":                      {func(_ *statetest.Bench, r *slurmctl.Job) { r.State = slurmctl.Running }, ""},
		"a limit keeps it back":        {func(_ *statetest.Bench, r *slurmctl.Job) { r.Reason = "AssocMaxJobsLimit" }, ""},
		"its reservation is gone":      {func(_ *statetest.Bench, r *slurmctl.Job) { r.Reservation = "course" }, ""},
		"in a reservation":             {inCourse, "3 nodes for 3630 s"},
		"its reservation begins later": {func(b *statetest.Bench, r *slurmctl.Job) { inCourse(b, r); r.Reason = "Reservation" }, "3 nodes for 3630 s"},
		"on hold, in a reservation":    {func(b *statetest.Bench, r *slurmctl.Job) { inCourse(b, r); r.Reason, r.Priority = "Reservation", 0 }, ""},
		"as long as its reservation": {func(b *statetest.Bench, r *slurmctl.Job) {
			inCourse(b, r)
			b.Config.Margin, r.TimeLimit = 5*time.Second, 2*time.Hour
		}, "3 nodes for 7195 s"},
		"longer than its reservation":     {func(b *statetest.Bench, r *slurmctl.Job) { inCourse(b, r); r.TimeLimit = 3 * time.Hour }, "3 nodes for 10830 s"},
		"more nodes than its reservation": {func(b *statetest.Bench, r *slurmctl.Job) { inCourse(b, r); r.NumNodes = 4 }, ""},
		"another's reservation is ahead":  {func(_ *statetest.Bench, r *slurmctl.Job) { r.Reason = "Reservation" }, ""},
		"it waits for licences":           {func(b *statetest.Bench, r *slurmctl.Job) { read1(b); r.Licenses, r.Reason = "foo", "Licenses" }, "2 nodes for 3630 s"},
		"no licences are known":           {func(_ *statetest.Bench, r *slurmctl.Job) { r.Licenses, r.Reason = "foo", "Licenses" }, ""},
		"it has no limit":                 {func(_ *statetest.Bench, r *slurmctl.Job) { r.TimeLimit = slurmctl.Unlimited }, "2 nodes for 2147483647 s"},
		"a limit of nothing":              {func(_ *statetest.Bench, r *slurmctl.Job) { r.TimeLimit = 0 }, "2 nodes for 30 s"},
		"more nodes than there are":       {func(_ *statetest.Bench, r *slurmctl.Job) { r.NumNodes = math.MaxInt32 }, "4 nodes for 3630 s"},
		"no node at all":                  {func(_ *statetest.Bench, r *slurmctl.Job) { r.NumNodes = 0 }, "1 nodes for 3630 s"},
		"an array of three":               {func(_ *statetest.Bench, r *slurmctl.Job) { r.NumNodes, r.ArrayTasks = 1, 3 }, "3 nodes for 3630 s"},
		"an array of very many":           {func(_ *statetest.Bench, r *slurmctl.Job) { r.ArrayTasks = 4_000_000 }, "4 nodes for 3630 s"},
		"it shares its node":              {func(_ *statetest.Bench, r *slurmctl.Job) { r.NumNodes, r.NumCPUs, r.Exclusive = 1, 1, false }, "1 nodes for 3630 s"},
		"an array of nine that share nodes": {func(_ *statetest.Bench, r *slurmctl.Job) {
			r.NumNodes, r.NumCPUs, r.Exclusive, r.ArrayTasks = 1, 1, false, 9
		}, "3 nodes for 3630 s"},
		"nodes without a count of CPUs": {func(b *statetest.Bench, r *slurmctl.Job) {
			b.Seen.Nodes[0].CPUs = 0
			r.NumNodes, r.NumCPUs, r.Exclusive = 1, 3, false
		}, "3 nodes for 3630 s"},
		"no node suits it": {func(_ *statetest.Bench, r *slurmctl.Job) { r.MinCPUs = 99 }, ""},
		"its partition is down": {func(b *statetest.Bench, _ *slurmctl.Job) {
			b.Seen.Partitions["main"] = slurmctl.Partition{Name: "main"}
		}, ""},
		"numbers of nodes by feature":         {func(b *statetest.Bench, r *slurmctl.Job) { featured(b); r.Features = "[a*2&b*1]" }, "3 nodes for 3630 s"},
		"two lists in brackets":               {func(b *statetest.Bench, r *slurmctl.Job) { featured(b); r.Features = "[a|c]&[a|b]" }, "2 nodes for 3630 s"},
		"a group in brackets":                 {func(b *statetest.Bench, r *slurmctl.Job) { featured(b); r.Features = "[(a&b)|b]" }, "2 nodes for 3630 s"},
		"a group of one node":                 {func(b *statetest.Bench, r *slurmctl.Job) { featured(b); r.Features = "[(b&b)|c]" }, "1 nodes for 3630 s"},
		"it is an evolving job":               {func(b *statetest.Bench, r *slurmctl.Job) { b.ByID[r.ID] = b.Active[0] }, ""},
		"it is an expander":                   {func(_ *statetest.Bench, r *slurmctl.Job) { r.Name, r.UID = "evo_1_2_1", 1000 }, ""},
		"another user's, named as one":        {func(_ *statetest.Bench, r *slurmctl.Job) { r.Name, r.UID = "evo_1_2_1", 2000 }, "2 nodes for 3630 s"},
		"the site's bound on their number":    {func(b *statetest.Bench, _ *slurmctl.Job) { b.Config.StockJobs = 1; b.Stock(8, 99, 1, time.Hour) }, ""},
		"a bound, and one of lower priority.": {func(b *statetest.Bench, _ *slurmctl.Job) { b.Config.StockJobs = 1; b.Stock(8, 60, 1, time.Hour) }, "2 nodes for 3630 s"},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 4)
			j := b.Evolving(1, 50, "1@1m,2@1m", time.Hour)
			r := b.Stock(9, 70, 2, time.Hour)
			if c.change != nil {
				c.change(b, r)
			}
			got := ""
			for _, cand := range stock.Candidates(b.Core, b.Seen, b.Now.Unix(), slurm.Turn{Tier: stock.TierOf(b.Core, &j.Record, false), Priority: 50}, nil) {
				if cand.Record.ID == 9 {
					got = fmt.Sprintf("%d nodes for %d s", cand.Profile[0].Nodes, cand.Profile[0].Duration)
				}
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// featured gives n[1-3] feature a, and further nodes feature b.
func featured(b *statetest.Bench) {
	for i := range b.Seen.Nodes {
		b.Seen.Nodes[i].Features = []string{map[bool]string{true: "a", false: "b"}[i < 3]}
	}
}

// TestParts checks what the plan keeps for a stock job that needs numbers of nodes by feature, and where the evolving job E behind it starts.
// n[1-3] have feature a, and n[4-6] have b.
func TestParts(t *testing.T) {
	for name, c := range map[string]struct {
		features string
		change   func(b *statetest.Bench, r *slurmctl.Job)
		want     string // minutes from now, nodes, and the nodes that it may have
		evolving string // its plan; "": not looked at
	}{
		"idle":                         {"[a*2&b*1]", nil, "0: 2 n[1-3], 0: 1 n[4-6]", "0-300 n[3,5]"},
		"one feature is busy":          {"[a*2&b*1]", busyB, "20: 2 n[1-3], 20: 1 n[4-6]", "0-300 n[1-2]"},
		"it asks for fewer in all":     {"[a*2&b*1]", func(_ *statetest.Bench, r *slurmctl.Job) { r.NumNodes = 1 }, "0: 2 n[1-3], 0: 1 n[4-6]", "0-300 n[3,5]"},
		"it asks for more":             {"[a*2&b*1]", func(_ *statetest.Bench, r *slurmctl.Job) { r.NumNodes = 5 }, "0: 5 n[1-6]", "3630-3930 n[1-2]"},
		"a node counts for both":       {"[a*2&b*1]", func(b *statetest.Bench, _ *slurmctl.Job) { b.Seen.Nodes[0].Features = []string{"a", "b"} }, "0: 3 n[1-6]", "0-300 n[4-5]"},
		"too few nodes with a feature": {"[a*4&b*1]", nil, "0: 5 n[1-6]", "3630-3930 n[1-2]"},
		"an array":                     {"[a*1&b*1]", func(_ *statetest.Bench, r *slurmctl.Job) { r.NumNodes, r.ArrayTasks = 2, 2 }, "0: 2 n[1-3], 0: 2 n[4-6]", "0-300 n[3,6]"},
		"an array of very many":        {"[a*1&b*1]", func(_ *statetest.Bench, r *slurmctl.Job) { r.NumNodes, r.ArrayTasks = 2, 4_000_000 }, "0: 3 n[1-3], 0: 3 n[4-6]", "3630-3930 n[1-2]"},
		"a job that never ends":        {"[a*2&b*1]", func(b *statetest.Bench, _ *slurmctl.Job) { b.StockRuns(8, "n[4-6]", slurmctl.Unlimited) }, "0: 2 n[1-3], 0: 1 n[4-6]", ""},
		"an evolving job has the nodes": {"[a*2&b*1]", func(b *statetest.Bench, _ *slurmctl.Job) {
			b.Runs(b.Evolving(8, 60, "3@5m", time.Hour), "n[4-6]")
		}, "0: 2 n[1-3], 0: 1 n[4-6]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 6)
			featured(b)
			b.Config.Margin = 0
			j := b.Evolving(1, 50, "2@5m", time.Hour)
			r := b.Stock(9, 70, 3, time.Hour)
			r.Features = c.features
			if c.change != nil {
				c.change(b, r)
			}
			var got []string
			for _, cand := range Candidates(b.Core, b.Seen, b.Now.Unix()) {
				if cand.Job == nil {
					var nodes []string
					for _, n := range cand.Nodes {
						nodes = append(nodes, b.Seen.Nodes[n].Name)
					}
					got = append(got, fmt.Sprintf("%d: %d %s", (cand.Earliest-b.Now.Unix())/60, cand.Profile[0].Nodes, slurmctl.CompressNodes(nodes)))
				}
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("%s, want %s", text, c.want)
			}
			if planAll(b); c.evolving != "" && statetest.Planned(j) != c.evolving {
				t.Errorf("behind it: %s, want %s", statetest.Planned(j), c.evolving)
			}
		})
	}
}

func busyB(b *statetest.Bench, _ *slurmctl.Job) { b.StockRuns(8, "n[4-6]", 20*time.Minute) }

// TestShareOut checks that a list that is cut has a share for each user, and that a shorter list is only sorted.
func TestShareOut(t *testing.T) {
	for most, want := range map[int]string{stock.MostOfUser + 1: "1000 ×40, 2000 ×1", stock.MostOfUser + 4: "1000 ×42, 2000 ×2", 2 * stock.MostOfUser: "1000 ×60, 2000 ×2"} {
		b := statetest.New(t, 4)
		b.Config.StockJobs = most
		for i := range 62 {
			b.Stock(i+1, uint64(100-i), 1, time.Hour).UID = map[bool]uint32{true: 1000, false: 2000}[i < 60]
		}
		list, of := stock.Candidates(b.Core, b.Seen, b.Now.Unix(), slurm.Turn{}, nil), map[uint32]int{}
		for _, cand := range list {
			of[cand.Record.UID]++
		}
		if got := fmt.Sprintf("1000 ×%d, 2000 ×%d", of[1000], of[2000]); got != want || !slices.IsSortedFunc(list, stock.MoreUrgent) {
			t.Errorf("of %d jobs: %s, want %s, the most urgent first", most, got, want)
		}
	}
}

// TestIsExpander checks which Slurm jobs count as bringing nodes to job 1 of user 1000, which has two steps, or to job
// 7 of that user, which has ended.
func TestIsExpander(t *testing.T) {
	for name, c := range map[string]struct {
		r    slurmctl.Job
		want bool
	}{
		"by its user and step":             {slurmctl.Job{UID: 1000, Name: "evo_1_2_1"}, true},
		"beyond the plan":                  {slurmctl.Job{UID: 1000, Name: "evo_1_0_1"}, true},
		"a step that the job has not":      {slurmctl.Job{UID: 1000, Name: "evo_1_3_1"}, false},
		"another user's":                   {slurmctl.Job{UID: 2000, Name: "evo_1_2_1"}, false},
		"another user's, with the mark":    {slurmctl.Job{UID: 2000, Name: "evo_1_2_1", Comment: slurm.ExpanderMark}, true}, // see MayBring
		"the sidecar's own":                {slurmctl.Job{User: "root", Name: "evo_1_2_1"}, true},
		"the sidecar's, with no such name": {slurmctl.Job{User: "root", Name: "backup"}, false},
		"of a job that has ended":          {slurmctl.Job{UID: 1000, Name: "evo_7_2_1", SubmitTime: statetest.Start}, true},
		"a step that it had not":           {slurmctl.Job{UID: 1000, Name: "evo_7_3_1", SubmitTime: statetest.Start}, false},
		"submitted before that job":        {slurmctl.Job{UID: 1000, Name: "evo_7_2_1", SubmitTime: statetest.Start.Add(-time.Second)}, false},
		"of a job that nobody knows":       {slurmctl.Job{UID: 1000, Name: "evo_9_2_1"}, false},
		"a name that is too long":          {slurmctl.Job{UID: 1000, Name: "evo_1_2_1_1"}, false},
	} {
		b := statetest.New(t, 2)
		b.Evolving(1, 1, "1@1m,2@1m", time.Hour)
		b.Known[7] = row.Known{UID: 1000, Steps: 2, Submitted: statetest.Start}
		if got := slurm.IsExpander(b.Core, &c.r); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestTasksInOrder checks that tasks of an array come in the order of their numbers, between jobs that were submitted
// in the same second: the last task keeps the array's ID, and others get later ones.
func TestTasksInOrder(t *testing.T) {
	one := func(id, array slurmctl.JobID, display string) slurm.Candidate {
		return slurm.Candidate{Record: &slurmctl.Job{ID: id, ArrayJobID: array, ArrayTasks: 1, Display: display}}
	}
	list := []slurm.Candidate{one(9, 9, "9"), one(1, 1, "1_4"), one(8, 1, "1_2"), one(3, 3, "3"), one(6, 1, "1_3")}
	stock.ShareOut(list, len(list))
	var got []string
	for _, c := range list {
		got = append(got, c.Record.Display)
	}
	if want := "1_2 1_3 1_4 3 9"; strings.Join(got, " ") != want || !slices.IsSortedFunc(list, stock.MoreUrgent) {
		t.Errorf("%v, want %s", got, want)
	}
}
