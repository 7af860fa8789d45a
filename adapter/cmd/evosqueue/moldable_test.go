package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/api"
)

func TestAlternatives(t *testing.T) {
	job := api.Job{ID: 14, Moldable: &api.Moldable{By: "completion", Choice: 2, Alternatives: []api.Alternative{
		{Profile: "4@2h", Start: at(0), End: at(2 * time.Hour), NodeHours: 8},
		{Profile: "8@1h10m", Start: at(0), End: at(70 * time.Minute), NodeHours: 28. / 3, Waste: 0.5},
		{Profile: "16@40m", NodeHours: 32. / 3, Reason: "infeasible when it was submitted"},
	}}}
	const want = `
Job 14 is planned with alternative 2 of 3, by completion:
   1  4@2h  2026-11-20T14:00:00 to 2026-11-20T16:00:00, 8.00 node-hours, 0.00 of them wasted
-> 2  8@1h10m  2026-11-20T14:00:00 to 2026-11-20T15:10:00, 9.33 node-hours, 0.50 of them wasted
   3  16@40m  infeasible when it was submitted
`
	if diff := cmp.Diff(want, alternatives([]api.Job{{ID: 3}, job}, now, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := alternatives([]api.Job{{ID: 3}}, now, false); got != "" {
		t.Errorf("without a moldable job: %q", got)
	}
}
