package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/api"
)

func TestAgreements(t *testing.T) {
	job := api.Job{ID: 14, Bounds: "2-8@1h", Lent: "n[3-4]",
		Progress: &api.Progress{Fraction: .375, At: at(3 * time.Minute), Speedup: "amdahl:0.9", Measured: []api.Measured{{Nodes: 2, Seconds: 60, Fraction: .1}, {Nodes: 8, Seconds: 90, Fraction: .275}}},
		Offers: []api.Offer{
			{Kind: "grow", Nodes: 6, Has: 2, NodeList: "n[3-8]", Made: at(0), Deadline: at(30 * time.Second), Answered: at(2 * time.Second), Closed: at(3 * time.Second), Accepted: 6, State: "done"},
			{Kind: "shrink", Mandatory: true, Nodes: 4, Has: 8, NodeList: "n[5-8]", Why: "stock job 3 waits", Made: at(time.Minute), Deadline: at(90 * time.Second), Answered: at(90 * time.Second), Closed: at(91 * time.Second), Accepted: 4, Enforced: true, Note: "no answer", State: "done"},
			{Kind: "grow", Nodes: 2, Has: 4, NodeList: "n[5-6]", Made: at(2 * time.Minute), Deadline: at(150 * time.Second), Closed: at(121 * time.Second), State: "declined", Note: "declined"},
			{Kind: "shrink", Nodes: 1, Has: 4, NodeList: "n4", Made: at(3 * time.Minute), Deadline: at(210 * time.Second), State: "open"},
		}}
	const want = `
Job 14 may have 2-8@1h; is lent n[3-4]; 37.5% done at 2026-11-20T14:03:00, measured amdahl:0.9 (10% in 1m0s on 2 nodes, 27.5% in 1m30s on 8 nodes)
   2026-11-20T14:00:00  offered 6 beside 2 nodes, n[3-8], until 2026-11-20T14:00:30; accepted 6 at 2026-11-20T14:00:02; lent at 2026-11-20T14:00:03
   2026-11-20T14:01:00  demanded 4 of 8 nodes, n[5-8], until 2026-11-20T14:01:30: stock job 3 waits; taken at 2026-11-20T14:01:31: no answer
   2026-11-20T14:02:00  offered 2 beside 4 nodes, n[5-6], until 2026-11-20T14:02:30; declined at 2026-11-20T14:02:01
   2026-11-20T14:03:00  asked for 1 of 4 nodes, n4, until 2026-11-20T14:03:30; open
`
	if diff := cmp.Diff(want, agreements([]api.Job{{ID: 3}, job}, now, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := agreements([]api.Job{{ID: 3}}, now, false); got != "" {
		t.Errorf("without a malleable job: %q", got)
	}
	if got := progressText(job) + progressText(api.Job{}); got != "37.5%" {
		t.Errorf("{progress} is %q", got)
	}
}
