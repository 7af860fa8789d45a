package malleable

import (
	"fmt"
	"slices"
)

// Job is a running malleable job.
type Job struct {
	ID       string
	Start    int64 // second at which it started
	Nodes    int   // allocated; at its start this need not be one of Sizes
	Min, Max int
	Sizes    Sizes   // that it can use, within Min … Max
	Speedup  Speedup // declared or measured; nil: not known

	// It may refuse any request, mandatory ones, too: nothing can be counted on.
	Voluntary bool
	// It is not asked for now: a change is under way, or it has declined one of late.
	Held bool
}

func (j Job) bounds() Bounds { return Bounds{j.Min, j.Max} }

// Least is the smallest size to which it can be shrunk, Most the largest to which it can be
// grown.
func (j Job) Least() int { return j.bounds().Least(j.Sizes) }

// Most is the largest size to which it can be grown.
func (j Job) Most() int { return j.bounds().Most(j.Sizes) }

// Reclaimable is how many nodes can be had of it for certain.
func (j Job) Reclaimable() int {
	if j.Voluntary || j.Held {
		return 0
	}
	return max(j.Nodes-j.Least(), 0)
}

// Validate says what is wrong with a job.
func (j Job) Validate() error {
	if err := j.bounds().Validate(j.Sizes); err != nil {
		return fmt.Errorf("job %s: %w", j.ID, err)
	}
	if j.Nodes < j.Min || j.Nodes > j.Max {
		return fmt.Errorf("job %s has %d nodes, which is not within %s", j.ID, j.Nodes, j.bounds())
	}
	return nil
}

// Kind is what a request asks for.
type Kind int

// What may be asked for.
const (
	Grow   Kind = iota // up to Nodes more
	Shrink             // at least Nodes fewer
	// Balance is asked of policies alone, when all nodes are in use: shrinks that free nodes
	// for other malleable jobs, which the next Grow gives to them. Nodes is how many are
	// free beside.
	Balance
)

func (k Kind) String() string { return [...]string{"grow", "shrink", "balance"}[k] }

// Request asks a job, or by way of a policy all of them, to change.
type Request struct {
	Kind      Kind
	Nodes     int
	Mandatory bool // the system is in direct need of the nodes (II-D)
}

// Ask sends a request to a job and gives the number of nodes that it accepts. The job is as
// it is after all that it accepted before. An answer beyond the request or the job's bounds
// counts as far as them; to shrink, a job may give more than it is asked for, as where it
// takes powers of two.
type Ask func(j Job, r Request) (accepted int)

// Declared answers for jobs as they have declared: all that their bounds and sizes allow.
func Declared(j Job, r Request) (accepted int) { return j.Accepts(r) }

// Accepts is the answer of a job that does all that it can.
func (j Job) Accepts(r Request) int {
	if r.Kind == Grow {
		return max(j.Sizes.Floor(min(j.Nodes+r.Nodes, j.Max))-j.Nodes, 0)
	}
	if r.Nodes <= 0 {
		return 0
	}
	return max(j.Nodes-max(j.Sizes.Floor(j.Nodes-r.Nodes), j.Least()), 0)
}

// Change is a request to one job with its answer.
type Change struct {
	Job int // index
	Request
	Accepted int // nodes
}

// Size is the job's after the change.
func (c Change) Size(j Job) int {
	if c.Kind == Grow {
		return j.Nodes + c.Accepted
	}
	return j.Nodes - c.Accepted
}

// Policy says which jobs grow or shrink when some nodes are to be distributed or reclaimed.
type Policy interface {
	Name() string
	// Apply asks jobs to grow by up to r.Nodes in all, or to shrink by r.Nodes or more.
	// No job is asked twice. Nobody needs to be asked for a Balance. The changes are those requests of which anything was
	// accepted, all of one kind, in the order in which they were sent.
	Apply(jobs []Job, r Request, ask Ask) []Change
}

// help says what each policy does.
var help = map[string]string{
	"fpsma":         "Grows the jobs that started first, shrinks those that started last (FPSMA, Buisson et al. 2007).",
	"egs":           "Gives to all jobs, or takes from all, the same number of nodes (EGS, Buisson et al. 2007).",
	"equipartition": "Makes all jobs as equal in size as their bounds allow.",
	"folding":       "Doubles the smallest jobs, halves the largest (McCann and Zahorjan 1994).",
	"gain":          "Gives nodes where they speed up most, by declared or measured speed-ups; takes them where they are missed least.",
}

// Policies are the names of all policies: the paper's, then the others.
func Policies() []string { return []string{"fpsma", "egs", "equipartition", "folding", "gain"} }

// Help is what the policy of that name does, in a sentence.
func Help(name string) string { return help[name] }

// PolicyByName gives a policy.
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

// asked are the indices of the jobs to which a request may be sent, in increasing order of
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

// send asks a job and takes from the answer what may be taken.
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

// Check reports whether a policy's changes may be believed, whoever made them: all of one
// kind, no job asked that must not be or twice, every new size within the job's bounds and one of
// its sizes, and no more nodes given than there are. A mandatory shrink frees what is asked
// for wherever the jobs can give that much. No job gives more than it would if it were asked
// alone, but that it may halve once more.
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

// reclaimable is how many nodes all jobs together can give for certain.
func reclaimable(jobs []Job) int {
	sum := 0
	for _, j := range jobs {
		sum += j.Reclaimable()
	}
	return sum
}
