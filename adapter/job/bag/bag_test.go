package bag

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func list(n int) List { return List{Tasks: n, First: 1, Step: 1} }

func TestParseRange(t *testing.T) {
	for text, want := range map[string]string{
		"1-30000": "30000 1 30000", "0-9:3": "4 0 9", "5-5": "1 5 5",
		"3-1": "no task in the range", "1-9:0": "no task in the range", "1-2000000": "at most 1000000",
		"tasks.txt": "no", "./1-3": "no", "1,2": "no", "1-3-5": "no", "-1-3": "no", "1234567890-1234567891": "no",
	} {
		got := "no"
		if l, is, err := ParseRange(text); err != nil {
			got = err.Error()
		} else if is {
			got = fmt.Sprint(l.Tasks, l.ID(0), l.ID(l.Tasks-1))
		}
		if !strings.Contains(got, want) || want == "no" && got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestTasksFile(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"plain":    {"a b\n\n'c'\nlast", "a b|'c'|last"},
		"one":      {"x\n", "x"},
		"bytes":    {"\xff\xfe\n", "\xff\xfe"},
		"empty":    {"\n\n", "it has no task"},
		"nul":      {"a\nb\x00c\n", "line 2 has a NUL byte"},
		"long":     {"a\n" + strings.Repeat("x", mostLine+1) + "\n", "line 2 has 65537 bytes: a task has at most 65536"},
		"too many": {strings.Repeat("x\n", MostTasks+1), "more than 1000000 tasks"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Tasks(path)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var all []string
		for i := range l.Tasks {
			all = append(all, string(l.Text(i)))
		}
		if got := strings.Join(all, "|"); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	huge := filepath.Join(dir, "huge")
	f, err := os.Create(huge)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<30), f.Close()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{huge: "has 1073741824 bytes: at most 67108864 are read", dir: "is no plain file", "/dev/zero": "is no plain file", filepath.Join(dir, "none"): "no such file"} {
		if _, err := Tasks(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		`a  b`: "a|b", `sh -c 'kill -USR1 {pid}' ""`: "sh|-c|kill -USR1 {pid}|", `"a 'b'"c`: "a 'b'c", "": "no command", " ": "no command", `a "b`: "has no second",
	} {
		words, err := Words(text)
		got := strings.Join(words, "|")
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) || err == nil && got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestArgv(t *testing.T) {
	keep := Keeping{Kind: KeepDemand, Restart: []string{"go-on", "{dir}", "{}"}, Launch: []string{"launch", "{dir}"}}
	s := Setup{Command: []string{"a", "x{}y", "{dir}", "{}"}, Dir: "/b", Keep: keep}
	for _, c := range []struct {
		s    Setup
		o    order
		want string
	}{
		{s, order{ID: 7, Text: []byte("$(t) '")}, "launch|/b/checkpoints/7|a|x$(t) 'y|{dir}|$(t) '"},
		{s, order{ID: 7, Text: []byte("t"), Saved: true}, "go-on|/b/checkpoints/7|t"},
		{Setup{Command: []string{"a", "b"}}, order{Text: []byte("{pid}")}, "a|b|{pid}"},
	} {
		if got := strings.Join(c.s.argv(c.o), "|"); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// The order in which tasks are leased.
func TestPeek(t *testing.T) {
	s := NewState(list(6))
	run := func(want int) {
		t.Helper()
		i, ok := s.Peek()
		if !ok || i != want || !s.Apply(Record{Kind: Run, Task: i}) {
			t.Fatalf("task %d, %v; want %d", i, ok, want)
		}
	}
	for i := range 4 {
		run(i)
	}
	s.Apply(Record{Kind: Retry, Task: 0, Status: 1})
	s.Apply(Record{Kind: Back, Task: 1})
	s.Apply(Record{Kind: Lost, Task: 2, Saved: true})
	s.Apply(Record{Kind: Back, Task: 3, Saved: true})
	for _, want := range []int{2, 3, 1, 4, 5, 0} {
		run(want)
	}
	if i, ok := s.Peek(); ok {
		t.Errorf("task %d runs twice", i)
	}
}

func TestFailure(t *testing.T) {
	s := NewState(list(2))
	s.Apply(Record{Kind: Run, Task: 0})
	s.Apply(Record{Kind: Back, Task: 0, Saved: true})
	s.Apply(Record{Kind: Run, Task: 0})
	if k := s.Failure(0, 0, true); k != Void {
		t.Errorf("from a checkpoint at once: %s", k)
	}
	if k := s.Failure(0, 0, false); k != Fail {
		t.Errorf("from a checkpoint, later: %s", k)
	}
	s.Apply(Record{Kind: Void, Task: 0, Status: 1})
	s.Apply(Record{Kind: Run, Task: 0})
	s.Apply(Record{Kind: Back, Task: 0, Saved: true})
	s.Apply(Record{Kind: Run, Task: 0})
	if k := s.Failure(0, 1, true); k != Retry {
		t.Errorf("a second checkpoint: %s", k)
	}
	s.Apply(Record{Kind: Retry, Task: 0})
	s.Apply(Record{Kind: Run, Task: 0})
	if k := s.Failure(0, 1, true); k != Fail {
		t.Errorf("after all retries: %s", k)
	}
	for range mostLosses {
		s.Apply(Record{Kind: Run, Task: 1})
		if k := s.Loss(1); k != Lost {
			t.Fatalf("loss: %s", k)
		}
		s.Apply(Record{Kind: Lost, Task: 1})
	}
	if k := s.Loss(1); k != Fail {
		t.Errorf("after %d losses: %s", mostLosses, k)
	}
}

// crashes plays leaders that crash at any moment, with torn journals, and ones that write on although they were replaced.
type crashes struct {
	t     *rapid.T
	dir   string
	list  List
	j     *Journal
	s     *State
	ended map[int]Kind // what was written about ended tasks
	owed  []Record
	now   int64
}

func (c *crashes) open() {
	j, s, err := Open(c.dir, c.list, 7, time.Unix(c.now, 0))
	if err != nil {
		c.t.Fatal(err)
	}
	c.j, c.s, c.owed = j, s, nil
	c.check(s)
}

// check fails if a task was lost, or one that has ended has not.
func (c *crashes) check(s *State) {
	m := s.Summary(time.Unix(c.now, 0))
	if m.Done+m.Failed+m.Running+m.Waiting != c.list.Tasks || m.Waiting < 0 {
		c.t.Fatalf("tasks are lost: %+v", m)
	}
	for i, k := range c.ended {
		if want := map[Kind]phase{Done: done, Fail: failed}[k]; s.tasks[i].phase != want {
			c.t.Fatalf("task %d ended by %s, and now it is in phase %d", i, k, s.tasks[i].phase)
		}
	}
}

func (c *crashes) put(r Record) {
	c.now++
	r.At = c.now
	if !c.s.Apply(r) {
		c.t.Fatalf("the leader's own record %+v is refused", r)
	}
	c.owed = append(c.owed, r)
}

func (c *crashes) flush() {
	if err := c.j.Append(c.owed); err != nil {
		c.t.Fatal(err)
	}
	for _, r := range c.owed {
		if r.Kind == Done || r.Kind == Fail {
			if k, twice := c.ended[r.Task]; twice {
				c.t.Fatalf("task %d ended by %s and by %s", r.Task, k, r.Kind)
			}
			c.ended[r.Task] = r.Kind
		}
	}
	c.owed = nil
}

func (c *crashes) endOne() {
	for i := range c.list.Tasks {
		if c.s.tasks[i].phase == running && rapid.Bool().Draw(c.t, "this") {
			kind := rapid.SampledFrom([]Kind{Done, Fail, Retry, Back, Lost, Void}).Draw(c.t, "kind")
			c.put(Record{Kind: kind, Task: i, Saved: kind == Back && rapid.Bool().Draw(c.t, "saved")})
			return
		}
	}
}

func (c *crashes) step() {
	switch rapid.IntRange(0, 9).Draw(c.t, "what") {
	case 0, 1, 2:
		if i, ok := c.s.Peek(); ok {
			c.put(Record{Kind: Run, Task: i, Node: "n1"})
		}
	case 3, 4, 5:
		c.endOne()
	case 6:
		c.flush()
	case 7: // the disk was full in the middle of a record
		if len(c.owed) > 0 {
			if _, err := c.j.file.WriteAt([]byte(`{"k":"`), c.j.size); err != nil {
				c.t.Fatal(err)
			}
		}
	case 8:
		if len(c.owed) > 0 && rapid.Bool().Draw(c.t, "torn") {
			c.tear()
		}
		c.j.Close()
		c.open()
	case 9:
		c.replace()
	}
	s, err := Read(c.dir)
	if err != nil {
		c.t.Fatal(err)
	}
	c.check(s)
}

// tear has the leader crash while it writes: a part of it is in the journal.
func (c *crashes) tear() {
	size, ended := c.j.size, maps.Clone(c.ended)
	c.flush()
	at := rapid.Int64Range(size, c.j.size).Draw(c.t, "at")
	if err := c.j.file.Truncate(at); err != nil {
		c.t.Fatal(err)
	}
	s, err := Read(c.dir)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range c.ended { // those that were torn have not ended
		if _, before := ended[i]; !before && s.tasks[i].phase != done && s.tasks[i].phase != failed {
			delete(c.ended, i)
		}
	}
}

// replace has another leader take over. The old one writes what it was about to.
func (c *crashes) replace() {
	old := c.j
	c.open()
	late := rapid.IntRange(0, c.list.Tasks-1)
	text := fmt.Sprintf(`{"k":"run","i":%d}`+"\n"+`{"k":"done","i":%d}`+"\n", late.Draw(c.t, "late"), late.Draw(c.t, "late"))
	if err := old.write([]byte(text)); err != nil { // it looked just before
		c.t.Fatal(err)
	}
	if err := old.Check(); !errors.Is(err, ErrTaken) {
		c.t.Fatalf("a leader that was replaced goes on: %v", err)
	}
	old.Close()
}

// TestCrashes checks that no task is lost and none ends twice, whatever happens to leaders and journals.
func TestCrashes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "bag")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		c := &crashes{t: rt, dir: filepath.Join(dir, "bag"), list: list(rapid.IntRange(1, 8).Draw(rt, "tasks")), ended: map[int]Kind{}}
		c.open()
		for range rapid.IntRange(0, 60).Draw(rt, "steps") {
			c.step()
		}
		for !c.s.Over() { // all tasks end
			i, ok := c.s.Peek()
			if !ok {
				for i = 0; c.s.tasks[i].phase != running; i++ {
				}
			} else {
				c.put(Record{Kind: Run, Task: i})
			}
			c.put(Record{Kind: Done, Task: i})
		}
		c.flush()
		s, err := Read(c.dir)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(c.s.Summary(time.Unix(c.now, 0)), s.Summary(time.Unix(c.now, 0))); diff != "" || !s.Over() || len(c.ended) != c.list.Tasks {
			rt.Fatalf("leader and reader differ: %s", diff)
		}
		c.j.Close()
	})
}

func TestOpenRefuses(t *testing.T) {
	now := time.Unix(1, 0)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(dir, list(3), 1, now); err == nil || !strings.Contains(err.Error(), "has other files and no bag") {
		t.Errorf("a folder in use: %v", err)
	}
	dir = filepath.Join(dir, "bag")
	if _, err := Read(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	j, _, err := Open(dir, list(3), 1, now)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, _, err := Open(dir, list(4), 1, now); err == nil || !strings.Contains(err.Error(), "has 3 other tasks") {
		t.Errorf("other tasks: %v", err)
	}
}

func TestDamagedJournals(t *testing.T) {
	dir := t.TempDir()
	first := filepath.Join(dir, journalName(1))
	if err := os.WriteFile(first, []byte(`{"evobag":2,"epoch":1,"tasks":3,"first":1,"step":1}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "journal of version 2") {
		t.Errorf("a newer journal: %v", err)
	}
	for _, bad := range []string{"", "{}\n", `{"evobag":1,"epoch":1,"tasks":2000000000,"first":1,"step":1}` + "\n", `{"evobag":1,"epoch":9,"tasks":3}` + "\n", strings.Repeat("x", 1<<20)} {
		if err := os.WriteFile(first, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir); !errors.Is(err, errNoBag) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, journalName(3)), []byte(`{"evobag":1,"epoch":3,"after":2,"bytes":9,"tasks":3,"first":1,"step":1}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "journal-000002 is missing") {
		t.Errorf("a gap: %v", err)
	}
	pipe := filepath.Join(dir, journalName(4))
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0) // else a reader finds the end
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	time.AfterFunc(time.Minute, func() { writer.Close() })
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "is no plain file") {
		t.Errorf("a pipe: %v", err)
	}
}

// A bag of 100,000 tasks takes little memory, also to read one that was worked off.
func TestMemory(t *testing.T) {
	const n, most = 100_000, 200 << 20
	dir := filepath.Join(t.TempDir(), "bag")
	var text bytes.Buffer
	for i := range n {
		fmt.Fprintf(&text, "simulate --seed=%d --input=/scratch/project/case-%d/input.dat\n", i, i%77)
	}
	l, err := lines(text.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Buffer{}
	j, s, err := Open(dir, l, 1, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	var records []Record
	for i := range n {
		for _, r := range []Record{{Kind: Run, Task: i, Node: "node-1234", At: int64(i + 1)}, {Kind: Done, Task: i, Seconds: 1.25, At: int64(i + 2)}} {
			s.Apply(r)
			records = append(records, r)
		}
		if len(records) > 1000 {
			if err := j.Append(records); err != nil {
				t.Fatal(err)
			}
			records = records[:0]
		}
	}
	if err := errors.Join(j.Append(records), j.Close()); err != nil {
		t.Fatal(err)
	}
	read, err := Read(dir)
	if err != nil || !read.Over() || !s.Over() {
		t.Fatalf("%v", err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d tasks: %d MiB from the system, with garbage; %d MiB allocated in all", n, m.Sys>>20, m.TotalAlloc>>20)
	if m.HeapSys > most {
		t.Errorf("a heap of %d MiB", m.HeapSys>>20)
	}
	runtime.KeepAlive(s)
}

// FuzzReplay checks that no journal, whatever it has, makes a task end twice or a reader fail.
func FuzzReplay(f *testing.F) {
	f.Add([]byte("header\n{\"k\":\"run\",\"i\":1,\"n\":\"n1\",\"t\":5}\n{\"k\":\"done\",\"i\":1,\"d\":2.5,\"t\":7}\n{\"k\":\"do"))
	f.Add([]byte("h\n{\"k\":\"run\",\"i\":0}\n{\"k\":\"back\",\"i\":0,\"c\":true}\n{\"k\":\"run\",\"i\":0}\n{\"k\":\"void\",\"i\":0}\n{\"k\":\"slots\",\"z\":-5}\n"))
	f.Add([]byte("\n{\"k\":\"done\",\"i\":-1}\n{\"k\":\"run\",\"i\":99999}\n{\"k\":\"fail\",\"i\":2,\"w\":\"\\u001b[31m\"}\n\x00\x00\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := NewState(list(5))
		whole, err := replayLines(bytes.NewReader(text), s)
		if err != nil || whole > int64(len(text)) {
			t.Fatalf("%d of %d bytes, %v", whole, len(text), err)
		}
		m := s.Summary(s.Moment())
		if m.Done+m.Failed+m.Running+m.Waiting != 5 || m.Waiting < 0 || m.Slots < 0 || m.LeftSeconds != nil && !(*m.LeftSeconds >= 0) {
			t.Fatalf("%+v", m)
		}
		for _, f := range s.Failures() {
			if strings.ContainsFunc(f.Reason, func(r rune) bool { return r < ' ' }) {
				t.Fatalf("%q reaches the terminal", f.Reason)
			}
		}
		s.takeOver(Lease{})
		for i, ok := s.Peek(); ok; i, ok = s.Peek() {
			if !s.Apply(Record{Kind: Run, Task: i}) || !s.Apply(Record{Kind: Done, Task: i}) || s.Apply(Record{Kind: Done, Task: i}) {
				t.Fatalf("task %d", i)
			}
		}
		if !s.Over() {
			t.Fatal("tasks are left")
		}
	})
}
