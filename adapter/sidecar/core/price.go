package core

import (
	"math"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// What a promise costs other jobs is counted for the job that got the promise: the node-seconds of idle
// nodes that a hold keeps from a waiting job that could run there. They count as soon as the hold is there,
// since a job that would not end before the hold's time cannot start from then on. A poll shows which nodes
// these are; the seconds until the next poll count for them.

// keeping holds how many nodes the holds of a job keep from others.
type keeping struct {
	job   *job
	nodes int
}

// keeper is the first hold on an unused node.
type keeper struct {
	job   *job // nil: none
	start int64
}

// prices holds what the last poll showed about such nodes.
type prices struct {
	kept  []keeping
	nodes int       // total
	since time.Time // when counting starts
}

// priceEvery is how often a job that keeps nodes from others is saved with its price.
const priceEvery = time.Minute

// charge counts the time until a poll, using what the previous poll showed.
func (c *Core) charge(at time.Time) {
	passed := at.Sub(Later(c.prices.since, c.awake)).Milliseconds()
	c.prices.since = at
	for _, k := range c.prices.kept {
		j := k.job
		if passed <= 0 {
			continue
		}
		j.heldIdleRest += passed * int64(k.nodes)
		if j.State != row.Ended && c.now.Sub(j.pricedAt) >= priceEvery {
			j.pricedAt = c.now
			c.save(j)
		}
	}
}

// heldIdle returns the node-seconds counted for a job.
func (j *job) heldIdle() int64 { return j.HeldIdle + j.heldIdleRest/1000 }

// settlePrice moves what was counted into the job's row.
func (j *job) settlePrice() {
	j.HeldIdle = j.heldIdle()
	j.heldIdleRest %= 1000
}

// savePrices saves what was counted since jobs were last saved.
func (c *Core) savePrices() {
	for _, k := range c.prices.kept {
		if k.job.State != row.Ended {
			c.save(k.job)
		}
	}
}

// price finds the holds that keep idle nodes from waiting jobs.
func (c *Core) price(s *snapshot) {
	c.prices.kept, c.prices.nodes = nil, 0
	keepers := c.keepers(s)
	if keepers == nil {
		return
	}
	wanted := c.wantedNodes(s, keepers)
	for n, is := range wanted {
		if !is {
			continue
		}
		j := keepers[n].job
		i := slices.IndexFunc(c.prices.kept, func(k keeping) bool { return k.job == j })
		if i < 0 {
			i = len(c.prices.kept)
			c.prices.kept = append(c.prices.kept, keeping{job: j})
		}
		c.prices.kept[i].nodes++
		c.prices.nodes++
	}
}

// keepers returns the first hold on each idle node; nil if there is none.
func (c *Core) keepers(s *snapshot) (keepers []keeper) {
	for _, h := range c.ours {
		r, j := c.reservations[h.name], c.byID[h.own.job]
		if j == nil || j.State == row.Ended || !r.End.After(s.taken) {
			continue
		}
		for _, name := range r.Nodes {
			n, known := s.index[name]
			if !known || s.inUse[name] || !s.nodes[n].Usable() {
				continue
			}
			if keepers == nil {
				keepers = make([]keeper, len(s.nodes))
			}
			if k := &keepers[n]; k.job == nil || r.Start.Unix() < k.start {
				*k = keeper{j, r.Start.Unix()}
			}
		}
	}
	return keepers
}

// wantedNodes returns which nodes of keepers waiting jobs would get without holds. The jobs take idle nodes in
// their order, first nodes that are not held. A job that would not fit with all of them takes none.
func (c *Core) wantedNodes(s *snapshot, keepers []keeper) []bool {
	now := s.taken.Unix()
	wanted, free, blocked := make([]bool, len(s.nodes)), make([]bool, len(s.nodes)), c.othersFrom(s)
	for n := range s.nodes {
		free[n] = !s.inUse[s.nodes[n].Name] && s.nodes[n].Usable()
	}
	for _, cand := range c.waitingNow(s, now) {
		until := now + seconds(cand.record.TimeLimit)
		count, times := cand.profile[0].Nodes, 1
		if cand.job == nil && cand.record.ArrayTasks > 1 {
			count = max(cand.record.NumNodes, 1)
			times = min(cand.record.ArrayTasks, len(cand.nodes)/count)
		}
		var open, held []int
		for _, n := range cand.nodes {
			switch k := keepers[n]; {
			case !free[n] || blocked[n] < until:
			case k.job == nil, k.job == cand.job, k.start >= until:
				open = append(open, n)
			default:
				held = append(held, n)
			}
		}
		for ; times > 0 && count <= len(open)+len(held); times-- {
			taken := min(count, len(open))
			for _, n := range open[:taken] {
				free[n] = false
			}
			for _, n := range held[:count-taken] {
				free[n], wanted[n] = false, true
			}
			open, held = open[taken:], held[count-taken:]
		}
	}
	return wanted
}

// othersFrom returns the Unix second from which each node is reserved by others.
func (c *Core) othersFrom(s *snapshot) []int64 {
	from := slices.Repeat([]int64{math.MaxInt64}, len(s.nodes))
	for _, r := range s.reservations {
		if _, ours := parseHold(r); ours || !r.End.After(s.taken) {
			continue
		}
		for _, name := range r.Nodes {
			if n, known := s.index[name]; known {
				from[n] = min(from[n], r.Start.Unix())
			}
		}
	}
	return from
}

// waitingNow lists the jobs that wait for nodes, the most urgent first: stock jobs, and evolving jobs that are
// planned for later. The list has at most stock_jobs jobs.
func (c *Core) waitingNow(s *snapshot, now int64) []candidate {
	list := c.stockCandidates(s, now, turn{})
	for _, j := range c.active {
		if j.State != row.Queued || j.kept != nil || len(j.plan) == 0 || j.plan[0].start <= now || j.Begin.Unix() > now || notEligible(&j.record) != "" {
			continue
		}
		if nodes, err := s.eligible(&j.record, j.gres); err == nil {
			list = append(list, candidate{job: j, record: &j.record, nodes: nodes, profile: j.Profile, turn: turn{c.tierOf(&j.record, false), j.priority}})
		}
	}
	slices.SortStableFunc(list, moreUrgent)
	return list[:min(len(list), c.cfg.StockJobs)]
}
