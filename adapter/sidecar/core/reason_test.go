package core

import (
	"testing"
	"time"
)

// TestReasonWords checks that every kind of reason has words of its own, and that they name what the reason holds.
func TestReasonWords(t *testing.T) {
	at := time.Date(2026, 11, 24, 12, 30, 0, 0, time.Local)
	seen := map[string]reasonKind{}
	for kind := whyNothing; kind <= whySuspended; kind++ {
		r := reason{kind: kind, job: 7, nodes: 3, tries: 2, at: at, what: "grow", text: "the text"}
		words := r.words()
		if words == r.text {
			continue // somebody else has the words
		}
		if other, twice := seen[words]; twice || words == "" {
			t.Errorf("kinds %d and %d both say %q", kind, other, words)
		}
		seen[words] = kind
	}
	for want, r := range map[string]reason{
		"": {},
		"waits for job 7, whose request is being read":                                         {kind: whyEarlierUnread, job: 7},
		"its coming steps cannot be planned again: too few nodes":                              {kind: whyNotReplanned, text: "too few nodes"},
		"waits for job 7, which began before it: its coming steps cannot be planned again: no": {kind: whyNotReplanned, job: 7, text: "no"},
		"waits for 3 nodes, planned for 12:30:00":                                              {kind: whyPlannedFor, nodes: 3, at: at},
		"waits for 3 nodes, replanned for 12:30:00: the step before was long":                  {kind: whyPlannedFor, nodes: 3, at: at, text: "the step before was long"},
		"is planned again: its nodes were promised to job 7":                                   {kind: whyPromisedAway, job: 7},
		"is planned again: there may be room under MaxJobs":                                    {kind: whyRoomUnder, text: "MaxJobs"},
		"gets 3 nodes":       {kind: whyGrows, nodes: 3},
		"gives 3 nodes back": {kind: whyShrinks, nodes: 3},
		"grow failed: no":    {kind: whyFailed, what: "grow", tries: 1, at: at, text: "no"},
		"grow failed 2 times, and is tried again at 12:30:00: no": {kind: whyFailed, what: "grow", tries: 2, at: at, text: "no"},
		"Slurm has suspended it since 12:30:00":                   {kind: whySuspended, at: at},
		"the account has no room":                                 {kind: whyKeptBack, text: "the account has no room"},
	} {
		if got := r.words(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
