package change

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestTarget checks what a job would be after a change, and which requests are rejected before anything is planned.
// The job has passed 5 of the 10 minutes of its first step.
func TestTarget(t *testing.T) {
	update := func(u api.Update) api.ChangeRequest { return api.ChangeRequest{Update: &u} }
	grow := func(g api.Grow) api.ChangeRequest { return api.ChangeRequest{Grow: &g} }
	shrink := func(s api.Shrink) api.ChangeRequest { return api.ChangeRequest{Shrink: &s} }
	queued := func(_ *statetest.Bench, j *state.Job) { j.State, j.Step = row.Queued, 0 }
	for name, c := range map[string]struct {
		change func(b *statetest.Bench, j *state.Job)
		ask    api.ChangeRequest
		want   string // its profile, or the refusal
	}{
		"other coming steps":               {nil, update(api.Update{Profile: "3@1m"}), "2@10m,3@1m"},
		"of a queued job, all steps":       {queued, update(api.Update{Profile: "3@1m"}), "3@1m"},
		"a longer current step":            {nil, update(api.Update{Current: 600}), "2@15m,4@10m,1@10m"},
		"the longest step of all":          {nil, update(api.Update{Current: planner.MaxDuration}), "job 1 with its steps up to now: the profile lasts 2147485147 seconds, and a job may last 2147483647 at most: shorten its steps"},
		"a current step beyond that":       {nil, update(api.Update{Current: planner.MaxDuration + 1}), "--current, --wait: 2147483648 seconds"},
		"a current step of negative time":  {nil, update(api.Update{Current: -1}), "--current, --wait: -1 seconds"},
		"a negative wait":                  {nil, update(api.Update{Profile: "1@1m", Wait: math.MinInt64}), fmt.Sprintf("--current, --wait: %d seconds", math.MinInt64)},
		"an update of nothing":             {nil, update(api.Update{}), "nothing to change: set --profile, --current, or both"},
		"no profile at all":                {nil, update(api.Update{Profile: "0@1m"}), "--profile: "},
		"the current step of a queued job": {queued, update(api.Update{Current: 60}), "--current: job 1 is in no step at present"},
		"to wait, of a queued job":         {queued, update(api.Update{Profile: "1@1m", Wait: 60}), "--wait: a job that has not begun is planned for when it can begin"},
		"bounds, of a job that is rigid":   {nil, update(api.Update{Profile: "1-3@1m"}), "--profile: the job was not submitted as one that is malleable: give one number of nodes for each step"},

		"frequencies of later steps": {nil, update(api.Update{Profile: "3@1m:low"}), "--profile: the steps of a changed profile have no CPU frequencies: leave them out"},

		"to grow by 3 for the rest of the step": {nil, grow(api.Grow{Nodes: 3}), "2@5m,5@5m,4@10m,1@10m"},
		"to grow for a minute":                  {nil, grow(api.Grow{Nodes: 3, For: 60}), "2@5m,5@1m,2@4m,4@10m,1@10m"},
		"to grow for longer than the step":      {nil, grow(api.Grow{Nodes: 3, For: 900}), "2@5m,5@15m,4@10m,1@10m"},
		"to grow when its time is over":         {func(b *statetest.Bench, _ *state.Job) { b.Later(5 * time.Minute) }, grow(api.Grow{Nodes: 3}), "the time of step 1 is over: set --for"},
		"to grow by none":                       {nil, grow(api.Grow{}), "to grow by 0 nodes: want at least 1"},
		"to grow by fewer than none":            {nil, grow(api.Grow{Nodes: math.MinInt}), fmt.Sprintf("to grow by %d nodes: want at least 1", math.MinInt)},
		"to grow beyond any cluster":            {nil, grow(api.Grow{Nodes: planner.MaxNodes - 1}), "to grow by 2147483646 nodes: no cluster has as many"},
		"to grow up to the cluster":             {nil, grow(api.Grow{Nodes: planner.MaxNodes - 2, Min: 1}), "2@5m,8@5m,4@10m,1@10m"},
		"at least as many as it asks for":       {nil, grow(api.Grow{Nodes: 3, Min: 3}), "2@5m,5@5m,4@10m,1@10m"},
		"at least more than it asks for":        {nil, grow(api.Grow{Nodes: 3, Min: 4}), "--min=4: want 1 to 3"},
		"a negative minimum":                    {nil, grow(api.Grow{Nodes: 3, Min: -1}), "--min=-1: want 1 to 3"},
		"to grow, of a queued job":              {queued, grow(api.Grow{Nodes: 1}), "job 1 has not begun: change its profile (evosctl update)"},
		"to grow while it waits to grow":        {func(b *statetest.Bench, j *state.Job) { b.Waits(j) }, grow(api.Grow{Nodes: 1}), "job 1 has ended step 1 and waits for the next one's nodes: evosctl next goes on waiting"},
		"to grow while it lacks a node":         {func(b *statetest.Bench, j *state.Job) { b.Has(j, "n1") }, grow(api.Grow{Nodes: 1}), "job 1 has 1 of its step's 2 nodes at present"},

		"to shrink by one":                  {nil, shrink(api.Shrink{Nodes: 1}), "2@5m,1@5m,4@10m,1@10m"},
		"to shrink by one named":            {nil, shrink(api.Shrink{List: []string{"n2"}}), "2@5m,1@5m,4@10m,1@10m"},
		"to shrink to the next step's size": {func(_ *statetest.Bench, j *state.Job) { j.Profile[1].Nodes = 1 }, shrink(api.Shrink{Nodes: 1}), "2@5m,1@15m,1@10m"},
		"to shrink by all":                  {nil, shrink(api.Shrink{Nodes: 2}), "to shrink by 2 nodes: the job has 2, and keeps one"},
		"to shrink by more than any":        {nil, shrink(api.Shrink{Nodes: math.MaxInt}), fmt.Sprintf("to shrink by %d nodes: the job has 2, and keeps one", math.MaxInt)},
		"to shrink by fewer than none":      {nil, shrink(api.Shrink{Nodes: -1}), "to shrink by -1 nodes: want at least 1"},
		"to shrink by nothing":              {nil, shrink(api.Shrink{}), "set how many nodes to give back, or which"},
		"how many, and which":               {nil, shrink(api.Shrink{Nodes: 1, List: []string{"n2"}}), "set how many nodes to give back, or which"},
		"the script's node":                 {nil, shrink(api.Shrink{List: []string{"n1"}}), "n1 runs the batch script and cannot be given back before the end"},
		"another job's node":                {nil, shrink(api.Shrink{List: []string{"n3"}}), "the job does not have n3"},
		"a node twice":                      {nil, shrink(api.Shrink{List: []string{"n2", "n2"}}), "a node is listed twice"},

		"nothing":                       {nil, api.ChangeRequest{}, "want one of update, grow and shrink"},
		"two changes at once":           {nil, api.ChangeRequest{Grow: &api.Grow{Nodes: 1}, Shrink: &api.Shrink{Nodes: 1}}, "want one of update, grow and shrink"},
		"of the step that it is in":     {nil, api.ChangeRequest{From: 1, Grow: &api.Grow{Nodes: 3}}, "2@5m,5@5m,4@10m,1@10m"},
		"of a step that is not begun":   {nil, api.ChangeRequest{From: 2, Grow: &api.Grow{Nodes: 1}}, "job 1 is in step 1, not 2 (evaluate what evosctl env prints, and EVO_STEP is right)"},
		"of a chain":                    {func(b *statetest.Bench, j *state.Job) { j.Drive = "chain"; state.SetMode(b.Core, j) }, grow(api.Grow{Nodes: 1}), "job 1 is a chain: its steps are Slurm jobs that are submitted already; cancel it and submit another"},
		"of a job with frequencies":     {func(_ *statetest.Bench, j *state.Job) { j.Frequencies = []string{"low", "", ""} }, shrink(api.Shrink{Nodes: 1}), "job 1 has CPU frequencies by step, which a change would mix up: end steps early or late by evosctl next"},
		"of a job that is about to end": {func(_ *statetest.Bench, j *state.Job) { j.Ending = true }, grow(api.Grow{Nodes: 1}), "job 1 is about to end"},
		"of a job that is suspended":    {func(b *statetest.Bench, j *state.Job) { j.SuspendedFrom = b.Now }, grow(api.Grow{Nodes: 1}), "job 1 is suspended by Slurm"},
	} {
		t.Run(name, func(t *testing.T) {
			b, j := statetest.Growing(t)
			b.Later(5 * time.Minute)
			if c.change != nil {
				c.change(b, j)
			}
			before := j.Profile.String()
			got := ""
			if target, err := Target(b.Core, j, &c.ask); err != nil {
				got = err.Error()
			} else {
				got = target.Profile.String()
			}
			if exact := !strings.HasSuffix(c.want, ": "); got != c.want && (exact || !strings.HasPrefix(got, c.want)) {
				t.Errorf("%s, want %s", got, c.want)
			}
			if after := j.Profile.String(); after != before {
				t.Errorf("the job itself has become %s", after)
			}
		})
	}
}

// TestTryChange checks which changes are possible beside what others were promised. The growth of job 1 begins at once.
func TestTryChange(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *statetest.Bench, j *state.Job)
		grow   api.Grow
		want   string // its nodes in the next step, or what is in the way
	}{
		"the nodes are free":                {nil, api.Grow{Nodes: 2}, "4"},
		"all nodes":                         {nil, api.Grow{Nodes: 6}, "8"},
		"more than there are":               {nil, api.Grow{Nodes: 7}, "it would have 9 nodes, and may have 8 at most (nodes of its partition that suit it, and MaxNodes)"},
		"as many as there are":              {nil, api.Grow{Nodes: planner.MaxNodes - 2, Min: 1}, "8"},
		"a stock job has some":              {func(b *statetest.Bench, _ *state.Job) { b.StockRuns(2, "n[3-6]", time.Hour) }, api.Grow{Nodes: 6, Min: 1}, "4"},
		"a stock job has too many":          {func(b *statetest.Bench, _ *state.Job) { b.StockRuns(2, "n[3-8]", time.Hour) }, api.Grow{Nodes: 1}, "in the way: others' jobs"},
		"a job of the same user has them":   {func(b *statetest.Bench, _ *state.Job) { b.StockRuns(2, "n[3-8]", time.Hour).UID = 1000 }, api.Grow{Nodes: 1}, "in the way: job 2"},
		"others' promise comes after":       {func(b *statetest.Bench, _ *state.Job) { promised(b, "700-900 n[3-8]") }, api.Grow{Nodes: 6, For: 600}, "8"},
		"others' promise comes before":      {func(b *statetest.Bench, _ *state.Job) { promised(b, "500-900 n[4-8]") }, api.Grow{Nodes: 2, For: 600}, "in the way: job 2"},
		"one less than others are promised": {func(b *statetest.Bench, _ *state.Job) { promised(b, "500-900 n[5-8]") }, api.Grow{Nodes: 6, Min: 2, For: 600}, "4"},
		"beyond its claim":                  {func(_ *statetest.Bench, j *state.Job) { j.Claim = 3 }, api.Grow{Nodes: 2}, "it would have 4 nodes, and its claim is 3 (--max-nodes)"},
		"MaxNodes of its partition": {func(b *statetest.Bench, _ *state.Job) {
			p := b.Seen.Partitions["main"]
			p.MaxNodes = 3
			b.Seen.Partitions["main"] = p
		}, api.Grow{Nodes: 2}, "it would have 4 nodes, and may have 3 at most"},
		"all nodes of its own reservation":      {inCourse(6, time.Hour), api.Grow{Nodes: 4}, "6"},
		"beyond its own reservation":            {inCourse(6, time.Hour), api.Grow{Nodes: 5}, "it does not fit into reservation course, which has 6 nodes and ends at " + statetest.Start.Add(time.Hour).Local().Format(time.TimeOnly) + ": it would have 7 nodes, and may have 6 at most"},
		"beyond the end of its own reservation": {inCourse(6, 5*time.Minute), api.Grow{Nodes: 2, For: 600}, "it cannot be had as things are: it does not fit into reservation course, which has 6 nodes and ends at " + statetest.Start.Add(5*time.Minute).Local().Format(time.TimeOnly) + ": "},
		"its own reservation is gone":           {func(_ *statetest.Bench, j *state.Job) { j.Reservation = "course" }, api.Grow{Nodes: 2}, "reservation course is not there any more"},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 8)
			b.Config.Margin = 0
			j := b.Evolving(1, 1, "2@10m", time.Hour)
			b.Runs(j, "n[1-2]")
			b.Plans(j, "0-600 n[1-2]")
			j.Record.Comment = "evo:v2;p=2@10m;;"
			b.Show(j)
			if c.change != nil {
				c.change(b, j)
			}
			target, err := Target(b.Core, j, &api.ChangeRequest{ID: "1", Grow: &c.grow})
			if err != nil {
				t.Fatal(err)
			}
			tried := TryChange(b.Core, b.Seen, j, target)
			got := tried.Refused
			if got == "" {
				got = fmt.Sprint(len(tried.Plan[1].Nodes))
			}
			if !strings.Contains(got, c.want) || tried.Refused == "" && got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// inCourse has a job run in a reservation of its user's of the first nodes, for some time from now on.
func inCourse(nodes int, lasts time.Duration) func(*statetest.Bench, *state.Job) {
	return func(b *statetest.Bench, j *state.Job) {
		b.Reserve("course", 0, lasts, 1, nodes)
		j.Reservation, j.Record.Reservation = "course", "course"
		b.Show(j)
	}
}

// promised adds job 2, which runs on no node of its own that matters and was promised a step.
func promised(b *statetest.Bench, step string) {
	b.Seen.Nodes = append(b.Seen.Nodes, slurmctl.Node{Name: "x1", State: "idle"})
	b.Seen.Index["x1"] = len(b.Seen.Nodes) - 1
	j := b.Evolving(2, 1, "1@5m,6@10m", time.Hour)
	b.Runs(j, "x1")
	var start, end int64
	var list string
	if _, err := fmt.Sscanf(step, "%d-%d %s", &start, &end, &list); err != nil {
		panic(err)
	}
	j.Profile[1].Nodes = len(statetest.Nodes(list))
	b.Plans(j, fmt.Sprintf("0-%d x1", start), step)
}
