package row

import (
	"strings"
	"testing"
)

// TestLosses checks which nodes a job reports as lost, from a step on, in the words of its life: a loss of nodes, a further
// step, a requeue to begin in a step with nodes that failed.
func TestLosses(t *testing.T) {
	lost := func(nodes string) func(*Job) { return func(j *Job) { j.Lose(j.Step, strings.Fields(nodes)) } }
	next := func(j *Job) { j.Step++ }
	again := func(step int, nodes string) func(*Job) {
		return func(j *Job) {
			j.BeginAgain(step)
			j.Lose(step, strings.Fields(nodes))
			j.Step = step
		}
	}
	for name, c := range map[string]struct {
		did      []func(*Job)
		since    int
		want     string
		restarts int
	}{
		"nothing":                {nil, 1, "", 0},
		"no nodes":               {[]func(*Job){lost("")}, 1, "", 0},
		"in this step":           {[]func(*Job){lost("n3 n2")}, 1, "n2 n3", 0},
		"twice":                  {[]func(*Job){lost("n3"), lost("n2 n3")}, 1, "n2 n3", 0},
		"in the step before":     {[]func(*Job){lost("n3"), next}, 1, "n3", 0},
		"not in the new step":    {[]func(*Job){lost("n3"), next}, 2, "", 0},
		"in both":                {[]func(*Job){lost("n3"), next, lost("n1")}, 1, "n1 n3", 0},
		"two steps ago":          {[]func(*Job){lost("n3"), next, lost("n1"), next, lost("n2")}, 1, "n1 n2", 0},
		"requeued":               {[]func(*Job){next, lost("n3"), again(1, "n4")}, 1, "n3 n4", 1},
		"requeued without":       {[]func(*Job){next, again(1, "")}, 1, "", 1},
		"requeued, a step later": {[]func(*Job){next, lost("n3"), again(1, ""), next}, 2, "", 1},
		"a link, twice":          {[]func(*Job){next, again(2, "n4"), again(2, "n5"), next}, 2, "n4 n5", 2},
	} {
		j := &Job{Life: Life{Step: 1}}
		for _, do := range c.did {
			do(j)
		}
		if got := strings.Join(j.LostSince(c.since), " "); got != c.want || j.Restarts != c.restarts {
			t.Errorf("%s: lost %q and restarted %d times, want %q and %d", name, got, j.Restarts, c.want, c.restarts)
		}
	}
}
