package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// addEnded adds ended jobs from ID `first` on, three in each second, in turn of three users.
func addEnded(t *testing.T, c *Controller, first, n int, began time.Time) {
	t.Helper()
	if err := c.store.Together(t.Context(), func(tx *store.Store) error {
		for i := first; i < first+n; i++ {
			j := &store.Job{Owned: row.Owned{SlurmID: uint32(i), Submitted: began, Name: "amr", User: "u" + string(rune('0'+i%3)), UID: uint32(2000 + i%3), Partition: "main"},
				Terms: row.Terms{Drive: "merge", Profile: planner.Profile{{Duration: 60, Nodes: 2}}},
				Life:  row.Life{State: row.Ended, Step: 1, Started: began, StepStarted: began, Ended: began.Add(time.Duration(i/3) * time.Second), EndState: "COMPLETED"}}
			if err := tx.AddJob(t.Context(), j); err != nil {
				return err
			}
			if err := tx.SetAllocation(t.Context(), j.ID, 1, began, 2, "n[1-2]"); err != nil {
				return err
			}
			if err := tx.SetAllocation(t.Context(), j.ID, 1, j.Ended, 0, ""); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// readHistory reads all pages, with a function after each.
func readHistory(t *testing.T, c *Controller, q api.HistoryQuery, each func()) map[uint32]api.Job {
	t.Helper()
	for found := map[uint32]api.Job{}; ; each() {
		h, err := c.History(t.Context(), q)
		if err != nil || len(h.Jobs) > api.MostHistory {
			t.Fatalf("a page of %d jobs, %v", len(h.Jobs), err)
		}
		for _, j := range h.Jobs {
			if _, twice := found[j.ID]; twice {
				t.Fatalf("job %d is found twice", j.ID)
			}
			found[j.ID] = j
		}
		if h.Next == "" {
			return found
		}
		if q.Before, err = api.ParsePlace(h.Next); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHistory checks that 10,000 ended jobs are found in pages, each once, although others end meanwhile, and that a
// user finds the jobs of that user.
func TestHistory(t *testing.T) {
	const jobs = 10_000
	c, began := newIdle(t), time.Unix(1_700_000_000, 0)
	addEnded(t, c, 1, jobs, began)
	all := jobs
	found := readHistory(t, c, api.HistoryQuery{}, func() {
		addEnded(t, c, all+1, 7, began)
		all += 7
	})
	for id := uint32(1); id <= jobs; id++ {
		if _, ok := found[id]; !ok {
			t.Fatalf("job %d is missing", id)
		}
	}
	if j := found[7]; j.State != "ended" || j.EndState != "COMPLETED" || j.Profile != "2@1m" || len(j.Past) != 1 || j.Past[0].NodeList != "n[1-2]" || !j.End.Equal(began.Add(2*time.Second)) {
		t.Errorf("job 7: %+v", j)
	}
	owner, nothing := uint32(2001), func() {}
	for name, q := range map[string]struct {
		api.HistoryQuery
		want int
	}{
		"own": {api.HistoryQuery{Owner: &owner, End: began.Add(time.Hour), Start: began.Add(time.Second)}, (all - 1) / 3}, "user": {api.HistoryQuery{Users: []string{"u1", "2002"}, End: began.Add(time.Hour)}, 2 * (all + 1) / 3},
		"jobs": {api.HistoryQuery{Jobs: []uint32{5, 9, 99_999}}, 2}, "others": {api.HistoryQuery{Jobs: []uint32{5}, Owner: &owner}, 0}, "name": {api.HistoryQuery{Names: []string{"x"}}, 0},
		"none": {api.HistoryQuery{End: began}, 0}, "small pages": {api.HistoryQuery{Jobs: []uint32{1, 2, 3, 4}, Limit: 1}, 4},
	} {
		if got := readHistory(t, c, q.HistoryQuery, nothing); len(got) != q.want {
			t.Errorf("%s: %d jobs, want %d", name, len(got), q.want)
		}
	}
}

// TestHistoryOfLargeJobs checks that a page of large jobs has fewer of them, and never none.
func TestHistoryOfLargeJobs(t *testing.T) {
	c, began := newIdle(t), time.Unix(1_700_000_000, 0)
	addEnded(t, c, 1, 6, began)
	plan := make([]store.Span, 2000)
	for i := range plan {
		plan[i] = store.Span{Step: i + 1, Start: began, End: began, Nodes: 1, NodeList: strings.Repeat("n", api.HistoryBytes/1500)}
	}
	for id := int64(1); id <= 6; id++ {
		must.OK(t, c.store.SetProfile(t.Context(), id, make(planner.Profile, 0)))
		profile := planner.Profile{}
		for range plan {
			profile = append(profile, planner.Step{Duration: 1, Nodes: 1})
		}
		must.OK(t, c.store.SetProfile(t.Context(), id, profile))
		must.OK(t, c.store.SetPlans(t.Context(), map[int64][]store.Span{id: plan}))
	}
	var q api.HistoryQuery
	for id := uint32(6); id > 0; id-- {
		h, err := c.History(t.Context(), q)
		if err != nil || len(h.Jobs) != 1 || h.Jobs[0].ID != id || len(h.Jobs[0].Plan) != len(plan) || (h.Next == "") != (id == 1) {
			t.Fatalf("job %d: %d jobs, next %q, %v", id, len(h.Jobs), h.Next, err)
		}
		q.Before, _ = api.ParsePlace(h.Next)
	}
}
