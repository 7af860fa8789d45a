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
// there are any. n1 has feature a, n2 has b. Reservation course has n1 from minute 10 to 30, now has n2 for 20 minutes. There are two
// licences foo. Jobs are written "CPUs×minutes", with @node if they run, and in braces what else they are.
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
		"in a reservation":                   {jobs: "1x5{in=course} 1x5", want: "10 0"},
		"it waits for its reservation":       {jobs: "1x5{in=course,why=Reservation} 1x5{why=Reservation}", want: "10 -"},
		"longer than the reservation":        {jobs: "1x21{in=course} 1x21", want: "- 0"},
		"others never get its nodes":         {jobs: "4x40@n2 4x5{in=course} 1x9 1x11", want: "10 0 30"},
		"the reservation is full":            {jobs: "4x5{in=now} 4x5{in=now} 4x11{in=now} 4x5", want: "0 5 - 0"},
		"they share nodes of a reservation":  {jobs: "1x5{in=now} 3x5{in=now} 1x5{in=now}", want: "0 0 5"},
		"a running job is in its way":        {jobs: "4x15@n1 1x5{in=course}", want: "15"},
		"one runs in the reservation":        {jobs: "4x14@n2{in=now} 4x5{in=now} 1x4{in=now}", want: "14 -"},
		"two reservations":                   {jobs: "4x5{in=now} 4x5{in=course} 4x5{in=now} 4x8", want: "0 10 5 0"},
		"a reservation that is gone":         {jobs: "1x5{in=gone} 1x5", want: "- 0"},
		"in a hold":                          {jobs: "1x5{in=evo_7_1_1} 1x5", want: "- 0"},
		"too many nodes for the reservation": {jobs: "8x5{in=course,nodes=2} 1x5", want: "- 0"},
		"licences":                           {jobs: "1x10@n1{lic=foo} 1x5{lic=foo} 1x5{lic=foo:2} 1x5", want: "0 10 0"},
		"it waits for licences":              {jobs: "1x10@n1{lic=foo:2} 1x5{lic=foo,why=Licenses} 1x5{why=Licenses}", want: "10 -"},
		"licences of each task":              {jobs: "1x5{lic=foo,tasks=3} 1x5{lic=foo} 1x5{lic=foo:2}", want: "0 5 10"},
		"a shorter job has them before":      {jobs: "1x10@n1{lic=foo} 1x5{lic=foo:2} 1x9{lic=foo} 1x11{lic=foo}", want: "10 0 15"},
		"licences that are not there":        {jobs: "1x10@n1{lic=bar} 1x5{lic=bar}", want: "0"},
		"a choice of licences":               {jobs: "1x10@n1{lic=foo:2} 1x5{lic=foo|bar}", want: "0"},
		"licences in a reservation":          {jobs: "1x12@n2{lic=foo:2} 1x5{in=course,lic=foo} 1x5{in=course}", want: "12 10"},
		"the components have licences":       {jobs: "1x5{het=90,lic=foo:2} 1x5{het=90,lic=foo:2} 1x5", want: "0 0 0"},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.NewShared(t, c.conf, c.partition, strings.Contains(c.jobs, "gres="))
			for i, text := range strings.Fields(c.jobs) {
				b.Share(t, i+1, text)
			}
			reserveFor(b, c.jobs)
			if got := startsOf(b); got != c.want {
				t.Errorf("starts %q, want %q", got, c.want)
			}
		})
	}
}

// reserveFor makes the reservations that jobs of a table name.
func reserveFor(b *statetest.Bench, jobs string) {
	if strings.Contains(jobs, "in=course") {
		b.Reserve("course", 10*time.Minute, 20*time.Minute, 1, 1)
	}
	if strings.Contains(jobs, "in=now") {
		b.Reserve("now", 0, 20*time.Minute, 2, 2)
	}
	for name, r := range b.Seen.Reservations {
		r.Name, r.Users = name, []string{"user"}
		b.Seen.Reservations[name] = r
	}
}

// occupied returns what reservations have.
func occupied(b *statetest.Bench) *msg.Occupancy {
	o := msg.NewOccupancy(len(b.Seen.Nodes), b.Now.Unix())
	for name, r := range b.Seen.Reservations {
		for _, n := range r.Nodes {
			o.Reserve(b.Seen.Index[n], r.Start.Unix(), r.End.Unix(), name)
		}
	}
	return o
}

// startsOf returns the predicted starts of the pending jobs, in whole minutes from now.
func startsOf(b *statetest.Bench) string {
	p := ProblemOf(b.Core, b.Seen, occupied(b), Candidates(b.Core, b.Seen, b.Now.Unix()))
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
