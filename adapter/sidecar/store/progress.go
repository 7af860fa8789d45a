package store

import (
	"encoding/json"
	"fmt"

	"github.com/evoslurm/evoslurm/planner/malleable"
)

// progressText returns a job's progress in the form of its row.
func progressText(p *malleable.Progress) string {
	if p == nil {
		return ""
	}
	text, err := json.Marshal(p)
	if err != nil { // finite numbers
		return ""
	}
	return string(text)
}

func parseProgress(text string) (*malleable.Progress, error) {
	if text == "" {
		return nil, nil
	}
	p := &malleable.Progress{}
	if err := json.Unmarshal([]byte(text), p); err != nil {
		return nil, fmt.Errorf("progress: %w", err)
	}
	return p, nil
}
