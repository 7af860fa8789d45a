package store

import (
	"encoding/json"
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// offersText returns a job's offers as its row has them.
func offersText(offers []row.Offer) string {
	if len(offers) == 0 {
		return ""
	}
	text, err := json.Marshal(offers)
	if err != nil { // strings and numbers
		return ""
	}
	return string(text)
}

func parseOffers(text string) (offers []row.Offer, err error) {
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &offers); err != nil {
		return nil, fmt.Errorf("offers: %w", err)
	}
	for _, o := range offers {
		if o.Nodes < 0 || o.Nodes > len(o.List) || o.Accepted < 0 || o.Accepted > len(o.List) {
			return nil, fmt.Errorf("offers: %d of %d nodes", max(o.Nodes, o.Accepted), len(o.List))
		}
	}
	return offers, nil
}
