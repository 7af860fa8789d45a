package msg

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

const second = 1_800_000_000 // an origin

// TestOccupancy checks when a node is in use, in seconds from the origin.
func TestOccupancy(t *testing.T) {
	const never = planner.Forever
	for name, c := range map[string]struct {
		start, end int64
		want       string
	}{
		"an hour":                       {second, second + 3600, "0-3600"},
		"later":                         {second + 60, second + 61, "60-61"},
		"it began before the origin":    {second - 99, second + 60, "0-60"},
		"it ended before the origin":    {second - 99, second - 1, ""},
		"it ends at the origin":         {second - 99, second, ""},
		"no time at all":                {second + 60, second + 60, ""},
		"it ends before it begins":      {second + 60, second + 59, ""},
		"never again":                   {second, never, fmt.Sprint("0-", never)},
		"an end before any time":        {second, math.MinInt64 + second, ""},
		"a beginning before any second": {math.MinInt64 + second, second + 1, "0-1"},
	} {
		o := NewOccupancy(2, second)
		o.Add(1, c.start, c.end)
		o.Reserve(0, c.start, c.end, "site")
		for kind, all := range map[string][]planner.NodeBusy{"busy": o.Window([]int{1}, Rank{}), "reserved": o.ReservedOn([]int{0}, "")} {
			got := ""
			for _, b := range all {
				got += fmt.Sprintf("%d-%d", b.Start, b.End)
			}
			if got != c.want {
				t.Errorf("%s: %s %q, want %q", name, kind, got, c.want)
			}
		}
		if len(o.Window([]int{0}, Rank{}))+len(o.ReservedOn([]int{1}, "")) > 0 {
			t.Errorf("%s: what is reserved counts as busy, or the other way round", name)
		}
	}
}

// TestSparing checks whether a job makes others yield: only if it completes sooner with that.
func TestSparing(t *testing.T) {
	for name, c := range map[string]struct {
		spared, taken int64 // when it completes; 0: it does not fit
		to            string
		want          string // the plan that it gets
	}{
		"sooner with the others' nodes":    {100, 60, "high", "taken"},
		"as soon without them":             {60, 60, "high", "spared"},
		"later with them":                  {60, 100, "high", "spared"},
		"only with them":                   {0, 100, "high", "taken"},
		"only without them":                {100, 0, "high", "spared"},
		"not at all":                       {0, 0, "high", "none"},
		"nobody yields to it: no question": {100, 60, "low", "taken"},
	} {
		o := NewOccupancy(1, second)
		cfg := slurmctl.Config{Values: map[string]string{"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE"}}
		o.Preemption = slurmctl.ParseLimits(cfg, slurmctl.LimitsText{Partitions: "PartitionName=low Nodes=n1 PriorityTier=1 PreemptMode=REQUEUE\nPartitionName=high Nodes=n1 PriorityTier=2 PreemptMode=REQUEUE\n"}).Preemption()
		o.Tenures = [][]Tenure{{{planner.NodeBusy{End: 100}, Rank{"low", ""}}}}
		asked := 0
		planned, err := o.Sparing([]int{0}, Rank{c.to, ""}, func(r Rank) ([]planner.Planned, error) {
			asked++
			at, kind := c.taken, 1
			if (r == Rank{}) {
				at, kind = c.spared, 2
			}
			if at == 0 {
				return []planner.Planned{{Unfit: "no room"}}, nil
			}
			one := planner.Planned{}
			one.Start, one.Steps = at-10, planner.Profile{{Duration: 10, Nodes: kind}}
			return []planner.Planned{one}, nil
		})
		got := "none"
		if err == nil && planned[0].Unfit == "" {
			got = []string{"", "taken", "spared"}[planned[0].Steps[0].Nodes]
		}
		if got != c.want || asked != map[string]int{"high": 2, "low": 1}[c.to] {
			t.Errorf("%s: it gets %s, want %s; planned %d times", name, got, c.want, asked)
		}
	}
}

// TestHandling checks that a note holds a job with its submission, and none while it changes.
func TestHandling(t *testing.T) {
	var h Handling
	if id, _, _ := h.At(); id != 0 {
		t.Errorf("job %d is noted at first", id)
	}
	for _, c := range []struct {
		id    slurmctl.JobID
		at    time.Time
		stage Stage
	}{{1, time.Unix(second, 0), First}, {math.MaxUint32, time.Unix(0, 0), Guessed}, {7, time.Unix(-1, 0), Again}} {
		h.Note(c.id, c.at.Add(999*time.Millisecond), c.stage)
		if id, at, stage := h.At(); id != c.id || !at.Equal(c.at) || stage != c.stage {
			t.Errorf("%+v: %d %v %d", c, id, at, stage)
		}
		kept := h // what a crash leaves
		if h.Done(); kept == h {
			t.Error("the note stays")
		}
		if id, _, _ := h.At(); id != 0 {
			t.Errorf("job %d is noted after all", id)
		}
	}
}

// TestUnready checks which expanders bring nothing yet.
func TestUnready(t *testing.T) {
	for name, c := range map[string]struct {
		r       slurmctl.Job
		stepMgr bool
		want    string
	}{
		"it runs":                            {slurmctl.Job{State: slurmctl.Running}, false, ""},
		"its nodes come up":                  {slurmctl.Job{State: slurmctl.Configuring}, false, "waits for nodes that Slurm is switching on"},
		"it is suspended":                    {slurmctl.Job{State: slurmctl.Suspended}, false, "waits for nodes on which Slurm has suspended it"},
		"in its prolog":                      {slurmctl.Job{State: slurmctl.Running, Reason: "Prolog"}, false, ""},
		"in its prolog, with a step manager": {slurmctl.Job{State: slurmctl.Running, Reason: "Prolog"}, true, "waits for the prolog on the nodes that it gets"},
		"it runs, with a step manager":       {slurmctl.Job{State: slurmctl.Running, Reason: "None"}, true, ""},
	} {
		if got := Unready(&c.r, c.stepMgr); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestWithout checks differences of lists. They keep the order of the first one.
func TestWithout(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"a b c", "", "a b c"},
		{"", "a b", ""},
		{"a b c", "a b c", ""},
		{"a b c", "a x b x c", ""}, // in the same order
		{"a b c", "c b a", ""},
		{"a b c", "b", "a c"},
		{"c a b", "a", "c b"},
		{"a a b", "a", "b"},
		{"a a b", "b", "a a"},
		{"a b a", "a b", ""},
	} {
		if got := strings.Join(Without(strings.Fields(c.a), strings.Fields(c.b)), " "); got != c.want {
			t.Errorf("%q without %q: %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

// TestPadLimit checks that padded steps, which last a margin of 10 s longer before a shrink, are expanded no further
// than the limit allows for the requested ones.
func TestPadLimit(t *testing.T) {
	profile, err := planner.ParseProfile("4@100s,2@100s,1@100s")
	if err != nil {
		t.Fatal(err)
	}
	for limit, margin := range map[planner.ExpandLimit]int64{1: 10, 2: 10, 3: 10, 1.5: 0, planner.Infinite: 10} {
		got := PadLimit(profile, margin, limit)
		if limit == planner.Infinite || limit == 1 || margin == 0 {
			if got != limit {
				t.Errorf("limit %v becomes %v", limit, got)
			}
			continue
		}
		for i, step := range planner.Pad(profile, margin) {
			if most := limit.Stretch(profile[i].Duration) + step.Duration - profile[i].Duration; got.Stretch(step.Duration) > most {
				t.Errorf("limit %v: step %d may last %d s, want %d at most", limit, i+1, got.Stretch(step.Duration), most)
			}
		}
		if got >= limit {
			t.Errorf("limit %v stays", limit)
		}
	}
}
