package main

import (
	"context"
	"os/user"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// observes checks what a sidecar that only observes sees. It needs no more than to read.
func (d *doctor) observes(ctx context.Context, sc slurmctl.Config) {
	d.add("mode", ok, "observe: the sidecar records what happens in "+d.cfg.ObserveDir()+", and changes nothing", "")
	name := d.cfg.SidecarUser
	if name == "" {
		me, err := user.Current()
		if err != nil {
			d.add("rights", warn, err.Error(), "")
			return
		}
		name = me.Username
	}
	slurmUser, _, _ := sc.SlurmUser()
	hidden, sees := sc.Hidden(), name == "root" || name == slurmUser
	if len(hidden) > 0 && !sees {
		level, err := d.slurm.AdminLevel(ctx, name)
		sees = err == nil && (level == "Operator" || level == "Administrator")
	}
	d.sight(name, sees, hidden)
}

// sight reports what PrivateData hides from a user, who sees it nevertheless or not.
func (d *doctor) sight(name string, sees bool, hidden []string) {
	text := strings.Join(hidden, ", ")
	switch {
	case len(hidden) == 0:
		d.add("rights", ok, "Slurm shows everything to all users", "")
	case sees:
		d.add("rights", ok, name+" sees what PrivateData hides from users: "+text, "")
	default:
		effect := "; what is hidden is not in the record, and plans do not know of it"
		if slices.Contains(hidden, "nodes") || slices.Contains(hidden, "partitions") {
			effect = "; a sidecar with this account cannot poll Slurm"
		}
		d.add("rights", warn, "PrivateData hides from "+name+": "+text+effect,
			"if the sidecar has this account: "+slurmctl.MakeOperator(name)+"; an operator may also change jobs, which a sidecar that observes does not")
	}
}
