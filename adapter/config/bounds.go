package config

import (
	"fmt"
	"math"
	"math/bits"
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

func (u Use) plus(v Use) Use {
	return Use{u.Holds + v.Holds, u.Nodes + v.Nodes, addProduct(u.Seconds, 1, v.Seconds)}
}

// addProduct returns sum + nodes × seconds, at most the largest number. None is negative.
func addProduct(sum int64, nodes int, seconds int64) int64 {
	high, low := bits.Mul64(uint64(nodes), uint64(seconds))
	low, carry := bits.Add64(low, uint64(sum), 0)
	if high+carry > 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(low)
}

// ProfileUse is the least that a job of this profile holds when it begins: given a plan that delays no step, which takes up again first what was given
// up last.
func ProfileUse(p planner.Profile, chain bool) Use {
	u := Use{Holds: 1} // to start in
	end, free := p[0].Duration, givenUp(nil)
	for i, step := range p[1:] {
		more := step.Nodes - p[i].Nodes
		if chain || more > 0 {
			u.Holds++
		}
		if more > 0 {
			u.Seconds = free.take(u.Seconds, more, end)
		} else if more < 0 {
			free = append(free, nodesSince{-more, end})
		}
		end += step.Duration
	}
	u.Nodes = p.Peak() - p[0].Nodes
	return u
}

// nodesSince is a number of nodes that a job had until some second of its profile.
type nodesSince struct {
	nodes int
	since int64
}

// givenUp holds the nodes that a job had, those that it gave up last at the end. It has an
// entry for a step, not for a node.
type givenUp []nodesSince

// take takes up so many nodes at a time, those first that were given up last, and returns the
// sum with the node-seconds for which they were held since then.
func (g *givenUp) take(sum int64, nodes int, at int64) int64 {
	for nodes > 0 && len(*g) > 0 {
		last := &(*g)[len(*g)-1]
		some := min(nodes, last.nodes)
		sum = addProduct(sum, some, at-last.since)
		nodes, last.nodes = nodes-some, last.nodes-some
		if last.nodes == 0 {
			*g = (*g)[:len(*g)-1]
		}
	}
	return addProduct(sum, nodes, at)
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
