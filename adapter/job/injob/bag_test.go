package injob

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/bag"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestMain is also the program that a crew starts on its nodes.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == workerFlag {
		os.Exit(Main("evosrun", "", os.Args[1:]))
	}
	os.Exit(m.Run())
}

// summary reads how a bag stands.
func summary(t *testing.T, dir string) bag.Summary {
	t.Helper()
	s, err := bag.Read(dir)
	if err != nil {
		return bag.Summary{}
	}
	return s.Summary(s.Moment())
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must.OK(t, err)
	return string(b)
}

// printed checks what each task has printed, and returns how many ran on each node.
func printed(t *testing.T, dir string, tasks int) map[string]int {
	t.Helper()
	nodes := map[string]int{}
	for i := 1; i <= tasks; i++ {
		words := strings.Fields(text(t, filepath.Join(dir, "out", fmt.Sprint(i))))
		if len(words) != 5 || words[1] != fmt.Sprint(i) || words[2] != words[1] {
			t.Errorf("task %d printed %q", i, words)
			continue
		}
		nodes[words[4]]++
	}
	return nodes
}

// All tasks of a bag end, on nodes that come and go.
func TestBag(t *testing.T) {
	f := &fake{has: allocation(1, nil, "n1", "n2"), by: func(req api.AnswerRequest) api.Allocation { return allocation(1, nil, "n1", "n3") }}
	dir := filepath.Join(t.TempDir(), "bag")
	// The last tasks wait for one on the node that comes.
	task := fmt.Sprintf(`sleep 0.2; if [ $EVO_NODE = n3 ]; then : >%[1]s; fi; while [ $0 -gt 30 ] && [ ! -e %[1]s ]; do sleep 0.1; done; echo task $0 $EVO_TASK_ID on $EVO_NODE; test $0 != 13`, filepath.Join(t.TempDir(), "came"))
	_, _, end := following(t, f, "--tasks=1-60", "--bag="+dir, "--drain-time=10s", "--", "sh", "-c", task)
	f.eventually("some are done", func() bool { return summary(t, dir).Done > 5 })
	f.mu.Lock()
	f.offer = append(f.offer, api.Offer{ID: 1, Kind: "shrink", Mandatory: true, Nodes: 1, NodeList: "n2", Seconds: 60})
	f.mu.Unlock()
	if status := end(); status != tasksFailed {
		t.Errorf("status %d; it printed\n%s", status, f.out.String())
	}
	s := summary(t, dir)
	if s.Done != 59 || s.Failed != 1 || s.Running+s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
	if nodes := printed(t, dir, 60); nodes["n1"] == 0 || nodes["n2"] == 0 || nodes["n3"] == 0 {
		t.Errorf("they ran on %v", nodes)
	}
	for _, want := range []string{"task 13 failed: exit status 1\n", "59 of 60 tasks done, 1 failed\n"} {
		if !strings.Contains(f.out.String(), want) {
			t.Errorf("it did not print %q, but\n%s", want, f.out.String())
		}
	}
	if again, err := os.ReadDir(filepath.Join(dir, "out")); err != nil || len(again) != 60 {
		t.Errorf("%d files, %v", len(again), err)
	}
}

// A leader that is ended leaves a bag with which the next one goes on.
func TestBagResumes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bag")
	args := []string{"--tasks=1-40", "--bag=" + dir, "--drain-time=5s", "--", "sh", "-c", "sleep 0.2; echo $EVO_TASK"}
	f := &fake{has: allocation(1, nil, "n1")}
	_, signals, end := following(t, f, args...)
	f.eventually("some are done", func() bool { return summary(t, dir).Done > 5 })
	signals <- syscall.SIGTERM
	if status := end(); status != 128+int(syscall.SIGTERM) {
		t.Errorf("status %d", status)
	}
	if s := summary(t, dir); s.Done < 6 || s.Done == 40 || s.Running != 0 {
		t.Fatalf("%+v", s)
	}
	f = &fake{has: allocation(1, nil, "n2")}
	_, _, end = following(t, f, args...)
	if status := end(); status != 0 {
		t.Errorf("status %d; it printed\n%s", status, f.out.String())
	}
	f = &fake{has: allocation(1, nil, "n2")}
	_, _, end = following(t, f, args...)
	if status := end(); status != 0 || f.launched() > 0 {
		t.Errorf("status %d with nothing to do, and %d workers", status, f.launched())
	}
}

// announced returns how long a follower says that it drains nodes at most.
func announced(t *testing.T, address string) time.Duration {
	t.Helper()
	paths := followerPaths(address, 12)
	if len(paths) != 1 {
		return 0
	}
	conn, err := net.Dial("unix", paths[0])
	must.OK(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("{}\n"))
	must.OK(t, err)
	var a struct{ Within float64 }
	must.OK(t, json.NewDecoder(conn).Decode(&a))
	return time.Duration(a.Within*float64(time.Second)) - lastWords - killDelay
}

// With --drain-time=auto, the follower drains as long as the checkpoints before took.
func TestBagLearnsDrainTime(t *testing.T) {
	f := &fake{has: allocation(1, nil, "n1", "n2"), by: func(req api.AnswerRequest) api.Allocation { return allocation(1, nil, "n1") }}
	dir := filepath.Join(t.TempDir(), "bag")
	address, _, end := following(t, f, "--tasks=1-8", "--bag="+dir, "--checkpoint=demand", "--drain-time=auto", "--", "sh", "-c",
		`trap 'exit 99' TERM; >$EVO_CHECKPOINT.ready; while [ ! -e `+dir+`/go ]; do sleep 0.05; done`)
	f.eventually("all can make checkpoints", func() bool {
		ready, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "*.ready"))
		return len(ready) == 8
	})
	f.eventually("nothing is learnt", func() bool { return announced(t, address) == 30*time.Second })
	f.mu.Lock()
	f.offer = append(f.offer, api.Offer{ID: 1, Kind: "shrink", Mandatory: true, Nodes: 1, NodeList: "n2", Seconds: 60})
	f.mu.Unlock()
	f.eventually("it has learnt the drain time", func() bool {
		d := announced(t, address)
		return d >= shortestAuto && d < 30*time.Second
	})
	must.OK(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	if status := end(); status != 0 {
		t.Errorf("status %d; it printed\n%s", status, f.out.String())
	}
}

// The learnt drain time has bounds, whatever workers say.
func TestDrainTimeBounds(t *testing.T) {
	for name, c := range map[string]struct {
		end  string
		want time.Duration
	}{
		"nothing asked":   {`"status":1`, 30 * time.Second},
		"no checkpoint":   {`"asked":true,"signal":15,"took":70`, 30 * time.Second},
		"at once":         {`"asked":true,"saved":true,"took":0`, shortestAuto},
		"less than that":  {`"asked":true,"saved":true,"took":-1e300`, shortestAuto},
		"half more":       {`"asked":true,"saved":true,"took":20`, 30*time.Second + lastWords},
		"not in time":     {`"asked":true,"signal":9,"took":30`, 45*time.Second + lastWords},
		"hours":           {`"asked":true,"saved":true,"took":7200`, longestAuto},
		"longer than all": {`"asked":true,"saved":true,"took":1e300`, longestAuto},
	} {
		dir := filepath.Join(t.TempDir(), "bag")
		l, _, err := bag.ParseRange("1-2")
		must.OK(t, err)
		journal, state, err := bag.Open(dir, l, 1, time.Now())
		must.OK(t, err)
		f := &follower{followOptions: followOptions{drainTime: 30 * time.Second, drainAuto: true}, crew: &crew{Leader: bag.Lead(bag.Options{
			Setup: bag.Setup{Dir: dir, Keep: bag.Keeping{Kind: bag.KeepDemand}}, Say: t.Logf}, journal, state)}}
		read, write := io.Pipe()
		m := f.crew.Join("n1", 1, write)
		_, err = io.WriteString(m, `{"hello":true}`+"\n")
		must.OK(t, err)
		orders := bufio.NewScanner(read)
		orders.Scan() // the setup
		var o struct{ Run struct{ Run string } }
		if !orders.Scan() || json.Unmarshal(orders.Bytes(), &o) != nil {
			t.Fatalf("%s: the worker got %q, %v", name, orders.Text(), orders.Err())
		}
		_, err = fmt.Fprintf(m, `{"ended":{"task":0,"run":%q,%s}}`+"\n", o.Run.Run, c.end)
		must.OK(t, err)
		if got := f.drainLimit(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		go func() { _, _ = io.Copy(io.Discard, read) }()
		m.Leave()
		_, err = f.crew.Close()
		must.OK(t, err)
	}
}

// By when a node has to be left, as far as is known.
func TestUntil(t *testing.T) {
	now := time.Now()
	in := func(minutes int) time.Time { return now.Add(time.Duration(minutes) * time.Minute) }
	for name, c := range map[string]struct {
		end, lent time.Time
		coming    *api.Coming
		want      time.Time
	}{
		"nothing is known":      {},
		"the job ends":          {end: in(60), want: in(60)},
		"it is lent":            {end: in(60), lent: in(20), want: in(20)},
		"lent, no end is known": {lent: in(20), want: in(20)},
		"lent for longer":       {end: in(10), lent: in(20), want: in(10)},
		"lent for too long":     {end: in(60), lent: in(-1), want: in(60)},
		"it leaves":             {end: in(60), coming: &api.Coming{Nodes: 1, At: in(30), Leaving: []string{"n2"}}, want: in(30)},
		"it leaves earlier":     {lent: in(40), coming: &api.Coming{Nodes: 1, At: in(30), Leaving: []string{"n2"}}, want: in(30)},
		"it stays":              {coming: &api.Coming{Nodes: 3, At: in(30)}},
		"nobody knows when":     {coming: &api.Coming{Nodes: 1, Leaving: []string{"n2"}}},
	} {
		f := &follower{Command: Command{Environ: []string{"SLURMD_NODENAME=n1"}}, has: allocation(1, c.coming, "n1", "n2"), end: c.end, lent: map[string]time.Time{"n2": c.lent}}
		if got := f.until("n2"); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// planned is a sidecar that knows when the job ends.
type planned struct {
	*fake
	end   time.Time
	asked *atomic.Int32
}

func (p planned) Job(context.Context, uint32) (api.Job, error) {
	p.asked.Add(1)
	return api.Job{ID: 12, State: "running", Plan: []api.Span{{End: p.end}}}, nil
}

// A bag whose tasks take longer than the job has left ends, says why, and leaves the rest for another job. Tasks that started
// before the end of the job was known go on.
func TestBagByPlan(t *testing.T) {
	f := &fake{has: allocation(1, nil, "n1")}
	dir := filepath.Join(t.TempDir(), "bag")
	var asked atomic.Int32
	const why = "and a task takes 2h0m0s"
	_, _, end := followingBy(t, f, planned{f, time.Now().Add(time.Hour), &asked}, "--tasks=1-8", "--bag="+dir, "--task-time=2h", "--", "sh", "-c", "while [ ! -e "+dir+"/go ]; do sleep 0.05; done")
	f.eventually("the end is known", func() bool { return strings.Contains(f.out.String(), why) || asked.Load() > 1 })
	must.OK(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	if status, s := end(), summary(t, dir); status != tasksLeft || s.Running != 0 || s.Waiting < 4 || !strings.Contains(f.out.String(), why) {
		t.Errorf("status %d, %+v; it printed\n%s", status, s, f.out.String())
	}
}

// Tasks without checkpoints were placed to end by the time for which their node is lent. A demand by the plan lets them, and an
// earlier one gives them the drain time.
func TestBagOnLentNodes(t *testing.T) {
	for name, c := range map[string]struct {
		until time.Duration
		back  int
	}{"as planned": {time.Minute, 0}, "earlier": {time.Hour, 4}} {
		t.Run(name, func(t *testing.T) {
			f := &fake{has: allocation(1, nil, "n1")}
			f.by = func(req api.AnswerRequest) api.Allocation {
				if req.Offer == 1 {
					return allocation(1, nil, "n1", "n2")
				}
				return allocation(1, nil, "n1")
			}
			f.offer = []api.Offer{{ID: 1, Kind: "grow", Nodes: 1, NodeList: "n2", Until: time.Now().Add(c.until)}}
			dir := filepath.Join(t.TempDir(), "bag")
			_, _, end := following(t, f, "--tasks=1-8", "--bag="+dir, "--drain-time=1s", "--", "sh", "-c", "while [ ! -e "+dir+"/go ]; do sleep 0.05; done")
			f.eventually("all run", func() bool { return summary(t, dir).Running == 8 })
			f.mu.Lock()
			f.offer = append(f.offer, api.Offer{ID: 2, Kind: "shrink", Mandatory: true, Nodes: 1, NodeList: "n2", Seconds: 60})
			f.mu.Unlock()
			f.eventually("no more start there", func() bool { return summary(t, dir).Slots == 4 })
			if c.back > 0 {
				f.eventually("they are ended", func() bool { return summary(t, dir).Waiting == c.back })
			} else {
				time.Sleep(2 * time.Second) // the drain time, and more
			}
			must.OK(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
			if status := end(); status != 0 {
				t.Errorf("status %d; it printed\n%s", status, f.out.String())
			}
			if back := strings.Count(text(t, filepath.Join(dir, "journal-000001")), `"k":"back"`); back != c.back {
				t.Errorf("%d tasks were ended, want %d", back, c.back)
			}
		})
	}
}
