package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

func TestOffers(t *testing.T) {
	for _, offers := range [][]row.Offer{nil, {{ID: 7, Kind: "shrink", Mandatory: true, Nodes: 2, Had: 6, List: []string{"n3", "n4", "n5"}, Why: "stock job 9 waits",
		Made: 100, Deadline: 130, State: "accepted", Accepted: 3, Answered: 110, Warned: true, Enforced: true, Closed: 111, Note: "no answer"}, {ID: 8, List: []string{"n1"}, Nodes: 1}}} {
		got, err := parseOffers(offersText(offers))
		if diff := cmp.Diff(offers, got); err != nil || diff != "" {
			t.Errorf("%v, -want +got:\n%s", err, diff)
		}
	}
	for _, text := range []string{"[", `[{"nodes": 1}]`, `[{"accepted": -1}]`} {
		if got, err := parseOffers(text); err == nil {
			t.Errorf("%s is read as %+v", text, got)
		}
	}
}
