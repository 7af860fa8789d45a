package act

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/pace"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestTwin checks which hold proves that another sidecar drives the cluster. This one began three minutes ago, and the
// last hold that it made for job 1 was its third.
func TestTwin(t *testing.T) {
	flags := msg.HoldFlags
	for name, c := range map[string]struct {
		hold   slurmctl.Reservation
		before bool          // the last poll had it
		began  time.Duration // when this sidecar began
		want   bool
	}{
		"a fourth one":                      {slurmctl.Reservation{Name: "evo_1_2_4", Flags: flags}, false, 3 * time.Minute, true},
		"its own third one":                 {slurmctl.Reservation{Name: "evo_1_2_3", Flags: flags}, false, 3 * time.Minute, false},
		"a fourth one from before":          {slurmctl.Reservation{Name: "evo_1_2_4", Flags: flags}, true, 3 * time.Minute, false},
		"a command of a killed sidecar":     {slurmctl.Reservation{Name: "evo_1_2_4", Flags: flags}, false, twinGrace, false},
		"a second after that":               {slurmctl.Reservation{Name: "evo_1_2_4", Flags: flags}, false, twinGrace + time.Second, true},
		"of a job that is not known":        {slurmctl.Reservation{Name: "evo_9_2_4", Flags: flags}, false, 3 * time.Minute, false},
		"the site's, with such a name":      {slurmctl.Reservation{Name: "evo_1_2_4"}, false, 3 * time.Minute, false},
		"with a number beyond all attempts": {slurmctl.Reservation{Name: "evo_1_2_9999999999", Flags: flags}, false, 3 * time.Minute, false},
	} {
		b := statetest.New(t, 2)
		b.Evolving(1, 1, "1@1m,2@1m", time.Hour).Attempt = 3
		b.Started = b.Now.Add(-c.began)
		if c.before {
			b.Seen.Reservations[c.hold.Name] = c.hold
		}
		next := msg.Observation{Begun: b.Now, Nodes: b.Seen.Nodes, Reservations: []slurmctl.Reservation{c.hold}}
		if err := WatchTwin(b.Core, pace.NewSnapshot(b.Core, next)); (err != nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		if next.Reservations = nil; (WatchTwin(b.Core, pace.NewSnapshot(b.Core, next)) != nil) != c.want {
			t.Errorf("%s: it acts again although nobody has restarted it", name)
		}
	}
}
