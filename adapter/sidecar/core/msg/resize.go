package msg

import (
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Unready returns in words why an expander that has nodes cannot be used yet, or "". If the sidecar merged an
// expander whose nodes do not come up, Slurm would end the base job. An expander with a step manager rejects
// steps until its prologs have ended.
func Unready(k *slurmctl.Job, stepMgr bool) string {
	switch {
	case k.State == slurmctl.Configuring:
		return "waits for nodes that Slurm is switching on"
	case k.State == slurmctl.Suspended:
		return "waits for nodes on which Slurm has suspended it"
	case stepMgr && k.InProlog():
		return "waits for the prolog on the nodes that it gets"
	}
	return ""
}
