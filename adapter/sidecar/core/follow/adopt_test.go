package follow

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// TestCorrectedStepHasNoOffer: an offer of a step that another sidecar ended, and that a copy of the database still has,
// does not pass to the next step, which may have other bounds.
func TestCorrectedStepHasNoOffer(t *testing.T) {
	b := statetest.New(t, 4)
	j := b.Evolving(7, 1, "1@10m,1@10m", time.Hour)
	j.Malleable = &row.Malleable{Max: []int{4, 1}}
	j.AddOffer(row.Offer{ID: 1, Kind: "grow", Nodes: 1, List: []string{"n4"}, State: refit.OfferAccepted, Accepted: 1}, func(row.Offer) bool { return true })
	if refit.OfferAt(j) == nil {
		t.Fatal("there is no offer")
	}
	correct(b.Core, j, 2, "another sidecar has led it on")
	if o := refit.OfferAt(j); j.Step != 2 || o != nil {
		t.Errorf("step %d, offer %+v", j.Step, o)
	}
}
