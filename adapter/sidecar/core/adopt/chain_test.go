package adopt

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// chained returns a core that sees jobs with these comments, numbered from 1. Their scripts, which have been read, ask
// for some steps.
func chained(steps int, comments ...string) (*state.Core, *state.Snapshot) {
	c := statetest.NewCore(config.Default(), statetest.Start)
	s := &state.Snapshot{Taken: c.Now, Nodes: []slurmctl.Node{{Name: "n1"}, {Name: "n2"}}, ByID: map[slurmctl.JobID]*slurmctl.Job{}, Marks: map[slurmctl.JobID]*msg.Mark{}}
	var p planner.Profile
	for i := range steps {
		p = append(p, planner.Step{Duration: 1, Nodes: 1 + i%2})
	}
	for i, comment := range comments {
		s.Jobs = append(s.Jobs, slurmctl.Job{ID: slurmctl.JobID(i + 1), State: slurmctl.Pending, ArrayTasks: 1, UID: 1000, Comment: comment, SubmitTime: c.Now, StartTime: c.Now.Add(Parked)})
		c.Scripts[slurmctl.JobID(i+1)] = &state.Script{Known: true, Asked: true, Given: request.Request{Profile: p}}
	}
	marks := msg.ReadMarks(s.Jobs, nil)
	for i := range s.Jobs {
		s.ByID[s.Jobs[i].ID], s.Marks[marks[i].Job] = &s.Jobs[i], &marks[i]
	}
	c.Snapshot = s
	return c, s
}

const head = "evo:v2;script;d=chain;i=1;;"

func link(first, step int) string {
	return fmt.Sprintf("evo:v2;script;d=chain;i=%d;f=%d;;", step, first)
}

// TestChainsWithoutLinks checks that the work for chains whose links never come grows with their number only, whether
// the chains have begun or their first jobs are gone.
func TestChainsWithoutLinks(t *testing.T) {
	for name, comment := range map[string]string{"heads": head, "links": link(9999, 2)} {
		work := func(heads int) float64 {
			c, s := chained(3, slices.Repeat([]string{comment}, heads)...)
			for _, read := range c.Scripts {
				read.Given.Malleable = &request.Malleable{Max: slices.Repeat([]int{2}, 3)} // joining the texts allocates
			}
			n := testing.AllocsPerRun(3, func() { Adopt(c, s) })
			if len(c.Coming) != heads {
				t.Errorf("%d of %d %s wait", len(c.Coming), heads, name)
			}
			return n
		}
		if few, many := work(150), work(300); many > 2.5*few {
			t.Errorf("a cycle with 150 %s allocates %.0f times, with 300 %.0f times; want at most 2.5 times as often", name, few, many)
		}
	}
}

// TestRequestIsBoundedAgain checks that a request is not taken from an earlier comment, script, or cluster.
func TestRequestIsBoundedAgain(t *testing.T) {
	c, s := chained(3, head)
	r := &s.Jobs[0]
	for name, change := range map[string]func(){
		"comment": func() { r.Comment = "evo:v2;p=1@1m,2@1m;;" },
		"script": func() {
			c.Scripts[1] = &state.Script{Known: true, Asked: true, Given: request.Request{Profile: planner.Profile{{Duration: 5, Nodes: 2}}}}
		},
		"cluster": func() { s.Nodes = s.Nodes[:1] },
	} {
		before, nodes := *r, s.Nodes
		old, _, _ := requestOf(c, s, r)
		change()
		sp, _, err := requestOf(c, s, r)
		if err == nil && slices.Equal(sp.Profile, old.Profile) {
			t.Errorf("another %s: the request is still %v", name, sp.Profile)
		}
		*r, s.Nodes, c.Scripts[1] = before, nodes, &state.Script{Known: true, Asked: true, Given: request.Request{Profile: old.Profile}}
	}
}

// TestChainIsGivenUp checks when jobs of an incomplete chain are refused and released: give_up after its last job was
// submitted.
func TestChainIsGivenUp(t *testing.T) {
	later := config.Default().GiveUp
	for _, one := range []struct {
		name     string
		comments []string
		change   func(*state.Core, *state.Snapshot)
		after    time.Duration
		want     []string // why the jobs are refused; "": they wait
	}{
		{"too early", []string{head, link(1, 2)}, nil, later - 1, []string{"", ""}},
		{"a link is missing", []string{head, link(1, 2)}, nil, later, []string{"its chain has 3 steps, but Slurm has the jobs of only 2", "the first job of its chain, 1, is refused"}},
		{"two links are one step", []string{head, link(1, 2), link(1, 2)}, nil, later, []string{"only 2", "is refused", "is refused"}},
		{"complete", []string{head, link(1, 3), link(1, 2)}, nil, later, []string{"", "", ""}},
		{"the first is gone", []string{link(9, 2), link(9, 2)}, nil, later, []string{"are gone", "are gone"}},
		{"the first is gone, the rest is complete", []string{link(9, 3), link(9, 2)}, nil, later, []string{"", ""}},
		{"the first was known", []string{link(9, 2)}, func(c *state.Core, _ *state.Snapshot) { c.Known[9] = row.Known{Submitted: c.Now} }, later, []string{""}},
		{"a link of another user", []string{head, link(1, 2), link(1, 3)}, func(_ *state.Core, s *state.Snapshot) { s.Jobs[2].UID++ }, later, []string{"only 2", "is refused", "are gone"}},
		{"evosbatch is slow", []string{head, link(1, 2)}, func(c *state.Core, s *state.Snapshot) { s.Jobs[1].SubmitTime = c.Now.Add(time.Second) }, later, []string{"", ""}},
		{"give_up is 0", []string{head}, func(c *state.Core, _ *state.Snapshot) { c.Config.GiveUp = 0 }, LeastForLinks - 1, []string{""}},
		{"a script is unread", []string{head, link(1, 2)}, func(c *state.Core, _ *state.Snapshot) { c.Scripts[2].Known = false }, later, []string{"", ""}},
	} {
		c, s := chained(3, one.comments...)
		if one.change != nil {
			one.change(c, s)
		}
		c.Now = c.Now.Add(one.after)
		s.Taken = c.Now
		Adopt(c, s)
		LeaveRefused(c, s)
		for i, want := range one.want {
			if left := !c.Refused[slurmctl.JobID(i+1)].Again.IsZero(); left != (want != "") {
				t.Errorf("%s: job %d is released: %v", one.name, i+1, left)
			}
			if why := c.Refused[slurmctl.JobID(i+1)].Reason; (why == "") != (want == "") || !strings.Contains(why, want) {
				t.Errorf("%s: job %d is refused with %q, want %q", one.name, i+1, why, want)
			}
		}
	}
}
