package malleable

import (
	"fmt"
	"slices"
)

// Job is a running malleable job.
type Job struct {
	ID       string
	Start    int64 // second at which it started
	Nodes    int   // allocated; at its start, this may not be one of Sizes
	Min, Max int
	Sizes    Sizes   // sizes that it can use, within Min … Max
	Speedup  Speedup // declared or measured; nil if unknown

	// It may refuse any request, even a mandatory one, so nothing can be counted on.
	Voluntary bool
	// It must not be asked now: a change is under way, or it declined one recently.
	Held bool
}

func (j Job) bounds() Bounds { return Bounds{j.Min, j.Max} }

// Least returns the smallest size to which it can be shrunk.
func (j Job) Least() int { return j.bounds().Least(j.Sizes) }

// Most returns the largest size to which it can be grown.
func (j Job) Most() int { return j.bounds().Most(j.Sizes) }

// Reclaimable returns how many nodes the job is sure to give.
func (j Job) Reclaimable() int {
	if j.Voluntary || j.Held {
		return 0
	}
	return max(j.Nodes-j.Least(), 0)
}

// Validate returns what is wrong with a job.
func (j Job) Validate() error {
	if err := j.bounds().Validate(j.Sizes); err != nil {
		return fmt.Errorf("job %s: %w", j.ID, err)
	}
	if j.Nodes < j.Min || j.Nodes > j.Max {
		return fmt.Errorf("job %s has %d nodes, which is not within %s", j.ID, j.Nodes, j.bounds())
	}
	return nil
}

// Kind is the kind of a request.
type Kind int

// The kinds of requests.
const (
	Grow   Kind = iota // up to Nodes more
	Shrink             // at least Nodes fewer
	// Balance goes only to policies, when all nodes are in use: it asks for shrinks that free nodes
	// for other malleable jobs, which the next Grow gives to them. Nodes is how many are free
	// besides.
	Balance
)

func (k Kind) String() string { return [...]string{"grow", "shrink", "balance"}[k] }

// Request asks a job, or through a policy all jobs, to change.
type Request struct {
	Kind      Kind
	Nodes     int
	Mandatory bool // the system needs the nodes now (II-D)
}

// Ask sends a request to a job and returns the number of nodes that it accepts. The job includes
// all that it accepted before. An answer beyond the request or the job's bounds counts only up to
// them. When asked to shrink, a job may give more than requested, e.g. if it uses powers of two.
type Ask func(j Job, r Request) (accepted int)

// Declared answers for jobs as they declared: everything that their bounds and sizes allow.
func Declared(j Job, r Request) (accepted int) { return j.Accepts(r) }

// Accepts returns the answer of a job that does all it can.
func (j Job) Accepts(r Request) int {
	if r.Kind == Grow {
		return max(j.Sizes.Floor(min(j.Nodes+r.Nodes, j.Max))-j.Nodes, 0)
	}
	if r.Nodes <= 0 {
		return 0
	}
	return max(j.Nodes-max(j.Sizes.Floor(j.Nodes-r.Nodes), j.Least()), 0)
}

// Change is a request to one job, with its answer.
type Change struct {
	Job int // index
	Request
	Accepted int // nodes
}

// Size returns the job's size after the change.
func (c Change) Size(j Job) int {
	if c.Kind == Grow {
		return j.Nodes + c.Accepted
	}
	return j.Nodes - c.Accepted
}

// Policy decides which jobs grow or shrink when the manager gives out or reclaims nodes.
type Policy interface {
	Name() string
	// Apply asks jobs to grow by up to r.Nodes in total, or to shrink by r.Nodes or more. It asks
	// no job twice. For a Balance, it may ask no job. It returns the requests that were at least
	// partly accepted, all of one kind, in the order in which they were sent.
	Apply(jobs []Job, r Request, ask Ask) []Change
}

// help describes each policy.
var help = map[string]string{
	"fpsma":         "Grows the jobs that started first, shrinks those that started last (FPSMA, Buisson et al. 2007).",
	"egs":           "Gives to all jobs, or takes from all, the same number of nodes (EGS, Buisson et al. 2007).",
	"equipartition": "Makes all jobs as equal in size as their bounds allow.",
	"folding":       "Doubles the smallest jobs, halves the largest (McCann and Zahorjan 1994).",
	"gain":          "Gives nodes where they speed up most, by declared or measured speed-ups; takes them where they are missed least.",
}

// Policies returns the names of all policies: the paper's, then the others.
func Policies() []string { return []string{"fpsma", "egs", "equipartition", "folding", "gain"} }

// Help returns in one sentence what the policy with that name does.
func Help(name string) string { return help[name] }

// PolicyByName returns a policy.
func PolicyByName(name string) (Policy, error) {
	switch name {
	case "fpsma":
		return FPSMA{}, nil
	case "egs":
		return EGS{}, nil
	case "equipartition":
		return Equipartition{}, nil
	case "folding":
		return Folding{}, nil
	case "gain":
		return Gain{}, nil
	}
	return nil, fmt.Errorf("there is no malleability policy %q; there are %v", name, Policies())
}

// asked returns the indices of the jobs to which a request may be sent, in increasing order of
// their start times.
func asked(jobs []Job, r Request) []int {
	var list []int
	for i, j := range jobs {
		if !j.Held && !(j.Voluntary && r.Mandatory) {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int {
		switch {
		case jobs[a].Start < jobs[b].Start:
			return -1
		case jobs[a].Start > jobs[b].Start:
			return 1
		}
		return 0
	})
	return list
}

// send asks a job and limits its answer to what is allowed.
func send(jobs []Job, i int, r Request, ask Ask, changes *[]Change) (accepted int) {
	if r.Nodes <= 0 {
		return 0
	}
	most := jobs[i].Nodes - jobs[i].Min
	if r.Kind == Grow {
		most = min(r.Nodes, jobs[i].Max-jobs[i].Nodes)
	}
	if accepted = max(min(ask(jobs[i], r), most), 0); accepted > 0 {
		*changes = append(*changes, Change{i, r, accepted})
	}
	return accepted
}

// Check reports whether a policy's changes are valid, whatever policy made them. They must be of
// one kind. No job may be asked twice or against its state. Every new size must be within the job's
// bounds and one of its sizes, and no more nodes may be given than there are. A mandatory shrink
// must free what is requested if the jobs can give that much. No job may give more than if asked
// alone, except for one further halving.
func Check(jobs []Job, r Request, changes []Change) error {
	kind := r.Kind
	if kind == Balance {
		kind = Shrink
	}
	sum := 0
	seen := make(map[int]bool, len(changes))
	for _, c := range changes {
		if c.Job < 0 || c.Job >= len(jobs) {
			return fmt.Errorf("there is no job %d", c.Job+1)
		}
		j := jobs[c.Job]
		size := c.Size(j)
		switch {
		case seen[c.Job]:
			return fmt.Errorf("job %s is changed twice", j.ID)
		case c.Kind != kind:
			return fmt.Errorf("job %s is to %s; asked was for a %s", j.ID, c.Kind, r.Kind)
		case c.Accepted < 1:
			return fmt.Errorf("job %s is to %s by %d nodes", j.ID, c.Kind, c.Accepted)
		case j.Held:
			return fmt.Errorf("job %s is changed, which may not be asked for now", j.ID)
		case j.Voluntary && r.Mandatory:
			return fmt.Errorf("job %s is changed, which need not obey", j.ID)
		case size < j.Min || size > j.Max:
			return fmt.Errorf("job %s gets %d nodes, which is not within %s", j.ID, size, j.bounds())
		case !j.Sizes.Has(size):
			return fmt.Errorf("job %s gets %d nodes, which is no %s", j.ID, size, j.Sizes.words())
		case r.Kind == Shrink && c.Accepted > j.Accepts(r) && 2*size < j.Nodes-r.Nodes:
			return fmt.Errorf("job %s gives %d nodes where %d are asked for of all", j.ID, c.Accepted, r.Nodes)
		}
		seen[c.Job] = true
		sum += c.Accepted
	}
	if kind == Grow && sum > r.Nodes {
		return fmt.Errorf("jobs grow by %d nodes, there are %d", sum, r.Nodes)
	}
	if r.Mandatory && kind == Shrink {
		if possible := reclaimable(jobs); sum < min(r.Nodes, possible) {
			return fmt.Errorf("jobs shrink by %d nodes, though %d are needed and they can give %d", sum, r.Nodes, possible)
		}
	}
	return nil
}

// reclaimable returns how many nodes all jobs together are sure to give.
func reclaimable(jobs []Job) int {
	sum := 0
	for _, j := range jobs {
		sum += j.Reclaimable()
	}
	return sum
}
