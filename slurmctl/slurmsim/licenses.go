package slurmsim

import (
	"cmp"
	"slices"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// licensesOf returns what a job asks for, which is valid.
func licensesOf(j *job) []slurmctl.License {
	all, _ := slurmctl.ParseLicenses(j.Licenses)
	return all
}

// total returns how many of a licence there are; 0 if it does not exist.
func (c *Cluster) total(name string) int {
	for _, l := range c.options.Licenses {
		if l.Name == name {
			return l.Count
		}
	}
	return 0
}

// checkLicenses refuses a job that asks for licences that do not exist, or for more than there are (license_validate).
func checkLicenses(c *Cluster, asked string) error {
	all, err := slurmctl.ParseLicenses(asked)
	if err != nil || slices.ContainsFunc(all, func(l slurmctl.License) bool { return l.Count > c.total(l.Name) }) {
		return refusal("Invalid license specification")
	}
	return nil
}

// licensesAway reports whether licences that a pending job asks for are in use (license_job_test). A job that completes has
// returned them.
func licensesAway(c *Cluster, j *job) bool {
	if j.Licenses == "" {
		return false
	}
	used := map[string]int{}
	for _, other := range c.Active {
		for _, l := range licensesOf(other) {
			used[l.Name] += l.Count
		}
	}
	return slices.ContainsFunc(licensesOf(j), func(l slurmctl.License) bool { return used[l.Name]+l.Count > c.total(l.Name) })
}

// SetLicenses changes which licences there are, as scontrol reconfigure does. Running jobs keep theirs.
func (c *Cluster) SetLicenses(all ...slurmctl.License) {
	c.options.Licenses = slices.Clone(all)
	c.changed()
	c.kick()
}

// stock returns the licences as slurmctl.Client.Licenses does.
func (c *Cluster) stock() []slurmctl.LicenseStock {
	var all []slurmctl.LicenseStock
	for _, l := range c.options.Licenses {
		all = append(all, slurmctl.LicenseStock{License: l})
	}
	slices.SortFunc(all, func(a, b slurmctl.LicenseStock) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
