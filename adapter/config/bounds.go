package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/planner"
)

// Scopes are what nodes that are held are bounded for.
var Scopes = []string{"job", "user", "account", "all"}

// HeldNodes is how many nodes may be held for coming growths at once; 0: any number.
type HeldNodes struct {
	Job     int `mapstructure:"job"`
	User    int `mapstructure:"user"`
	Account int `mapstructure:"account"`
	All     int `mapstructure:"all"`
}

// Of is the bound of one of the Scopes.
func (h HeldNodes) Of(scope string) int {
	return of(scope, h.Job, h.User, h.Account, h.All)
}

// HeldTime is how much of all nodes' time may be held until coming growths: as many
// node-seconds as the whole cluster makes in this time; 0: any number.
type HeldTime struct {
	Job     time.Duration `mapstructure:"job"`
	User    time.Duration `mapstructure:"user"`
	Account time.Duration `mapstructure:"account"`
	All     time.Duration `mapstructure:"all"`
}

// Of is the bound of one of the Scopes.
func (h HeldTime) Of(scope string) time.Duration {
	return of(scope, h.Job, h.User, h.Account, h.All)
}

func of[T int | time.Duration](scope string, job, user, account, all T) T {
	switch scope {
	case "job":
		return job
	case "user":
		return user
	case "account":
		return account
	case "all":
		return all
	}
	return 0
}

// Use is what some jobs hold.
type Use struct {
	Holds   int   // reservations
	Nodes   int   // for coming growths
	Seconds int64 // node-seconds ahead
}

func (u Use) plus(v Use) Use { return Use{u.Holds + v.Holds, u.Nodes + v.Nodes, u.Seconds + v.Seconds} }

// ProfileUse is the least that a job of this profile holds when it begins: given a plan that delays no step, which takes up again first what was given
// up last.
func ProfileUse(p planner.Profile, chain bool) Use {
	u := Use{Holds: 1} // to start in
	peak, end := p[0].Nodes, int64(0)
	var room [64]int64
	free := room[:0] // since when nodes are free that the job had, ascending
	for i, step := range p {
		if i > 0 && chain {
			u.Holds++
		}
		if i > 0 && step.Nodes > p[i-1].Nodes {
			if !chain {
				u.Holds++
			}
			for range step.Nodes - p[i-1].Nodes {
				from := int64(0)
				if last := len(free) - 1; last >= 0 {
					from, free = free[last], free[:last]
				}
				u.Seconds += end - from
			}
		}
		for n := step.Nodes; i > 0 && n < p[i-1].Nodes; n++ {
			free = append(free, end)
		}
		peak = max(peak, step.Nodes)
		end += step.Duration
	}
	u.Nodes = peak - p[0].Nodes
	return u
}

// Exceeds says which bound of a scope would be exceeded if one who holds some wants
// more, on a cluster of size nodes; "" if none.
func (c *Config) Exceeds(scope string, size int, has, wants Use) string {
	nodes, ahead := c.HeldNodes.Of(scope), c.HeldTime.Of(scope)
	sum := has.plus(wants)
	beside := ""
	figure := func(n string) string { return " beside " + n + " already held" }
	switch most := int64(ahead/time.Second) * int64(size); {
	case nodes > 0 && sum.Nodes > nodes:
		if has.Nodes > 0 {
			beside = figure(fmt.Sprint(has.Nodes))
		}
		return fmt.Sprintf("its coming growths hold %d nodes%s, held_nodes.%s allows %d", wants.Nodes, beside, scope, nodes)
	case ahead > 0 && sum.Seconds > most:
		if has.Seconds > 0 {
			beside = figure(nodeHours(has.Seconds))
		}
		return fmt.Sprintf("its coming growths hold %s%s, held_time.%s allows %s", nodeHours(wants.Seconds), beside, scope, nodeHours(most))
	case scope == "all" && sum.Holds > c.MaxHolds:
		if has.Holds > 0 {
			beside = figure(fmt.Sprint(has.Holds))
		}
		return fmt.Sprintf("it needs %d reservations%s, max_holds allows %d", wants.Holds, beside, c.MaxHolds)
	}
	return ""
}

// Never says why a job of this profile can never begin on a cluster of so many nodes; "" if
// it can.
func (c *Config) Never(p planner.Profile, chain bool, size int) string {
	return c.NeverHolds(ProfileUse(p, chain), size)
}

// NeverHolds says so of one that holds that much at the least.
func (c *Config) NeverHolds(u Use, size int) string {
	for _, scope := range Scopes {
		if why := c.Exceeds(scope, size, Use{}, u); why != "" {
			return why
		}
	}
	return ""
}

func nodeHours(seconds int64) string {
	text := fmt.Sprintf("%.1f", float64(seconds)/3600)
	return strings.TrimSuffix(text, ".0") + " node-hours"
}
