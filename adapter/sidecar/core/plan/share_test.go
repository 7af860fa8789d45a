package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestStarts checks when stock jobs are predicted to start, in minutes. Two nodes have 4 CPUs and 1000 MiB each, n2 has four GPUs if
// there are any. n1 has feature a, n2 has b. Jobs are written "CPUs×minutes", with @node if they run, and in braces what else they are.
func TestStarts(t *testing.T) {
	for name, c := range map[string]struct{ conf, partition, jobs, want string }{
		"four jobs share a node":             {jobs: "1x10 1x10 1x10 1x10 1x10", want: "0 0 0 0 0"},
		"both nodes are full":                {jobs: "4x10@n1 4x20@n2 1x5 1x5 4x5", want: "10 10 15"},
		"ends of running jobs free CPUs":     {jobs: "3x10@n1 4x20@n2 1x5 2x5", want: "0 10"},
		"a whole node waits for all":         {jobs: "1x10@n1 1x20@n2 4x5{whole}", want: "10"},
		"a later job fills":                  {jobs: "1x10@n1 4x20@n2 4x5{whole} 1x10 1x11", want: "10 0 15"},
		"two nodes":                          {jobs: "1x10@n1 1x20@n2 8x5{nodes=2,whole} 1x10", want: "20 0"},
		"two nodes that are shared":          {jobs: "1x10@n1 1x20@n2 6x5{nodes=2} 4x5{nodes=2}", want: "0 5"},
		"CPUs of more than a node":           {jobs: "4x10@n1 5x5", want: "10"},
		"memory is no resource":              {jobs: "1x10{mem=900} 1x10{mem=900} 1x10{mem=900}", want: "0 0 0"},
		"memory fills":                       {conf: "CR_Core_Memory", jobs: "1x10@n1{mem=900} 1x20@n2{mem=600} 1x5{mem=400} 1x5{mem=100} 1x5{mem=400}", want: "0 0 5"},
		"all memory without a default":       {conf: "CR_Core_Memory", jobs: "1x10@n1{mem=10} 1x20@n2{mem=10} 1x5", want: "10"},
		"threads of a core":                  {jobs: "2x10@n1 4x10@n2 1x5 1x5 1x5", want: "0 5 10"},
		"three of four GPUs are busy":        {jobs: "1x10@n2{gres=gpu:a:3} 1x5{gres=gpu:1} 1x5{gres=gpu:1}", want: "0 5"},
		"GPUs of a type":                     {jobs: "1x10@n2{gres=gpu:a:3} 1x5{gres=gpu:a:1} 1x5{gres=gpu:b:1}", want: "10 0"},
		"any type beside a type":             {jobs: "1x5{gres=gpu:b:1} 1x5{gres=gpu:3} 1x5{gres=gpu:1}", want: "0 0 5"},
		"a type is taken first":              {jobs: "1x5{gres=gpu:1+gpu:a:3}", want: "0"},
		"GPUs of a node that is taken whole": {jobs: "4x10@n2{whole} 1x5{gres=gpu:1} 1x5", want: "10 0"},
		"more GPUs than there are":           {jobs: "1x5{gres=gpu:5} 1x5{gres=fpga:1} 1x5", want: "- - 0"},
		"MaxCPUsPerNode":                     {partition: "MaxCPUsPerNode=3", jobs: "2x10@n1 3x20@n2 2x5 1x5", want: "10 0"},
		"ExclusiveUser":                      {partition: "ExclusiveUser=YES", jobs: "1x10@n1{uid=1} 1x20@n2{uid=2} 1x5{uid=1} 1x5{uid=2} 1x5{uid=3}", want: "0 0 10"},
		"two users already":                  {partition: "ExclusiveUser=YES", jobs: "1x10@n1{uid=1} 1x10@n1{uid=2} 4x20@n2 1x5{uid=2}", want: "10"},
		"OverSubscribe=EXCLUSIVE":            {partition: "OverSubscribe=EXCLUSIVE", jobs: "1x10@n1 1x20@n2 1x5 1x5", want: "10 15"},
		"select/linear":                      {conf: "linear", jobs: "1x10@n1 1x20@n2 1x5", want: "10"},
		"an array":                           {jobs: "1x10@n1 4x20@n2 1x5{tasks=4} 1x5", want: "0 5"},
		"an array with a limit":              {jobs: "1x10@n1 4x20@n2 1x5{tasks=4,limit=1} 2x5", want: "0 0"},
		"an array of a million tasks":        {jobs: "4x10@n1 4x20@n2 1x5{tasks=1000000}", want: "10"},
		"a node of each feature":             {jobs: "4x10@n1 1x5{feat=[a*1&b*1]} 1x10", want: "10 0"},
		"a node of a feature":                {jobs: "4x10@n1 4x20@n2 1x5{feat=[b*1]} 1x5", want: "20 10"},
		"two lists in brackets":              {jobs: "4x10@n1 4x20@n2 1x5{feat=[a|c]&[c|d]} 1x5", want: "10 10"},
		"all components at once":             {jobs: "4x10@n1 2x20@n2 3x5{het=90} 2x5{het=90} 1x5", want: "10 10 0"},
		"one component on each node":         {jobs: "4x10@n1 4x20@n2 3x5{het=90} 3x5{het=90} 1x5", want: "20 20 10"},
		"they need the same node":            {jobs: "1x10@n1 4x30@n2 2x5{het=90} 2x5{het=90} 1x5", want: "10 10 0"},
		"a component that never fits":        {jobs: "1x5{het=90} 1x5{het=90,gres=gpu:9} 1x5", want: "- - 0"},
		"a component on hold":                {jobs: "1x5{het=90} 1x5{het=90,held} 1x5", want: "- - 0"},
		"two heterogeneous jobs":             {jobs: "1x5{het=90} 1x5{het=91} 4x5{het=90} 4x5{het=91}", want: "0 5 0 5"},
	} {
		t.Run(name, func(t *testing.T) {
			b := benchOf(t, c.conf, c.partition, strings.Contains(c.jobs, "gres="))
			for i, text := range strings.Fields(c.jobs) {
				stockOf(t, b, i+1, text)
			}
			if got := startsOf(b); got != c.want {
				t.Errorf("starts %q, want %q", got, c.want)
			}
		})
	}
}

func benchOf(t *testing.T, conf, partition string, gpus bool) *statetest.Bench {
	b := statetest.New(t, 2)
	b.Config.Mode, b.Config.Margin, b.Config.StockJobs = "observe", 0, 100
	b.SlurmConfig.Values = map[string]string{"SelectType": "select/cons_tres", "SelectTypeParameters": conf}
	if conf == "linear" {
		b.SlurmConfig.Values["SelectType"] = "select/linear"
	}
	b.Rules.Limits = slurmctl.ParseLimits(b.SlurmConfig, slurmctl.LimitsText{Partitions: "PartitionName=main Nodes=n[1-2] " + partition + "\n"})
	b.Seen.Nodes[0].Features, b.Seen.Nodes[1].Features = []string{"a"}, []string{"b"}
	if gpus {
		b.Seen.Nodes[1].GRES = "gpu:a:3(S:0),gpu:b:1"
	}
	return b
}

// stockOf adds a job of a table.
func stockOf(t *testing.T, b *statetest.Bench, id int, text string) {
	text, more, _ := strings.Cut(strings.TrimSuffix(text, "}"), "{")
	text, node, runs := strings.Cut(text, "@")
	var cpus, minutes int
	if _, err := fmt.Sscanf(text, "%dx%d", &cpus, &minutes); err != nil {
		t.Fatal(err)
	}
	r := b.Stock(id, uint64(1000-id), 1, time.Duration(minutes)*time.Minute)
	if runs {
		b.Seen.Jobs = b.Seen.Jobs[:len(b.Seen.Jobs)-1]
		r = b.StockRuns(id, node, time.Duration(minutes)*time.Minute)
	}
	r.NumCPUs, r.Exclusive, r.ArrayJobID = cpus, false, r.ID
	for option := range strings.SplitSeq(more, ",") {
		name, value, _ := strings.Cut(option, "=")
		n := 0
		_, _ = fmt.Sscan(value, &n) // of a number
		switch name {
		case "whole":
			r.Exclusive = true
		case "feat":
			r.Features = value
		case "het":
			r.Heterogenous, r.Display = true, fmt.Sprintf("%d+%d", n, id)
		case "held":
			r.Priority, r.Reason = 0, "JobHeldUser"
		case "nodes":
			r.NumNodes = n
		case "mem":
			r.MinMemory = int64(n)
		case "gres":
			r.TRESPer = "gres:" + strings.ReplaceAll(value, "+", ",gres:")
		case "uid":
			r.UID = uint32(n)
		case "tasks":
			r.ArrayTasks = n
		case "limit":
			r.ArrayLimit = n
		}
	}
}

// startsOf returns the predicted starts of the pending jobs, in whole minutes from now.
func startsOf(b *statetest.Bench) string {
	o := msg.NewOccupancy(len(b.Seen.Nodes), b.Now.Unix())
	p := ProblemOf(b.Core, b.Seen, o, Candidates(b.Core, b.Seen, b.Now.Unix()))
	var all []string
	for i := range b.Seen.Jobs {
		r := &b.Seen.Jobs[i]
		if r.State != slurmctl.Pending {
			continue
		}
		at := slices.IndexFunc(p.Stock, func(s msg.PlannedStart) bool { return s.Job == r.ID })
		if at < 0 || p.Stock[at].Start == 0 {
			all = append(all, "-")
			continue
		}
		all = append(all, fmt.Sprint((p.Stock[at].Start-b.Now.Unix())/60))
	}
	return strings.Join(all, " ")
}

// TestStartsAround checks that no start is predicted on a node that is down, nor before a reservation that begins too soon. Nodes of a low
// weight come first.
func TestStartsAround(t *testing.T) {
	b := benchOf(t, "", "", false)
	b.Seen.Nodes[0].State = "down"
	stockOf(t, b, 1, "1x10")
	stockOf(t, b, 2, "1x5")
	o := msg.NewOccupancy(2, b.Now.Unix())
	o.Reserve(1, b.Now.Unix()+7*60, b.Now.Unix()+30*60, "course")
	list := Candidates(b.Core, b.Seen, b.Now.Unix())
	if got := Starts(b.Core, b.Seen, o, list); got[0].Start != b.Now.Unix()+30*60 || got[1].Start != b.Now.Unix() {
		t.Errorf("starts %+v from %d on", got, b.Now.Unix())
	}
	b.Seen.Nodes[0].State, b.Seen.Nodes[0].Weight = "idle", 2
	h := newShares(b.Core, b.Seen, msg.NewOccupancy(2, b.Now.Unix()))
	if _, on := h.placeOn([]int{0, 1}, 1, b.Now.Unix(), 60, h.shareOf(list[0].Record)); !slices.Equal(on, []int{1}) {
		t.Errorf("on %v", on)
	}
}

// TestStartsBounded checks that work on what users ask for is bounded.
func TestStartsBounded(t *testing.T) {
	b := benchOf(t, "", "", false)
	for i := range 40 {
		stockOf(t, b, i+1, "1x10{tasks=2000000000}")
	}
	h := newShares(b.Core, b.Seen, msg.NewOccupancy(2, b.Now.Unix()))
	list := Candidates(b.Core, b.Seen, b.Now.Unix())
	for i := range list {
		h.start(&list[i], map[slurmctl.JobID][]int64{})
	}
	for n, stretches := range h.nodes {
		if len(stretches) > 40*mostTasks+2 {
			t.Errorf("node %d has %d stretches", n, len(stretches))
		}
	}
	h.looks = mostLooks
	if start, _ := h.placeOn(list[0].Nodes, 1, 0, 60, h.shareOf(list[0].Record)); start < 1<<40 {
		t.Error("it looks further")
	}
}
