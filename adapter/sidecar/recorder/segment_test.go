package recorder

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/codec"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// sample returns a small recording, in three blocks.
func sample(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	var s segment
	must.OK(t, s.begin(&out, "v1", Start{Run: "r", Begun: time.Unix(1e9, 0), Config: config.Default()}))
	for i := range 3 {
		r := &Recorder{file: os.Stdin, seg: s, flushed: time.Unix(1e9, 0), most: 1 << 30}
		now := time.Unix(1e9+int64(i), 0)
		r.Inputs(now, []msg.Input{msg.Observation{Begun: now, Jobs: []slurmctl.Job{{ID: 7, User: "alice", Comment: "of /home/alice/x"}}}})
		r.Effects(now, []msg.Effect{msg.Wake{At: now}})
		s = r.seg
		must.OK(t, s.flush())
	}
	return out.Bytes()
}

// readAll counts the steps that are whole.
func readAll(b []byte, version string) (steps int, err error) {
	r, err := NewReader(bytes.NewReader(b), version)
	if err != nil {
		return 0, err
	}
	for {
		if _, err := r.Next(); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return steps, err
		}
		steps++
	}
}

// TestBadRecordings checks that files that are not complete recordings of this version are
// recognised.
func TestBadRecordings(t *testing.T) {
	whole := sample(t)
	if n, err := readAll(whole, "v1"); n != 3 || err != nil {
		t.Fatalf("%d steps, %v", n, err)
	}
	if n, err := readAll(whole[:len(whole)-5], "v1"); n != 2 || !errors.Is(err, codec.ErrCut) {
		t.Errorf("cut short: %d steps, %v", n, err)
	}
	for _, text := range []string{"", "x", "evoslurm\n", strings.Repeat("x", 1000)} {
		if _, err := readAll([]byte(text), "v1"); !errors.Is(err, codec.ErrForeign) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	begin := bytes.IndexByte(whole, '\n') + 1
	for i := begin; i < len(whole); i++ {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x10
		if _, err := readAll(bad, "v1"); !errors.Is(err, codec.ErrTampered) && !errors.Is(err, codec.ErrCut) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
	}
	for i := range begin { // the heading is part of the sum
		bad := bytes.Clone(whole)
		bad[i] ^= 1
		if _, err := readAll(bad, "v1"); err == nil {
			t.Fatalf("byte %d changed: nothing wrong", i)
		}
	}
}

// TestOtherFormats checks that a recording of another version or format is refused with the remedy.
func TestOtherFormats(t *testing.T) {
	previous, err := os.ReadFile("testdata/previous-format.evorec") // as 0.1.0 wrote it before package codec did
	must.OK(t, err)
	for _, c := range []struct {
		data          []byte
		version, want string
	}{
		{sample(t), "v2", "it is of version v1, format " + coded.Format() + ", and this is version v2, format "},
		{previous, "v1", "it is of version v1, format f1f60ae23fc3, and this is version v1, format "},
	} {
		if _, err := readAll(c.data, c.version); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "replay it with the evosim of that version") {
			t.Errorf("of another version or format: %v, want %q", err, c.want)
		}
	}
}

// TestMask checks that no name or path is left, and that the same one becomes the same word.
func TestMask(t *testing.T) {
	m := NewMask()
	whole := sample(t)
	must.OK(t, m.Learn(bytes.NewReader(whole), "v1"))
	var out bytes.Buffer
	must.OK(t, m.Rewrite(&out, bytes.NewReader(whole), "v1"))
	r, err := NewReader(&out, "v1")
	must.OK(t, err)
	steps := 0
	for {
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must.OK(t, err)
		steps++
		if j := s.Inputs[0].(msg.Observation).Jobs[0]; j.User != "user1" || strings.Contains(j.Comment, "alice") || !strings.HasPrefix(j.Comment, "of /path") {
			t.Errorf("%+v", j)
		}
	}
	if steps != 3 {
		t.Errorf("%d steps", steps)
	}
	if got := m.Text("alice of malice"); got != "user1 of malice" {
		t.Error(got)
	}
}

// TestRing: the folder keeps its bound, and of the present run its beginning.
func TestRing(t *testing.T) {
	dir := t.TempDir()
	now := time.Unix(1e9, 0)
	for run := range 2 {
		r := New(dir, 4, "v1", Start{Begun: now, Config: config.Default()})
		r.Warn = func(err error) { t.Error(err) }
		r.most = 64 << 10
		for i := range 400 {
			now = now.Add(2 * time.Second)
			text := make([]byte, 2000)
			for k := range text {
				text[k] = byte('a' + (i*k*k+k*7+i*i)%26)
			}
			r.Inputs(now, []msg.Input{msg.Outcome{Task: int64(i), Result: string(text)}})
			r.Effects(now, nil)
		}
		must.OK(t, r.Close())
		files, err := Files(dir)
		must.OK(t, err)
		total := int64(0)
		for _, f := range files {
			info, err := os.Stat(f)
			must.OK(t, err)
			total += info.Size()
		}
		if total > r.most*5/4 {
			t.Errorf("run %d: %d bytes in %d files", run, total, len(files))
		}
		all, err := Find(dir)
		must.OK(t, err)
		if _, first := parse(all[0]); first != 0 || len(all) < 5 {
			t.Errorf("run %d: of the present one there is %v", run, all)
		}
		gap := Player{Version: "v1"}
		if err := gap.Play(all); err == nil && !strings.Contains(gap.Gap, "files are missing") {
			t.Errorf("run %d: no gap is reported: %q", run, gap.Gap)
		}
	}
	if _, err := Find(filepath.Join(dir, "nothing")); err == nil {
		t.Error("no file is no error")
	}
}

// steps reads the records of a block, and writes them again.
func steps(block []byte) ([]byte, error) {
	d, e := coded.Decoder(block, &seen{}), coded.Encoder(nil, &seen{})
	for len(d.B) > 0 {
		var s Step
		if codec.Read(d, &s); d.Err() != nil {
			return nil, d.Err()
		}
		codec.Write(e, &s)
	}
	return e.B, nil
}

// block returns records with something of everything.
func block() []byte {
	e, now := coded.Encoder(nil, &seen{}), time.Unix(1e9, 0)
	for i := range 4 {
		poll := msg.Observation{Begun: now, Config: &slurmctl.Config{Values: map[string]string{"a": "b"}}, Nodes: []slurmctl.Node{{Name: "n1", State: "idle"}}, Jobs: []slurmctl.Job{{ID: 7, User: "alice"}, {ID: 8, Priority: uint64(i)}, {ID: 9}}[i/2:]}
		plan := msg.Planned{Jobs: []msg.PlannedJob{{Job: 7, Steps: []msg.PlannedStep{{Start: 5, End: 9 + int64(i), Nodes: []string{"n1"}}}}}}
		codec.Write(e, &Step{now, []msg.Input{poll, plan, msg.Outcome{Task: 1, Err: slurmctl.ErrNodesBusy, Result: []slurmctl.Job{{ID: 7}}}},
			[]msg.Effect{msg.SavePlan{Job: 7, Plan: []row.Span{{Step: 1, Nodes: 1, NodeList: "n1"}}}, msg.Log{Level: "info", Fields: map[string]any{"job": 7, "by": []string{"x"}}}}})
	}
	return e.B
}

// FuzzReader reads any bytes as a file, and as records without a checksum. What can be read is written and read again
// as the same. No number in the bytes sizes memory.
func FuzzReader(f *testing.F) {
	whole := sample(f)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("evoslurm recording, version v1, format x\n"))
	f.Add(block())
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = readAll(b, "v1")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		first, err := steps(b)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 256<<10+1000*uint64(len(b)) {
			t.Fatalf("%d bytes took %d of memory", len(b), used)
		}
		if err != nil {
			return
		}
		if second, err := steps(first); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%v: wrote %q, read and wrote %q", err, first, second)
		}
	})
}

// TestListsStayShort checks that a list takes no more entries from the one before than that has.
func TestListsStayShort(t *testing.T) {
	e := coded.Encoder(nil, &seen{})
	codec.Write(e, &plainPoll{})
	e.B = append(e.B, 1)
	for range 1000 {
		e.B = append(e.B, goTo, 0, copied+99)
	}
	d := coded.Decoder(e.B, &seen{jobs: make([]slurmctl.Job, 100)})
	var poll msg.Observation
	if codec.Read(d, &poll); d.Err() == nil || len(poll.Jobs) > 100 {
		t.Errorf("%v, %d jobs", d.Err(), len(poll.Jobs))
	}
}

// TestLists checks that lists are read as they were written after any others, even if keys occur twice.
func TestLists(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	e, d := coded.Encoder(nil, &seen{}), coded.Decoder(nil, &seen{})
	var poll msg.Observation
	for range 300 {
		poll.Jobs = slices.Clone(poll.Jobs)
		for range random.IntN(4) {
			at := random.IntN(len(poll.Jobs) + 1)
			switch j := jobByChance(random); random.IntN(4) {
			case 0:
				poll.Jobs = slices.Insert(poll.Jobs, at, j)
			case 1:
				poll.Jobs = slices.Delete(poll.Jobs, max(at-1, 0), at)
			case 2:
				poll.Jobs = append(poll.Jobs, poll.Jobs[:min(at, 3)]...)
			case 3:
				if at > 0 {
					j.ID = poll.Jobs[at-1].ID
					poll.Jobs[at-1] = j
				}
			}
		}
		var got msg.Observation
		e.B = nil
		codec.Write(e, &poll)
		d.B = e.B
		if codec.Read(d, &got); d.Err() != nil || len(d.B) > 0 || !reflect.DeepEqual(poll, got) {
			t.Fatalf("seed %d: wrote\n%+v, read\n%+v: %v", seed, poll, got, d.Err())
		}
	}
}

func jobByChance(random *rand.Rand) (j slurmctl.Job) {
	b := make([]byte, 500)
	for i := range b {
		b[i] = byte(random.IntN(6) * random.IntN(8))
	}
	codec.Read(coded.Decoder(b, nil), &j)
	return j
}

// TestSameSeesEveryField checks that the comparison of jobs covers every field.
func TestSameSeesEveryField(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for i := range reflect.TypeFor[slurmctl.Job]().NumField() {
		var a, b slurmctl.Job
		v := reflect.ValueOf(&b).Elem()
		for v.IsZero() {
			v.Field(i).Set(reflect.ValueOf(jobByChance(random)).Field(i))
		}
		if sameJob(nil, &a, &b) || !sameJob(nil, &b, &b) {
			t.Errorf("field %s is not compared", v.Type().Field(i).Name)
		}
	}
}

// TestDifference checks that a difference is reported, with both sides.
func TestDifference(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.evorec")
	must.OK(t, os.WriteFile(name, sample(t), 0o600))
	p := Player{Version: "v1"}
	var d *Difference
	err := p.Play([]string{name})
	if !errors.As(err, &d) || d.Recorded == nil || d.Now == nil || !d.At.Equal(time.Unix(1e9, 0)) {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"a poll of 1 jobs", "recorded: Wake", "now:      "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v has no %q", err, want)
		}
	}
}
