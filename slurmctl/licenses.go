package slurmctl

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	// MostLicenses is the largest count of a licence: Slurm has 32 bits for it.
	MostLicenses = math.MaxInt32
	// MaxLicenseNames bounds how many licences a job or a cluster may have here.
	MaxLicenseNames = 1000
)

// License is how many of a licence a job asks for, or a cluster has.
type License struct {
	Name  string // "matlab", or "matlab@server" of a remote one
	Count int
}

// LicenseStock is a licence as Slurm counts it.
type LicenseStock struct {
	License
	Away   int  // of a remote licence: how many others than this cluster's jobs keep from it, as last reported to Slurm
	Spread bool // a hierarchical resource (25.05 and later): each part of the cluster has a count of its own
}

// ParseLicenses reads what a user asks for with --licenses, or what squeue shows for it, sorted by name: "foo", "foo:2",
// "foo@server:2", separated by commas or semicolons. Slurm adds up what is named twice. It takes a count of 0 for
// no licence, and cuts one that its 32 bits cannot hold (24.11: "foo:4294967297" is "foo:1"). From 24.11 on, "=" comes before a
// count as well; from 25.05 on, a job may want one of several licences ("a|b") or those of some nodes ("a(n1)").
func ParseLicenses(s string) ([]License, error) {
	if none(s) {
		return nil, nil
	}
	if strings.ContainsAny(s, "|(") {
		return nil, fmt.Errorf("%q: a choice of licences cannot be planned: name those that the job uses", oneLine(s, 60))
	}
	count := map[string]int{}
	for one := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ',' || r == ';' }) {
		name, n := one, 1
		if at := strings.IndexAny(one, ":="); at >= 0 {
			number, err := strconv.ParseUint(one[at+1:], 10, 31)
			if name = one[:at]; err != nil || number == 0 {
				return nil, fmt.Errorf("%q is no count of a licence: give a number from 1 to %d", oneLine(one, 60), MostLicenses)
			}
			n = int(number)
		}
		switch {
		case name == "" || strings.ContainsAny(name, " \t\r\n"):
			return nil, fmt.Errorf("%q names no licence: write NAME:COUNT, separated by commas", oneLine(one, 60))
		case count[name] > MostLicenses-n:
			return nil, fmt.Errorf("more than %d of licence %q", MostLicenses, oneLine(name, 60))
		}
		if count[name] += n; len(count) > MaxLicenseNames {
			return nil, fmt.Errorf("more than %d licences", MaxLicenseNames)
		}
	}
	all := make([]License, 0, len(count))
	for _, name := range slices.Sorted(maps.Keys(count)) {
		all = append(all, License{name, count[name]})
	}
	return all, nil
}

// Licenses returns the licences that Slurm counts, sorted by name, by one scontrol.
func (c *Client) Licenses(ctx context.Context) ([]LicenseStock, error) {
	out, err := c.output(ctx, "scontrol", "--oneliner", "show", "licenses")
	if err != nil {
		return nil, err
	}
	return parseLicenseStock(out)
}

// parseLicenseStock reads one licence per line. From 25.05 on, a hierarchical resource has a line for each of its parts.
func parseLicenseStock(out string) ([]LicenseStock, error) {
	var all []LicenseStock
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "LicenseName=") {
			continue // "No licenses configured in Slurm."
		}
		l, err := parseStock(line)
		if err == nil && len(all) == MaxLicenseNames {
			err = fmt.Errorf("more than %d licences", MaxLicenseNames)
		}
		if err != nil {
			return nil, fmt.Errorf("licence %s: %w", oneLine(line, 60), err)
		}
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(a, b LicenseStock) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b LicenseStock) bool { return a.Name == b.Name }), nil
}

func parseStock(line string) (l LicenseStock, err error) {
	for _, field := range strings.Fields(line) {
		switch key, value, _ := strings.Cut(field, "="); key {
		case "LicenseName":
			l.Name = value
		case "Total":
			l.Count, err = parseCount(value)
		case "LastDeficit":
			l.Away, err = parseCount(value)
		case "Mode":
			l.Spread = true
		}
		if err != nil {
			return l, err
		}
	}
	if l.Name == "" {
		return l, fmt.Errorf("it has no name")
	}
	return l, nil
}

// LacksLicense returns in words which licence a job asks for that this cluster can never give it, and what to do; "" if there
// is none.
func LacksLicense(asked []License, stock []LicenseStock) string {
	for _, a := range asked {
		at, known := slices.BinarySearchFunc(stock, a.Name, func(s LicenseStock, name string) int { return cmp.Compare(s.Name, name) })
		name := oneLine(a.Name, 60)
		switch {
		case !known && len(stock) == 0:
			return fmt.Sprintf("this cluster has no licences: leave out %q", name)
		case !known:
			return fmt.Sprintf("this cluster has no licence %q (scontrol show licenses lists those that it has)", name)
		case !stock[at].Spread && a.Count > stock[at].Count:
			return fmt.Sprintf("%d of licence %q are asked for, and this cluster has %d: ask for fewer", a.Count, name, stock[at].Count)
		}
	}
	return ""
}
