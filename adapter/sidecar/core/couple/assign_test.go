package couple

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
)

func lists(text string) (all [][]string) {
	for part := range strings.SplitSeq(text, "|") {
		all = append(all, strings.Fields(part))
	}
	return all
}

func TestAssign(t *testing.T) {
	for name, c := range map[string]struct {
		had  string
		want []int
		have string
		gets string
	}{
		"the start":                    {"|", []int{2, 1}, "a b c", "a b|c"},
		"one grows":                    {"a b|c", []int{3, 1}, "a b c d", "a b d|c"},
		"a node changes hands":         {"a b|c", []int{1, 2}, "a b c", "a|c b"},
		"one shrinks":                  {"a b|c", []int{1, 1}, "a c", "a|c"},
		"one is over":                  {"a b|c", []int{2, 0}, "a b", "a b|"},
		"a node is lost":               {"a b|c", []int{2, 1}, "b c", "b|c"},
		"a lost node is replaced":      {"b|c", []int{2, 1}, "b c d", "b d|c"},
		"more nodes than wanted":       {"a|b", []int{1, 1}, "a b c", "a|b"},
		"all nodes are others":         {"a b|c", []int{2, 1}, "x y z", "x y|z"},
		"the first gets what is there": {"|", []int{2, 2}, "a b c", "a b|c"},
	} {
		got := Assign(lists(c.had), c.want, strings.Fields(c.have))
		if want := lists(c.gets); !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestSpare(t *testing.T) {
	for name, c := range map[string]struct {
		had   string
		want  []int
		have  string
		bound string
		spare string
	}{
		"the last ones of the code that shrinks": {"a b c|d e", []int{1, 2}, "a b c d e", "a", "b c"},
		"never the batch script's":               {"b a|c", []int{1, 1}, "a b c", "a", "b"},
		"both shrink":                            {"a b|c d", []int{1, 1}, "a b c d", "a", "b d"},
		"what no code has goes first":            {"a b|c", []int{1, 1}, "a b c x", "a", "x b"},
		"none":                                   {"a b|c", []int{2, 2}, "a b c", "a", ""},
	} {
		if got := Spare(lists(c.had), c.want, strings.Fields(c.have), strings.Fields(c.bound)); !slices.Equal(got, strings.Fields(c.spare)) {
			t.Errorf("%s: %v, want %s", name, got, c.spare)
		}
	}
}

func TestHanded(t *testing.T) {
	if diff := cmp.Diff([]string{"b"}, Handed(lists("a b|c"), lists("a x|c b"))); diff != "" {
		t.Error(diff)
	}
}

// FuzzAssign plays steps with arbitrary sizes and nodes. Each node is in one component at most, each component has what it
// wants if the job has enough, and each keeps all of its nodes that it may keep.
func FuzzAssign(f *testing.F) {
	f.Add([]byte{2, 1, 3, 0, 2, 2, 1, 7, 1, 1, 0, 255})
	f.Add([]byte{0, 5, 5, 31, 4, 1, 1, 9})
	f.Fuzz(func(t *testing.T, script []byte) {
		had := make([][]string, 3)
		for len(script) >= 4 {
			want, mask := []int{int(script[0] % 8), int(script[1] % 8), int(script[2] % 8)}, script[3]
			script = script[4:]
			var have []string
			for n := range 16 {
				if mask>>(n%8)&1 == 1 || n >= 8 && mask%3 == 0 {
					have = append(have, fmt.Sprintf("n%d", n))
				}
			}
			got := Assign(had, want, have)
			checkAssigned(t, had, want, have, got)
			if again := Assign(got, want, have); !slices.EqualFunc(got, again, slices.Equal) {
				t.Fatalf("again %v is %v", got, again)
			}
			had = got
		}
	})
}

func checkAssigned(t *testing.T, had [][]string, want []int, have []string, got [][]string) {
	t.Helper()
	seen, all := msg.Set{}, 0
	for i, nodes := range got {
		all += want[i]
		for _, n := range nodes {
			if seen[n] || !slices.Contains(have, n) {
				t.Fatalf("%v of %v", got, have)
			}
			seen[n] = true
		}
		mine := len(had[i]) - len(msg.Without(had[i], have))
		if kept := len(nodes) - len(msg.Without(nodes, had[i])); len(nodes) > want[i] || kept < min(mine, want[i]) {
			t.Fatalf("%v, had %v of %v: want %v", got, had, have, want)
		}
	}
	if len(seen) != min(all, len(have)) {
		t.Fatalf("%v of %v: want %v", got, have, want)
	}
}
