package act

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestLongerLimit: time limits are raised by whole minutes, never lowered, and not beyond
// the partition's or into a reservation of others.
func TestLongerLimit(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := &slurmctl.Job{TimeLimit: 10 * time.Minute, EndTime: now.Add(5 * time.Minute), Partition: "main", NodeList: []string{"n1", "n2"}}
	for _, c := range []struct{ end, longest, limit, latest time.Duration }{
		{4 * time.Minute, slurmctl.Unlimited, 10 * time.Minute, 5 * time.Minute},
		{5*time.Minute + time.Second, slurmctl.Unlimited, 12 * time.Minute, 7 * time.Minute},
		{time.Hour, slurmctl.Unlimited, 67 * time.Minute, 62 * time.Minute},
		{time.Hour, 20 * time.Minute, 20 * time.Minute, 15 * time.Minute},
		{time.Hour, 8 * time.Minute, 10 * time.Minute, 5 * time.Minute}, // an administrator gave it more
	} {
		limit, latest := LongerLimit(r, now.Add(c.end), c.longest)
		if limit != c.limit || latest.Sub(now) != c.latest {
			t.Errorf("%+v: limit %v, ends after %v", c, limit, latest.Sub(now))
		}
	}
	s := &state.Snapshot{Taken: now, Partitions: map[string]slurmctl.Partition{"main": {Name: "main", MaxTime: time.Hour}},
		Reservations: map[string]slurmctl.Reservation{
			"evo_7_2_1": {Name: "evo_7_2_1", Start: now.Add(6 * time.Minute), End: now.Add(time.Hour), Nodes: []string{"n1"}},
			"elsewhere": {Name: "elsewhere", Start: now.Add(6 * time.Minute), End: now.Add(time.Hour), Nodes: []string{"n9"}},
			"past":      {Name: "past", Start: now.Add(-time.Hour), End: now, Nodes: []string{"n1"}},
		}}
	if longest, why := LongestLimit(s, r, nil); longest != time.Hour || why != "MaxTime of partition main" {
		t.Errorf("%v (%s)", longest, why)
	}
	s.Reservations["maint"] = slurmctl.Reservation{Name: "maint", Start: now.Add(12 * time.Minute), End: now.Add(time.Hour), Nodes: []string{"n2", "n3"}}
	if longest, why := LongestLimit(s, r, nil); longest != 17*time.Minute || why != "reservation maint" {
		t.Errorf("%v (%s)", longest, why)
	}
	s.Reservations["begun"] = slurmctl.Reservation{Name: "begun", Start: now.Add(-time.Minute), End: now.Add(time.Hour), Nodes: []string{"n1"}}
	if longest, why := LongestLimit(s, r, nil); longest > r.TimeLimit || why != "reservation begun" {
		t.Errorf("%v (%s) where others' time has begun", longest, why)
	}
}

// TestTooShort: a job whose limit cannot be as long as its plan says which step cannot begin.
func TestTooShort(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	j := &state.Job{Job: &row.Job{Life: row.Life{Step: 1}}, Placement: state.Placement{Plan: []msg.PlannedStep{{Start: at.Unix()}, {Start: at.Unix() + 60}, {Start: at.Unix() + 120, End: at.Unix() + 180}}}}
	TooShort(j, at.Add(3*time.Minute), at.Add(100*time.Second), "MaxTime of partition main", func(t time.Time) string { return t.Format(time.TimeOnly) })
	want := "its plan ends at " + at.Add(3*time.Minute).Format(time.TimeOnly) + ", after the latest time limit possible, " +
		at.Add(100*time.Second).Format(time.TimeOnly) + " (MaxTime of partition main); step 3 cannot begin"
	if j.Short != want || j.LastEnd != at.Unix()+100 {
		t.Errorf("%q, want %q", j.Short, want)
	}
}

// TestTooShortBare: if a site forbids changes of running jobs, a job's limit is not raised, and the
// running job reports that its plan ends later.
func TestTooShortBare(t *testing.T) {
	for _, bare := range []bool{false, true} {
		b := statetest.New(t, 4)
		b.MayUpdate(!bare)
		j := b.Evolving(1, 1, "1@5m,2@5m", 10*time.Minute)
		j.State, j.Step, j.Extend = row.Running, 1, true
		j.Record.State, j.Record.NodeList, j.Record.EndTime = slurmctl.Running, []string{"n1"}, b.Seen.Taken.Add(10*time.Minute)
		j.Held = []msg.Part{{ID: 1, Step: 1, Nodes: []string{"n1"}}}
		start := b.Seen.Taken.Unix()
		j.Plan = []msg.PlannedStep{{Start: start, End: start + 600, Nodes: []string{"n1"}}, {Start: start + 600, End: start + 900, Nodes: []string{"n1", "n2"}}}
		list := ShortParts(b.Core, b.Seen, j)
		if raised := len(list) == 1 && list[0].Limit >= 15*time.Minute; raised == bare {
			t.Errorf("bare=%v: limits raised: %v", bare, list)
		}
		if told := strings.Contains(j.Short, "Account=") && strings.Contains(j.Short, "step 2 cannot begin"); told != bare {
			t.Errorf("bare=%v: it reports %q", bare, j.Short)
		}
	}
}
