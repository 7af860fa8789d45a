package hold

import (
	"math"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/stock"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// What a promise costs other jobs is counted for the job that got the promise, and for the hold: the node-seconds of idle
// nodes that a hold keeps from a waiting job that could run there. They count as soon as the hold is there,
// since a job that would not end before the hold's time cannot start from then on. A poll shows which nodes
// these are; the seconds until the next poll count for them.

// keeper is the first hold on an unused node.
type keeper struct {
	job   *state.Job // nil: none
	row   *state.Booked
	start int64
}

// priceEvery is how often a job that keeps nodes from others is saved with its price.
const priceEvery = time.Minute

// Charge counts the time until a poll, using what the previous poll showed. A hold's row may have been opened after
// that, or closed.
func Charge(c *state.Core, at time.Time) {
	since := msg.Later(c.Prices.Since, c.Awake)
	c.Prices.Since = at
	if !at.After(since) {
		return
	}
	for _, k := range c.Prices.Kept {
		kept := k.Row.Within(since, at).Milliseconds() * int64(k.Nodes)
		k.Job.HeldIdleRest += kept
		if k.Row.Idle += kept; !k.Row.Ended.IsZero() {
			c.SaveHold(k.Row) // it was given up since
		}
	}
	for _, k := range c.Prices.Kept {
		if j := k.Job; j.State != row.Ended && c.Reached(c.Now, j.PricedAt.Add(priceEvery)) {
			j.PricedAt = c.Now
			savePrice(c, j)
		}
	}
}

// savePrice saves what was counted for a job, in all and by its holds.
func savePrice(c *state.Core, j *state.Job) {
	c.Save(j)
	for _, k := range c.Prices.Kept {
		if k.Job == j && k.Row.Ended.IsZero() {
			k.Row.Count(c.Now)
			c.SaveHold(k.Row)
		}
	}
}

// SavePrices saves what was counted since jobs were last saved.
func SavePrices(c *state.Core) {
	for _, k := range c.Prices.Kept {
		if k.Job.State != row.Ended {
			c.Save(k.Job)
		}
	}
	for _, name := range state.SortedKeys(c.Ledger) {
		c.Ledger[name].Count(c.Now)
		c.SaveHold(c.Ledger[name])
	}
}

// Price finds the holds that keep idle nodes from waiting jobs.
func Price(c *state.Core, s *state.Snapshot) {
	c.Prices.Kept, c.Prices.Nodes = nil, 0
	book(c) // jobs may have been adopted since
	keepers := keepers(c, s)
	if keepers == nil {
		return
	}
	wanted := wantedNodes(c, s, keepers)
	for n, is := range wanted {
		if !is {
			continue
		}
		by := keepers[n]
		i := slices.IndexFunc(c.Prices.Kept, func(k state.Keeping) bool { return k.Row == by.row })
		if i < 0 {
			i = len(c.Prices.Kept)
			c.Prices.Kept = append(c.Prices.Kept, state.Keeping{Job: by.job, Row: by.row})
		}
		c.Prices.Kept[i].Nodes++
		c.Prices.Nodes++
	}
	for _, k := range c.Prices.Kept {
		c.At(k.Job.PricedAt.Add(priceEvery))
	}
}

// keepers returns the first hold on each idle node; nil if there is none.
func keepers(c *state.Core, s *state.Snapshot) (keepers []keeper) {
	for _, h := range c.Ours {
		r, j := c.Reservations[h.Name], c.ByID[h.Own.Job]
		if j == nil || j.State == row.Ended || c.Reached(s.Taken, r.End) {
			continue
		}
		for _, name := range r.Nodes {
			n, known := s.Index[name]
			if !known || s.InUse[name] || !s.Nodes[n].Usable() {
				continue
			}
			if keepers == nil {
				keepers = make([]keeper, len(s.Nodes))
			}
			if k := &keepers[n]; k.job == nil || r.Start.Unix() < k.start {
				*k = keeper{j, c.Ledger[h.Name], r.Start.Unix()}
			}
		}
	}
	return keepers
}

// wantedNodes returns which nodes of keepers waiting jobs would get without holds. The jobs take idle nodes in
// their order, first nodes that are not held. A job that would not fit with all of them takes none.
func wantedNodes(c *state.Core, s *state.Snapshot, keepers []keeper) []bool {
	now := s.Taken.Unix()
	wanted, free, blocked := make([]bool, len(s.Nodes)), make([]bool, len(s.Nodes)), othersFrom(c, s)
	for n := range s.Nodes {
		free[n] = !s.InUse[s.Nodes[n].Name] && s.Nodes[n].Usable()
	}
	var mayOpen, mayHold []int // scratch
	for _, cand := range waitingNow(c, s, now) {
		limit := slurm.Seconds(cand.Record.TimeLimit)
		count, times := cand.Profile[0].Nodes, 1
		if cand.Job == nil && cand.Record.ArrayTasks > 1 {
			count = max(cand.Record.NumNodes, 1)
			times = min(stock.TasksAtOnce(cand.Record), len(cand.Nodes)/count)
		}
		open, held := mayOpen[:0], mayHold[:0]
		for _, n := range cand.Nodes {
			switch k := keepers[n]; {
			case !free[n] || c.ReachedSecond(now, blocked[n]-limit+1):
			case k.job == nil, k.job == cand.Job, !c.ReachedSecond(now, k.start-limit+1):
				open = append(open, n)
			default:
				held = append(held, n)
			}
		}
		mayOpen, mayHold = open, held
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
func othersFrom(c *state.Core, s *state.Snapshot) []int64 {
	from := slices.Repeat([]int64{math.MaxInt64}, len(s.Nodes))
	for _, r := range s.Reservations {
		if _, ours := s.Holds[r.Name]; ours || c.Reached(s.Taken, r.End) {
			continue
		}
		for _, name := range r.Nodes {
			if n, known := s.Index[name]; known {
				from[n] = min(from[n], r.Start.Unix())
			}
		}
	}
	return from
}

// waitingNow lists the jobs that wait for nodes, the most urgent first: stock jobs, and evolving jobs that are
// planned for later. Of the latter, and of the stock jobs for each set of nodes that evolving jobs may have, the list
// has at most stock_jobs, shared as by stock.ShareOut.
func waitingNow(c *state.Core, s *state.Snapshot, now int64) []slurm.Candidate {
	var list []slurm.Candidate
	for _, j := range c.Active {
		if j.State != row.Queued || j.Kept != nil || len(j.Plan) == 0 || c.ReachedSecond(now, j.Plan[0].Start) || !c.ReachedSecond(now, j.Begin.Unix()) || plan.NotEligible(&j.Record) != "" {
			continue
		}
		if nodes, err := slurm.Eligible(s, &j.Record, j.GRES); err == nil {
			list = append(list, slurm.Candidate{Job: j, Record: &j.Record, Nodes: nodes, Profile: j.Profile, Turn: slurm.Turn{stock.TierOf(c, &j.Record, false), j.Priority}})
		}
	}
	stock.ShareOut(list, c.Config.StockJobs)
	list = append(list[:min(len(list), c.Config.StockJobs)], stock.Candidates(c, s, now, slurm.Turn{}, stock.SetsBeside(c, s, c.Active))...)
	slices.SortStableFunc(list, stock.MoreUrgent)
	return list
}
