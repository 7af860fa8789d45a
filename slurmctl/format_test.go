package slurmctl

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// print writes records as squeue does, each on its own line.
func (t table) print(records [][]string) string {
	var b strings.Builder
	for _, r := range records {
		for _, f := range r {
			b.WriteString(f + t.sep)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestTableUnforgeable checks that records come out as they went in, whatever text a user writes:
// formats, newlines, or separators of another call.
func TestTableUnforgeable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "fields")
		tab, other := newTable(n), newTable(n)
		field := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "\n", "|", "%i", other.sep, other.sep + "\n",
			"\n" + other.sep, "<", tab.sep[:10], "x\ny", "\n\n"}))
		records := rapid.SliceOf(rapid.SliceOfN(field, n, n)).Draw(t, "records")
		got, err := tab.split(tab.print(records))
		must.OK(t, err)
		if !slices.EqualFunc(got, records, slices.Equal) {
			t.Fatalf("got %q, want %q", got, records)
		}
	})
}

// TestTableCutOff checks that truncated output is never read as fewer records.
func TestTableCutOff(t *testing.T) {
	tab := newTable(3)
	out := tab.print([][]string{{"1", "a\nb", ""}, {"2", "c", "d"}})
	for cut := 1; cut < len(out); cut++ {
		if got, err := tab.split(out[:cut]); err == nil {
			// Whole records and their newline are valid: squeue also ends this way.
			if want := tab.print(got); want != out[:cut] {
				t.Errorf("cut at %d of %d: %q", cut, len(out), got)
			}
		}
	}
	if got, err := tab.split(""); err != nil || len(got) != 0 {
		t.Errorf("no output: %q, %v", got, err)
	}
	if _, err := tab.split("squeue: something\n" + tab.sep + tab.sep); err == nil {
		t.Error("two fields of three were taken")
	}
}

func TestSeparator(t *testing.T) {
	a, b := newTable(2), newTable(2)
	if a.sep == b.sep {
		t.Fatal("the same separator twice")
	}
	if !regexp.MustCompile(`^<[-_0-9A-Za-z]{12}>$`).MatchString(a.sep) {
		t.Errorf("separator %q", a.sep)
	}
	if diff := cmp.Diff("%i"+a.sep+"%j"+a.sep, a.short("i", "j")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("JobID:"+a.sep+",Name:"+a.sep, a.long("JobID", "Name")); diff != "" {
		t.Error(diff)
	}
}

func FuzzTable(f *testing.F) {
	f.Add("a<SEP>b<SEP>\nc<SEP>d<SEP>\n", 2)
	f.Add("<SEP>\n", 1)
	f.Add("\n", 1)
	f.Fuzz(func(t *testing.T, out string, fields int) {
		if fields < 1 || fields > 50 {
			return
		}
		tab := table{recorded, fields}
		records, err := tab.split(out)
		if err != nil {
			return
		}
		if back := tab.print(records); back != out && !(len(records) == 0 && out == "\n") {
			t.Errorf("%q was read as %q", out, records)
		}
	})
}

// TestRecordsStandAlone checks that a field that is kept, such as a job's name, does not keep the
// whole output.
func TestRecordsStandAlone(t *testing.T) {
	tab := newTable(3)
	out := tab.print([][]string{{"1", "", "a"}, {"2", "name", "b"}})
	records, err := tab.split(out)
	must.OK(t, err)
	begin := uintptr(unsafe.Pointer(unsafe.StringData(out)))
	for _, r := range records {
		for _, f := range r {
			if at := uintptr(unsafe.Pointer(unsafe.StringData(f))); f != "" && at >= begin && at < begin+uintptr(len(out)) {
				t.Errorf("%q lies in the output", f)
			}
		}
	}
}
