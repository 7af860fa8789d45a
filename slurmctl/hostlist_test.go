package slurmctl

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestExpandNodes(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "(null)": "", "None": "", "n1": "n1", "n[1-3,7]": "n1 n2 n3 n7", "n[1-3,7],m[08-10]x": "n1 n2 n3 n7 m08x m09x m10x",
		"r[1-2]n[01-02]": "r1n01 r1n02 r2n01 r2n02", "n[9-11]": "n9 n10 n11", "n[008-011]": "n008 n009 n010 n011",
		"a,b-c,d.e": "a b-c d.e", "n[1,1]": "n1 n1", "[1-2]": "1 2", "n[08-100]": strings.Join(numbered("n%02d", 8, 100), " "),
		"n2,n1": "n2 n1", "login-1,gpu[3]": "login-1 gpu3",
	} {
		got, err := ExpandNodes(in)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q is %v, %v; want %s", in, got, err, want)
		}
		if n, err := CountNodes(in); err != nil || n != len(got) {
			t.Errorf("%q is counted as %d, %v; want %d", in, n, err, len(got))
		}
	}
	for _, in := range []string{",", "n1,", ",n1", "n[", "n[]", "n]", "n[1", "n[3-1]", "n[a-b]", "n[1-]", "n[-1]", "n[1--2]", "n[[1]]",
		"n[1-1000000000]", "n[0-999][0-999]", "n[0-99][0-99][0-99]", "n[1-99999999999999999999]", "n[1,]", "n 1", "n\n1",
		strings.Repeat("n[0-65535],", 3) + "x"} {
		if got, err := ExpandNodes(in); err == nil {
			t.Errorf("%q is taken as %d nodes", in, len(got))
		}
		if n, err := CountNodes(in); err == nil {
			t.Errorf("%q is counted as %d nodes", in, n)
		}
	}
}

func numbered(format string, from, to int) []string {
	var names []string
	for i := from; i <= to; i++ {
		names = append(names, fmt.Sprintf(format, i))
	}
	return names
}

func TestCompressNodes(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "n1": "n1", "n3 n1 n2 n10": "n[1-3,10]", "n1 n1 n2": "n[1-2]", "n01 n02 n1 n2": "n[1,01,2,02]", "n9 n10 n11": "n[9-11]",
		"n09 n10 n11": "n[09-11]", "b a n1 m2": "a,b,m2,n1", "x y1z y2z": "x,y1z,y2z", "n99 n100": "n[99-100]", "1 2 3": "[1-3]",
		"n n0 n1": "n,n[0-1]",
	} {
		if got := CompressNodes(strings.Fields(in)); got != want {
			t.Errorf("%q is %q; want %q", in, got, want)
		}
	}
}

func nodeName() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		prefix := rapid.SampledFrom([]string{"n", "m", "rack-1-", "a.b", "gpu", "n1x"}).Draw(t, "prefix")
		width := rapid.IntRange(0, 4).Draw(t, "width")
		suffix := rapid.SampledFrom([]string{"", "", "", "x", "-ib"}).Draw(t, "suffix")
		return fmt.Sprintf("%s%0*d%s", prefix, width, rapid.IntRange(0, 120).Draw(t, "number"), suffix)
	})
}

// TestHostlistThereAndBack checks that compressing and expanding gives the same set, sorted.
func TestHostlistThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOf(nodeName()).Draw(t, "names")
		expr := CompressNodes(names)
		got, err := ExpandNodes(expr)
		if err != nil {
			t.Fatalf("%q: %v", expr, err)
		}
		want := slices.Clone(names)
		SortNodes(want)
		want = slices.Compact(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%v is written %q and read %v", want, expr, got)
		}
		if again := CompressNodes(got); again != expr {
			t.Fatalf("%q becomes %q", expr, again)
		}
		shuffled := rapid.Permutation(names).Draw(t, "shuffled")
		if CompressNodes(shuffled) != expr {
			t.Fatalf("the order matters: %q and %q", CompressNodes(shuffled), expr)
		}
	})
}

func FuzzExpandNodes(f *testing.F) {
	for _, s := range []string{"n[1-3,7],m[01-10]x", "r[1-2]n[01-03]", "n[1-1000000000]", "n[", "a,b", "[0-9][0-9][0-9][0-9][0-9][0-9]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		nodes, err := ExpandNodes(expr)
		if n, bad := CountNodes(expr); n != len(nodes) || (bad == nil) != (err == nil) {
			t.Fatalf("%q is counted as %d, %v; it is %d, %v", expr, n, bad, len(nodes), err)
		}
		if err != nil {
			return
		}
		if len(nodes) > MaxNodes {
			t.Fatalf("%d nodes", len(nodes))
		}
		for _, n := range nodes {
			if n == "" || strings.ContainsAny(n, "[],") {
				t.Fatalf("%q has the node %q", expr, n)
			}
		}
		if len(nodes) > 2000 {
			return
		}
		again, err := ExpandNodes(CompressNodes(nodes))
		if err != nil {
			t.Fatalf("%q: %v", CompressNodes(nodes), err)
		}
		SortNodes(nodes)
		if nodes = slices.Compact(nodes); !slices.Equal(again, nodes) {
			t.Fatalf("%v became %v", nodes, again)
		}
	})
}

func BenchmarkExpand64k(b *testing.B) {
	for b.Loop() {
		if _, err := ExpandNodes("n[00001-65533]"); err != nil {
			b.Fatal(err)
		}
	}
}
