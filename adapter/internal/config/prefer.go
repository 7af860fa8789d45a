package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/planner"
)

// MostPreferWait bounds prefer_wait.
const MostPreferWait = time.Hour

// MayPrefer returns an error if the site does not allow an aim.
func (c Config) MayPrefer(a planner.Aim) error {
	if a == planner.NoAim || slices.Contains(c.AllowPrefer, a.String()) {
		return nil
	}
	if len(c.AllowPrefer) == 0 {
		return fmt.Errorf("%s: this site allows no such preference (allow_prefer): leave it out", a.Option())
	}
	return fmt.Errorf("%s: this site allows --prefer-%s only (allow_prefer): leave it out", a.Option(), strings.Join(c.AllowPrefer, " and --prefer-"))
}
