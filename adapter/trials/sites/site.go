package sites

import (
	"context"
	"fmt"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/trials/matrix"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// Site is a real site's Slurm.
type Site struct {
	Name   string
	Source string // where its configuration is published; "": in many places
	Trap   string // what is special there for a job that changes size

	Slurm   string            // release that the trap needs, of those of package matrix; "": any
	Options slurmtest.Options // accounting and job expansion are always on
	// Setup is run after the boot, before the first job; nil: nothing to do.
	Setup func(context.Context, *slurmtest.Cluster) error
	// Helper runs beside the cluster, as a part of the site, until ctx ends; nil: none.
	Helper func(context.Context, *slurmtest.Cluster) error

	Job     []string // what a user of the site must give
	Stock   []string // the same for a stock job of one node; nil: as Job
	Profile string   // that fits the site
	Probes  []Probe
}

// Probe is stock Slurm's answer on that site.
type Probe struct {
	User    int    // 1 and 2: unprivileged users; 0: root
	Command string // words between blanks; the last may be quoted: --wrap='sleep 5'
	Refused bool
	Says    string // a part of what is printed; of a refusal: of the error
}

// Sites returns the sites on which everything was tried.
func Sites() []Site {
	return []Site{archer2(), stackhpc(), deepops(), ulhpc(), ugent(), gcp(), seawulf()}
}

// Native reports whether the machine has the Slurm that the site needs.
func (s Site) Native(ctx context.Context) bool {
	return s.Slurm == "" || matrix.Release{Slurm: s.Slurm}.Native(ctx)
}

// Boot returns the options to boot it with.
func (s Site) Boot() slurmtest.Options {
	o := s.Options
	o.Accounting, o.PermitJobExpansion = true, true
	return o
}

// stock returns what a stock job of one node must give.
func (s Site) stock() []string {
	if s.Stock != nil {
		return s.Stock
	}
	return s.Job
}

// SetUp does what is done after the boot.
func (s Site) SetUp(ctx context.Context, c *slurmtest.Cluster) error {
	if s.Setup == nil {
		return nil
	}
	if err := s.Setup(ctx, c); err != nil {
		return fmt.Errorf("set-up of %s: %w", s.Name, err)
	}
	return nil
}

// accounting runs lines of sacctmgr, and then has Slurm read its configuration again:
// what names a QOS that did not exist at the boot is known then. change, if not nil,
// changes the configuration first.
func accounting(ctx context.Context, c *slurmtest.Cluster, change func(*slurmtest.Options), lines ...string) error {
	for _, line := range lines {
		if _, err := c.Run(ctx, slurmtest.Root, "sacctmgr", append([]string{"-i"}, strings.Fields(line)...)...); err != nil {
			return err
		}
	}
	if change == nil {
		change = func(*slurmtest.Options) {}
	}
	return c.Reconfigure(ctx, change)
}

// words parts a command; what is between single quotes is one word's part.
func words(command string) []string {
	var all []string
	var word strings.Builder
	quoted, begun := false, false
	for _, r := range command {
		switch {
		case r == '\'':
			quoted, begun = !quoted, true
		case r == ' ' && !quoted:
			if begun {
				all = append(all, word.String())
				word.Reset()
			}
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		all = append(all, word.String())
	}
	return all
}

// All returns Sites and those on which only the plain job was tried.
func All() []Site { return append(Sites(), more()...) }
