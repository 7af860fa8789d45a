package state_test

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
)

// TestReasonWords checks that every kind of reason has words of its own, and that they name what the reason holds.
func TestReasonWords(t *testing.T) {
	at := time.Date(2026, 11, 24, 12, 30, 0, 0, time.Local)
	seen := map[string]state.ReasonKind{}
	for kind := state.WhyNothing; kind <= state.WhySuspended; kind++ {
		r := state.Reason{Kind: kind, Job: 7, Nodes: 3, Tries: 2, At: at, What: "grow", Text: "the text"}
		words := r.Words()
		if words == r.Text {
			continue // somebody else has the words
		}
		if other, twice := seen[words]; twice || words == "" {
			t.Errorf("kinds %d and %d both say %q", kind, other, words)
		}
		seen[words] = kind
	}
	for want, r := range map[string]state.Reason{
		"": {},
		"waits for job 7, whose request is being read":                                         {Kind: state.WhyEarlierUnread, Job: 7},
		"its coming steps cannot be planned again: too few nodes":                              {Kind: state.WhyNotReplanned, Text: "too few nodes"},
		"waits for job 7, which began before it: its coming steps cannot be planned again: no": {Kind: state.WhyNotReplanned, Job: 7, Text: "no"},
		"waits for 3 nodes, planned for 12:30:00":                                              {Kind: state.WhyPlannedFor, Nodes: 3, At: at},
		"waits for 3 nodes, replanned for 12:30:00: the step before was long":                  {Kind: state.WhyPlannedFor, Nodes: 3, At: at, Text: "the step before was long"},
		"is planned again: its nodes were promised to job 7":                                   {Kind: state.WhyPromisedAway, Job: 7},
		"waits for nodes on at most 2 leaf switches, until 12:30:00 at the latest":             {Kind: state.WhyFewSwitches, Nodes: 2, At: at},
		"is planned again: there may be room under MaxJobs":                                    {Kind: state.WhyRoomUnder, Text: "MaxJobs"},
		"gets 3 nodes":       {Kind: state.WhyGrows, Nodes: 3},
		"gives 3 nodes back": {Kind: state.WhyShrinks, Nodes: 3},
		"grow failed: no":    {Kind: state.WhyFailed, What: "grow", Tries: 1, At: at, Text: "no"},
		"grow failed 2 times, and is tried again at 12:30:00: no": {Kind: state.WhyFailed, What: "grow", Tries: 2, At: at, Text: "no"},
		"Slurm has suspended it since 12:30:00":                   {Kind: state.WhySuspended, At: at},
		"the account has no room":                                 {Kind: state.WhyNodesAwaited, Text: "the account has no room"},
	} {
		if got := r.Words(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestReasonDerived checks which facts give a job's reason, and which come before a recorded cause.
func TestReasonDerived(t *testing.T) {
	const grows = "gets 2 nodes"
	for name, c := range map[string]struct {
		change     func(j *state.Job)
		want, busy string // busy: while the job grows
	}{
		"nothing":            {func(*state.Job) {}, "", grows},
		"it is completing":   {func(j *state.Job) { j.Ending = true }, "completing", "completing"},
		"its nodes come up":  {func(j *state.Job) { j.Configuring = true }, "Slurm is switching its nodes on", "Slurm is switching its nodes on"},
		"a limit":            {func(j *state.Job) { j.KeepBack(&state.KeptBack{Text: "no room"}) }, "no room", grows},
		"its promise lapsed": {func(j *state.Job) { j.Plan = j.Plan[:1] }, "nodes are no longer held for its coming steps; it is planned again when it calls next", grows},
		"it overruns":        {func(j *state.Job) { j.Warn() }, "the step lasts longer than its profile says", grows},
	} {
		b := statetest.New(t, 3)
		j := b.Evolving(1, 1, "1@1m,2@1m", time.Hour)
		b.Runs(j, "n1")
		b.Plans(j, "0-60 n1", "60-120 n[1-2]")
		c.change(j)
		if got := j.Reason().Words(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		j.Busy = true
		j.WaitsFor(state.Reason{Kind: state.WhyGrows, Nodes: 2})
		if got := j.Reason().Words(); got != c.busy {
			t.Errorf("%s, and it grows: %q, want %q", name, got, c.busy)
		}
	}
}
