package hold

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// words returns holds in words: "step 2: n3 60-180 for root", in seconds from the start of the bench.
func words(all []state.Hold) string {
	var list []string
	for _, h := range all {
		list = append(list, fmt.Sprintf("job %d step %d: %s %d-%d for %s", h.Job.SlurmID, h.Step, slurmctl.CompressNodes(h.Nodes), h.Start-statetest.Second, h.End-statetest.Second, strings.Join(h.Users, ",")))
	}
	return strings.Join(list, "; ")
}

// TestWanted checks which holds the plan of job 1 needs now. Holds are made an hour ahead.
func TestWanted(t *testing.T) {
	const growth = "job 1 step 2: n3 600-1260 for root"
	for name, c := range map[string]struct {
		change func(b *statetest.Bench, j *state.Job)
		want   string
	}{
		"it runs":                     {nil, growth},
		"its growth is an hour ahead": {func(b *statetest.Bench, j *state.Job) { b.Plans(j, "0-3600 n[1-2]", "3600-4200 n[1-3]") }, "job 1 step 2: n3 3600-4260 for root"},
		"a second more":               {func(b *statetest.Bench, j *state.Job) { b.Plans(j, "0-3601 n[1-2]", "3601-4201 n[1-3]") }, ""},
		"it grows twice": {func(b *statetest.Bench, j *state.Job) {
			b.Plans(j, "0-600 n[1-2]", "600-1200 n[1-3]", "1200-1800 n[1-4]")
		}, "job 1 step 2: n3 600-1860 for root; job 1 step 3: n4 1200-1860 for root"},
		"it gives the node back, and gets it": {func(b *statetest.Bench, j *state.Job) { b.Plans(j, "0-600 n[1-2]", "600-1200 n1", "1200-1800 n[1-2]") }, "job 1 step 3: n2 1200-1860 for root"},
		"it only shrinks":                     {func(b *statetest.Bench, j *state.Job) { b.Plans(j, "0-600 n[1-2]", "600-1200 n1") }, ""},
		"its promise has lapsed":              {func(b *statetest.Bench, j *state.Job) { b.Plans(j, "0-600 n[1-2]") }, ""},
		"a limit keeps it back":               {func(_ *statetest.Bench, j *state.Job) { j.Kept = &state.KeptBack{} }, ""},
		"its time limit ends before":          {func(_ *statetest.Bench, j *state.Job) { j.LastEnd = statetest.Second + 600 }, ""},
		"its time limit ends a second after":  {func(_ *statetest.Bench, j *state.Job) { j.LastEnd = statetest.Second + 601 }, growth},
		"suspended for its grace, as it runs": {func(b *statetest.Bench, j *state.Job) { j.SuspendedFrom = b.Now.Add(-b.Config.Grace - time.Second) }, growth},
		"suspended, as it waits for the node": {func(b *statetest.Bench, j *state.Job) {
			b.Waits(j)
			j.SuspendedFrom = b.Now.Add(-b.Config.Grace - time.Second)
		}, ""},
		"it has the node already":     {func(b *statetest.Bench, j *state.Job) { b.Has(j, "n[1-3]") }, ""},
		"holds cannot be closed here": {func(b *statetest.Bench, _ *state.Job) { b.HoldsOpen = true }, "job 1 step 2: n3 600-1260 for user"},
		"the sidecar is an operator":  {func(b *statetest.Bench, _ *state.Job) { b.Site.Root, b.Site.User = false, "slurm" }, "job 1 step 2: n3 600-1260 for slurm"},
		"it is queued, due in an hour": {func(b *statetest.Bench, j *state.Job) {
			j.State, j.Step, j.Held = row.Queued, 0, nil
			b.Plans(j, "3600-4200 n[1-2]", "4200-4800 n[1-3]")
		},
			"job 1 step 1: n[1-2] 3600-14460 for user"}, // its growth is not near
		"it is queued, due in a minute": {func(b *statetest.Bench, j *state.Job) {
			j.State, j.Step, j.Held = row.Queued, 0, nil
			b.Plans(j, "60-660 n[1-2]", "660-1260 n[1-3]")
		},
			"job 1 step 1: n[1-2] 60-10920 for user; job 1 step 2: n3 660-1320 for root"},
		"it is queued, and its licence is in use": {func(b *statetest.Bench, j *state.Job) {
			j.State, j.Step, j.Held = row.Queued, 0, nil
			b.Plans(j, "60-660 n[1-2]", "660-1260 n[1-3]")
			b.Licenses = state.LicenseBook{Stock: []slurmctl.LicenseStock{{License: slurmctl.License{Name: "foo", Count: 2}}}, Known: true}
			j.Record.Licenses, b.StockRuns(7, "n6", time.Minute).Licenses = "foo:2", "foo"
		}, ""},
		"it is queued, and its licence is free": {func(b *statetest.Bench, j *state.Job) {
			j.State, j.Step, j.Held = row.Queued, 0, nil
			b.Plans(j, "3600-4200 n[1-2]", "4200-4800 n[1-3]")
			b.Licenses = state.LicenseBook{Stock: []slurmctl.LicenseStock{{License: slurmctl.License{Name: "foo", Count: 2}}}, Known: true}
			j.Record.Licenses, b.StockRuns(7, "n6", time.Minute).Licenses = "foo", "foo"
		}, "job 1 step 1: n[1-2] 3600-14460 for user"},
		"it is queued, and a second overdue": {func(b *statetest.Bench, j *state.Job) {
			j.State, j.Step, j.Held = row.Queued, 0, nil
			b.Later(time.Second)
			b.Plans(j, "0-600 n[1-2]", "600-1200 n[1-3]")
		},
			"job 1 step 1: n[1-2] 0-10920 for user; job 1 step 2: n3 600-1260 for root"},
		"a running job comes before a queued one": {func(b *statetest.Bench, _ *state.Job) { b.Plans(b.Evolving(2, 9, "1@10m", 10*time.Minute), "0-600 n5") },
			growth + "; job 2 step 1: n5 0-660 for user"},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 6)
			b.Snapshot = b.Seen
			b.Config.HoldAhead, b.Config.Grace = time.Hour, time.Minute
			b.Config.HoldShares.Job = config.Shares{Reservations: 100, Nodes: 100, NodeHours: 100}
			j := b.Evolving(1, 1, "2@10m,3@10m,4@10m", 3*time.Hour)
			b.Runs(j, "n[1-2]")
			b.Plans(j, "0-600 n[1-2]", "600-1200 n[1-3]")
			if c.change != nil {
				c.change(b, j)
			}
			if got := words(wantedHolds(b.Core, b.Now.Unix())); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// TestAdjusted checks which reservations are near enough to a hold of n3 from second 600 to 1260.
func TestAdjusted(t *testing.T) {
	const as = statetest.Second
	for name, c := range map[string]struct {
		start, end int64 // of the reservation
		nodes      string
		users      string
		exact      bool  // stock jobs wait, and the hold's job does not run yet
		now        int64 // seconds
		want       string
	}{
		"as it should be":                      {600, 1260, "n3", "nobody", false, 0, ""},
		"a tenth of its distance too early":    {540, 1260, "n3", "nobody", false, 0, ""},
		"a second more":                        {539, 1260, "n3", "nobody", false, 0, "start=600"},
		"a second too late":                    {601, 1260, "n3", "nobody", false, 0, "start=600"},
		"early, and stock jobs wait":           {585, 1260, "n3", "nobody", true, 0, ""},
		"a second more, and stock jobs wait":   {584, 1260, "n3", "nobody", true, 0, "start=600"},
		"begun, while its time is near":        {0, 1260, "n3", "nobody", false, 0, ""},
		"its time has come":                    {601, 1260, "n3", "nobody", false, 600, "now"},
		"its time is past":                     {1000, 1260, "n3", "nobody", false, 900, "now"},
		"ten seconds too short":                {600, 1250, "n3", "nobody", false, 0, ""},
		"a second more than that":              {600, 1249, "n3", "nobody", false, 0, "end=1320"},
		"longer than it should be":             {600, 1440, "n3", "nobody", false, 0, ""},
		"much longer than it should be":        {600, 1441, "n3", "nobody", false, 0, "end=1320"},
		"another node":                         {600, 1260, "n4", "nobody", false, 0, "nodes=[n3]"},
		"a node too many":                      {600, 1260, "n[3-4]", "nobody", false, 0, "nodes=[n3]"},
		"open to a user whose expander failed": {600, 1260, "n3", "user", false, 0, "users=[nobody]"},
		"open to a user as well":               {600, 1260, "n3", "nobody,user", false, 0, "users=[nobody]"},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 4)
			j := b.Evolving(1, 1, "2@10m,3@10m", time.Hour)
			if !c.exact {
				b.Runs(j, "n[1-2]")
			}
			h := state.Hold{Job: j, Step: 2, Nodes: []string{"n3"}, Users: []string{"nobody"}, Start: as + 600, End: as + 1260}
			r := slurmctl.Reservation{Start: time.Unix(as+c.start, 0), End: time.Unix(as+c.end, 0), Nodes: statetest.Nodes(c.nodes), Users: strings.Split(c.users, ",")}
			_, u, change := adjusted(b.Core, r, h, as+c.now, c.exact)
			var what []string
			if u.StartNow {
				what = append(what, "now")
			}
			if !u.Start.IsZero() {
				what = append(what, fmt.Sprintf("start=%d", u.Start.Unix()-as))
			}
			if !u.End.IsZero() {
				what = append(what, fmt.Sprintf("end=%d", u.End.Unix()-as))
			}
			if u.Nodes != nil {
				what = append(what, fmt.Sprintf("nodes=%v", u.Nodes))
			}
			if u.Users != nil {
				what = append(what, fmt.Sprintf("users=%v", u.Users))
			}
			if got := strings.Join(what, " "); got != c.want || change != (c.want != "") {
				t.Errorf("%q, want %q; change: %v", got, c.want, change)
			}
		})
	}
}

// TestIntruders checks which Slurm jobs a hold of job 1 is for, and which are sent away from it.
func TestIntruders(t *testing.T) {
	for name, c := range map[string]struct {
		intruder slurmctl.Job
		want     string
	}{
		"job 1 itself":                         {slurmctl.Job{ID: 1, UID: 1000}, ""},
		"its expander":                         {slurmctl.Job{ID: 9, UID: 1000, Name: "evo_1_2_1"}, ""},
		"an expander without the sidecar's":    {slurmctl.Job{ID: 9, UID: 0, User: "root", Name: "evo_1_2_1"}, ""},
		"another user's, with such a name":     {slurmctl.Job{ID: 9, UID: 2000, Name: "evo_1_2_1"}, "update 9 reservation="},
		"another user's, with name and mark":   {slurmctl.Job{ID: 9, UID: 2000, Name: "evo_1_2_1", Comment: slurm.ExpanderMark}, "update 9 reservation="},
		"its expander in a step that is not":   {slurmctl.Job{ID: 9, UID: 1000, Name: "evo_1_3_1"}, "update 9 reservation="},
		"an expander of job 2":                 {slurmctl.Job{ID: 9, UID: 1000, Name: "evo_2_2_1"}, "update 9 reservation="},
		"a stock job of its own user":          {slurmctl.Job{ID: 9, UID: 1000}, "update 9 reservation="},
		"a stock job with further reservation": {slurmctl.Job{ID: 9, UID: 2000, Reservation: "course,evo_1_2_1"}, "update 9 reservation=course"},
		"it has ended":                         {slurmctl.Job{ID: 9, UID: 2000, State: slurmctl.Completed}, ""},
		"it is completing":                     {slurmctl.Job{ID: 9, UID: 2000, State: slurmctl.Completing}, ""},
		"one that runs there":                  {slurmctl.Job{ID: 9, UID: 2000, State: slurmctl.Running, NodeList: []string{"n3"}}, "update 9 reservation="},
		"a hold of no job, and a marked job":   {slurmctl.Job{ID: 9, UID: 2000, Reservation: "evo_7_1_1", Comment: "evo:v2;p=1@1m;;"}, ""},
		"a hold of no job, and its own job":    {slurmctl.Job{ID: 7, UID: 2000, Reservation: "evo_7_1_1"}, ""},
		"a hold of no job, and another one":    {slurmctl.Job{ID: 9, UID: 2000, Reservation: "evo_7_1_1"}, "update 9 reservation="},
		"a reservation of the site":            {slurmctl.Job{ID: 9, UID: 2000, Reservation: "course"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 4)
			for id := 1; id <= 2; id++ {
				j := b.Evolving(id, 1, "1@10m,2@10m", time.Hour)
				b.Runs(j, fmt.Sprint("n", id))
			}
			r := c.intruder
			if r.Reservation == "" {
				r.Reservation = "evo_1_2_1"
			}
			if r.State == "" {
				r.State = slurmctl.Pending
			}
			b.Seen.Jobs = append(b.Seen.Jobs, r)
			WatchIntruders(b.Core, b.Seen)
			if got := strings.Join(b.Tasks(), "; "); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if known := len(b.Intruders) > 0; known != (c.want != "") {
				t.Errorf("intruders: %v", b.Intruders)
			}
		})
	}
}

// TestIntrudersShareWarnings checks that a user who sends many jobs into holds does not fill the log or the event log.
func TestIntrudersShareWarnings(t *testing.T) {
	for name, most := range map[string]int{"evo_1_2_1": state.JobEvents, "evo_7_1_1": state.UserEvents} {
		b := statetest.New(t, 4)
		b.Runs(b.Evolving(1, 1, "1@10m,2@10m", time.Hour), "n1")
		for id := range slurmctl.JobID(1000) {
			b.Seen.Jobs = append(b.Seen.Jobs, slurmctl.Job{ID: 10 + id, UID: 1000, Reservation: name, State: slurmctl.Pending})
		}
		WatchIntruders(b.Core, b.Seen)
		for id := range slurmctl.JobID(1000) {
			SettleSendAway(b.Core, nil, &state.Pending{Task: msg.Task{Command: msg.Update{Job: 10 + id}}, Args: state.Args{UID: 1000}}, msg.Outcome{Err: errors.New("no")})
		}
		events, lines := b.Told()
		if events != most || lines != state.UserEvents {
			t.Errorf("%s: %d events and %d lines, want %d and %d", name, events, lines, most, state.UserEvents)
		}
	}
}
