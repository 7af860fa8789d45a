package cores

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func TestParseShare(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "1000": 1000, "7": 7, "": 0, "0": 0, "-1": 0, "1001": 0, "50%": 0, "1.5": 0, "99999999999999999999": 0, "+1": 0, " 1": 0} {
		if got, err := ParseShare(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

func TestSet(t *testing.T) {
	for text, want := range map[string]string{"0": "0", "0-3,8": "0-3,8", "8,0-2,1,3\n": "0-3,8", "1023": "1023", "": "", "1024": "", "3-1": "", "a": "", "0-": "", "0-99999999999": "", "1,,2": ""} {
		s, err := parseSet(text)
		if s.String() != want || (err == nil) != (want != "") {
			t.Errorf("%q: %s, %v", text, s, err)
		}
	}
}

// Whatever members come and go: every core has one member, every member has its number and keeps as
// many of its cores as that allows.
func TestDivide(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		cores := rapid.IntRange(1, 70).Draw(r, "cores")
		var shares []int
		var has [][]int
		for range rapid.IntRange(1, 12).Draw(r, "changes") {
			if len(shares) > 0 && rapid.Bool().Draw(r, "ends") {
				m := rapid.IntRange(0, len(shares)-1).Draw(r, "member")
				shares, has = slices.Delete(shares, m, m+1), slices.Delete(has, m, m+1)
			} else {
				shares, has = append(shares, rapid.IntRange(1, maxShare).Draw(r, "share")), append(has, nil)
			}
			gets, err := divide(shares, has, cores)
			if (err != nil) != (len(shares) > cores) {
				r.Fatalf("%d members on %d cores: %v", len(shares), cores, err)
			}
			if err != nil {
				shares, has = shares[:len(shares)-1], has[:len(has)-1]
				continue
			}
			if why := wrong(shares, has, gets, cores); why != "" {
				r.Fatalf("shares %v, %v became %v on %d cores: %s", shares, has, gets, cores, why)
			}
			has = gets
		}
	})
}

func wrong(shares []int, has, gets [][]int, cores int) string {
	if len(shares) == 0 {
		return ""
	}
	var all []int
	total := 0
	for _, share := range shares {
		total += share
	}
	for m, got := range gets {
		all = append(all, got...)
		kept := 0
		for _, core := range got {
			if slices.Contains(has[m], core) {
				kept++
			}
		}
		if kept != min(len(has[m]), len(got)) {
			return fmt.Sprintf("member %d moved for nothing", m)
		}
		if len(got) < 1 || !slices.IsSorted(got) {
			return fmt.Sprintf("member %d has %v", m, got)
		}
		for o := range gets { // nobody with a larger share has fewer
			if shares[o] > shares[m] && len(gets[o]) < len(got) {
				return fmt.Sprintf("member %d has more than %d", m, o)
			}
		}
	}
	slices.Sort(all)
	for i, core := range all {
		if i != core {
			return "a core has no member, or two"
		}
	}
	if len(all) != cores {
		return "a core has no member"
	}
	return ""
}

// Two members fold and unfold: cores stay together, and in proportion.
func TestFoldAndUnfold(t *testing.T) {
	has := [][]int{nil}
	for _, c := range []struct {
		shares []int
		want   string
	}{
		{[]int{1}, "[[0 1 2 3 4 5 6 7]]"},
		{[]int{1, 3}, "[[0 1] [2 3 4 5 6 7]]"},
		{[]int{1, 3, 4}, "[[0] [2 3 4] [1 5 6 7]]"},
		{[]int{1, 4}, "[[0 2] [1 3 4 5 6 7]]"}, // the second has ended: no core is moved for order
	} {
		if len(c.shares) > len(has) {
			has = append(has, nil)
		} else if len(c.shares) < len(has) {
			has = slices.Delete(has, 1, 2)
		}
		gets, err := divide(c.shares, has, 8)
		if got := fmt.Sprint(gets); err != nil || len(gets) != len(c.shares) {
			t.Errorf("%v: %s, %v", c.shares, got, err)
		} else if got != c.want {
			t.Errorf("%v: %s, want %s", c.shares, got, c.want)
		}
		has = gets
	}
}

// Threads of a core stay together, and the cores of a socket are neighbours, though Linux numbers
// the CPUs of two sockets by turns.
func TestTopology(t *testing.T) {
	sys := t.TempDir()
	for cpu := range 8 { // two sockets, with two cores of two threads
		dir := filepath.Join(sys, fmt.Sprintf("cpu/cpu%d/topology", cpu))
		must.OK(t, os.MkdirAll(dir, 0o755))
		must.OK(t, os.WriteFile(dir+"/thread_siblings_list", fmt.Appendf(nil, "%d,%d\n", cpu%4, cpu%4+4), 0o644))
		must.OK(t, os.WriteFile(dir+"/physical_package_id", fmt.Appendf(nil, "%d\n", cpu%2), 0o644))
	}
	for may, want := range map[string]string{"0-7": "[0,4 2,6 1,5 3,7]", "0-4": "[0,4 2 1 3]", "9,11": "[9 11]"} {
		s, err := parseSet(may)
		must.OK(t, err)
		if got := fmt.Sprint(topology(sys, s)); got != want {
			t.Errorf("%s: %s, want %s", may, got, want)
		}
	}
	for node, list := range []string{"1,5", "0,2-4,6-7"} { // NUMA counts within a socket
		must.OK(t, os.MkdirAll(fmt.Sprintf("%s/node/node%d", sys, node), 0o755))
		must.OK(t, os.WriteFile(fmt.Sprintf("%s/node/node%d/cpulist", sys, node), []byte(list), 0o644))
	}
	if got := fmt.Sprint(topology(sys, set{0, 1, 2, 3, 4, 5, 6, 7})); got != "[0,4 2,6 1,5 3,7]" {
		t.Errorf("with NUMA: %s", got)
	}
}

// A thread that the program has put on some of its CPUs stays there while they are the step's.
func TestMustMove(t *testing.T) {
	for _, c := range []struct {
		now, want string
		move      bool
	}{
		{"0-3", "0-3", false},
		{"0-7", "0-3", true}, // before
		{"0-1", "0-3", true}, // before
		{"2", "0-3", false},  // by itself
		{"2,4", "0-3", true},
		{"4-5", "0-3", true},
	} {
		now, err := parseSet(c.now)
		must.OK(t, err)
		want, err := parseSet(c.want)
		must.OK(t, err)
		if got := mustMove(now, want, []set{{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1}}); got != c.move {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
