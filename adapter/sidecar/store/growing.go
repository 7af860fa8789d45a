package store

import (
	"encoding/json"
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// growingText returns a job's growth on demand in the form of its row.
func growingText(g *row.Growing) string {
	if g == nil {
		return ""
	}
	text, _ := json.Marshal(g) // numbers
	return string(text)
}

func parseGrowing(text string) (*row.Growing, error) {
	if text == "" {
		return nil, nil
	}
	g := &row.Growing{}
	if err := json.Unmarshal([]byte(text), g); err != nil {
		return nil, fmt.Errorf("growing: %w", err)
	}
	return g, nil
}
