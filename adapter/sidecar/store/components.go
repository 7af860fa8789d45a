package store

import (
	"encoding/json"
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// componentsText returns the components of a job as a row has them.
func componentsText(all []row.Component) string {
	if len(all) == 0 {
		return ""
	}
	text, _ := json.Marshal(all) // names and numbers
	return string(text)
}

func parseComponents(text string) (all []row.Component, err error) {
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("components: %w", err)
	}
	return all, nil
}

// checkComponents returns an error if the components of a job have other steps than its profile.
func checkComponents(j *Job) error {
	for _, c := range j.Components {
		if len(c.Sizes) != len(j.Profile) {
			return fmt.Errorf("component %s of job %d: %d steps for a profile of %d", c.Name, j.SlurmID, len(c.Sizes), len(j.Profile))
		}
	}
	return nil
}
