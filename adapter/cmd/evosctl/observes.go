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
	me, err := user.Current()
	if err != nil {
		d.add("rights", warn, err.Error(), "")
		return
	}
	slurmUser, _, _ := sc.SlurmUser()
	hidden, sees := sc.Hidden(), me.Uid == "0" || me.Username == slurmUser
	if len(hidden) > 0 && !sees {
		level, err := d.slurm.AdminLevel(ctx, me.Username)
		sees = err == nil && (level == "Operator" || level == "Administrator")
	}
	d.sight(me.Username, sees, hidden)
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
		d.add("rights", warn, "PrivateData hides from "+name+": "+text+"; what is hidden is not in the record, and plans do not know of it",
			"run doctor as the sidecar's user; if it is "+name+": sacctmgr modify user "+name+" set adminlevel=operator (an operator may also change jobs; the sidecar does not)")
	}
}
