package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/stock"
)

// TestPacked checks when evolving jobs start behind stock jobs that share nodes, in minutes, and on which nodes. Jobs are as in TestStarts,
// and E is an evolving job of one node, E2 of two nodes, for five minutes.
func TestPacked(t *testing.T) {
	for name, c := range map[string]struct{ conf, jobs, want string }{
		"beside a running job":                  {jobs: "1x60@n1 4x10@n2 1x50 E", want: "10 n2"},
		"a node is busy for longer":             {jobs: "1x10@n1 4x20@n2 1x60 E", want: "20 n2"},
		"longer than one, not than the other":   {jobs: "1x10@n1 2x40@n2 3x60 1x30 E", want: "40 n2"},
		"four on one node":                      {jobs: "3x10@n1 1x10@n1 4x20@n2 1x30 1x10 1x20 1x30 E", want: "20 n2"},
		"the fifth takes the other node":        {jobs: "3x10@n1 1x10@n1 4x20@n2 1x30 1x30 1x30 1x30 1x30 E", want: "40 n1"},
		"both nodes are busy for longer":        {jobs: "1x10@n1 1x20@n2 3x60 3x60 E2", want: "60 n[1-2]"},
		"it waits for a running job":            {jobs: "3x10@n1 1x60@n1 4x30@n2 3x40 E", want: "30 n2"},
		"a whole node":                          {jobs: "1x10@n1 4x20@n2 4x30{whole} E", want: "20 n2"},
		"beside a job of two nodes":             {jobs: "4x10@n1 4x10@n2 4x30{nodes=2} 1x30 1x30 E", want: "40 n1"},
		"memory":                                {conf: "CR_Core_Memory", jobs: "1x60@n1{mem=900} 4x10@n2{mem=900} 1x50{mem=200} E", want: "60 n1"},
		"GPUs":                                  {jobs: "1x60@n1 1x60@n2{gres=gpu:a:3} 1x20{gres=gpu:1} E", want: "60 n1"},
		"select/linear":                         {conf: "linear", jobs: "1x60@n1 4x10@n2 1x30 E", want: "40 n2"},
		"an array":                              {jobs: "1x60@n1 4x10@n2 1x50{tasks=3} E", want: "10 n2"},
		"an array of more tasks than have room": {jobs: "1x60@n1 4x10@n2 1x50{tasks=4} E", want: "60 n1"},
		"an array of a million tasks":           {jobs: "1x60@n1 4x60@n2 1x5{tasks=1000000} E", want: "65 n1"},
		"threads of a core":                     {jobs: "4x10@n1 4x20@n2 1x30 1x30 1x30 E", want: "40 n1"},
		"an evolving job comes first":           {jobs: "4x10@n1 4x20@n2 E 1x30 1x30 E", want: "10 n1, 20 n2"},
		"beside a plan of an evolving job":      {jobs: "4x10@n1 4x10@n2 E2 1x30 1x30 E", want: "10 n[1-2], 15 n2"},
		"components at once":                    {jobs: "4x10@n1 4x20@n2 4x30{het=90} 4x30{het=90} E", want: "10 n1"},
		"one component beside a job":            {jobs: "1x60@n1 4x20@n2 3x30{het=90} 4x30{het=90} E", want: "50 n2"},
		"a component on hold":                   {jobs: "4x10@n1 4x20@n2 4x30{het=90} 4x30{het=90,held} E", want: "10 n1"},
		"in a reservation":                      {jobs: "1x60@n1 3x5{in=now} 1x5{in=now} E{in=now} E", want: "5 n2, 20 n2"},
		"a reservation is full":                 {jobs: "1x60@n1 3x5{in=now} 2x5{in=now} E{in=now}", want: "11 n2"},
		"two before it in a reservation":        {jobs: "1x60@n1 1x5{in=now} E{in=now} 1x5{in=now} E{in=now}", want: "5 n2, 10 n2"},
		"stock jobs in a later reservation":     {jobs: "4x60@n2 1x5{in=course,why=Reservation} 4x5{in=course,why=Reservation} E{in=course}", want: "21 n1"},
		"one with licences in a reservation":    {jobs: "1x10@n1 1x5@n2{lic=foo} 4x10{in=now,lic=foo:2} E{lic=foo}", want: "15 n1"},
		"longer than before the components":     {jobs: "4x10@n1 4x12@n2 4x30{het=90} 4x30{het=90} E", want: "42 n1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.NewShared(t, c.conf, "", strings.Contains(c.jobs, "gres="))
			b.Config.Mode = "act"
			var evolving []*state.Job
			for i, text := range strings.Fields(c.jobs) {
				if size, is := strings.CutPrefix(text, "E"); is {
					size, more, _ := strings.Cut(strings.TrimSuffix(size, "}"), "{")
					j := b.Evolving(i+1, uint64(999-i), map[string]string{"": "1", "2": "2"}[size]+"@5m", 10*time.Minute)
					if name, is := strings.CutPrefix(more, "in="); is {
						j.Record.Reservation = name
						j.RunsIn(name)
					}
					if names, is := strings.CutPrefix(more, "lic="); is {
						j.Record.Licenses = names
					}
					evolving = append(evolving, j)
				} else {
					b.Share(t, i+1, text)
				}
			}
			reserveFor(b, c.jobs)
			planAll(b)
			planAll(b) // the plan of those before it is known by now
			var got []string
			for _, j := range evolving {
				if len(j.Plan) == 0 {
					t.Fatal(statetest.Planned(j), j.Unfit, j.Reason().Words())
				}
				_, nodes, _ := strings.Cut(statetest.Planned(j), " ")
				got = append(got, fmt.Sprint((j.Plan[0].Start-b.Now.Unix())/60, " ", nodes))
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("%s, want %s", text, c.want)
			}
		})
	}
}

// TestComponentsOfOneUser checks that one user's heterogeneous jobs do not keep those of others out of the plan.
func TestComponentsOfOneUser(t *testing.T) {
	b := statetest.NewShared(t, "", "", false)
	for i := range 2 * stock.MostOfUser {
		b.Share(t, i+1, fmt.Sprintf("1x5{het=%d,uid=7}", 1000+i/2))
	}
	b.Share(t, 500, "1x5{het=500,uid=8}")
	of := map[uint32]int{}
	for _, cand := range Candidates(b.Core, b.Seen, b.Now.Unix()) {
		of[cand.Record.UID]++
	}
	if of[7] != stock.MostOfUser || of[8] != 1 {
		t.Errorf("components by user %v", of)
	}
}
