package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// ran is a job of two steps whose first the application ended after first seconds, and got the
// next one's nodes wait seconds later; its second lasted until the job's end.
func ran(first, wait, second int) (api.Job, []api.Event) {
	at := func(s int) time.Time { return time.Unix(1795368509+int64(s), 0) }
	end := first + wait + second
	return api.Job{ID: 12, Profile: "2@10m,5@30m", Past: []api.Span{
			{Step: 1, Start: at(0), End: at(first + wait), Nodes: 2}, {Step: 2, Start: at(first + wait), End: at(end), Nodes: 5}}},
		[]api.Event{
			{At: at(0), Kind: "started", Detail: json.RawMessage(`{"step":1}`)},
			{At: at(first), Kind: "step ended", Detail: json.RawMessage(`{"step":1}`)},
			{At: at(end + 100), Kind: "step ended", Detail: json.RawMessage(`{"step":2}`)}, // as it was seen
		}
}

func TestProfileThatFits(t *testing.T) {
	var runs [][]ranStep
	for _, r := range [][3]int{{600, 20, 1200}, {500, 0, 1700}} {
		steps, err := ranSteps(ran(r[0], r[1], r[2]))
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, steps)
	}
	for margin, want := range map[int]string{0: "2@10m,5@28m20s", 10: "2@11m,5@31m10s"} {
		if got, err := fitting(runs, margin); err != nil || got.String() != want {
			t.Errorf("with %d %%: %v, %v, want %s", margin, got, err, want)
		}
	}
	var out bytes.Buffer
	j, _ := ran(600, 20, 1200)
	showRan(&out, j, runs[0])
	if got := strings.Join(strings.Fields(out.String()), " "); got != "# job 12 # STEP NODES ASKED LASTED IDLE AFTER # 1 2 10m 10m 20s # 2 5 30m 20m 0s (until the job's end)" {
		t.Errorf("shown as %q", got)
	}

	one, _ := ran(1, 1, 1)
	one.Past = one.Past[:1]
	short, err := ranSteps(one, nil)
	if err != nil || len(short) != 1 || short[0].lasted != 2 {
		t.Errorf("in its second step: %v, %v", short, err)
	}
	if _, err := fitting([][]ranStep{runs[0], short}, 0); err == nil || !strings.Contains(err.Error(), "2 and 1 steps") {
		t.Errorf("unlike jobs: %v", err)
	}
	other := []ranStep{runs[0][0], {nodes: 6, lasted: 1}}
	if _, err := fitting([][]ranStep{runs[0], other}, 0); err == nil || !strings.Contains(err.Error(), "step 2 has 5 nodes in one job and 6") {
		t.Errorf("other nodes: %v", err)
	}
	one.Past = nil
	if _, err := ranSteps(one, nil); err == nil {
		t.Error("a job that has not begun")
	}
}
