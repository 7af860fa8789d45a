package bag

import (
	"slices"
	"time"
)

const (
	enoughDone = 10              // tasks from which it is learnt how long one takes
	handOver   = 8 * time.Second // before a node has to be left: tasks are ended some seconds early, and then their worker
)

// fits reports whether a task that takes so long may start on a node that is left by a time. Zero: unknown.
func fits(now, until time.Time, need time.Duration) bool {
	return need == 0 || until.IsZero() || !now.Add(need+handOver).After(until)
}

// need returns how long a task takes that would be lost if its node went: as declared, or as three of four did at most.
// Zero: unknown, or it leaves a checkpoint.
func (l *Leader) need() time.Duration {
	done := l.done()
	switch {
	case l.Keep.Kind != "" && l.Keep.Kind != KeepNone:
		return 0
	case l.TaskTime > 0:
		return l.TaskTime
	case done >= enoughDone && done > l.learntBy+l.learntBy/10:
		l.learnt, l.learntBy = l.usual(), done
	}
	return l.learnt
}

// usual returns how long three of four tasks took at most.
func (l *Leader) usual() time.Duration {
	all := slices.Clone(l.past)
	for _, s := range l.shares {
		all = append(all, s.state.took()...)
	}
	slices.Sort(all)
	return duration(float64(quantile(all, leftQuantile)))
}

// Until says by when the member's node has to be left: no task starts there that takes longer. Zero: unknown.
func (m *Member) Until(at time.Time) {
	m.leader.mu.Lock()
	defer m.leader.mu.Unlock()
	m.until = at
	m.leader.lease()
}

// Ends says when the job ends: if no task runs, and none would end before, the bag is over for this job. Zero: unknown.
func (l *Leader) Ends(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = at
	l.checkOver()
}

// checkLate notes that no task would end before the job does.
func (l *Leader) checkLate() {
	need := l.need()
	if l.late || l.running() > 0 || l.campaign == nil && l.shares[0].state.Over() || fits(time.Now(), l.ends, need) {
		return
	}
	l.late = true
	how := "three of four tasks took up to"
	if l.TaskTime > 0 {
		how = "a task takes"
	}
	l.Say("no task is started any more: the job ends at %s, and %s %v", l.ends.Local().Format("15:04:05"), how, need.Round(time.Second))
}
