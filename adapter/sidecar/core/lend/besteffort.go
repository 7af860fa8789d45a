package lend

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// A best-effort job is a malleable job whose smallest size is not promised. It comes last:
//
//   - It is not planned, and nobody is planned around it: all of its nodes count as lent, the first ones, too.
//   - Once all others are planned and have been offered what they could use, it starts on idle nodes that nobody wants for its
//     grace and a minute more. Nodes that are held for coming growths are filled until then. If too few are on, those that are
//     off are held and switched on for it.
//   - Stock jobs are given its nodes before those of other malleable jobs.
//   - If others want its own nodes, it is demanded all, and then requeued. It waits for idle nodes again.
//   - No user's best-effort jobs keep another user's from all nodes: after a turn, the user that has most gives way. The nodes
//     that become free are first the other user's.

// bestEffortTurn is how long a best-effort job runs before it gives way to one of a user who has no nodes.
const bestEffortTurn = 10 * time.Minute

// parked lists the best-effort jobs that wait for nodes.
func parked(c *state.Core) (all []*state.Job) {
	for j := range plan.Each(c, c.Active) {
		if waits(j) {
			all = append(all, j)
		}
	}
	return all
}

// waits reports whether a job is a best-effort job that waits for nodes.
func waits(j *state.Job) bool { return j.BestEffort() && j.State == row.Queued }

// demandAll demands all nodes of a best-effort job, its own ones last. It reports false if it must leave the job alone now.
func demandAll(m *state.Managing, j *state.Job, why string) bool {
	if o := refit.OfferAt(j); j.Ending || o != nil && (o.Demands() || o.State == refit.OfferAccepted) {
		return false
	} else if o != nil {
		refit.CloseOffer(m.Core, j, refit.OfferWithdrawn, "nodes are needed back")
	}
	list := append(goFirst(m.Core, j, m.Wants), refit.Own(j)...)
	put(m.Core, j, refit.Offer{Kind: malleable.Shrink.String(), Mandatory: true, Nodes: len(list), List: list, Why: why})
	return true
}

// ordered sorts nodes of best-effort jobs by what their loss costs: first those of jobs that lose only a part, then those of jobs
// that began last.
func ordered(nodes []string, of map[string]*state.Job) {
	own := map[*state.Job]msg.Set{}
	cost := func(name string) int {
		j := of[name]
		if own[j] == nil {
			own[j] = msg.SetOf(refit.Own(j))
		}
		return btoi(own[j][name])
	}
	slices.SortStableFunc(nodes, func(a, b string) int {
		return cmp.Or(cmp.Compare(cost(a), cost(b)), of[b].Started.Compare(of[a].Started), cmp.Compare(of[b].ID, of[a].ID))
	})
}

// takeBack demands nodes of best-effort jobs.
func takeBack(m *state.Managing, nodes []string, of map[string]*state.Job, why string) {
	away := map[*state.Job][]string{}
	for _, name := range nodes {
		away[of[name]] = append(away[of[name]], name)
	}
	for _, j := range m.Malleable {
		switch list := away[j]; {
		case len(list) == 0:
		case len(msg.Common(list, refit.Own(j))) > 0:
			demandAll(m, j, why)
		default:
			demand(m, j, len(list), append(list, msg.Without(goFirst(m.Core, j, m.Wants), list)...), why)
		}
	}
}

// startParked starts best-effort jobs on nodes that are left: first those whose turn it is, then those of users with the fewest nodes.
func startParked(m *state.Managing) {
	has := bestEffortNodes(m)
	slices.SortStableFunc(m.Parked, func(a, b *state.Job) int {
		return cmp.Or(cmp.Compare(btoi(hasTurn(m, b)), btoi(hasTurn(m, a))), cmp.Compare(has[a.UID], has[b.UID]), a.Submitted.Compare(b.Submitted), cmp.Compare(a.ID, b.ID))
	})
	taken := msg.Set{}
	for _, j := range m.Parked {
		if j.Unfit != "" || j.Kept != nil || m.Drained() || plan.NotEligible(&j.Record) != "" {
			continue
		}
		if why := notBestEffort(m.Core, j); why != "" {
			j.WaitsFor(state.Saying(state.WhyIdleAwaited, why))
			m.StorePlan(j, nil)
			continue
		}
		need := j.Profile[0].Nodes
		nodes, at := leftFor(m, j, need, taken)
		if j.Asked == nil || len(nodes) < need || mostNodes(m, j, has) < need {
			m.StorePlan(j, nil)
			if j.Asked != nil {
				j.WaitsFor(state.Saying(state.WhyIdleAwaited, "waits for nodes that nobody else has, was promised, or could use"))
				giveTurn(m, j, has)
			}
			continue
		}
		taken.Add(nodes)
		has[j.UID] += need
		if len(j.Plan) != 1 || !msg.SameSet(j.Plan[0].Nodes, nodes) || max(j.Plan[0].Start, m.Second) != at {
			m.StorePlan(j, []msg.PlannedStep{{Start: at, End: at + j.Profile[0].Duration, Nodes: nodes}})
		}
	}
}

// notBestEffort returns why the site runs a job as no best-effort job now, or "".
func notBestEffort(c *state.Core, j *state.Job) string {
	site := c.Config.BestEffort
	if !site.Enabled {
		return config.NoBestEffort
	}
	if why := stillResizable(c, j); why != "" {
		return "a best-effort job gives nodes back while it runs, and " + why
	}
	if why := site.TooFew(j.Profile[0].Nodes); why != "" {
		return why
	}
	if asked := j.Record.Licenses; asked != "" {
		return fmt.Sprintf("a best-effort job must not ask for licences (%s): it would keep them from others; submit it without", asked)
	}
	asks := map[string]string{"qos": j.Record.QOS, "account": j.Record.Account, "partition": j.Record.Partition}
	for _, charged := range site.Charged() {
		if asked := asks[charged.Name]; asked != charged.Value {
			return fmt.Sprintf("this site runs best-effort jobs with --%s=%s, and the job has %q (scontrol update JobId=%d %s=%s)", charged.Name, charged.Value, asked, j.SlurmID, charged.Name, charged.Value)
		}
	}
	return ""
}

// bestEffortNodes returns how many nodes the best-effort jobs of each user have, or are offered.
func bestEffortNodes(m *state.Managing) map[uint32]int {
	has := map[uint32]int{}
	for _, j := range m.Active {
		switch {
		case !j.BestEffort():
		case j.State == row.Starting:
			has[j.UID] += j.Profile[0].Nodes
		case j.Runs():
			has[j.UID] += len(j.Nodes())
			if o := refit.OfferAt(j); o != nil && o.Grows() {
				has[j.UID] += len(msg.Without(o.Wanted(), j.Nodes()))
			}
		}
	}
	return has
}

// mostNodes returns how many more nodes a job may be offered, as far as the site bounds the best-effort jobs of a user.
func mostNodes(m *state.Managing, j *state.Job, has map[uint32]int) int {
	most := m.Config.BestEffort.MaxNodes
	if most == 0 || !j.BestEffort() {
		return len(m.S.Nodes)
	}
	return max(most-has[j.UID], 0)
}

// leftFor returns nodes on which a waiting best-effort job can start, or fewer than it needs, and the Unix second at which the last
// of them is on. It prefers nodes that are on, and those of its plan.
func leftFor(m *state.Managing, j *state.Job, need int, taken msg.Set) ([]string, int64) {
	eligible, choices, err := slurm.PlacesOf(m.Core, m.S, j)
	if err != nil {
		return nil, 0
	}
	if choices == nil {
		choices = [][]int{eligible}
	}
	planned := msg.SetOf(j.Planned())
	starts := []int64{m.Second}
	if m.Power.On {
		starts = append(starts, m.Second+int64(m.Power.Up()/time.Second))
	}
	for _, by := range starts {
		for _, nodes := range choices {
			names := slices.DeleteFunc(lendableOf(m, j, nodes, by), func(name string) bool { return taken[name] })
			slices.SortStableFunc(names, func(a, b string) int {
				return cmp.Or(cmp.Compare(onAt(m, a), onAt(m, b)), cmp.Compare(btoi(planned[b]), btoi(planned[a])))
			})
			if len(names) >= need {
				return names[:need], onAt(m, names[need-1])
			}
		}
	}
	return nil, 0
}

// onAt returns the Unix second at which a usable node is on.
func onAt(m *state.Managing, name string) int64 {
	return max(slurm.PowerReady(&m.Power, m.S.Nodes[m.S.Index[name]], m.S.Taken), m.Second)
}

// giveTurn demands nodes for a best-effort job of a user that has none, of the user that has most: of jobs that have had their turn.
func giveTurn(m *state.Managing, j *state.Job, has map[uint32]int) {
	if has[j.UID] > 0 {
		return
	}
	need := j.Profile[0].Nodes
	nodes, of := haveHadTurn(m, j, has)
	if len(nodes) < need {
		return
	}
	ordered(nodes, of)
	takeBack(m, nodes[:need], of, "it is another user's turn")
	has[j.UID]++
	var recall time.Duration
	for _, name := range nodes[:need] {
		recall = max(recall, refit.Recall(m.Core, of[name]))
	}
	j.TakesTurn(m.Now.Add(recall + lendFor*time.Second))
}

// haveHadTurn returns nodes that a waiting best-effort job could have from others that have had their turn, and which of them has each.
func haveHadTurn(m *state.Managing, j *state.Job, has map[uint32]int) (nodes []string, of map[string]*state.Job) {
	eligible, _, err := slurm.PlacesOf(m.Core, m.S, j)
	if err != nil {
		return nil, nil
	}
	can := msg.Set{}
	for _, n := range eligible {
		can[m.S.Nodes[n].Name] = true
	}
	of = map[string]*state.Job{}
	for _, other := range m.Malleable {
		if !other.BestEffort() || has[other.UID] <= j.Profile[0].Nodes || !m.Reached(m.Now, other.Started.Add(bestEffortTurn)) {
			continue
		}
		if o := refit.OfferAt(other); o != nil && o.Demands() {
			return nil, nil // nodes are on their way
		}
		for _, name := range other.Nodes() {
			if can[name] && mayGive(m, other) && !m.Useful[name] {
				of[name], nodes = other, append(nodes, name)
			}
		}
	}
	return nodes, of
}

// hasTurn reports whether others make way for a waiting best-effort job.
func hasTurn(m *state.Managing, j *state.Job) bool {
	return !j.TurnUntil.IsZero() && !m.Reached(m.Now, j.TurnUntil)
}

// partitionsOf returns the partitions of the running best-effort jobs, or of the other malleable jobs, in order.
func partitionsOf(m *state.Managing, bestEffort bool) []string {
	names := map[string]bool{}
	for _, j := range m.Malleable {
		if j.BestEffort() == bestEffort {
			names[slurm.PartitionOf(j)] = true
		}
	}
	return state.SortedKeys(names)
}

// boundByUser gives a best-effort job no more than the site lets its user have, and nothing while others make way for a waiting one.
func boundByUser(m *state.Managing, j *state.Job, one malleable.Job, has map[uint32]int) malleable.Job {
	if j.BestEffort() {
		one.Max = min(one.Max, max(one.Nodes+mostNodes(m, j, has), one.Min))
		one.Held = one.Held || notBestEffort(m.Core, j) != "" || slices.ContainsFunc(m.Parked, func(p *state.Job) bool { return hasTurn(m, p) })
	}
	return one
}
