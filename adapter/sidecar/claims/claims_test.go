package claims

import (
	"slices"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/lease"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestClaims checks which reservations count as claims, and whose they are.
func TestClaims(t *testing.T) {
	made := time.Date(2060, 1, 1, 0, 0, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		start time.Time
		long  time.Duration
		want  []lease.Claim
	}{
		"evo_lease_7":                    {made, 63 * time.Second, []lease.Claim{{Epoch: 7, Holder: 5, Beat: 3}}},
		"evo_lease_8":                    {time.Unix(1_800_000_000, 0), time.Hour, []lease.Claim{{Epoch: 8, Holder: lease.Nobody}}},
		"evo_lease_9":                    {made, time.Minute, []lease.Claim{{Epoch: 9, Holder: lease.Nobody}}},
		"evo_lease_999999999999999":      {made, 63 * time.Second, []lease.Claim{{Epoch: 999999999999999, Holder: lease.Nobody}}},
		"evo_lease_99999999999999999999": {made, 63 * time.Second, nil},
		"evo_lease_007":                  {made, 63 * time.Second, nil},
		"evo_lease_x":                    {made, 63 * time.Second, nil}, "evo_lease_0": {made, 63 * time.Second, nil}, "evo_lease_-3": {made, 63 * time.Second, nil}, "other": {made, 63 * time.Second, nil},
	} {
		if got := Claims([]slurmctl.Reservation{{Name: name, Start: c.start, End: c.start.Add(c.long)}}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
