// Package drivemode names the ways in which jobs grow on Slurm.
package drivemode

import (
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

// Mode says how a job grows. The zero value means that the user has not chosen one.
type Mode string

// The drive modes. With Auto the sidecar chooses: merge where it works, otherwise companion.
const (
	Auto      Mode = "auto"
	Merge     Mode = "merge"
	Companion Mode = "companion"
	Chain     Mode = "chain"
)

// Parse returns the drive mode of that name.
func Parse(name string) (Mode, error) {
	switch m := Mode(name); m {
	case Auto, Merge, Companion, Chain:
		return m, nil
	}
	return "", fmt.Errorf("invalid drive mode %q: want auto, merge, companion, or chain", legible.Brief(name))
}
