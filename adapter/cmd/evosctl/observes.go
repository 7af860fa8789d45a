package main

import (
	"context"
	"os/user"
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// observes checks what a sidecar that only observes sees with the caller's rights. It needs no more than to read.
func (d *doctor) observes(ctx context.Context, sc slurmctl.Config) {
	d.add("mode", ok, "observe: the sidecar records what happens in "+d.cfg.ObserveDir()+", and changes nothing", "")
	hidden := sc.Hidden()
	if len(hidden) == 0 {
		d.add("rights", ok, "Slurm shows everything to all users", "")
		return
	}
	me, err := user.Current()
	if err != nil {
		d.add("rights", warn, err.Error(), "")
		return
	}
	slurmUser, _, _ := sc.SlurmUser()
	level := "None"
	if me.Uid != "0" && me.Username != slurmUser {
		if level, err = d.slurm.AdminLevel(ctx, me.Username); err != nil {
			level = "None"
		}
	}
	text := strings.Join(hidden, ", ")
	switch {
	case me.Uid == "0", me.Username == slurmUser, level == "Operator", level == "Administrator":
		d.add("rights", ok, me.Username+" sees what PrivateData hides from users: "+text, "")
	default:
		d.add("rights", warn, "PrivateData hides from "+me.Username+": "+text+"; what is hidden is not in the record, and plans do not know of it",
			"sacctmgr modify user "+me.Username+" set adminlevel=operator (an operator may also change jobs; the sidecar does not); run doctor as the sidecar's user")
	}
}
