package sites

import (
	"testing"
)

// cases are what is tried on a site beside its probes.
type cases struct {
	site  Site
	quick bool // its first case is in make test, too
	try   func(*trial)
}

// TestSites: on real sites' configurations an evolving job runs as its profile says, or
// is refused in words.
func TestSites(t *testing.T) {
	for _, c := range []cases{
		{archer2(), false, onArcher2},
		{stackhpc(), true, onStackHPC},
		{deepops(), false, onDeepOps},
		{ulhpc(), true, onULHPC},
		{ugent(), false, onUGent},
		{gcp(), false, onGCP},
		{seawulf(), false, onSeaWulf},
	} {
		if !c.quick && !*all {
			continue
		}
		t.Run(c.site.Name, func(t *testing.T) {
			t.Parallel()
			c.try(boot(t, c.site))
		})
	}
}
