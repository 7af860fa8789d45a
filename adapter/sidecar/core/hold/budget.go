package hold

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// Budget returns what holds take of the shares and of the delay budgets now, and how much they may.
func Budget(c *state.Core) api.Budget {
	b := api.Budget{Holds: len(c.Ours), MostHolds: c.Config.MaxHolds, Use: []api.BudgetUse{}, Delays: []api.BudgetDelay{}}
	if c.Snapshot == nil {
		return b
	}
	b.Use, b.Delays = use(c, c.Now.Unix()), delaysNow(c)
	return b
}

// use returns what the holds in place take of their owners' shares, by scope, name, and partition.
func use(c *state.Core, now int64) []api.BudgetUse {
	l := newLedger(c, now)
	for _, j := range c.Active {
		for _, h := range HoldsOf(c, j, now) {
			if InPlace(c, j, h.Step) {
				in := heldIn(c, j)
				l.place(in)
				l.add(l.ownersOf(j), l.claim(h, in))
			}
		}
	}
	all := []api.BudgetUse{}
	for _, o := range l.accounts {
		for at, in := range l.places {
			if u := l.load(o, at); o.scope != "job" && u.holds > 0 && (o.scope != "partition" || slices.ContainsFunc(o.claims, func(one *claim) bool { return one.partition == in.name })) {
				all = append(all, l.row(o, in, u))
			}
		}
	}
	slices.SortFunc(all, func(a, b api.BudgetUse) int {
		scope := func(u api.BudgetUse) int { return slices.Index(config.HoldScopes, u.Scope) }
		return cmp.Or(cmp.Compare(scope(a), scope(b)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Partition, b.Partition))
	})
	return all
}

// row returns what an owner has in a partition, and may have. The calculation is that of [ledger.take].
func (l *ledger) row(o *account, in place, u *load) api.BudgetUse {
	shares, size := l.cfg.HoldShares.Of(o.scope), in.here.in(in.here)
	const hour = float64(time.Hour / time.Second)
	return api.BudgetUse{Scope: o.scope, Name: o.name, Partition: in.name,
		Holds: u.holds, MostHolds: max(shares.Reservations*l.cfg.MaxHolds/100, 1),
		Nodes: u.count, MostNodes: max(size*shares.Nodes/100, 1),
		NodeHours: float64(u.seconds) / hour, MostNodeHours: float64(l.ahead*int64(size)*int64(shares.NodeHours)/100) / hour}
}

// delaysNow returns how many stock jobs holds keep from starting now, and how long the longest has waited for that
// reason, by partition and budget.
func delaysNow(c *state.Core) []api.BudgetDelay {
	budgets, err := c.Config.Delays()
	found := map[api.BudgetDelay]api.BudgetDelay{} // by partition and budget
	for id, h := range c.Delays.Jobs {
		r := c.Snapshot.ByID[id]
		if r == nil || !h.Now || err != nil {
			continue
		}
		key := api.BudgetDelay{Partition: r.Partition, Budget: budgets.Of(r.Partition, r.QOS).Seconds()}
		one, known := found[key]
		if !known {
			one = key
		}
		one.Jobs++
		one.Longest = max(one.Longest, c.Snapshot.Taken.Sub(h.Since).Seconds())
		found[key] = one
	}
	all := append([]api.BudgetDelay{}, slices.Collect(maps.Values(found))...)
	slices.SortFunc(all, func(a, b api.BudgetDelay) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Budget, b.Budget))
	})
	return all
}
