package ran

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// run returns a job of two steps: the application ended the first after first seconds and got the
// next one's nodes wait seconds later; the second lasted until the job's end.
func run(first, wait, second int) (api.Job, []api.Event) {
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

// TestWholeSeconds: a job that the sidecar still has lasted as long as the same job in the database, which has whole seconds.
func TestWholeSeconds(t *testing.T) {
	want, err := Steps(run(500, 0, 1700))
	must.OK(t, err)
	live, events := run(500, 0, 1700)
	live.Past[0].Start = live.Past[0].Start.Add(700 * time.Millisecond)
	live.Past[1].End = live.Past[1].End.Add(900 * time.Millisecond)
	events[1].At = events[1].At.Add(300 * time.Millisecond)
	if got, err := Steps(live, events); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

func TestProfileThatFits(t *testing.T) {
	var runs [][]Step
	for _, r := range [][3]int{{600, 20, 1200}, {500, 0, 1700}} {
		steps, err := Steps(run(r[0], r[1], r[2]))
		must.OK(t, err)
		runs = append(runs, steps)
	}
	for margin, want := range map[int]string{0: "2@10m,5@28m20s", 10: "2@11m,5@31m10s"} {
		if got, err := Fitting(runs, margin); err != nil || got.String() != want {
			t.Errorf("with %d %%: %v, %v, want %s", margin, got, err, want)
		}
	}
	one, _ := run(1, 1, 1)
	one.Past = one.Past[:1]
	short, err := Steps(one, nil)
	if err != nil || len(short) != 1 || short[0].Lasted != 2 {
		t.Errorf("in its second step: %v, %v", short, err)
	}
	if _, err := Fitting([][]Step{runs[0], short}, 0); err == nil || !strings.Contains(err.Error(), "2 and 1 steps") {
		t.Errorf("unlike jobs: %v", err)
	}
	other := []Step{runs[0][0], {Nodes: 6, Lasted: 1}}
	if _, err := Fitting([][]Step{runs[0], other}, 0); err == nil || !strings.Contains(err.Error(), "step 2 has 5 nodes in one job and 6") {
		t.Errorf("other nodes: %v", err)
	}
	one.Past = nil
	if _, err := Steps(one, nil); err == nil {
		t.Error("a job that has not begun")
	}
}

// recorded is a sidecar's memory.
type recorded struct {
	jobs   []api.Job
	events map[uint32][]api.Event
}

func (r recorded) History(context.Context, api.HistoryQuery) (api.History, error) {
	return api.History{Jobs: slices.Clone(r.jobs)}, nil
}
func (r recorded) Events(_ context.Context, q api.EventQuery) ([]api.Event, error) {
	return r.events[q.Job], nil
}

// TestLastRuns checks that only the user's completed runs of that name with the steps of the last
// one count.
func TestLastRuns(t *testing.T) {
	r := recorded{events: map[uint32][]api.Event{}}
	add := func(id uint32, name string, uid uint32, state string, first, second int, change func(*api.Job)) {
		j, events := run(first, 0, second)
		j.ID, j.Name, j.UID, j.State, j.EndState, j.End = id, name, uid, "ended", state, time.Unix(1795368509+int64(id)*10000, 0)
		if change != nil {
			change(&j)
		}
		r.jobs, r.events[id] = append(r.jobs, j), events
	}
	for i, length := range []int{900, 100, 200, 300, 400} {
		add(uint32(10+i), "amr", 7, "COMPLETED", length, 1000, nil) // the first is the sixth last: too old
	}
	add(20, "amr", 7, "COMPLETED", 500, 1000, nil)
	add(21, "amr", 8, "COMPLETED", 5000, 1000, nil)
	add(22, "cfd", 7, "COMPLETED", 5000, 1000, nil)
	add(23, "amr", 7, "FAILED", 5000, 1000, nil)
	add(24, "amr", 7, "COMPLETED", 5000, 1000, func(j *api.Job) { j.Past = j.Past[:1] })
	add(25, "one", 7, "COMPLETED", 600, 1200, nil)
	add(26, "short", 7, "COMPLETED", 600, 1200, func(j *api.Job) { j.Past = j.Past[:1] })
	add(9, "one", 7, "COMPLETED", 600, 1200, func(j *api.Job) { j.Profile = "3@10m"; j.Past = j.Past[:1] })
	for name, want := range map[string]string{
		"amr": "2@8m45s,5@17m30s 2@8m45s,5@17m30s, by jobs 20, 14, 13, 12, 11 (evosctl profile has how long each step lasted; 5 % are added)",
		"one": "2@10m30s,5@21m 2@10m30s,5@21m, by job 25 (evosctl profile has how long each step lasted; 5 % are added)",
	} {
		if p, said, err := Last(context.Background(), r, 7, name); err != nil || p.String()+" "+said != want {
			t.Errorf("%s: %v, %q, %v", name, p, said, err)
		}
	}
	for name, want := range map[string]string{"none": `no job of yours with the name "none" has completed`, "short": "job 26 did not go through all its steps"} {
		if _, _, err := Last(context.Background(), r, 7, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
