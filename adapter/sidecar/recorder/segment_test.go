package recorder

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// sample returns a small recording, in three blocks.
func sample(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	var s segment
	if err := s.begin(&out, "v1", Start{Run: "r", Begun: time.Unix(1e9, 0), Config: config.Default()}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		r := &Recorder{file: os.Stdin, seg: s, flushed: time.Unix(1e9, 0), most: 1 << 30}
		now := time.Unix(1e9+int64(i), 0)
		r.Inputs(now, []msg.Input{msg.Observation{Begun: now, Jobs: []slurmctl.Job{{ID: 7, User: "alice", Comment: "of /home/alice/x"}}}})
		r.Effects(now, []msg.Effect{msg.Wake{At: now}})
		s = r.seg
		if err := s.flush(); err != nil {
			t.Fatal(err)
		}
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
	if n, err := readAll(whole[:len(whole)-5], "v1"); n != 2 || !errors.Is(err, ErrCut) {
		t.Errorf("cut short: %d steps, %v", n, err)
	}
	var other *VersionError
	if _, err := readAll(whole, "v2"); !errors.As(err, &other) || !strings.Contains(err.Error(), "v1") || !strings.Contains(err.Error(), "v2") {
		t.Errorf("of another version: %v", err)
	}
	for _, text := range []string{"", "x", "evoslurm\n", strings.Repeat("x", 1000)} {
		if _, err := readAll([]byte(text), "v1"); !errors.Is(err, ErrNoRecording) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	begin := bytes.IndexByte(whole, '\n') + 1
	for i := begin; i < len(whole); i++ {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x10
		if _, err := readAll(bad, "v1"); !errors.Is(err, ErrTampered) && !errors.Is(err, ErrCut) {
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

// TestMask checks that no name or path is left, and that the same one becomes the same word.
func TestMask(t *testing.T) {
	m := NewMask()
	whole := sample(t)
	if err := m.Learn(bytes.NewReader(whole), "v1"); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := m.Rewrite(&out, bytes.NewReader(whole), "v1"); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(&out, "v1")
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for {
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
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
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		files, err := Files(dir)
		if err != nil {
			t.Fatal(err)
		}
		total := int64(0)
		for _, f := range files {
			info, err := os.Stat(f)
			if err != nil {
				t.Fatal(err)
			}
			total += info.Size()
		}
		if total > r.most*5/4 {
			t.Errorf("run %d: %d bytes in %d files", run, total, len(files))
		}
		all, err := Find(dir)
		if err != nil {
			t.Fatal(err)
		}
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

// FuzzReader: whatever a file has, reading it comes to an end.
func FuzzReader(f *testing.F) {
	whole := sample(f)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("evoslurm recording, version v1, format x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = readAll(b, "v1")
		d := decoder{b: b, seen: &seen{}} // even with a valid checksum
		var s Step
		decodeStep(&d, &s)
	})
}

// TestDifference checks that a difference is reported, with both sides.
func TestDifference(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.evorec")
	if err := os.WriteFile(name, sample(t), 0o600); err != nil {
		t.Fatal(err)
	}
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
