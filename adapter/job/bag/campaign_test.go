package bag

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// quick has leases expire soon. Leaders that are too slow for it lose theirs, which must not matter.
var quick = pace{time.Second, 100 * time.Millisecond, 100 * time.Millisecond, 0}

// campaigner is a leader in a cluster's job.
type campaigner struct {
	*Leader
	out *said
}

func campaigners(t *testing.T, p pace, dir string, l List, collect []string, clusters ...string) (all []campaigner) {
	t.Helper()
	if err := Create(dir, l, collect); err != nil {
		t.Fatal(err)
	}
	for i, name := range clusters {
		c, err := Join(dir, l, name, uint32(10+i))
		if err != nil {
			t.Fatal(err)
		}
		c.pace = p
		out := &said{}
		o := Options{Setup: Setup{Dir: dir, Output: filepath.Join(dir, outFolder, "%a"), Keep: Keeping{Kind: KeepNone}}, Say: out.say}
		all = append(all, campaigner{LeadCampaign(o, c), out})
	}
	return all
}

// die ends a leader as if its machine had: nothing is given back.
func (c campaigner) die() {
	close(c.quit)
	c.stopped.Wait()
}

// works ends all runs of a worker, each once its output is there, until its leader has no more.
func (n *node) works(l *Leader, e over) {
	for {
		n.mu.Lock()
		orders := n.orders
		n.orders = nil
		n.mu.Unlock()
		for _, o := range orders {
			for _, file := range l.outputs(o.ID) {
				_ = os.WriteFile(file+"."+o.Run, fmt.Appendf(nil, "%s on %s\n", o.Text, n.node), 0o600)
			}
			e.Task, e.Run = o.Task, o.Run
			n.tell(fromWorker{Ended: &e})
		}
		select {
		case <-l.Over():
			return
		case <-l.quit:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func stands(t *testing.T, dir string) Summary {
	t.Helper()
	s, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s.Summary(time.Now())
}

// TestCampaign: two clusters work a bag off, a third one dies with tasks that run and wait. All end once, and what collects comes
// last.
const tasks = 400 // of a campaign

func TestCampaign(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bag")
	all := campaigners(t, quick, dir, list(tasks), []string{"collect", "{dir}"}, "a", "b", "c")
	dead := join(all[2].Leader, "c1", 4)
	eventually(t, "c has leased tasks", func() bool { return len(dead.has()) == 4 && stands(t, dir).Running == 4 })
	all[2].die()
	workers := []*node{join(all[0].Leader, "a1", 8), join(all[1].Leader, "b1", 8)}
	for i, w := range workers {
		go w.works(all[i].Leader, over{Seconds: 1})
	}
	for _, l := range all[:2] {
		<-l.Over()
	}
	for i, l := range all[:2] {
		workers[i].Leave()
		if m, err := l.Close(); err != nil || m.Done != tasks || m.Failed != 0 || m.Collected != "done" {
			t.Errorf("%s: %+v, %v", l.campaign.me.Cluster, m, err)
		}
	}
	checkEnds(t, dir)
}

// checkEnds checks what clusters a and b have left once the tasks have ended.
func checkEnds(t *testing.T, dir string) {
	t.Helper()
	ran := 0
	for _, c := range stands(t, dir).Clusters {
		ran += c.Done
		if c.Running > 0 || c.Name == "c" && c.Done > 0 || c.Name != "c" && c.Done == 0 || c.Name == "c" && c.Lost != 4 {
			t.Errorf("%+v", c)
		}
	}
	if ran != tasks {
		t.Errorf("the clusters have done %d tasks", ran)
	}
	for i := 1; i <= tasks; i++ {
		if text, err := os.ReadFile(filepath.Join(dir, outFolder, fmt.Sprint(i))); err != nil || !strings.HasPrefix(string(text), fmt.Sprint(i, " on ")) {
			t.Fatalf("task %d: %q, %v", i, text, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, collectedFile)); err != nil {
		t.Errorf("what was collected: %q, %v", text, err)
	}
}

// TestLate: a leader that was cut off for a while goes on. What it had was leased again, and its ends do not count.
func TestLate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bag")
	all := campaigners(t, quick, dir, list(3), nil, "a", "b")
	slow := join(all[0].Leader, "a1", 3)
	eventually(t, "a has leased all tasks", func() bool { return len(slow.has()) == 3 })
	eventually(t, "its leases are written", func() bool { return stands(t, dir).Running == 3 })
	all[0].die()
	prompt := join(all[1].Leader, "b1", 3)
	eventually(t, "b has leased them, too", func() bool { return len(prompt.has()) == 3 })
	var orders []order
	orders = append(orders, slow.orders...)
	prompt.works(all[1].Leader, over{Seconds: 2})
	eventually(t, "b's ends are written", func() bool { return stands(t, dir).Done == 3 })
	for _, o := range orders { // it goes on
		write(t, all[0].outputs(o.ID)[0]+"."+o.Run, "late")
	}
	for id := 1; id <= 3; id++ {
		slow.end(id, over{Seconds: 1})
	}
	all[0].quit = make(chan struct{})
	all[0].flush()
	prompt.Leave()
	if m, err := all[1].Close(); err != nil || m.Done != 3 || m.Late != 3 || len(m.Clusters) != 2 || m.Clusters[0].Done != 0 || m.Clusters[1].Done != 3 {
		t.Errorf("%+v, %v", m, err)
	}
	slow.Leave()
	if m, err := all[0].Close(); err != nil || m.Done != 3 {
		t.Errorf("%+v, %v", m, err)
	}
	found, _ := filepath.Glob(filepath.Join(dir, outFolder, "*"))
	if len(found) != 3 {
		t.Errorf("outputs: %q", found)
	}
	for _, file := range found {
		if text, err := os.ReadFile(file); !strings.HasSuffix(string(text), "on b1\n") {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
}

// TestGivenBack: what a leader gives back is leased at once, and a leader with many tasks shares them with one that has none.
func TestGivenBack(t *testing.T) {
	p := quick
	p.lease, p.yield = time.Hour, time.Hour
	dir := filepath.Join(t.TempDir(), "bag")
	h := head{Campaign: campaignForm, Size: 10, List: list(10)}
	for _, name := range []string{outFolder, sharesFolder, signsFolder} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, campaignFile), fmt.Sprintf(`{"evocampaign":1,"size":%d,"tasks":10,"first":1,"step":1}`, h.Size))
	all := campaigners(t, p, dir, list(10), nil, "a", "b")
	a := join(all[0].Leader, "a1", 1)
	eventually(t, "a has a task", func() bool { return slices.Equal(a.has(), []int{1}) })
	b := join(all[1].Leader, "b1", 1)
	eventually(t, "b has nothing to do", func() bool { s := stands(t, dir).Clusters; return len(s) == 2 && s[1].Slots == 1 })
	eventually(t, "a is about to share", func() bool { all[0].mu.Lock(); defer all[0].mu.Unlock(); return all[0].shares[0].leaving })
	a.end(1, over{})
	eventually(t, "b has a task", func() bool { return slices.Equal(b.has(), []int{2}) })
	b.Drain(0)
	b.end(2, over{Asked: true, Signal: 15})
	b.Leave()
	if m, err := all[1].Close(); err != nil || m.Done != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	a.Leave()
	if m, err := all[0].Close(); err != nil || m.Done != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	last := campaigners(t, p, dir, list(10), nil, "a")[0]
	n := join(last.Leader, "a2", 2)
	go n.works(last.Leader, over{})
	<-last.Over()
	n.Leave()
	if m, err := last.Close(); err != nil || m.Done != 10 || m.Late != 0 {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestOutage: a cluster on which tasks only fail is left out, and named. No task fails because of it.
func TestOutage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bag")
	all := campaigners(t, quick, dir, list(20), nil, "a", "b")
	bad := join(all[0].Leader, "a1", 2)
	go bad.works(all[0].Leader, over{Status: 127, Why: "no such program"})
	eventually(t, "it is named", func() bool {
		s := stands(t, dir).Clusters
		return len(s) == 2 && s[0].Out != nil && strings.Contains(s[0].Why, "no such program")
	})
	good := join(all[1].Leader, "b1", 2)
	go good.works(all[1].Leader, over{})
	<-all[0].Over()
	<-all[1].Over()
	if !all[0].out.has("Cluster a takes no tasks for 1m0s") {
		t.Errorf("it said %q", all[0].out.text.String())
	}
	for _, l := range all {
		if m, err := l.Close(); err != nil || m.Done != 20 || m.Failed != 0 {
			t.Errorf("%+v, %v", m, err)
		}
	}
}

// TestSetbacks: waits grow, up to a bound, and end once a task ends well. What runs meanwhile counts once.
func TestSetbacks(t *testing.T) {
	l := &Leader{Options: Options{Say: t.Logf}, campaign: &Campaign{}}
	var waits []time.Duration
	for range 8 {
		for range mostSetbacks + 3 {
			l.setback("x")
		}
		waits = append(waits, OutFor(l.out.times))
		l.out.until = time.Time{}
	}
	if got := fmt.Sprint(waits); got != "[1m0s 2m0s 4m0s 8m0s 16m0s 32m0s 1h0m0s 1h0m0s]" {
		t.Errorf("waits: %s", got)
	}
	alone := &Leader{}
	for range 2 * mostSetbacks {
		alone.setback("x")
	}
	if alone.out.isOut(time.Now()) {
		t.Error("a bag of one job is left out")
	}
}

func TestCampaignRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bag")
	fails := func(what string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	_, err := Join(dir, list(3), "a", 1)
	fails("no campaign", err, "in a folder that all clusters share")
	for range 2 {
		if err := Create(dir, list(3), []string{"x"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := Create(dir, list(3), nil); err != nil {
		t.Errorf("resumed: %v", err)
	}
	fails("other tasks", Create(dir, list(4), nil), "has 3 other tasks")
	fails("another command", Create(dir, list(3), []string{"y"}), "cannot change")
	_, err = Join(dir, list(4), "a", 1)
	fails("other tasks of a job", err, "has 3 other tasks")
	for _, name := range []string{"", "../x", "a b", "-a"} {
		_, err = Join(dir, list(3), name, 1)
		fails("cluster "+name, err, "invalid cluster name")
	}
	_, _, err = Open(dir, list(3), 1, time.Now())
	fails("one job", err, "is a campaign")
	one := filepath.Join(t.TempDir(), "one")
	j, _, err := Open(one, list(3), 1, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	fails("a bag of one job", Create(one, list(3), nil), "has a bag of one job")
	if err := os.Remove(filepath.Join(dir, signsFolder)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, signsFolder), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Read(dir)
	fails("a pipe for a folder", err, "not a directory")
	for _, text := range []string{"", "[]", `{"evocampaign":2}`, `{"evocampaign":1,"size":1,"tasks":5000,"first":1,"step":1}`, `{"evocampaign":1,"size":0,"tasks":5,"first":1,"step":1}`} {
		write(t, filepath.Join(dir, campaignFile), text)
		if _, err := Read(dir); err == nil || errors.Is(err, os.ErrNotExist) {
			t.Errorf("head %q: %v", text, err)
		}
	}
}
