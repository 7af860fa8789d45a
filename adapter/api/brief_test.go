package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// stuffed returns a job with that many steps, each as long as possible.
func stuffed(id, uid uint32, steps int) Job {
	j := Job{ID: id, UID: uid, State: "running", Step: 1, Steps: steps, Nodes: 1, NodeList: "n1", Profile: strings.Repeat("1@1m,", steps), Bounds: strings.Repeat("1-2@1m,", steps), CPUFreq: strings.Repeat("1@1m:low,", steps),
		Moldable: &Moldable{Alternatives: []Alternative{{Profile: strings.Repeat("1@1m,", steps)}}}, Past: []Span{{Step: 1, NodeList: "n1"}}}
	for i := range steps {
		j.Plan = append(j.Plan, Span{Step: i + 1, Start: time.Unix(1, 0), End: time.Unix(2, 0), Nodes: 1, NodeList: "n1"})
	}
	return j
}

// TestListsStaySmall checks that the jobs of one user, however many steps they have, neither make a
// list long nor push out the plans of others.
func TestListsStaySmall(t *testing.T) {
	var jobs []Job
	for i := range 25 {
		jobs = append(jobs, stuffed(uint32(i+1), 1002, 2000))
	}
	jobs = append(jobs, stuffed(100, 1001, 20))
	size := func(list []Job) int {
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		return len(text)
	}
	clone := func() []Job { return append([]Job(nil), jobs...) }
	if n := size(shorten(clone(), false)); n > len(jobs)*4<<10 {
		t.Errorf("a list of %d jobs has %d bytes", len(jobs), n)
	}
	plans := shorten(clone(), true)
	if n := size(plans); n > 2*userShare {
		t.Errorf("a list with plans has %d bytes", n)
	}
	if last := plans[len(plans)-1]; len(last.Plan) != 20 || len(last.Past) != 1 || last.Profile != jobs[len(jobs)-1].Profile {
		t.Errorf("another user's job lacks what it is planned to have: %+v", last)
	}
	if first := plans[0]; len(first.Plan) != 2000 {
		t.Errorf("the first job has %d of its 2000 steps", len(first.Plan))
	}
	if short := plans[24]; short.Plan == nil || short.Past == nil || len(short.Plan) != 0 || short.ID != 25 || short.NodeList != "n1" || len(short.Profile) > mostText {
		t.Errorf("a job beyond its user's share: %+v", short)
	}
	if len(jobs[0].Plan) != 2000 || len(jobs[0].Moldable.Alternatives[0].Profile) < 2000 {
		t.Error("the jobs themselves were changed")
	}
}
