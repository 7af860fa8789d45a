package power

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// monday is a Monday, 0:00 UTC.
var monday = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

// watched returns a bench of 16 nodes that has seen some weeks. On workdays from 9:00 to 17:00, a job of one node arrives in four
// of five periods, and one of six in the fifth; on Mondays at 3:00, one of two nodes.
func watched(t *testing.T, weeks int) (b *statetest.Bench, rows []row.Arrivals) {
	t.Helper()
	b = saving(t, 16, config.PowerAct)
	const every = 5 * time.Minute
	id, before := slurmctl.JobID(0), (*state.Snapshot)(nil)
	for at := monday; at.Before(monday.Add(time.Duration(weeks) * 7 * 24 * time.Hour)); at = at.Add(every) {
		s := &state.Snapshot{Taken: at, Partitions: b.Seen.Partitions, ByID: map[slurmctl.JobID]*slurmctl.Job{}}
		arrives := func(nodes int, waited time.Duration) {
			id++
			s.Jobs = append(s.Jobs, slurmctl.Job{ID: id, State: slurmctl.Running, Partition: "main", NodeList: statetest.Names(1, nodes), SubmitTime: at.Add(-waited), StartTime: at})
		}
		day, hour, period := int(at.Sub(monday).Hours())/24%7, at.Hour(), int(at.Sub(monday)/every)
		switch {
		case day < 5 && hour >= 9 && hour < 17:
			if arrives(1, time.Second); period%5 == 0 {
				arrives(5, 0)
			}
			arrives(9, time.Hour) // it waited for nodes: the plan knew it
		case day == 0 && hour == 3 && at.Minute() == 0:
			arrives(2, 0)
		}
		for i := range s.Jobs {
			s.ByID[s.Jobs[i].ID] = &s.Jobs[i]
		}
		b.Now, b.Effects = at, nil
		Learn(b.Core, before, s)
		for _, e := range b.Effects {
			rows = append(rows, e.(msg.SaveArrivals).Row)
		}
		before = s
	}
	return b, rows
}

// TestReserveByHour: the reserve follows the day and the night, within max_wait of a boot of 70 s.
func TestReserveByHour(t *testing.T) {
	b, rows := watched(t, 3)
	for name, c := range map[string]struct {
		at   time.Duration // from Monday 0:00
		wait time.Duration
		want int
	}{
		"a day, no wait":                          {34 * time.Hour, 0, 6},
		"a day, a wait of less than a fifth":      {34 * time.Hour, 12 * time.Second, 6},
		"a day, a wait of more than a fifth":      {34 * time.Hour, 16 * time.Second, 1},
		"a day, a wait as long as a boot":         {34 * time.Hour, 70 * time.Second, 0},
		"a night":                                 {26 * time.Hour, 0, 0},
		"the night of one job":                    {3 * time.Hour, 0, 2},
		"two minutes before the day":              {33*time.Hour - 119*time.Second, 0, 6},
		"longer before the day":                   {33*time.Hour - 121*time.Second, 0, 0},
		"the last minutes of a day":               {41*time.Hour - time.Minute, 0, 6},
		"after the day":                           {41 * time.Hour, 0, 0},
		"a Sunday":                                {6*24*time.Hour + 12*time.Hour, 0, 0},
		"from the Sunday to the Monday, in hours": {7 * 24 * time.Hour, 0, 0},
	} {
		b.Config.Power.MaxWait = c.wait
		b.Seen.Taken = monday.Add(4 * 7 * 24 * time.Hour).Add(c.at)
		if got := reserveOf(b.Core, b.Seen, "main"); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	b.Config.Power.MaxWait, b.Config.Power.Reserve = 0, 3
	b.Seen.Taken = monday.Add(4*7*24*time.Hour + 26*time.Hour)
	if got := reserveOf(b.Core, b.Seen, "main"); got != 3 {
		t.Errorf("with a fixed reserve: %d", got)
	}

	// what was saved is what is known
	c := saving(t, 16, config.PowerAct)
	RestoreArrivals(c.Core, rows)
	if !reflect.DeepEqual(c.Power.Arrivals.Hours["main"][34], b.Power.Arrivals.Hours["main"][34]) || len(c.Power.Arrivals.Hours["main"][34].Nodes) == 0 {
		t.Errorf("restored %+v, want %+v", c.Power.Arrivals.Hours["main"][34], b.Power.Arrivals.Hours["main"][34])
	}
	for _, r := range rows {
		if len(r.Nodes) > mostPeriods {
			t.Fatalf("%d periods are saved", len(r.Nodes))
		}
	}
}

// TestColdStart: while an hour has not been watched in two weeks, a quarter of the partition stays awake.
func TestColdStart(t *testing.T) {
	b, _ := watched(t, 1)
	b.Config.Power.MaxWait = 0
	b.Seen.Taken = monday.Add(7 * 24 * time.Hour).Add(26 * time.Hour)
	if got := reserveOf(b.Core, b.Seen, "main"); got != 4 {
		t.Errorf("after a week: %d", got)
	}
	b = saving(t, 5, config.PowerAct)
	b.Config.Power.MaxWait = 0
	if got := reserveOf(b.Core, b.Seen, "main"); got != 2 {
		t.Errorf("at first: %d", got)
	}
	RestoreArrivals(b.Core, []row.Arrivals{{Partition: "main", Hour: 168, Weeks: 9}, {Partition: "main", Hour: -1}}) // of no week
	if got := reserveOf(b.Core, b.Seen, "main"); got != 2 {
		t.Errorf("with rows that make no sense: %d", got)
	}
}

// TestGoneFor: a pause, or a partition that is gone, teaches nothing.
func TestGoneFor(t *testing.T) {
	b, _ := watched(t, 1)
	s := &state.Snapshot{Taken: b.Now.Add(time.Hour), Partitions: map[string]slurmctl.Partition{}}
	Learn(b.Core, &state.Snapshot{Taken: b.Now}, s)
	if !b.Power.Arrivals.Entered.IsZero() || !b.Power.Arrivals.Begun.IsZero() {
		t.Errorf("an hour that nobody watched counts: %+v", b.Power.Arrivals.Entered)
	}
	later := func(by time.Duration) *state.Snapshot {
		return &state.Snapshot{Taken: s.Taken.Add(by), Partitions: s.Partitions}
	}
	for by := time.Duration(0); by < 2*time.Hour; by += 10 * time.Minute {
		Learn(b.Core, later(by), later(by+10*time.Minute))
	}
	if len(b.Power.Arrivals.Hours) > 0 {
		t.Errorf("a partition that is gone is remembered")
	}
}

// TestHistory: an administrator sees each hour of the week as it was learnt, and the reserve that follows.
func TestHistory(t *testing.T) {
	b, _ := watched(t, 3)
	b.Config.Power.MaxWait, b.Config.Power.Reserve = 0, 1
	b.Now = monday.Add(4*7*24*time.Hour + 34*time.Hour)
	h := History(b.Core)
	want := api.PowerHistory{Mode: "act", Boot: 70, Reserve: 1, Ahead: 120, LeastWeeks: 2, Hour: 34, Partitions: []api.PowerWeek{{Partition: "main", Nodes: 16}}}
	if len(h.Partitions) != 1 {
		t.Fatalf("%+v", h)
	}
	week := h.Partitions[0].Hours
	if h.Partitions[0].Hours = nil; !reflect.DeepEqual(h, want) {
		t.Errorf("%+v, want %+v", h, want)
	}
	for hour, want := range map[int]api.PowerHour{34: {Weeks: 3, Periods: 36, Most: 6, Reserve: 6}, 26: {Weeks: 3, Reserve: 1}, 3: {Weeks: 3, Periods: 3, Most: 2, Reserve: 2}, 167: {Weeks: 2, Reserve: 1}} {
		if week[hour] != want {
			t.Errorf("hour %d: %+v, want %+v", hour, week[hour], want)
		}
	}
	b.Power.ByPlan.Reserve = map[string]int{"main": 6}
	day := slices.Concat(slices.Repeat([]int{1}, 9), slices.Repeat([]int{6}, 8), slices.Repeat([]int{1}, 7))
	if got := Show(b.Core).Reserve; len(got) != 1 || !slices.Equal(got[0].Today, day) {
		t.Errorf("today: %+v, want %v", got, day)
	}
}

// TestHistoryOfLittle: an hour that is not known, a partition that is gone, and a Slurm that saves no power.
func TestHistoryOfLittle(t *testing.T) {
	b := saving(t, 16, config.PowerAct)
	b.Config.Power.MaxWait = 0
	if h := History(b.Core); h.Why != "" || len(h.Partitions) > 0 {
		t.Errorf("at first: %+v", h)
	}
	b.Power.Arrivals.Hours["main"] = make([]state.ArrivalHour, state.HoursOfWeek)
	b.Power.Arrivals.Hours["main"][34].Weeks = 1
	b.Power.Arrivals.Hours["gone"], b.Power.On = b.Power.Arrivals.Hours["main"], false
	h := History(b.Core)
	if h.Why == "" || len(h.Partitions) != 2 {
		t.Fatalf("%+v", h)
	}
	for i, want := range []api.PowerHour{{Weeks: 1, Reserve: 0}, {Weeks: 1, Reserve: 4}} { // a quarter
		if got := h.Partitions[i].Hours[34]; got != want {
			t.Errorf("%s: %+v, want %+v", h.Partitions[i].Partition, got, want)
		}
	}
}
