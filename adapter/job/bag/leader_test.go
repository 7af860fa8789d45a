package bag

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// said collects what a leader says.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(&s.text, format+"\n", args...)
}

func (s *said) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.text.String(), text)
}

// node is a worker of a test, which keeps its orders.
type node struct {
	*Member
	mu     sync.Mutex
	orders []order
	split  splitter
}

func (n *node) Write(b []byte) (int, error) { return n.split.Write(b) }
func (n *node) Close() error                { return nil }

func (n *node) heard(line []byte) {
	var m toWorker
	if json.Unmarshal(line, &m) == nil && m.Run != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.orders = append(n.orders, *m.Run)
	}
}

func (n *node) has() []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []int
	for _, o := range n.orders {
		all = append(all, o.ID)
	}
	return all
}

func (n *node) tell(m fromWorker) {
	line, _ := json.Marshal(m)
	_, _ = n.Member.Write(append(line, '\n'))
}

// end ends the run of a task.
func (n *node) end(id int, e over) {
	n.mu.Lock()
	at := slices.IndexFunc(n.orders, func(o order) bool { return o.ID == id })
	o := n.orders[at]
	n.orders = slices.Delete(n.orders, at, at+1)
	n.mu.Unlock()
	e.Task, e.Run = o.Task, o.Run
	n.tell(fromWorker{Ended: &e})
}

// A worker that Slurm ends takes no more tasks, although it has room.
func TestEnding(t *testing.T) {
	l, _ := lead(t, filepath.Join(t.TempDir(), "bag"), 3, Options{Setup: Setup{Keep: Keeping{Kind: KeepDemand}}})
	a := join(l, "n1", 1)
	eventually(t, "one runs", func() bool { return slices.Equal(a.has(), []int{1}) })
	a.tell(fromWorker{Ending: true})
	a.end(1, over{Asked: true, Status: SavedStatus, Saved: true})
	b := join(l, "n2", 3)
	eventually(t, "the others run", func() bool { return slices.Equal(b.has(), []int{1, 2, 3}) })
	if all := a.has(); len(all) != 0 {
		t.Errorf("the first worker runs %v", all)
	}
	a.Leave()
	for id := 1; id <= 3; id++ {
		b.end(id, over{})
	}
	if m, err := l.Close(); err != nil || m.Done != 3 || m.Slots != 3 {
		t.Errorf("%+v, %v", m, err)
	}
}

func join(l *Leader, name string, slots int) *node {
	n := &node{}
	n.split.do = n.heard
	n.Member = l.Join(name, slots, struct {
		io.Writer
		io.Closer
	}{writerFunc(n.Write), closer{}})
	n.tell(fromWorker{Hello: true})
	return n
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }

type closer struct{}

func (closer) Close() error { return nil }

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting: %s", what)
		}
	}
}

func lead(t *testing.T, dir string, tasks int, o Options) (*Leader, *said) {
	t.Helper()
	j, s, err := Open(dir, list(tasks), 7, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	var out said
	o.Dir, o.Output, o.Say = dir, filepath.Join(dir, outFolder, "%a"), out.say
	if o.Keep.Kind == "" {
		o.Keep.Kind = KeepNone
	}
	return Lead(o, j, s), &out
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// While the disk is full, no task is leased, and what has ended is not lost.
func TestDiskFull(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bag")
	l, out := lead(t, dir, 4, Options{})
	n := join(l, "n1", 1)
	eventually(t, "one runs", func() bool { return slices.Equal(n.has(), []int{1}) })
	eventually(t, "the lease is written", func() bool { s, err := Read(dir); return err == nil && len(s.leases) == 1 })
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := int(l.shares[0].journal.file.Fd())
	before, err := unix.Dup(file)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(before)
	if err := unix.Dup3(int(full.Fd()), file, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	n.end(1, over{})
	eventually(t, "it says so", func() bool { return out.has("no space left on device: no task is started until") })
	had := len(n.has()) // leased before the first failure to write
	if had > 0 {
		n.end(n.has()[0], over{Status: 1}) // which may be for the disk
	}
	if all := n.has(); len(all) != 0 {
		t.Errorf("with a full disk it runs %v", all)
	}
	if err := unix.Dup3(before, file, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it goes on", func() bool { return len(n.has()) == 1 })
	for id := 2; id <= 4; id++ {
		eventually(t, "the next one runs", func() bool { return len(n.has()) == 1 })
		n.end(n.has()[0], over{})
	}
	<-l.Over()
	if m, err := l.Close(); err != nil || m.Done != 4 {
		t.Errorf("%v, %v", m, err)
	}
	if s, err := Read(dir); err != nil || s.done != 4 || !out.has("the journal can be written again") {
		t.Errorf("%+v, %v", s, err)
	}
}

// Workers whose nodes leave, or that are lost, and what becomes of the outputs.
func TestLosses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bag")
	l, out := lead(t, dir, 3, Options{Setup: Setup{Keep: Keeping{Kind: KeepDemand}}})
	run := func(o order) string { return filepath.Join(dir, outFolder, fmt.Sprint(o.ID)) + "." + o.Run }
	a := join(l, "n1", 3)
	eventually(t, "all run", func() bool { return slices.Equal(a.has(), []int{1, 2, 3}) })
	for _, o := range a.orders {
		write(t, run(o), "half\n")
	}
	write(t, l.saved(2), "state")
	a.Drain(time.Minute)
	a.end(3, over{Asked: true, Signal: 15})
	a.Leave() // with tasks 1 and 2; 2 has a checkpoint
	b := join(l, "n2", 1)
	eventually(t, "the one with a checkpoint is first", func() bool { return slices.Equal(b.has(), []int{2}) })
	if o := b.orders[0]; !o.Saved {
		t.Error("it does not go on from its checkpoint")
	}
	b.tell(fromWorker{Ended: &over{Task: 0, Run: "1-1"}}) // a run that is not its own
	eventually(t, "what was written before the checkpoint is kept", func() bool {
		_, err := os.Stat(filepath.Join(dir, outFolder, "2.part"))
		return err == nil
	})
	b.end(2, over{Status: 1, Seconds: 0.1}) // it cannot read its checkpoint
	eventually(t, "it starts from its beginning", func() bool { return out.has("task 2 could not go on from its checkpoint (exit status 1)") })
	for range 3 {
		eventually(t, "the next one runs", func() bool { return len(b.has()) == 1 })
		if b.orders[0].Saved {
			t.Error("from a checkpoint")
		}
		write(t, run(b.orders[0]), "all\n")
		b.end(b.has()[0], over{})
	}
	<-l.Over()
	m, err := l.Close()
	if err != nil || m.Done != 3 || m.Voids != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	var files []string
	for _, folder := range []string{outFolder, savedFolder} {
		entries, err := os.ReadDir(filepath.Join(dir, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			files = append(files, e.Name())
		}
	}
	if got := strings.Join(files, " "); got != "1 2 2.part 3" && got != "1 2 3" {
		t.Errorf("files are left: %s", got)
	}
}

// A leader that another one replaces ends.
func TestTaken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bag")
	l, out := lead(t, dir, 2, Options{})
	n := join(l, "n1", 1)
	eventually(t, "one runs", func() bool { return len(n.has()) == 1 })
	m, _ := lead(t, dir, 2, Options{})
	n.end(1, over{})
	<-l.Over()
	if _, err := l.Close(); !errors.Is(err, ErrTaken) || !out.has("another evosrun has taken over this bag") {
		t.Errorf("%v", err)
	}
	if s, err := m.Close(); err != nil || s.Waiting != 2 {
		t.Errorf("%+v, %v", s, err)
	}
}

// What a worker writes is bounded.
func TestSplitter(t *testing.T) {
	var lines []string
	s := splitter{do: func(line []byte) { lines = append(lines, string(line)) }}
	long := strings.Repeat("x", mostFromWorker)
	for _, text := range []string{"a\nb", "c\n", long, long, "\nd\n", "\n"} {
		_, _ = s.Write([]byte(text))
	}
	if got := strings.Join(lines, "|"); got != "a|bc|d|" {
		t.Errorf("%.100q", got)
	}
}
