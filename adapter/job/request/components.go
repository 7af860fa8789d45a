package request

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/planner"
)

// A job of coupled codes has components, each with a profile of its own. They share one allocation: the job's profile is
// their sum at all boundaries. A boundary at which the sum stays equal is a step too: nodes change hands there.

const (
	// MostComponents is the largest number of components of a job.
	MostComponents   = 16
	longestComponent = 32 // bytes of a component's name
)

// Component is one of a job's coupled codes. It is never changed, only replaced.
type Component struct {
	Name    string
	Profile planner.Profile // nil: not given yet
}

// CheckComponent returns an error if a component cannot have that name.
func CheckComponent(name string) error {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
	}
	if name == "" || len(name) > longestComponent || strings.ContainsFunc(name, func(c rune) bool { return !plain(c) }) {
		return fmt.Errorf("--component=%s: a component's name has 1 to %d letters, digits, and underscores", legible.Brief(name), longestComponent)
	}
	return nil
}

// addComponent begins a component. The next profile is its own.
func (r *Request) addComponent(name string) error {
	if err := CheckComponent(name); err != nil {
		return err
	}
	switch {
	case r.Profile != nil:
		return fmt.Errorf("--component=%s: the profile before it belongs to no component: write --component=NAME before each --profile", name)
	case slices.ContainsFunc(r.Components, func(c Component) bool { return c.Name == name }):
		return fmt.Errorf("--component=%s is given twice: give each component a name of its own", name)
	case len(r.Components) == MostComponents:
		return fmt.Errorf("--component=%s: a job has at most %d components", name, MostComponents)
	}
	r.Components = append(slices.Clip(r.Components), Component{Name: name})
	return nil
}

// setComponent gives the last component its profile.
func (r *Request) setComponent(text string) error {
	last := r.Components[len(r.Components)-1]
	switch {
	case last.Profile != nil:
		return fmt.Errorf("component %s has two profiles: write --component=NAME before each --profile", last.Name)
	case strings.Contains(text, openTail) || ranged(text):
		return fmt.Errorf("component %s: the profile of a component has fixed numbers of nodes: leave out ? and MIN-MAX", last.Name)
	}
	p, err := planner.ParseProfile(text)
	if err = cmp.Or(noFrequency(text, "a component's profile"), err, CheckSteps(p)); err != nil {
		return err
	}
	r.Components = slices.Clone(r.Components)
	r.Components[len(r.Components)-1].Profile = p
	return nil
}

// SettleComponents makes the sum of the components' profiles the job's profile.
func (r *Request) SettleComponents() error {
	if len(r.Components) == 0 {
		return nil
	}
	for _, c := range r.Components {
		if c.Profile == nil {
			return fmt.Errorf("component %s has no profile: give --component=%[1]s --profile=NODES@DURATION[,NODES@DURATION…]", c.Name)
		}
	}
	r.Profile, _ = SumOf(r.Components)
	return cmp.Or(r.Profile.Validate(), CheckSteps(r.Profile))
}

// SumOf returns the sum of profiles at all of their boundaries, and by component the nodes in each step; 0 once it is over.
// O(steps × components).
func SumOf(all []Component) (sum planner.Profile, sizes [][]int) {
	var ends []int64
	for _, c := range all {
		at := int64(0)
		for _, step := range c.Profile {
			at += step.Duration
			ends = append(ends, at)
		}
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	sum, sizes = make(planner.Profile, len(ends)), make([][]int, len(all))
	for i, c := range all {
		sizes[i] = make([]int, len(ends))
		at, k := int64(0), 0
		for _, step := range c.Profile {
			for at += step.Duration; k < len(ends) && ends[k] <= at; k++ {
				sizes[i][k] = step.Nodes
				sum[k].Nodes += step.Nodes
			}
		}
	}
	from := int64(0)
	for k, end := range ends {
		sum[k].Duration, from = end-from, end
	}
	return sum, sizes
}

// CheckComponents returns an error if the request has components beside what excludes them.
func (r Request) CheckComponents() error {
	if len(r.Components) == 0 {
		return nil
	}
	with := ""
	switch {
	case r.Moldable != nil:
		with = "--moldable"
	case r.Malleable != nil:
		with = "--malleable"
	case r.MaxNodes > 0 || r.Tail > 0:
		with = "a claim (--max-nodes)"
	case r.Chain != nil || r.Drive.Means().StepsAreJobs:
		with = "--drive=chain"
	case r.Reached != nil:
		with = "a changed profile"
	}
	if with != "" {
		return fmt.Errorf("--component and %s exclude each other: leave one of them out", with)
	}
	sum, _ := SumOf(r.Components)
	if !slices.Equal(sum, r.Profile) {
		return errors.New("the profile is not the sum of the components' profiles")
	}
	return nil
}

// componentsField returns the marker's field of the components, or "" for none.
func componentsField(all []Component) string {
	if len(all) == 0 {
		return ""
	}
	return ";o=" + componentsText(all)
}

// componentsText returns the components as the marker has them.
func componentsText(all []Component) string {
	words := make([]string, len(all))
	for i, c := range all {
		words[i] = c.Name + ":" + c.Profile.String()
	}
	return strings.Join(words, "|")
}

// parseComponents reads the components of a marker.
func parseComponents(text string) ([]Component, error) {
	var r Request
	for word := range strings.SplitSeq(text, "|") {
		name, profile, _ := strings.Cut(word, ":")
		if err := r.addComponent(name); err != nil {
			return nil, err
		}
		if err := r.setComponent(profile); err != nil {
			return nil, err
		}
	}
	return r.Components, nil
}
