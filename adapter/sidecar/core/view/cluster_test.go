package view

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/google/go-cmp/cmp"
)

// TestClusterShown: nodes, the jobs of others and reservations, ours known as holds; nothing of evolving jobs, and
// made once a poll.
func TestClusterShown(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	c := &state.Core{}
	c.ByID = map[slurmctl.JobID]*state.Job{}
	if Cluster(c) != nil {
		t.Error("a cluster is shown before it was seen")
	}
	ours := &state.Job{Job: &row.Job{Owned: row.Owned{SlurmID: 12, UID: 1000}}}
	c.ByID[12], c.ByID[13] = ours, ours // 13 is a companion
	c.Snapshot = &state.Snapshot{Taken: at(100), Nodes: []slurmctl.Node{{Name: "n1", State: "idle", Partitions: []string{"main"}}, {Name: "n2", State: "down"}},
		Jobs: []slurmctl.Job{{ID: 7, Name: "stock", User: "bob", UID: 1, Account: "chem", Partition: "main", StartTime: at(50), EndTime: at(200), NodeList: []string{"n1", "n2"}},
			{ID: 8, Name: "pending"}, {ID: 12, NodeList: []string{"n1"}}, {ID: 13, NodeList: []string{"n2"}}},
		Holds: map[string]state.OwnName{"evo_13_2_1": {Job: 13, Step: 2, Attempt: 1}},
		Reservations: map[string]slurmctl.Reservation{
			"evo_13_2_1": {Name: "evo_13_2_1", Flags: []string{"IGNORE_JOBS", "OVERLAP"}, Start: at(150), End: at(160), Nodes: []string{"n2"}},
			"evo_9_1_1":  {Name: "evo_9_1_1", Start: at(150), End: at(160), Nodes: []string{"n2"}}, // the site's
		}}
	want := &api.Cluster{Taken: at(100), Nodes: []api.Node{{Name: "n1", State: "idle", Usable: true, Partitions: []string{"main"}}, {Name: "n2", State: "down"}},
		Others: []api.OtherJob{{ID: 7, Name: "stock", User: "bob", UID: 1, Account: "chem", Partition: "main", Start: at(50), End: at(200), NodeList: "n[1-2]"}},
		Reservations: []api.Reservation{{Name: "evo_13_2_1", Start: at(150), End: at(160), NodeList: "n2", Hold: true, Job: 12, Step: 2, UID: 1000},
			{Name: "evo_9_1_1", Start: at(150), End: at(160), NodeList: "n2"}}}
	got := Cluster(c)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if Cluster(c) != got {
		t.Error("it is made again although nothing was polled")
	}
}
