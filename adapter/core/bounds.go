package core

import (
	"slices"
	"sort"

	"github.com/evoslurm/evoslurm/adapter/config"
)

// What is held stands idle, or runs only what ends before. A site bounds it, for a job, a
// user, an account and in all: the nodes that are held for coming growths, the node-seconds
// until these (each hold's nodes times the time from now until its growth, less that for
// which they are the job's own), and in all the number of reservations. A job begins only
// when all its holds fit beside those of the jobs that run, so no promise is ever broken
// for a bound, and it is planned for the time at which they do. Until then it keeps no
// nodes from anybody.

// claim is a hold as the bounds see it.
type claim struct {
	growth bool // it keeps nodes for a step that is not the first
	nodes  []string
	from   []int64 // when each of them is not the job's own any more, Unix seconds
	until  int64   // when it has them again
}

// usedAt is what is left of claims at a time: nothing of those that are over.
func usedAt(claims []claim, at int64) config.Use {
	u := config.Use{}
	distinct := set{}
	for _, c := range claims {
		if c.growth && c.until > at {
			distinct.add(c.nodes)
		}
		u = c.addTo(u, at)
	}
	u.Nodes = len(distinct)
	return u
}

// addTo is a use and what is left of a claim at a time, but for its nodes.
func (c *claim) addTo(u config.Use, at int64) config.Use {
	if c.until <= at {
		return u
	}
	u.Holds++
	if c.growth {
		for _, from := range c.from {
			u.Seconds += max(c.until-max(from, at), 0)
		}
	}
	return u
}

// usedAt is what is left of somebody's claims at a time. Nodes are counted where a bound asks
// for that.
func (l *ledger) usedAt(scope string, claims []claim, at int64) (u config.Use) {
	if l.cfg.HeldNodes.Of(scope) > 0 {
		return usedAt(claims, at)
	}
	for i := range claims {
		u = claims[i].addTo(u, at)
	}
	return u
}

// owner is of whom a bound is.
type owner struct{ name, of string }

// ledger is what is held for whom.
type ledger struct {
	cfg    *config.Config
	size   int // nodes of the cluster
	now    int64
	claims map[owner][]claim
	used   map[owner]config.Use // now, as far as asked for since
}

func (c *Core) newLedger(now int64) *ledger {
	l := &ledger{cfg: &c.cfg, now: now, claims: map[owner][]claim{}, used: map[owner]config.Use{}}
	if c.snapshot != nil {
		l.size = len(c.snapshot.nodes)
	}
	return l
}

// owners are those whose bounds a job's holds count for, besides its own.
func owners(j *job) []owner {
	all := []owner{{"user", j.User}, {"all", ""}}
	if j.Account != "" {
		all = append(all, owner{"account", j.Account})
	}
	return all
}

func (l *ledger) add(j *job, claims []claim) {
	for _, o := range owners(j) {
		l.claims[o] = append(l.claims[o], claims...)
		delete(l.used, o)
	}
}

// usedBy is what is held for somebody from a time on.
func (l *ledger) usedBy(o owner, at int64) config.Use {
	if at != l.now {
		return l.usedAt(o.name, l.claims[o], at)
	}
	u, known := l.used[o]
	if !known {
		u = l.usedAt(o.name, l.claims[o], at)
		l.used[o] = u
	}
	return u
}

// exceeds says which bound a job's claims, as they are now, do not fit below.
func (l *ledger) exceeds(j *job, claims []claim) string {
	wants := l.usedAt("job", claims, l.now)
	if why := l.cfg.Exceeds("job", l.size, config.Use{}, wants); why != "" {
		return why
	}
	for _, o := range owners(j) {
		has, more := l.usedBy(o, l.now), l.usedAt(o.name, claims, l.now)
		if l.cfg.HeldNodes.Of(o.name) > 0 { // of nodes that are held already there are no more
			more.Nodes = usedAt(slices.Concat(l.claims[o], claims), l.now).Nodes - has.Nodes
		}
		if why := l.cfg.Exceeds(o.name, l.size, has, more); why != "" {
			return why
		}
	}
	return ""
}

// earliest is the first second from which on a job of this need fits beside all that is in
// the ledger, and what it has to wait for, if it has. What is held decreases with time.
func (l *ledger) earliest(j *job, wants config.Use, from int64) (int64, string) {
	why := ""
	for _, o := range owners(j) {
		claims := l.claims[o]
		text := l.cfg.Exceeds(o.name, l.size, l.usedBy(o, from), wants)
		if text == "" {
			continue
		}
		why = text
		last := from
		for _, c := range claims {
			last = max(last, c.until)
		}
		from += int64(sort.Search(int(last-from), func(i int) bool {
			return l.cfg.Exceeds(o.name, l.size, l.usedAt(o.name, claims, from+int64(i)), wants) == ""
		}))
	}
	return from, why
}

// claimsOf are the claims of a job's holds.
func claimsOf(j *job, holds []hold) []claim {
	claims := make([]claim, len(holds))
	for i, h := range holds {
		claims[i] = claim{growth: h.step > 1, nodes: h.nodes, until: h.start}
		if g := j.gainAt(h.step); g != nil && same(g.nodes, h.nodes) {
			claims[i].from = g.from
			continue
		}
		claims[i].from = make([]int64, len(h.nodes))
		for k, name := range h.nodes {
			claims[i].from[k] = lastHad(j, h.step, name)
		}
	}
	return claims
}

// gainAt is what the plan brings at a step, if that is known; nil: nothing.
func (j *job) gainAt(step int) *gain {
	all := j.gained()
	for i := range all {
		if all[i].step == step {
			return &all[i]
		}
	}
	return nil
}

// lastHad is when a job has a node for the last time before a step that brings it, Unix
// seconds; 0: never.
func lastHad(j *job, step int, name string) int64 {
	for i := step - 2; i >= 0 && i >= j.Step-1; i-- {
		if i < len(j.plan) && slices.Contains(j.plan[i].nodes, name) {
			return j.plan[i].end
		}
	}
	return 0
}

// heldAlready is what is held for the jobs that have begun.
func (c *Core) heldAlready(now int64) *ledger {
	l := c.newLedger(now)
	for _, j := range c.active {
		if j.entitled() {
			l.add(j, claimsOf(j, c.holdsOf(j, now)))
		}
	}
	return l
}

// withinBounds is the second from which on a queued job's holds, which are so much, fit below the site's
// bounds, and what it waits for, if it does. Where they do not for the sake of other
// queued jobs, which are about to begin, it lets others go first.
func (c *Core) withinBounds(l *ledger, j *job, need config.Use, earliest int64) (int64, string) {
	at, why := l.earliest(j, need, earliest)
	if why == "" && j.unheld != "" {
		at, why = at+overrunQuantum, j.unheld
	}
	if j.unheld = ""; why != "" {
		why += "; it begins once they fit"
	}
	return at, why
}
