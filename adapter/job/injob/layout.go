package injob

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// share is the part of a command that one part of an allocation runs.
type share struct {
	job   uint32
	nodes []string
	tasks int
	first int // rank of its first task
}

// layOut spreads a command's tasks over the parts as srun would over nodes: one task on each node
// that -N, -w, and -x leave; further tasks for -n in proportion to the CPUs. O(nodes).
func layOut(a api.Allocation, s srunArgs, getenv func(string) string) ([]share, error) {
	parts, err := chooseNodes(a, s)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, p := range parts {
		n += len(p.NodeList)
	}
	tasks, given, err := s.number("ntasks")
	if err != nil {
		return nil, err
	}
	perNode, perNodeGiven, err := s.number("ntasks-per-node")
	if err != nil {
		return nil, err
	}
	if !perNodeGiven {
		perNode = max(1, positive(getenv("SLURM_NTASKS_PER_NODE")))
	}
	if !given {
		tasks = perNode * n
	}
	if tasks < n {
		parts, n = firstNodes(parts, tasks), tasks
	}
	shares := make([]share, len(parts))
	weights := make([]int, len(parts))
	for i, p := range parts {
		shares[i] = share{job: p.Job, nodes: p.NodeList, tasks: len(p.NodeList)}
		for _, cpus := range p.CPUs {
			weights[i] += cpus
		}
		if !given {
			weights[i] = len(p.NodeList) // the same on every node
		}
	}
	spread(shares, weights, tasks-n)
	first := 0
	for i := range shares {
		shares[i].first = first
		first += shares[i].tasks
	}
	return shares, nil
}

// spread adds n tasks to the shares in proportion to the weights: the sum before any share is the
// exact proportion, rounded down.
func spread(shares []share, weights []int, n int) {
	total := 0
	for _, w := range weights {
		total += w
	}
	sum, placed := 0, 0
	for i, w := range weights {
		sum += w
		upTo := int(int64(n) * int64(sum) / int64(total))
		shares[i].tasks += upTo - placed
		placed = upTo
	}
}

// chooseNodes returns the parts with the nodes that -w, -x and -N leave of them.
func chooseNodes(a api.Allocation, s srunArgs) ([]api.Part, error) {
	set := func(name string) (map[string]bool, error) {
		value, given := s.last(name)
		if !given {
			return nil, nil
		}
		return chosen(a, name, value)
	}
	only, err := set("nodelist")
	if err != nil {
		return nil, err
	}
	not, err := set("exclude")
	if err != nil {
		return nil, err
	}
	limit, err := nodesLimit(len(NodesOf(a)), s)
	if err != nil {
		return nil, err
	}
	var parts []api.Part
	for _, p := range a.Parts {
		q := api.Part{Job: p.Job}
		for i, node := range p.NodeList {
			if only != nil && !only[node] || not[node] {
				continue
			}
			q.NodeList = append(q.NodeList, node)
			q.CPUs = append(q.CPUs, p.CPUs[i])
		}
		if len(q.NodeList) > 0 {
			parts = append(parts, q)
		}
	}
	parts = firstNodes(parts, limit)
	if len(parts) == 0 {
		return nil, fmt.Errorf("--nodelist and --exclude leave no node")
	}
	return parts, nil
}

// nodesLimit returns how many nodes of those that the job has --nodes allows.
func nodesLimit(has int, s srunArgs) (int, error) {
	value, given := s.last("nodes")
	if !given {
		return has, nil
	}
	least, most, isRange := strings.Cut(value, "-")
	if !isRange {
		most = least
	}
	low, high := positive(least), positive(most)
	if low == 0 || high < low {
		return 0, fmt.Errorf("--nodes=%s: want a number of nodes", value)
	}
	if low > has {
		return 0, fmt.Errorf("--nodes=%s: the job has %d nodes", value, has)
	}
	return high, nil
}

// firstNodes returns the parts cut to n nodes.
func firstNodes(parts []api.Part, n int) []api.Part {
	var cut []api.Part
	for _, p := range parts {
		if n <= 0 {
			break
		}
		k := min(n, len(p.NodeList))
		cut = append(cut, api.Part{Job: p.Job, NodeList: p.NodeList[:k], CPUs: p.CPUs[:k]})
		n -= k
	}
	return cut
}

// number returns the value of an option that is a positive number.
func (s srunArgs) number(name string) (int, bool, error) {
	value, given := s.last(name)
	if !given {
		return 0, false, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return 0, true, fmt.Errorf("--%s=%s: want a positive number", name, value)
	}
	return n, true, nil
}
