package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Names lists names by kind: those that a site allows or denies, or those of one job.
type Names struct {
	Users      []string `mapstructure:"users"`
	Groups     []string `mapstructure:"groups"`
	Accounts   []string `mapstructure:"accounts"`
	QOS        []string `mapstructure:"qos"`
	Partitions []string `mapstructure:"partitions"`
}

// Kinds lists the kinds of names.
var Kinds = []string{"users", "groups", "accounts", "qos", "partitions"}

// words names one of each kind.
var words = map[string]string{"users": "user", "groups": "group", "accounts": "account", "qos": "QOS", "partitions": "partition"}

// Of returns the names of one of the Kinds.
func (n *Names) Of(kind string) []string {
	switch kind {
	case "users":
		return n.Users
	case "groups":
		return n.Groups
	case "accounts":
		return n.Accounts
	case "qos":
		return n.QOS
	}
	return n.Partitions
}

// Equal reports whether both have the same names in the same order.
func (n Names) Equal(o Names) bool {
	return !slices.ContainsFunc(Kinds, func(kind string) bool { return !slices.Equal(n.Of(kind), o.Of(kind)) })
}

func noNames() Names { return Names{[]string{}, []string{}, []string{}, []string{}, []string{}} }

const (
	mostNames = 1000 // of one list
	instead   = "submit it with sbatch, or ask your site's administrators"
)

// longestName bounds names, in bytes. A bound within the pattern would make every command begin 10 ms later.
const longestName = 255

// listedName accepts what accounts, groups, QOS, and partitions are named on real sites; a comma would split it.
var listedName = regexp.MustCompile(`^[^\s,="'\\\pC]+$`)

func (n *Names) validate(check func(ok bool, key, format string, args ...any), list string) {
	for _, kind := range Kinds {
		names := n.Of(kind)
		check(len(names) <= mostNames, list+"."+kind, "%d names; want %d at most: name a group or an account", len(names), mostNames)
		for _, name := range names {
			check(len(name) <= longestName && listedName.MatchString(name), list+"."+kind, "%q is not a valid name", name)
		}
	}
}

// has reports whether a list has a name. Slurm ignores the case of accounts and QOS.
func has(kind string, list []string, name string) bool {
	if kind == "accounts" || kind == "qos" {
		return slices.ContainsFunc(list, func(one string) bool { return strings.EqualFold(one, name) })
	}
	return slices.Contains(list, name)
}

// MayEvolve returns why the allow and deny lists keep a job from evolving, with what to do, or nil. A kind that is
// nil in the job is not known, and not checked. Deny lists win. A job must be in the allow list of each kind
// that has one; users and groups are one kind there.
func (c *Config) MayEvolve(job Names) error {
	for _, kind := range Kinds {
		for _, name := range job.Of(kind) {
			if has(kind, c.Deny.Of(kind), name) {
				return fmt.Errorf("this site denies evolving jobs to %s %s (deny.%s): %s", words[kind], name, kind, instead)
			}
		}
	}
	if known := job.Users != nil && (job.Groups != nil || len(c.Allow.Groups) == 0); known && !c.names(job) {
		return fmt.Errorf("this site allows evolving jobs to some users, and user %s is not one of them (allow.users, allow.groups): %s", strings.Join(job.Users, ","), instead)
	}
	for _, kind := range Kinds[2:] {
		list := c.Allow.Of(kind)
		for _, name := range job.Of(kind) {
			if len(list) > 0 && !has(kind, list, name) {
				return fmt.Errorf("this site allows evolving jobs only in some %s, and %s %q is not one of them (allow.%s): %s",
					strings.Replace(words[kind]+"s", "QOSs", "QOS", 1), words[kind], name, kind, instead)
			}
		}
	}
	return nil
}

// names reports whether the allow lists name the job's user, or one of the user's groups, or nobody.
func (c *Config) names(job Names) bool {
	listed := func(list []string) func(string) bool {
		return func(name string) bool { return slices.Contains(list, name) }
	}
	return len(c.Allow.Users)+len(c.Allow.Groups) == 0 || slices.ContainsFunc(job.Users, listed(c.Allow.Users)) || slices.ContainsFunc(job.Groups, listed(c.Allow.Groups))
}

// Unchecked lists the kinds of names that have lists here, and are not known of the job.
func (c *Config) Unchecked(job Names) (kinds []string) {
	for _, kind := range Kinds {
		if job.Of(kind) == nil && len(c.Allow.Of(kind))+len(c.Deny.Of(kind)) > 0 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// AccessGroups lists the groups that the allow and deny lists name.
func (c *Config) AccessGroups() []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(c.Allow.Groups, c.Deny.Groups))))
}
