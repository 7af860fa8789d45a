package request

import (
	"fmt"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/planner"
)

// AimOptions lists the options for what a job wants of its own placement. They have no values.
var AimOptions = []string{"prefer-start", "prefer-waste", "prefer-near"}

// setAim sets the aim of an option.
func (r *Request) setAim(name string) error {
	aim, err := planner.ParseAim(strings.TrimPrefix(name, "prefer-"))
	if err == nil && r.Aim != planner.NoAim && r.Aim != aim {
		err = fmt.Errorf("%s and %s exclude each other: leave one of them out", r.Aim.Option(), aim.Option())
	}
	r.Aim = aim
	return err
}

// aimField returns the marker's field for an aim.
func aimField(a planner.Aim) string {
	if a == planner.NoAim {
		return ""
	}
	return ";a=" + a.String()
}

// CheckAim returns an error if an aim does not go with the rest of the request.
func (r Request) CheckAim() error {
	if r.Aim != planner.NoAim && r.Moldable != nil {
		return fmt.Errorf("%s does not go with --moldable: --moldable-by says what such a job prefers", r.Aim.Option())
	}
	return nil
}

// IsFlag reports whether an option of evosbatch and #EVO lines has no value.
func IsFlag(name string) bool { return name == "best-effort" || IsAim(name) }

// IsAim reports whether an option is one of AimOptions.
func IsAim(name string) bool { return slices.Contains(AimOptions, name) }
