package main

import (
	"context"
	"fmt"
	"os/user"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// rateLimit checks whether slurmctld limits the requests of the sidecar's account.
func (d *doctor) rateLimit(sc slurmctl.Config) {
	const name = "rate limit"
	limit, on := sc.RateLimit()
	if !on {
		d.add(name, ok, "slurmctld limits no user's requests (rl_enable)", "")
		return
	}
	detail := fmt.Sprintf("slurmctld answers %d requests of a user at once, and then %d every %v (rl_enable)", limit.Bucket, limit.Refill, limit.Period)
	me, err := user.Current()
	if err != nil || !sc.Limits(me.Username) {
		d.add(name, ok, detail+"; root and SlurmUser are exempt", "")
		return
	}
	d.add(name, warn, fmt.Sprintf("%s, also of %s: polls come at least %v apart, and many changes at once wait", detail, me.Username, 2*limit.Time(3)),
		"run the sidecar as SlurmUser, or raise rl_bucket_size and rl_refill_rate in SlurmctldParameters")
}

// federation checks that the cluster is in no federation.
func (d *doctor) federation(ctx context.Context, sc slurmctl.Config) {
	if sc.AccountingStorageType() != "slurmdbd" {
		return
	}
	switch name, err := d.slurm.Federation(ctx); {
	case err != nil:
		d.add("federation", warn, err.Error(), "")
	case name != "":
		d.add("federation", fail, slurmctl.Federated(name).Error(), "take the cluster out of the federation: sacctmgr modify federation "+name+" set clusters-="+sc.ClusterName)
	default:
		d.add("federation", ok, "none", "")
	}
}
