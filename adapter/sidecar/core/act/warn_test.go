package act

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestWarnings checks how many commands warn three jobs of two users that exceed their steps 10 s apart, and when, if a
// poll's pause is 20 s. Up to Slurm 23.11, each command costs what a poll costs.
func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		version string
		cost    time.Duration // of the latest poll
		want    string
	}{
		{"22.05.8", 200 * time.Millisecond, "30 s: signal [1 11] URG; 70 s: signal [2 3] URG"},
		{"22.05.8", time.Second, "30 s: signal [1 11] URG"}, // until 230 s
		{"23.11.4", 200 * time.Millisecond, "30 s: signal [1 11] URG; 70 s: signal [2 3] URG"},
		{"24.05.0", time.Second, "30 s: signal [1 11] URG; 40 s: signal [2] URG; 50 s: signal [3] URG"},
	} {
		b, begun := overrunning(t, c.version)
		b.Pace.Pause, b.Pace.Costs[0] = 20*time.Second, c.cost
		var got []string
		for b.Now.Before(begun.Add(3 * time.Minute)) {
			for _, sent := range warned(b) {
				got = append(got, fmt.Sprintf("%.0f s: %s", b.Now.Sub(begun).Seconds(), sent))
				b.Finish(nil, pendingWarning(b), nil)
			}
			b.Later(10 * time.Second)
		}
		if got := strings.Join(got, "; "); got != c.want {
			t.Errorf("%s, %v: %q, want %q", c.version, c.cost, got, c.want)
		}
	}
}

// TestWarnedAgain checks that only jobs whose signal failed are signalled again, and after a while, and that another command
// does not begin before the first has ended.
func TestWarnedAgain(t *testing.T) {
	b, _ := overrunning(t, "24.11.5")
	b.Later(time.Minute)
	if got := warned(b); !slices.Equal(got, []string{"signal [1 11 2 3] URG"}) {
		t.Fatalf("%q", got)
	}
	b.Active[0].WarnAgain()
	if got := warned(b); len(got) > 0 {
		t.Errorf("%q while signals are being sent", got)
	}
	b.Active[0].Signal()
	p, refused := pendingWarning(b), errors.New("refused")
	b.Finish(nil, p, refused)
	SettleWarn(b.Core, nil, p, msg.Outcome{Err: refused, Result: []slurmctl.JobID{11, 3}})
	b.Later(warnAgain - time.Second)
	if got := warned(b); len(got) > 0 {
		t.Errorf("%q at once", got)
	}
	b.Later(time.Second)
	if got := warned(b); !slices.Equal(got, []string{"signal [1 11 3] URG"}) {
		t.Errorf("%q, want the jobs that failed", got)
	}
}

// overrunning returns three jobs. The first has a companion, and the others are of another user. Their grace ends 30, 40,
// and 50 s later.
func overrunning(t *testing.T, version string) (*statetest.Bench, time.Time) {
	b := statetest.New(t, 8)
	b.SlurmConfig.Version, b.Config.OverrunSignal, b.Config.Grace = version, "URG", 20*time.Second
	for i, nodes := range []string{"n[1-2]", "n3", "n4"} {
		j := b.Evolving(i+1, 1, []string{"2@10s,1@1m", "1@20s,2@1m", "1@30s,2@1m"}[i], time.Hour)
		if i > 0 {
			j.UID++
		}
		b.Runs(j, nodes)
		b.Plans(j, []string{"0-10 ", "0-20 ", "0-30 "}[i]+nodes)
	}
	j := b.Active[0]
	j.Held = append(j.Held, msg.Part{ID: 11, Nodes: []string{"n5"}})
	return b, b.Now
}

// warned has all jobs act, and returns the commands that signal jobs.
func warned(b *statetest.Bench) []string {
	for _, j := range b.Active {
		watchOverrun(b.Core, j, b.Now)
	}
	SendWarnings(b.Core)
	return slices.DeleteFunc(b.Tasks(), func(task string) bool { return !strings.HasPrefix(task, "signal") })
}

func pendingWarning(b *statetest.Bench) *state.Pending { return b.Work.Pending[b.Work.Last] }

// TestEndUnseen checks that a job in its last step is warned only once a poll shows that it still runs: polls may come far
// apart, and it may have ended since the latest one.
func TestEndUnseen(t *testing.T) {
	b := statetest.New(t, 2)
	b.Config.OverrunSignal, b.Config.Grace = "URG", 20*time.Second
	j := b.Evolving(1, 1, "1@10s", time.Hour)
	b.Runs(j, "n1")
	b.Plans(j, "0-10 n1")
	seen := b.Seen.Taken.Add(29 * time.Second)
	b.Later(time.Minute)
	if b.Seen.Taken = seen; len(warned(b)) > 0 || j.Warned {
		t.Error("it is warned though it may have ended")
	}
	if b.Seen.Taken = seen.Add(time.Second); len(warned(b)) != 1 || !j.Warned {
		t.Error("it is not warned though it runs")
	}
}
