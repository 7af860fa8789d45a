package follow

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestBanish: lists that change refuse jobs that have not begun, also those that their users have moved since,
// and no others.
func TestBanish(t *testing.T) {
	for name, c := range map[string]struct {
		deny   config.Names
		change func(r *slurmctl.Job)
		state  row.State
		want   bool
	}{
		"queued, denied user":               {config.Names{Users: []string{"user"}}, nil, row.Queued, true},
		"queued, another user":              {config.Names{Users: []string{"other"}}, nil, row.Queued, false},
		"queued, moved since":               {config.Names{Partitions: []string{"debug"}}, func(r *slurmctl.Job) { r.Partition = "debug" }, row.Queued, true},
		"a chain, a later link moved since": {config.Names{Partitions: []string{"debug"}}, func(*slurmctl.Job) {}, row.Queued, true},
		"queued, denied group":              {config.Names{Groups: []string{"students"}}, nil, row.Queued, true},
		"running, denied user":              {config.Names{Users: []string{"user"}}, func(r *slurmctl.Job) { r.State = slurmctl.Running }, row.Running, false},
		"being started, denied too":         {config.Names{Users: []string{"user"}}, nil, row.Starting, false},
	} {
		b := statetest.New(t, 4)
		j := b.Evolving(9, 1, "1@10m,2@10m", time.Hour)
		r := b.Seen.ByID[9]
		j.State, j.Groups = c.state, []string{"students"}
		if strings.HasPrefix(name, "a chain") {
			j.Chain, j.Drive = []slurmctl.JobID{9, 10}, "chain"
			state.SetMode(b.Core, j)
			link := b.Stock(10, 1, 2, time.Hour)
			link.UID, link.Partition = j.UID, "debug"
		}
		Banish(b.Core, b.Seen)
		if len(b.Active) != 1 {
			t.Fatalf("%s: refused without any list", name)
		}
		before := b.Config
		if b.Config.Deny = c.deny; c.change != nil {
			c.change(r)
		}
		if adopt.AccessChanged(b.Core, before); j.State == row.Queued && len(c.deny.Groups) > 0 {
			if j.Groups != nil {
				t.Errorf("%s: the user's groups are not read again", name)
			}
			j.Groups = []string{"students"}
		}
		Banish(b.Core, b.Seen)
		if got := b.Refused[9]; (len(b.Active) == 0) != c.want || got.Was != c.want || c.want && !strings.Contains(got.Reason, "denies evolving jobs") {
			t.Errorf("%s: %d active jobs, refused: %+v", name, len(b.Active), got)
		}
		if adopt.AccessChanged(b.Core, before); len(b.Refused) > 0 {
			t.Errorf("%s: still refused after another change", name)
		}
	}
}

// TestRequeueOfDeniedGroup: if other groups are denied while a job runs, its user's groups are read again once it is requeued.
func TestRequeueOfDeniedGroup(t *testing.T) {
	b := statetest.New(t, 4)
	j := b.Evolving(9, 1, "1@10m,2@10m", time.Hour)
	b.Runs(j, "n1")
	j.Groups = []string{}
	before := b.Config
	b.Config.Deny.Groups = []string{"students"}
	if adopt.AccessChanged(b.Core, before); j.Asked == nil {
		t.Error("the request of a running job is read again")
	}
	if j.Requeue(b.Now); j.Asked != nil {
		t.Error("the groups that count now are not read")
	}
}

// TestParkedAgain: a job that is denied after its planned start was written into Slurm does not start then, whatever changes
// before, unless the site lets such jobs go.
func TestParkedAgain(t *testing.T) {
	for undriven, want := range map[config.Undriven]string{config.UndrivenKeep: "update 9", config.UndrivenCancel: "update 9", config.UndrivenRelease: ""} {
		b := statetest.New(t, 4)
		j := b.Evolving(9, 1, "1@10m,2@10m", time.Hour)
		r := b.Seen.ByID[9]
		b.Known[9] = row.Known{ID: j.ID, UID: j.UID, Submitted: j.Submitted}
		r.Comment, r.StartTime, j.Groups = "evo:v2;p=1@10m,2@10m;;", b.Now.Add(2*time.Minute), []string{}
		before := b.Config
		b.Config.Undriven, b.Config.Deny.Users = undriven, []string{"user"}
		Banish(b.Core, b.Seen)
		adopt.AccessChanged(b.Core, before)
		adopt.AdoptIfAsked(b.Core, b.Seen, r) // refused again
		adopt.LeaveRefused(b.Core, b.Seen)
		if got := strings.Join(b.Tasks(), ", "); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q, want %q", undriven, got, want)
		}
		if want == "" {
			continue
		}
		j, p, o := b.Ends(nil, nil)
		adopt.SettleLeave(b.Core, j, p, o) // its user chooses another start
		b.Later(time.Minute)
		r.StartTime = b.Now.Add(time.Hour)
		if adopt.LeaveRefused(b.Core, b.Seen); len(b.Tasks()) > 0 {
			t.Errorf("%s: %q after it was parked again", undriven, b.Tasks())
		}
	}
}
