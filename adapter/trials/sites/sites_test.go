package sites

import (
	"testing"
)

// cases lists what is tried on a site besides its probes.
type cases struct {
	site  Site
	quick bool // its first case is also in make test
	try   func(*trial)

	config string // further lines of evoslurm.yaml
}

// TestSites: on real sites' configurations an evolving job runs as its profile says, or
// is refused with the reason.
func TestSites(t *testing.T) {
	for _, c := range []cases{
		{site: archer2(), quick: true, try: onArcher2},
		{site: stackhpc(), quick: false, try: onStackHPC, config: "grace: 5s\n"},
		{site: deepops(), quick: true, try: onDeepOps},
		{site: ulhpc(), quick: false, try: onULHPC},
		{site: ugent(), quick: true, try: onUGent},
		{site: gcp(), quick: false, try: onGCP, config: powerConfig},
		{site: seawulf(), quick: false, try: onSeaWulf},
	} {
		if !c.quick && !*all {
			continue
		}
		t.Run(c.site.Name, func(t *testing.T) {
			t.Parallel()
			c.try(boot(t, c.site, c.config))
		})
	}
	if !*all {
		return
	}
	refused := map[string]string{ // with this in the words
		"submit limit": "MaxSubmitJobsPerUser", "CPUs limited": "configuration is not available",
		"addresses": "VSizeFactor", "cloud": "compute has 2", "no interactive jobs": "no interactive jobs here", "GPUs limited": "GrpTRES=gres/gpu=4",
		"moved into a narrower QOS": "where Slurm has put job",
	}
	over := map[string]string{"routed by size": "parallel"}
	own := map[string]func(*trial){"all partitions": onAllPartitions, "stepmgr": onStepMgr}
	for _, s := range more() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			if inRoot(t, s) {
				return
			}
			r := boot(t, s, "")
			if try := own[s.Name]; try != nil {
				try(r)
				return
			}
			r.run(s.Profile, func(r *trial) {
				if words, ok := refused[s.Name]; ok {
					r.beside(func() { r.refused(demand{}, words) })
				} else {
					r.evolve(demand{over: over[s.Name]})
				}
			})
		})
	}
}
