package stock

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Plans of evolving jobs count whole nodes. Starts of stock jobs are predicted by what each node has left: CPUs, memory, and GRES.

const (
	// mostTasks is how many tasks of one record of an array are placed.
	mostTasks = 100
	// mostLooks bounds the work of one prediction: at how many stretches of nodes it looks.
	mostLooks = 5_000_000
)

// amount holds how much of each resource a node has left, or a job takes of a node: CPUs, memory in MiB, then the kinds of GRES,
// and the CPUs for each partition that may not have all (MaxCPUsPerNode).
type amount []int64

// The first resources of an amount.
const (
	ofCPUs = iota
	ofMemory
	firstKind
)

// stretch is a time in which the use of a node does not change. It ends when the next one begins.
type stretch struct {
	from  int64
	left  amount
	used  bool   // by a job
	uid   uint32 // of the only user
	mixed bool   // there are several users
	alone bool   // a job shares it with no other user
}

// share holds what a job takes of each of its nodes.
type share struct {
	whole bool
	needs amount
	gres  []slurmctl.GRES
	uid   uint32
	alone bool // no other user may share the node
}

// nodeShares predicts the starts of jobs on nodes that they share.
type nodeShares struct {
	c      *state.Core
	s      *state.Snapshot
	o      *msg.Occupancy
	kinds  []slurmctl.GRES // that nodes have, without counts
	capped map[string]int  // by partition with MaxCPUsPerNode, its place in amounts
	size   int
	memory bool // jobs take memory
	linear bool // all jobs take whole nodes
	cores  int64
	others bool        // evolving jobs do not count as running
	until  []int64     // by node, when the last running job's share of it ends; 0: there is none
	held   []int64     // by node, from when on it is held: jobs take others first; nil: no hold counts
	nodes  [][]stretch // as the jobs that are placed see them
	looks  int

	unreserved map[int][]stretch      // by node that is reserved for some time: without reservations
	within     map[string][][]stretch // by reservation of the site: the nodes as jobs in it see them ("": jobs in none)
	licenses   *slurm.LicensesLeft

	parts map[slurmctl.JobID][]slurm.Candidate // by heterogeneous job, the components so far
	count map[slurmctl.JobID]int               // and how many there are
}

// Starts predicts when the stock jobs of a list will start, as Slurm's backfill does: each as early as it delays no more urgent one.
func Starts(c *state.Core, s *state.Snapshot, o *msg.Occupancy, list []slurm.Candidate) []msg.PlannedStart {
	h, ends := newShares(c, s, o, false)
	all := make([]msg.PlannedStart, 0, len(list))
	for i := range list {
		some, start := list[i:i+1], int64(0)
		if list[i].Record.Heterogenous {
			some = h.together(&list[i])
			start = h.placeTogether(some, limitSeconds, func(int, int64, int64, []int) {})
		} else {
			start = h.start(&list[i], ends)
		}
		for k := range some {
			one := msg.PlannedStart{Job: some[k].Record.ID}
			if start < planner.Forever {
				one.Start = start + int64(c.Skew/time.Second)
			}
			all = append(all, one)
		}
	}
	return all
}

// limitSeconds returns a job's time limit for the planner.
func limitSeconds(r *slurmctl.Job) int64 {
	return max(min(slurm.Seconds(r.TimeLimit), planner.MaxDuration), 1)
}

// newShares returns what nodes have left beside running jobs and reservations, and when tasks of arrays end. `beside` leaves out evolving
// jobs, but not what is certain.
func newShares(c *state.Core, s *state.Snapshot, o *msg.Occupancy, beside bool) (*nodeShares, map[slurmctl.JobID][]int64) {
	h := &nodeShares{c: c, s: s, o: o, others: beside, capped: map[string]int{}, cores: coreOf(s), until: make([]int64, len(s.Nodes)), nodes: make([][]stretch, len(s.Nodes)),
		memory: strings.Contains(strings.ToUpper(c.SlurmConfig.Values["SelectTypeParameters"]), "MEMORY"), linear: c.SlurmConfig.SelectType() == "linear"}
	has := map[string][]slurmctl.GRES{}
	for i := range s.Nodes {
		text := s.Nodes[i].GRES
		if _, known := has[text]; known {
			continue
		}
		has[text], _ = slurmctl.ParseGRES(text)
		for _, g := range has[text] {
			if h.kind(g) < 0 {
				h.kinds = append(h.kinds, slurmctl.GRES{Name: g.Name, Type: g.Type})
			}
		}
	}
	h.size = firstKind + len(h.kinds)
	for _, name := range state.SortedKeys(s.Partitions) {
		if c.Rules.Limits.Sharing(name).CPUs > 0 {
			h.capped[name] = h.size
			h.size++
		}
	}
	h.addNodes(has)
	ends := h.addRunning(o.Origin)
	if beside {
		h.addCertain()
	}
	h.reserve()
	h.licenses = slurm.LicensesLeftOf(o, true)
	return h, ends
}

// addNodes adds what each node has, by the texts of their GRES, and the times in which it cannot be used.
func (h *nodeShares) addNodes(has map[string][]slurmctl.GRES) {
	busy := msg.NewOccupancy(len(h.nodes), h.o.Origin)
	slurm.AddNodes(h.c, busy, h.s)
	for i := range h.s.Nodes {
		n := &h.s.Nodes[i]
		left := make(amount, h.size)
		left[ofCPUs], left[ofMemory] = int64(n.CPUs), n.Memory
		for _, g := range has[n.GRES] {
			left[h.kind(g)] += g.Count
		}
		for name, at := range h.capped {
			left[at] = int64(h.c.Rules.Limits.Sharing(name).CPUs)
		}
		h.nodes[i] = []stretch{{left: left}}
		for _, b := range busy.Busy[i] {
			h.close(i, b)
		}
	}
}

// close lets no job have a node for a time.
func (h *nodeShares) close(node int, b planner.NodeBusy) {
	h.take(node, b.Start+h.o.Origin, absolute(b.End, h.o.Origin), &share{whole: true})
}

// reserve closes all reserved nodes, for jobs in no reservation.
func (h *nodeShares) reserve() {
	h.unreserved, h.within = map[int][]stretch{}, map[string][][]stretch{"": h.nodes}
	for n, list := range h.o.Reserved {
		if len(list) > 0 {
			h.unreserved[n] = slices.Clone(h.nodes[n])
		}
		for _, b := range list {
			h.close(n, b.NodeBusy)
		}
	}
}

// enter has the next jobs be placed in a reservation of the site ("": in none): on its nodes, within its time, and not while another
// reservation has a node.
func (h *nodeShares) enter(own string) {
	if nodes, known := h.within[own]; known {
		h.nodes = nodes
		return
	}
	h.nodes = make([][]stretch, len(h.s.Nodes))
	h.within[own] = h.nodes
	nothing := make(amount, h.size)
	for n, list := range h.o.Reserved {
		if !slices.ContainsFunc(list, func(b msg.Reserved) bool { return b.By == own }) {
			h.nodes[n] = []stretch{{left: nothing, used: true}}
			continue
		}
		h.nodes[n] = slices.Clone(h.unreserved[n])
		for _, b := range list {
			if b.By != own {
				h.close(n, b.NodeBusy)
				continue
			}
			h.close(n, planner.NodeBusy{End: b.Start})
			h.close(n, planner.NodeBusy{Start: b.End, End: planner.Forever})
		}
	}
}

func absolute(end, origin int64) int64 {
	if end >= planner.Forever-origin {
		return planner.Forever
	}
	return end + origin
}

// coreOf returns how many CPUs Slurm gives together: two if all nodes and jobs that share nodes have even numbers of CPUs, unless
// a node has one thread in a core or a job fewer than two CPUs of each node.
func coreOf(s *state.Snapshot) int64 {
	if slices.ContainsFunc(s.Nodes, func(n slurmctl.Node) bool { return n.CPUs%2 > 0 || n.Layout.Threads == 1 }) {
		return 1
	}
	any := false
	for i := range s.Jobs {
		if r := &s.Jobs[i]; r.State == slurmctl.Running && !r.Exclusive && r.NumCPUs > 0 {
			if r.NumCPUs%2 > 0 || r.NumCPUs < 2*len(r.NodeList) {
				return 1
			}
			any = true
		}
	}
	if any {
		return 2
	}
	return 1
}

// kind returns the place of a kind of GRES in amounts, or -1.
func (h *nodeShares) kind(g slurmctl.GRES) int {
	if i := slices.IndexFunc(h.kinds, func(k slurmctl.GRES) bool { return k.Name == g.Name && k.Type == g.Type }); i >= 0 {
		return firstKind + i
	}
	return -1
}

// shareOf returns what a job takes of each of its nodes.
func (h *nodeShares) shareOf(r *slurmctl.Job) *share {
	one := &share{whole: r.Exclusive || h.linear, needs: make(amount, h.size), uid: r.UID}
	nodes := int64(max(r.NumNodes, 1))
	cpus := max((int64(r.NumCPUs)+nodes-1)/nodes, int64(r.MinCPUs), 1)
	cpus = (cpus + h.cores - 1) / h.cores * h.cores
	one.needs[ofCPUs] = cpus
	if h.memory {
		one.needs[ofMemory] = r.MinMemory
		one.whole = one.whole || r.MinMemory <= 0 // without a default, Slurm gives all memory
	}
	for name := range strings.SplitSeq(r.Partition, ",") {
		rule := h.c.Rules.Limits.Sharing(name)
		one.whole = one.whole || rule.Whole || h.s.Partitions[name].OverSubscribe == "EXCLUSIVE"
		one.alone = one.alone || rule.OneUser
		if at, is := h.capped[name]; is {
			one.needs[at] = cpus
		}
	}
	one.gres, _ = slurmctl.ParseGRES(r.TRESPer)
	return one
}

// suits returns whether a job can share a node in a stretch.
func (h *nodeShares) suits(at *stretch, one *share) bool {
	if at.used && (one.whole || (at.alone || one.alone) && (at.mixed || at.uid != one.uid)) {
		return false
	}
	for i, n := range one.needs {
		if n > 0 && n > at.left[i] {
			return false
		}
	}
	return len(one.gres) == 0 || h.gresOf(at.left, one.gres) != nil
}

// gresOf returns what is left of a node without some GRES, or nil if they are not left. Those of any type take what is left.
func (h *nodeShares) gresOf(left amount, wanted []slurmctl.GRES) amount {
	left = slices.Clone(left)
	for _, typed := range []bool{true, false} {
		for _, w := range wanted {
			if (w.Type != "") != typed {
				continue
			}
			for i, k := range h.kinds {
				if k.Name == w.Name && (w.Type == "" || k.Type == w.Type) {
					n := max(min(left[firstKind+i], w.Count), 0)
					left[firstKind+i], w.Count = left[firstKind+i]-n, w.Count-n
				}
			}
			if w.Count > 0 {
				return nil
			}
		}
	}
	return left
}

// free returns from when on, at the time t or later, a node has a job's share for that long, in seconds.
func (h *nodeShares) free(node int, t, seconds int64, one *share) int64 {
	list := h.nodes[node]
	i := len(list) - 1
	for i > 0 && list[i].from > t {
		i--
	}
	for ; i < len(list); i++ {
		h.looks++
		end := planner.Forever
		if i+1 < len(list) {
			end = list[i+1].from
		}
		if !h.suits(&list[i], one) {
			t = end
		} else if end-seconds >= t || end == planner.Forever {
			return t
		}
	}
	return planner.Forever
}

// take has a job take its share of a node from start to end.
func (h *nodeShares) take(node int, start, end int64, one *share) {
	if end <= start {
		return
	}
	from := h.split(node, start)
	to := len(h.nodes[node])
	if end < planner.Forever {
		to = h.split(node, end)
	}
	h.looks += to - from
	for i := from; i < to; i++ {
		at := &h.nodes[node][i]
		at.mixed = at.mixed || at.used && at.uid != one.uid
		at.alone = at.alone || one.alone
		at.used, at.uid = true, one.uid
		if one.whole {
			at.left = make(amount, h.size)
			continue
		}
		left := h.gresOf(at.left, one.gres)
		if left == nil { // it has more than is known of
			left = slices.Clone(at.left)
		}
		for k, n := range one.needs {
			left[k] -= n
		}
		at.left = left
	}
}

// split has a stretch of a node begin at t, and returns its place.
func (h *nodeShares) split(node int, t int64) int {
	list := h.nodes[node]
	i := len(list)
	for i > 1 && list[i-1].from > t {
		i--
	}
	if list[i-1].from >= t {
		return i - 1
	}
	next := list[i-1]
	next.from = t
	h.nodes[node] = slices.Insert(list, i, next)
	return i
}

// addRunning adds what jobs have, and returns the ends of the tasks of arrays.
func (h *nodeShares) addRunning(now int64) map[slurmctl.JobID][]int64 {
	ends := map[slurmctl.JobID][]int64{}
	for i := range h.s.Jobs {
		r := &h.s.Jobs[i]
		if len(r.NodeList) == 0 || h.others && (h.c.Owner(r.ID) != nil || slurm.IsExpander(h.c, r)) {
			continue
		}
		end, one := slurm.Releases(h.c, r, now), h.shareOf(r)
		if r.State != slurmctl.Completing {
			ends[r.ArrayJobID] = append(ends[r.ArrayJobID], end)
		}
		for _, name := range r.NodeList {
			if n, known := h.s.Index[name]; known {
				until := end
				if end < planner.Forever {
					until += slurm.OffAfter(&h.c.Power, h.s.Nodes[n])
				}
				h.take(n, now, until, one)
				h.until[n] = max(h.until[n], until)
			}
		}
	}
	return ends
}

// start places a job, or so many tasks of an array, and returns when the first one starts.
func (h *nodeShares) start(cand *slurm.Candidate, ends map[slurmctl.JobID][]int64) int64 {
	first := planner.Forever
	h.placeTasks(cand, ends, limitSeconds(cand.Record), func(start, _ int64, _ []int) { first = min(first, start) })
	return first
}

// placeTasks places a job, or so many tasks of an array, and hands each place to a function before it takes it. It returns how many tasks
// it has placed.
func (h *nodeShares) placeTasks(cand *slurm.Candidate, ends map[slurmctl.JobID][]int64, seconds int64, place func(start, end int64, on []int)) int {
	r, one := cand.Record, h.shareOf(cand.Record)
	h.enter(state.OwnReservation(cand.Inside()))
	count := min(max(r.NumNodes, 1), len(h.s.Nodes))
	if cpus := one.needs[ofCPUs]; count == 1 && !r.Exclusive { // its number of nodes may be open
		count = min(h.nodesFor(cand, cpus), len(h.s.Nodes))
		one.needs[ofCPUs] = (cpus + int64(count) - 1) / int64(count)
	}
	had := ends[r.ArrayJobID]
	slices.Sort(had)
	for i := range min(max(r.ArrayTasks, 1), mostTasks) {
		earliest := cand.Earliest
		if r.ArrayLimit > 0 && len(had) >= r.ArrayLimit {
			earliest = max(earliest, had[len(had)-r.ArrayLimit])
		}
		start, on := h.placeLicensed(cand, count, earliest, seconds, one)
		if start >= planner.Forever {
			return i
		}
		end := start + seconds + 1
		h.takeLicenses(r, start, end)
		place(start, end, on)
		for _, n := range on {
			h.take(n, start, end, one)
		}
		at, _ := slices.BinarySearch(had, end)
		had = slices.Insert(had, at, end)
	}
	return min(max(r.ArrayTasks, 1), mostTasks)
}

// nodesFor returns how many nodes a job of so many CPUs takes, for which it names no number of nodes.
func (h *nodeShares) nodesFor(cand *slurm.Candidate, cpus int64) int {
	most := int64(1)
	for _, n := range cand.Nodes {
		most = max(most, int64(h.s.Nodes[n].CPUs))
	}
	return int(min((cpus+most-1)/most, math.MaxInt32))
}

// licensesOf returns which licences a job, or each task of an array, needs. Those of a heterogeneous job do not count.
func (h *nodeShares) licensesOf(r *slurmctl.Job) []slurmctl.License {
	if len(h.o.Licenses.All) == 0 || r.Licenses == "" || r.Heterogenous {
		return nil
	}
	asked, _ := slurmctl.ParseLicenses(r.Licenses)
	return asked
}

// takeLicenses has a job have its licences from start to end.
func (h *nodeShares) takeLicenses(r *slurmctl.Job, start, end int64) {
	h.licenses.Take(start-h.o.Origin, end-h.o.Origin, h.licensesOf(r))
}

// placeLicensed does what place does, for a job that also needs its licences.
func (h *nodeShares) placeLicensed(cand *slurm.Candidate, count int, t, seconds int64, one *share) (int64, []int) {
	asked := h.licensesOf(cand.Record)
	for {
		start, on := h.place(cand, count, t, seconds, one)
		if t = start; len(asked) > 0 && start < planner.Forever {
			t = absolute(h.licenses.After(start-h.o.Origin, asked, seconds), h.o.Origin)
		}
		if t == start {
			return start, on
		}
		if t >= planner.Forever {
			return planner.Forever, nil
		}
	}
}

// place returns when a job can start at the earliest, and on which nodes.
func (h *nodeShares) place(cand *slurm.Candidate, count int, earliest, seconds int64, one *share) (int64, []int) {
	if cand.Parts != nil {
		return h.placeParts(cand.Parts, earliest, seconds, one)
	}
	choices := cand.Choices
	if choices == nil {
		choices = [][]int{cand.Nodes}
	}
	best, where := planner.Forever, []int(nil)
	for _, nodes := range choices {
		if start, on := h.placeOn(nodes, count, earliest, seconds, one); start < best {
			best, where = start, on
		}
	}
	return best, where
}

// placeParts places a job that gets each of its parts.
func (h *nodeShares) placeParts(parts []slurm.Part, t, seconds int64, one *share) (int64, []int) {
	for {
		next, all := t, []int(nil)
		for _, part := range parts {
			start, on := h.placeOn(part.Nodes, part.Count, t, seconds, one)
			next, all = max(next, start), append(all, on...)
		}
		if next == t || next >= planner.Forever {
			return next, all
		}
		t = next
	}
}

func (h *nodeShares) placeOn(nodes []int, count int, t, seconds int64, one *share) (int64, []int) {
	if len(nodes) < count {
		return planner.Forever, nil
	}
	if slices.ContainsFunc(nodes, func(n int) bool { return h.s.Nodes[n].Weight != h.s.Nodes[nodes[0]].Weight }) {
		nodes = slices.Clone(nodes)
		slices.SortStableFunc(nodes, func(a, b int) int { return h.s.Nodes[a].Weight - h.s.Nodes[b].Weight })
	}
	for t < planner.Forever && h.looks < mostLooks {
		var on []int
		later := make([]int64, 0, len(nodes))
		for _, n := range nodes {
			at := h.free(n, t, seconds, one)
			if at > t {
				later = append(later, at)
			} else if on = append(on, n); len(on) == count && h.held == nil {
				return t, on
			}
		}
		if len(on) >= count {
			slices.SortStableFunc(on, func(a, b int) int { return cmp.Compare(min(h.held[b], t+seconds), min(h.held[a], t+seconds)) })
			return t, on[:count]
		}
		slices.Sort(later)
		t = later[count-len(on)-1] // no earlier are enough nodes free
	}
	return planner.Forever, nil
}
