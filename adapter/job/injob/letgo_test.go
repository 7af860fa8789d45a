package injob

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// shown is a Slurm that shows some jobs.
type shown struct{ jobs []slurmctl.Job }

func (s shown) JobsByID(context.Context, ...slurmctl.JobID) ([]slurmctl.Job, error) {
	return s.jobs[:1], nil
}

func (s shown) Jobs(context.Context) ([]slurmctl.Job, error) { return s.jobs, nil }

func (s shown) Nodes(context.Context) ([]slurmctl.Node, []slurmctl.Partition, error) {
	return []slurmctl.Node{{Name: "n1", CPUs: 4}, {Name: "n2", CPUs: 8}}, nil, nil
}

// TestLooks: a call looks into Slurm 5 to 10 seconds after the sidecar has gone and then once a minute, however rarely it
// tries to reach the sidecar.
func TestLooks(t *testing.T) {
	before := slurm
	defer func() { slurm = before }()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			begun, looks := time.Now(), []time.Duration{}
			slurm = looked{func() string {
				if looks = append(looks, time.Since(begun)); len(looks) < 3 {
					return ""
				}
				return request.LetGo("")
			}}
			client, err := api.NewClient("unix://"+t.TempDir()+"/none", api.Munge{})
			if err != nil {
				t.Fatal(err)
			}
			EndIfLetGo(client, 7)
			if _, err := client.Allocation(t.Context(), 7); !errors.Is(err, errLetGo) || looks[0] < 5*time.Second || looks[0] > 10*time.Second || looks[1] != looks[0]+time.Minute || looks[2] != looks[1]+time.Minute {
				t.Errorf("looks at %v, %v", looks, err)
			}
		})
	}
}

// looked is a Slurm whose job has a comment.
type looked struct{ comment func() string }

func (l looked) JobsByID(_ context.Context, ids ...slurmctl.JobID) ([]slurmctl.Job, error) {
	return []slurmctl.Job{{ID: ids[0], UID: uint32(os.Geteuid()), Comment: l.comment()}}, nil
}
func (looked) Jobs(context.Context) ([]slurmctl.Job, error) { return nil, nil }
func (looked) Nodes(context.Context) ([]slurmctl.Node, []slurmctl.Partition, error) {
	return nil, nil, nil
}

// TestLetGo: without a sidecar, a job that was let go has what Slurm says, companions included, and nothing comes. The
// comment of another user's job says nothing about one's own.
func TestLetGo(t *testing.T) {
	me := uint32(os.Geteuid())
	before := slurm
	defer func() { slurm = before }()
	base := slurmctl.Job{ID: 7, UID: me, State: slurmctl.Running, NodeList: []string{"n1"}, Comment: request.LetGo("")}
	all := []slurmctl.Job{base, {ID: 8, UID: me, Name: "evo_7_2_1", Comment: request.ExpanderMark, State: slurmctl.Running, NodeList: []string{"n2"}},
		{ID: 9, UID: me + 1, Name: "evo_7_2_2", Comment: request.ExpanderMark, State: slurmctl.Running, NodeList: []string{"n3"}}, {ID: 10, UID: me, Name: "evo_7_2_3", State: slurmctl.Running}}
	slurm = shown{all}
	a, err := OrLetGo(t.Context(), 7, 2, api.Allocation{}, errLetGo)
	if err != nil || !a.Done || a.Step != 2 || a.Steps != 2 || !slices.Equal(NodesOf(a), []string{"n1", "n2"}) || a.Parts[1].CPUs[0] != 8 {
		t.Errorf("%+v, %v", a, err)
	}
	if e, err := ExportsOf(a, func(string) string { return "" }); err != nil || !slices.Contains(e.Set, Var{VarDone, "1"}) {
		t.Errorf("%+v, %v", e, err)
	}
	other := errors.New("another error")
	if _, err := OrLetGo(t.Context(), 7, 2, a, other); err != other {
		t.Error(err)
	}
	base.UID = me + 1
	slurm = shown{[]slurmctl.Job{base}}
	if _, err := own(t.Context(), 7); err == nil {
		t.Error("another user's job is taken for one's own")
	}
}
