package observed

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func head() Heading {
	return Heading{Format: Format, Evoslurm: "v1", At: noon.Unix(), Site: Site{Cluster: "c", Slurm: "22.05.8",
		Nodes: []NodeKind{{Nodes: "n[1-4]", CPUs: 8}}, Partitions: []Partition{{Name: "main", Nodes: "n[1-4]", Up: true, MaxTime: -1, DefaultTime: 3600}}, Config: config.Default()}}
}

func newWriter(t *testing.T, dir string, mib int) *Writer {
	w := NewWriter(dir, mib, head)
	w.Warn = func(err error) { t.Error(err) }
	return w
}

// all reads a file.
func all(data []byte) (records []Record, err error) {
	r, err := NewReader(bytes.NewReader(data))
	for err == nil {
		var one Record
		if one, err = r.Next(); err == nil {
			records = append(records, one)
		}
	}
	return records, err
}

// TestRoundTrip checks that records are read as they were written, by day. A file that was cut anywhere gives whole
// records, in order, and the reader says that it was cut.
func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, 4)
	want := []Record{
		{At: 1, Job: &Job{ID: 7, User: "alice", Nodes: 2, Limit: -1, State: "PENDING Priority", Sizes: []Resize{{5, 3}}}},
		{At: 2, Start: &Start{Job: 7, Before: []Lead{{60, Prediction{At: 1, Ours: 4}}}}},
		{At: 3, Sample: &Sample{Job: 8, Age: 60, Prediction: Prediction{2, 3, 4}}},
		{At: 4, Nodes: &NodeState{"n1", "down*", false}}, {At: 5, Gap: &Gap{1, 2, "why"}}, {At: 6, Load: &Load{Calls: map[string]int{"squeue": 3}}},
	}
	for i, r := range want {
		w.Write(noon, r)
		w.Flush(noon.Add(time.Duration(i) * flushAfter))
	}
	w.Write(noon.Add(12*time.Hour), want[0])
	must.OK(t, w.Close())
	w.Write(noon.Add(13*time.Hour), want[1]) // as after a restart
	must.OK(t, w.Close())
	days, err := Days(dir)
	if err != nil || len(days) != 2 || days[0].Date != "2026-11-25" || len(days[1].Files) != 2 || filepath.Base(days[1].Files[1]) != "2026-11-26.2.jsonl.gz" {
		t.Fatalf("%v, %v", days, err)
	}
	data := must.Read(t, days[0].Files[0])
	if got, err := all(data); !errors.Is(err, io.EOF) || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v\n%+v", err, got, want)
	}
	r, err := Open(days[0].Files[0])
	if err != nil || !reflect.DeepEqual(r.Heading, head()) {
		t.Errorf("%v: %+v", err, r)
	}
	cuts(t, data, want)
}

// cuts reads a file that ends early, at each byte.
func cuts(t *testing.T, data []byte, want []Record) {
	before := 0
	for cut := range len(data) {
		got, err := all(data[:cut])
		if errors.Is(err, ErrForeign) && before == 0 {
			continue
		}
		if !errors.Is(err, ErrCut) || len(got) < before || len(got) > 0 && !reflect.DeepEqual(got, want[:len(got)]) {
			t.Fatalf("cut at %d of %d: %d records after %d, %v", cut, len(data), len(got), before, err)
		}
		before = len(got)
	}
	if before < len(want)-1 {
		t.Errorf("%d records before the last byte", before)
	}
}

// TestForeign checks what a reader says of other files.
func TestForeign(t *testing.T) {
	dir := t.TempDir()
	w := NewWriter(dir, 4, func() Heading { return Heading{Format: Format + 1} })
	w.Write(noon, Record{})
	must.OK(t, w.Close())
	if _, err := Open(filepath.Join(dir, fileName("2026-11-25", 1))); !errors.Is(err, ErrNewer) {
		t.Error(err)
	}
	for _, text := range []string{"", "x", "{}\n"} {
		if _, err := all([]byte(text)); !errors.Is(err, ErrForeign) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, name := range []string{"x", "2026-11-25", "2026-13-25.jsonl.gz", "2026-11-25.1.jsonl.gz", "2026-11-25.02.jsonl.gz", "2026-11-25.2.3.jsonl.gz"} {
		if _, number := parseName(name); number != 0 {
			t.Errorf("%s is no file of a record", name)
		}
	}
	if days, err := Days(filepath.Join(dir, "none")); err != nil || days != nil {
		t.Errorf("%v, %v", days, err)
	}
}

// TestBound checks that the folder keeps its bound, also within one day, and that files of a day stay in order.
func TestBound(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, 1)
	random := uint64(1)
	for i := range 40000 {
		var name strings.Builder
		for range 60 {
			random = random*6364136223846793005 + 1442695040888963407
			name.WriteByte('a' + byte(random>>33)%26)
		}
		w.Write(noon.Add(time.Duration(i)*time.Second), Record{At: int64(i), Job: &Job{Name: name.String()}})
	}
	must.OK(t, w.Close())
	days, err := Days(dir)
	must.OK(t, err)
	total, last := int64(0), int64(-1)
	for _, d := range days {
		for _, name := range d.Files {
			data := must.Read(t, name)
			total += int64(len(data))
			got, err := all(data)
			if !errors.Is(err, io.EOF) || len(got) == 0 || got[0].At <= last {
				t.Fatalf("%s: %d records, %v", name, len(got), err)
			}
			last = got[len(got)-1].At
		}
	}
	if total > 1<<20*5/4 || total < 1<<19 || last != 39999 {
		t.Errorf("%d bytes in %v", total, days)
	}
}
