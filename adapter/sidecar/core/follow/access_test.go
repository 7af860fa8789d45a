package follow

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
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
		"queued, denied user":       {config.Names{Users: []string{"user"}}, nil, row.Queued, true},
		"queued, another user":      {config.Names{Users: []string{"other"}}, nil, row.Queued, false},
		"queued, moved since":       {config.Names{Partitions: []string{"debug"}}, func(r *slurmctl.Job) { r.Partition = "debug" }, row.Queued, true},
		"queued, denied group":      {config.Names{Groups: []string{"students"}}, nil, row.Queued, true},
		"running, denied user":      {config.Names{Users: []string{"user"}}, func(r *slurmctl.Job) { r.State = slurmctl.Running }, row.Running, false},
		"being started, denied too": {config.Names{Users: []string{"user"}}, nil, row.Starting, false},
	} {
		b := statetest.New(t, 4)
		j := b.Evolving(9, 1, "1@10m,2@10m", time.Hour)
		r := b.Seen.ByID[9]
		j.State, j.Groups = c.state, []string{"students"}
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
