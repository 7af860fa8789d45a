package msg

import (
	"time"
)

// ConfigFor is how long the sidecar relies on the configuration that it read from Slurm.
const ConfigFor = 5 * time.Minute
