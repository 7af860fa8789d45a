package injob

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// trapped is worker with its trap set when it reports its start.
const trapped = `trap 'echo "end $EVO_NODE"; exit 0' TERM; echo "start $EVO_NODE"; while :; do sleep 0.05; done`

// TestFollowOffers checks that a follower answers offers: it uses arriving nodes and drains leaving
// nodes first.
func TestFollowOffers(t *testing.T) {
	f := &fake{has: allocation(1, nil, "n1")}
	f.by = func(req api.AnswerRequest) api.Allocation {
		return map[int64]api.Allocation{1: allocation(1, nil, "n1", "n2", "n3", "n4"), 2: allocation(1, nil, "n1", "n2"), 3: allocation(1, nil, "n1")}[req.Offer]
	}
	offer := func(o api.Offer, on string) {
		t.Helper()
		f.mu.Lock()
		f.offer = append(f.offer, o)
		f.mu.Unlock()
		f.eventually(on+" run", func() bool { return f.on() == on })
	}
	t.Setenv("EVO_ON_GROW", "echo hook $EVO_EVENT $EVO_ARRIVED")
	t.Setenv("EVO_ON_SHRINK", "echo hook $EVO_EVENT $EVO_LEAVING then $EVO_NEXT_NODES")
	t.Setenv("EVO_ON_STEP", "echo a step")
	_, signals, end := following(t, f, "--follow", "--drain-time=1m", "sh", "-c", trapped)
	f.eventually("one runs", func() bool { return f.on() == "n1" })
	offer(api.Offer{ID: 1, Kind: "grow", Nodes: 3, NodeList: "n[2-4]"}, "n1 n2 n3 n4")
	f.eventually("their traps are set", func() bool { return strings.Count(f.out.String(), "start ") == 4 })
	offer(api.Offer{ID: 2, Kind: "shrink", Nodes: 2, NodeList: "n[3-4]", Further: []string{"n2"}, Mandatory: true, Seconds: 100}, "n1 n2")
	// An instance that must leave but does not: it is killed before the deadline.
	offer(api.Offer{ID: 3, Kind: "shrink", Nodes: 1, NodeList: "n2", Mandatory: true, Seconds: 0}, "n1")
	f.eventually("all answered", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return fmt.Sprint(f.said) == "[{1 3} {2 2} {3 1}]"
	})
	signals <- syscall.SIGTERM
	end()
	out := f.out.String()
	for _, want := range []string{"hook grow n[2-4]\n", "hook shrink n[3-4] then 2\n", "end n3\n", "end n4\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("it did not print %q", want)
		}
	}
	if strings.Contains(out, "a step") || t.Failed() {
		t.Errorf("it printed\n%s", out)
	}
}

// TestFollowAccept checks that a follower answers as configured, and continues if the sidecar no
// longer takes the answer.
func TestFollowAccept(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		said string
	}{
		"shrink only": {[]string{"--follow", "--accept=shrink"}, "[{1 0} {2 1}]"},
		"the script":  {[]string{"--follow=script"}, "[]"},
		"by wish":     {[]string{"--follow=script", "--accept=all"}, "[{1 1} {2 1}]"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{has: allocation(1, nil, "n1", "n2"), by: func(api.AnswerRequest) api.Allocation { return allocation(1, nil, "n1", "n2") }}
			f.offer = []api.Offer{{ID: 1, Kind: "grow", Nodes: 1, NodeList: "n3"}, {ID: 2, Kind: "shrink", Nodes: 1, NodeList: "n2"}}
			_, signals, end := following(t, f, append(c.args, "sh", "-c", worker)...)
			answered := func() bool {
				f.mu.Lock()
				defer f.mu.Unlock()
				return fmt.Sprint(f.said) == c.said
			}
			f.eventually("it has answered "+c.said, answered)
			f.eventually("what the job keeps is used again", func() bool { return f.on() == "n1 n2" })
			signals <- syscall.SIGTERM
			end()
			if !answered() {
				t.Errorf("said %v, want %s", f.said, c.said)
			}
		})
	}
}

// Nodes that leave while instances start there: these are drained as soon as they have a step; nothing is
// started there any more.
func TestFollowStarting(t *testing.T) {
	f := &fake{has: allocation(1, nil, "n1", "n2")}
	address, signals, end := following(t, f, "--follow=script", "--drain-time=1m", "sh", "-c", worker)
	slow := f.dir + "/slow-n2"
	f.eventually("n1 runs", func() bool { return strings.Contains(f.on(), "n1") })
	f.eventually("n2 runs", func() bool { return f.on() == "n1 n2" })
	if err := os.WriteFile(slow, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	leave := func(gone bool) {
		t.Helper()
		m := MeetFollowers(t.Context(), address, 12, []string{"n2"}, false, time.Time{}, noisy(t))
		if strings.Contains(f.on(), "n2") {
			t.Errorf("n2 is not drained: %s", f.on())
		}
		if !gone {
			m.End(nil)
			return
		}
		f.mu.Lock()
		f.has = allocation(2, nil, "n1")
		has := f.has
		f.mu.Unlock()
		m.End(&has)
	}
	leave(false) // and it stays: it is started again, which takes its time
	f.eventually("it starts", func() bool { _, err := os.Stat(f.dir + "/starting-n2"); return err == nil })
	time.AfterFunc(time.Second, func() { _ = os.Remove(slow) })
	leave(true)
	signals <- syscall.SIGTERM
	end()
	if out := f.out.String(); f.launched() != 3 || strings.Contains(out, "evosrun:") {
		t.Errorf("it printed\n%s", out)
	}
}

// What ends at the last moment of its time was not late.
func TestDrainAtTheLastMoment(t *testing.T) {
	f := &follower{Command: Command{Stderr: &safeBuffer{}}, ctx: t.Context(), slurm: &fake{dir: t.TempDir()}}
	for range 200 { // which of the two is seen first is by chance
		exited := make(chan struct{})
		close(exited)
		f.drainAll([]*draining{{instance: &instance{node: "n2"}, exited: exited}}, 0)
	}
	if said := fmt.Sprint(f.Stderr); strconv.Quote(said) != `""` {
		t.Errorf("it said %q", said)
	}
}
