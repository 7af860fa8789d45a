package bag

import (
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestFits(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		until time.Duration // from now; 0: unknown
		need  time.Duration
		want  bool
	}{
		"nothing known":     {0, 0, true},
		"no end":            {0, time.Hour, true},
		"no need":           {time.Second, 0, true},
		"just":              {time.Minute + handOver, time.Minute, true},
		"just not":          {time.Minute + handOver, time.Minute + 1, false},
		"a short one":       {2 * time.Second, time.Second, false},
		"the node is late":  {-time.Hour, time.Second, false},
		"longer than ever":  {time.Hour, 1e9 * time.Second, false},
		"longer than a day": {48 * time.Hour, 25 * time.Hour, true},
	} {
		var until time.Time
		if c.until != 0 {
			until = now.Add(c.until)
		}
		if got := fits(now, until, c.need); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A task starts only where it can end, as planned. Without such a node, the bag waits; without time, it ends.
func TestPlan(t *testing.T) {
	l, out := lead(t, filepath.Join(t.TempDir(), "bag"), 4, Options{TaskTime: time.Hour, Setup: Setup{Keep: Keeping{Kind: KeepNone}}})
	soon, late := time.Now().Add(30*time.Minute), time.Now().Add(2*time.Hour)
	l.Ends(late)
	short := joinUntil(l, "n1", soon)
	if all := short.has(); len(all) != 0 {
		t.Fatalf("n1, which is left soon, runs %v", all)
	}
	long := joinUntil(l, "n2", late)
	eventually(t, "one runs on n2", func() bool { return slices.Equal(long.has(), []int{1}) })
	short.Until(time.Time{})
	eventually(t, "one runs on n1, which stays", func() bool { return slices.Equal(short.has(), []int{2}) })
	l.Ends(soon)
	long.Until(soon)
	short.Until(soon)
	long.end(1, over{})
	select {
	case <-l.Over():
		t.Fatal("it ends while a task runs")
	default:
	}
	short.end(2, over{})
	<-l.Over()
	l.Ends(late) // too late: it ends
	if m, err := l.Close(); err != nil || m.Done != 2 || m.Waiting != 2 || m.Running != 0 {
		t.Errorf("%+v, %v", m, err)
	}
	if !out.has("no task is started any more: the job ends at ") || !out.has("and a task takes 1h0m0s") {
		t.Errorf("it said %q", out.text.String())
	}
}

func joinUntil(l *Leader, name string, until time.Time) *node {
	n := &node{}
	n.split.do = n.heard
	n.Member = l.Join(name, 1, struct {
		writerFunc
		closer
	}{n.Write, closer{}})
	n.Until(until)
	n.tell(fromWorker{Hello: true})
	return n
}

// How long a task takes is learnt from those that are done, unless it is declared, or tasks leave checkpoints.
func TestNeed(t *testing.T) {
	for name, c := range map[string]struct {
		kind     string
		declared time.Duration
		done     int
		want     time.Duration
	}{
		"too few":     {KeepNone, 0, enoughDone - 1, 0},
		"learnt":      {KeepNone, 0, 40, 30 * time.Second},
		"declared":    {KeepNone, time.Hour, 40, time.Hour},
		"on demand":   {KeepDemand, 0, 40, 0},
		"periodic":    {KeepPeriodic, 0, 40, 0},
		"none is set": {"", 0, 40, 30 * time.Second},
	} {
		s := NewState(list(60))
		for i := range c.done {
			s.Apply(Record{Kind: Run, Task: i})
			s.Apply(Record{Kind: Done, Task: i, Seconds: float64(i + 1)})
		}
		l := &Leader{Options: Options{TaskTime: c.declared, Setup: Setup{Keep: Keeping{Kind: c.kind}}}, shares: []*share{{state: s}}}
		if got := l.need(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	s := NewState(list(60))
	l := &Leader{shares: []*share{{state: s}}}
	for i := range 60 { // it is learnt again as more are done
		s.Apply(Record{Kind: Run, Task: i})
		s.Apply(Record{Kind: Done, Task: i, Seconds: float64(i + 1)})
		l.need()
	}
	if got := l.need(); got < 40*time.Second || got > 45*time.Second {
		t.Errorf("after 60 tasks: %v", got)
	}
}
