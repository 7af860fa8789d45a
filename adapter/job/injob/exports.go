package injob

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Var is one environment variable.
type Var struct{ Name, Value string }

// Exports holds the changes to a job script's environment that make srun and MPI launchers see the
// job's current nodes.
type Exports struct {
	Unset []string
	Set   []Var
}

// stale lists the variables that sbatch set for the first step and that srun would keep using.
var stale = []string{"SLURM_NTASKS", "SLURM_NPROCS"}

// ExportsOf returns the exports for an allocation. getenv reads the current environment: the
// options that the script was submitted with (tasks per node, CPUs per task) apply to every node,
// including new ones.
//
// The SLURM_ variables describe the base job: in drive mode companion, srun reaches no further, and
// EVO_NODELIST has all nodes. EVO_GAVE_BACK, if set, lists nodes that the base job gave back: a
// plain srun must exclude them.
func ExportsOf(a api.Allocation, getenv func(string) string) (Exports, error) {
	if err := check(a); err != nil {
		return Exports{}, err
	}
	done := ""
	if a.Done {
		done = "1"
	}
	frequency := frequencyExports(a, getenv)
	e := Exports{
		Unset: slices.Concat([]string{VarError}, stale, unsetStepMgr(a, getenv), frequency.Unset),
		Set: []Var{
			{VarJob, strconv.FormatUint(uint64(a.Job), 10)},
			{VarStep, strconv.Itoa(a.Step)},
			{VarSteps, strconv.Itoa(a.Steps)},
			{VarNodes, strconv.Itoa(len(NodesOf(a)))},
			{VarNodeList, slurmctl.CompressNodes(NodesOf(a))},
			{VarDrive, a.Drive},
			{VarDone, done},
			{VarLost, slurmctl.CompressNodes(a.Lost)},
			{VarRestarts, strconv.Itoa(Restarts(a, getenv))},
		},
	}
	e.Set = slices.Concat(e.Set, frequency.Set, componentVars(a))
	if len(a.Parts) == 0 {
		return e, nil
	}
	base := sorted(a.Parts[0])
	slots := make([]int, len(base.CPUs))
	for i, cpus := range base.CPUs {
		slots[i] = slotsOf(cpus, getenv)
	}
	list, n := slurmctl.CompressNodes(base.NodeList), strconv.Itoa(len(base.NodeList))
	e.Set = append(e.Set,
		Var{"SLURM_JOB_NODELIST", list}, Var{"SLURM_NODELIST", list},
		Var{"SLURM_JOB_NUM_NODES", n}, Var{"SLURM_NNODES", n},
		Var{"SLURM_TASKS_PER_NODE", counts(slots)}, Var{"SLURM_JOB_CPUS_PER_NODE", counts(base.CPUs)},
	)
	if gone := gaveBack(a, getenv); len(gone) > 0 {
		e.Set = append(e.Set, Var{VarGaveBack, slurmctl.CompressNodes(gone)})
	} else if getenv(VarGaveBack) != "" {
		e.Unset = append(e.Unset, VarGaveBack)
	}
	return e, nil
}

// Restarts returns how often the job was put back into the queue. Slurm's own count for the caller's job (SLURM_RESTART_COUNT) goes
// for a sidecar that missed some, e.g. because it lost its database.
func Restarts(a api.Allocation, getenv func(string) string) int {
	own := getenv("SLURM_JOB_ID")
	is := func(job uint32) bool { return strconv.FormatUint(uint64(job), 10) == own }
	if !is(a.Job) && !slices.ContainsFunc(a.Parts, func(p api.Part) bool { return is(p.Job) }) {
		return a.Restarts
	}
	return max(a.Restarts, positive(getenv("SLURM_RESTART_COUNT")))
}

// ExportsOfComing returns variables about the next step, all empty after the last step: when it is
// planned (in Unix seconds), its number of nodes, and which nodes arrive and leave. It also returns
// what is demanded of a malleable job, or empty values.
func ExportsOfComing(a api.Allocation) (Exports, error) {
	var step, nodes, at, arriving, leaving string
	if err := checkLost(a); err != nil {
		return Exports{}, err
	}
	if n := a.Coming; n != nil {
		for _, name := range slices.Concat(n.Arriving, n.Leaving) {
			if !validNode(name) {
				return Exports{}, noNode(a.Job, name)
			}
		}
		step, nodes = strconv.Itoa(n.Step), strconv.Itoa(n.Nodes)
		arriving, leaving = slurmctl.CompressNodes(n.Arriving), slurmctl.CompressNodes(n.Leaving)
		if !n.At.IsZero() {
			at = strconv.FormatInt(n.At.Unix(), 10)
		}
	}
	var demand, going, by string
	if d := a.Demand; d != nil {
		for _, name := range d.Leaving {
			if !validNode(name) {
				return Exports{}, noNode(a.Job, name)
			}
		}
		demand, going, by = strconv.FormatInt(d.Offer, 10), slurmctl.CompressNodes(d.Leaving), strconv.FormatInt(d.Deadline.Unix(), 10)
	}
	return Exports{Unset: []string{VarError}, Set: []Var{
		{"EVO_NEXT_STEP", step}, {"EVO_NEXT_NODES", nodes}, {"EVO_NEXT_AT", at},
		{"EVO_NEXT_ARRIVING", arriving}, {"EVO_NEXT_LEAVING", leaving},
		{"EVO_DEMAND", demand}, {"EVO_DEMAND_LEAVING", going}, {"EVO_DEMAND_AT", by},
		{VarLost, slurmctl.CompressNodes(a.Lost)},
	}}, nil
}

// checkLost refuses an answer with lost nodes that can be none.
func checkLost(a api.Allocation) error {
	for _, name := range a.Lost {
		if !validNode(name) {
			return noNode(a.Job, name)
		}
	}
	return nil
}

// noNode says that an answer names what can be no node.
func noNode(job uint32, name string) error {
	return fmt.Errorf("the sidecar's answer about job %d: %q is not a node name", job, name)
}

// NodesOfOffer returns the names of the nodes that a malleable job is offered, or asked for.
func NodesOfOffer(o api.Offer) ([]string, error) {
	nodes, err := slurmctl.ExpandNodes(o.NodeList)
	if err != nil {
		return nil, fmt.Errorf("the sidecar's answer about job %d: %w", o.Job, err)
	}
	for _, name := range slices.Concat(nodes, o.Order, o.Further) {
		if !validNode(name) {
			return nil, fmt.Errorf("the sidecar's answer about job %d: %q is not a node name", o.Job, name)
		}
	}
	return nodes, nil
}

// GivenBack returns the first nodes that a malleable job should give back, in their order, or nil
// if they are unknown.
func GivenBack(o api.Offer, nodes int) []string {
	names, err := NodesOfOffer(o)
	switch {
	case err != nil || o.Kind == "grow" || nodes < 1:
		return nil
	case len(o.Order) > 0:
		names = o.Order
	case nodes < len(names):
		return nil
	}
	names = slices.Concat(names, o.Further)
	return names[:min(nodes, len(names))]
}

// ExportsOfOffer returns variables about what a malleable job is offered or asked for.
func ExportsOfOffer(o api.Offer) (Exports, error) {
	nodes, err := NodesOfOffer(o)
	if err != nil {
		return Exports{}, err
	}
	mandatory := ""
	if o.Mandatory {
		mandatory = "1"
	}
	kind := "grow"
	if o.Kind != kind {
		kind = "shrink"
	}
	until := ""
	if !o.Until.IsZero() {
		until = strconv.FormatInt(o.Until.Unix(), 10)
	}
	return Exports{Unset: []string{VarError}, Set: []Var{
		{VarOffer, strconv.FormatInt(o.ID, 10)}, {VarOffer + "_JOB", strconv.FormatUint(uint64(o.Job), 10)}, {VarOffer + "_KIND", kind},
		{VarOffer + "_MANDATORY", mandatory}, {VarOffer + "_NODES", strconv.Itoa(o.Nodes)}, {VarOffer + "_NODELIST", slurmctl.CompressNodes(nodes)},
		{VarOffer + "_SECONDS", strconv.Itoa(o.Seconds)}, {VarOffer + "_UNTIL", until},
	}}, nil
}

// WithoutSlurm returns the exports for starting an MPI launcher over several Slurm jobs. It removes
// every trace of the base job from the environment, which launchers would mistake for the whole
// job, or copy to every rank.
func (e Exports) WithoutSlurm(environ []string) Exports {
	w := Exports{Unset: []string{VarError}}
	for _, entry := range environ {
		if name, _, _ := strings.Cut(entry, "="); slurmsOwn(name) {
			w.Unset = append(w.Unset, name)
		}
	}
	for _, v := range e.Set {
		if !slurmsOwn(v.Name) {
			w.Set = append(w.Set, v)
		}
	}
	return w
}

// slurmsOwn reports whether Slurm sets the variable for a job, a step or a task.
func slurmsOwn(name string) bool {
	return (strings.HasPrefix(name, "SLURM_") || strings.HasPrefix(name, "SLURMD_")) && name != "SLURM_CONF"
}

// Apply makes the changes to an environment of NAME=value strings.
func (e Exports) Apply(environ []string) []string {
	gone := make(map[string]bool)
	for _, name := range e.Unset {
		gone[name] = true
	}
	for _, v := range e.Set {
		gone[v.Name] = true
	}
	out := make([]string, 0, len(environ)+len(e.Set))
	for _, entry := range environ {
		if name, _, _ := strings.Cut(entry, "="); !gone[name] {
			out = append(out, entry)
		}
	}
	for _, v := range e.Set {
		out = append(out, v.Name+"="+v.Value)
	}
	return out
}

// check refuses an allocation that no Slurm has.
func check(a api.Allocation) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("the sidecar's answer about job %d: %s", a.Job, fmt.Sprintf(format, args...))
	}
	if len(a.Parts) == 0 && !a.Done {
		return bad("no nodes")
	}
	if a.Drive != "" {
		if _, err := drivemode.Parse(a.Drive); err != nil {
			return bad("%v", err)
		}
	}
	if err := cmp.Or(checkFrequency(a), checkComponents(a), checkLost(a)); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for _, p := range a.Parts {
		if p.Job == 0 || len(p.NodeList) == 0 || len(p.CPUs) != len(p.NodeList) {
			return bad("Slurm job %d with %d nodes and %d CPU counts", p.Job, len(p.NodeList), len(p.CPUs))
		}
		for i, name := range p.NodeList {
			if seen[name] {
				return bad("%s twice", name)
			}
			seen[name] = true
			if !validNode(name) {
				return bad("%q is not a node name", name)
			}
			if p.CPUs[i] < 1 {
				return bad("%d CPUs on %s", p.CPUs[i], name)
			}
		}
	}
	return nil
}

// validNode reports whether text is a node's name: letters, digits, dots, dashes
// and underscores, not beginning with a dash.
func validNode(text string) bool {
	for i, r := range text {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
		case (r == '-' || r == '.') && i > 0:
		default:
			return false
		}
	}
	return text != "" && len(text) <= 255
}

// sorted returns the part with its nodes in the order of CompressNodes, so that counts per node
// match the node list beside them.
func sorted(p api.Part) api.Part {
	cpus := make(map[string]int)
	for i, node := range p.NodeList {
		cpus[node] = p.CPUs[i]
	}
	s := api.Part{Job: p.Job, NodeList: slices.Clone(p.NodeList), CPUs: make([]int, len(p.CPUs))}
	slurmctl.SortNodes(s.NodeList)
	for i, node := range s.NodeList {
		s.CPUs[i] = cpus[node]
	}
	return s
}

// NodesOf returns all nodes of an allocation, part by part.
func NodesOf(a api.Allocation) []string {
	var nodes []string
	for _, p := range a.Parts {
		nodes = append(nodes, p.NodeList...)
	}
	return nodes
}

// slotsOf returns how many tasks Slurm would place on a node: --ntasks-per-node, or otherwise the
// CPUs divided by --cpus-per-task.
func slotsOf(cpus int, getenv func(string) string) int {
	if n := positive(getenv("SLURM_NTASKS_PER_NODE")); n > 0 {
		return n
	}
	if n := positive(getenv("SLURM_CPUS_PER_TASK")); n > 0 {
		return max(1, cpus/n)
	}
	return cpus
}

// positive returns the number in text, 0 if there is none.
func positive(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// counts writes numbers per node as Slurm does: 4(x2),3.
func counts(ns []int) string {
	var b strings.Builder
	for i := 0; i < len(ns); {
		j := i
		for j < len(ns) && ns[j] == ns[i] {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(ns[i]))
		if j-i > 1 {
			fmt.Fprintf(&b, "(x%d)", j-i)
		}
		i = j
	}
	return b.String()
}
