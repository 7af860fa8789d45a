package sites

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/planner"
)

//go:embed job.sh
var jobScript string

// demand is an evolving job and what has to be true of it.
type demand struct {
	profile string   // "": the site's
	args    []string // of evosbatch
	bare    bool     // without what a user of the site must give
	also    string   // a shell command that has to succeed in every step
	pause   int      // seconds from the beginning of a step until it runs anything

	has   func(node string) share // what it must have of a node; nil: of every node what it has of the first
	part  func(seen) string       // what is wrong with one of its Slurm jobs, if anything
	gpus  string                  // that a task sees of a node, "": not looked at
	never []string                // nodes that it must not have
	drive string                  // that it must get; "": any
	over  string                  // partition that growths may be in; "" for only its own
}

// everywhere returns the same share of every node.
func everywhere(memory, gres string) func(string) share {
	return func(string) share { return share{Memory: memory, GRES: gres} }
}

// job is an evolving job that was submitted.
type job struct {
	demand
	id        int
	steps     planner.Profile
	submitted time.Time
}

// told holds what the job printed.
type told struct {
	steps []toldStep
	wrong []string
	ended bool // it came to its last line
	text  string
}

type toldStep struct {
	begin, settled, leave time.Time
	allocation            api.Allocation
	nodes                 []string // one for each task that answered
	gpus                  []string
}

// submit submits the job; where that is refused it gives the words.
func (r *trial) submit(d demand) (job, string) {
	r.t.Helper()
	if d.profile == "" {
		d.profile = r.site.Profile
	}
	j := job{demand: d, submitted: time.Now()}
	var err error
	j.steps, err = planner.ParseProfile(d.profile)
	r.must(err)
	script := r.Dir + "/job.sh"
	r.must(os.WriteFile(script, []byte(jobScript), 0o755))
	must := r.site.Job
	if d.bare {
		must = nil
	}
	args := slices.Concat([]string{"--parsable", "--output=out-%j", "--profile=" + d.profile}, must, d.args, []string{script, d.also, strconv.Itoa(d.pause)})
	for _, s := range j.steps {
		args = append(args, strconv.Itoa(int(s.Duration)-1-d.pause))
	}
	before := r.known()
	text, errs, err := r.As(0, "evosbatch", args...)
	if err != nil {
		if more := r.known(); len(more) != len(before) {
			r.errorf("evosbatch refused (%s) but the number of jobs in Slurm went from %d to %d", oneLine(errs), len(before), len(more))
		}
		if errs == "" {
			r.errorf("evosbatch %q fails without a word: %v", d.args, err)
		}
		return j, oneLine(errs)
	}
	j.id, err = strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		r.fatalf("evosbatch --parsable printed %q", text)
	}
	return j, ""
}

// oneLine returns a text for people in one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// known returns the ids of the jobs that are pending or run.
func (r *trial) known() (ids []int) {
	for _, j := range look(r.Cluster) {
		if j.State == "PENDING" || j.State == "RUNNING" {
			ids = append(ids, j.ID)
		}
	}
	return ids
}

// accepted submits a job that must not be refused.
func (r *trial) accepted(d demand) job {
	r.t.Helper()
	j, words := r.submit(d)
	if words != "" {
		r.fatalf("evosbatch %q --profile=%s: %s", d.args, j.profile, words)
	}
	return j
}

// refused submits a job that must be refused, with each of the words.
func (r *trial) refused(d demand, words ...string) {
	r.t.Helper()
	j, said := r.submit(d)
	if said == "" {
		r.errorf("evosbatch %q --profile=%s was taken as job %d; want a refusal with %q", d.args, j.profile, j.id, words)
		r.cancel(j.id)
		return
	}
	r.refusal(said, words...)
}

// refusal notes a refusal, which must have each of the words.
func (r *trial) refusal(said string, words ...string) {
	r.t.Helper()
	for _, w := range words {
		if !strings.Contains(strings.ToLower(said), strings.ToLower(w)) {
			r.errorf("the refusal does not say %q: %s", w, said)
		}
	}
	if !r.t.Failed() {
		r.now.Outcome = Refused
		r.now.Text = strings.Trim(r.now.Text+"; "+strings.TrimPrefix(said, "evosbatch: "), "; ")
	}
}

// evolve runs a job that must be accepted, beside another user's job, to its end.
func (r *trial) evolve(d demand) {
	r.t.Helper()
	r.beside(func() { r.finish(r.accepted(d)) })
}

// evolveOr is evolve where a refusal with these words will do.
func (r *trial) evolveOr(d demand, words ...string) {
	r.t.Helper()
	r.beside(func() {
		j, said := r.submit(d)
		if said != "" {
			r.refusal(said, words...)
			return
		}
		r.finish(j)
	})
}

// beside does something while another user's job runs, which must not be affected.
func (r *trial) beside(do func()) {
	r.t.Helper()
	id := r.stock(1, time.Hour, append([]string{"--nodes=1", "--time=30"}, r.site.stock()...)...)
	var before seen
	r.eventually("somebody else's job runs", patience, func() error {
		if before = r.inSlurm(id); before.State != "RUNNING" || before.Reason != "None" {
			return fmt.Errorf("it is %s (%s)", before.State, before.Reason)
		}
		return nil
	})
	do()
	after := r.inSlurm(id)
	if after.State != "RUNNING" || after.StartTime != before.StartTime || !slices.Equal(after.nodes(), before.nodes()) || after.TimeLimit != before.TimeLimit {
		r.errorf("another user's job was\n%s\nand is\n%s", before.line, after.line)
	}
	r.cancel(id)
}

// read returns what the job has printed so far.
func (r *trial) read(j job) told {
	text, _ := os.ReadFile(fmt.Sprintf("%s/out/out-%d", r.Dir, j.id))
	said := told{text: string(text)}
	at := func(step int) *toldStep {
		for len(said.steps) < step {
			said.steps = append(said.steps, toldStep{})
		}
		return &said.steps[step-1]
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		step := 0
		if len(f) > 2 {
			step, _ = strconv.Atoi(f[1])
		}
		switch {
		case f[0] == "end":
			said.ended = f[1] == "done=1"
		case step < 1 || step > len(j.steps):
		case f[0] == "begin":
			at(step).begin = parseMoment(f[2])
		case f[0] == "settled":
			at(step).settled = parseMoment(f[2])
		case f[0] == "leave":
			at(step).leave = parseMoment(f[2])
		case f[0] == "allocation":
			_ = json.Unmarshal([]byte(f[2]), &at(step).allocation)
		case f[0] == "node" && len(f) == 4:
			at(step).nodes = append(at(step).nodes, f[2])
			at(step).gpus = append(at(step).gpus, strings.TrimPrefix(f[3], "gpus="))
		case f[0] == "wrong":
			said.wrong = append(said.wrong, strings.TrimSpace(line))
		}
	}
	return said
}

// parseMoment reads bash's EPOCHREALTIME.
func parseMoment(text string) time.Time {
	s, us, _ := strings.Cut(text, ".")
	sec, _ := strconv.ParseInt(s, 10, 64)
	micro, _ := strconv.ParseInt(us, 10, 64)
	return time.UnixMicro(sec*1e6 + micro)
}

// patience is how long anything may take that takes seconds where the machine is not slow
// and busy, and a job stand still beyond what its step takes.
const patience = 4 * time.Minute

// inStep waits until the job has settled in the step.
func (r *trial) inStep(j job, step int) {
	r.t.Helper()
	r.until(j, fmt.Sprintf("step %d", step), func(said told) bool {
		return len(said.steps) >= step && !said.steps[step-1].settled.IsZero()
	})
}

// until waits for the job to have printed something, for as long as it gets on.
func (r *trial) until(j job, what string, ok func(told) bool) told {
	r.t.Helper()
	said, moved := told{}, time.Now()
	for {
		now := r.read(j)
		if ok(now) {
			return now
		}
		if now.text != said.text {
			said, moved = now, time.Now()
		}
		step := time.Duration(0)
		if n := len(said.steps); n > 0 {
			step = time.Duration(j.steps[n-1].Duration) * time.Second
		}
		q := r.queued(0, j.id)
		if q.State == "ended" {
			if now = r.read(j); ok(now) {
				return now
			}
			r.fatalf("the job ended (%s) before %s: %s", q.EndState, what, q.Reason)
		}
		if time.Since(moved) > step+patience {
			r.fatalf("the job never came to %s: it is %s in step %d: %s", what, q.State, q.Step, q.Reason)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// finish waits for the job's end and checks all that must be true of it.
func (r *trial) finish(j job) {
	r.t.Helper()
	said := r.until(j, "its end", func(s told) bool { return s.ended })
	r.eventually("evosqueue tells the job's end", patience, func() error {
		q := r.queued(0, j.id)
		if q.State != "ended" || q.EndState != "COMPLETED" || q.Step != len(j.steps) {
			return fmt.Errorf("it is %s (%s) in step %d: %s", q.State, q.EndState, q.Step, q.Reason)
		}
		return nil
	})
	r.check(j, said)
	for _, u := range look(r.Cluster) {
		if u.User == "root" {
			r.errorf("job %d was submitted in the name of root", u.ID)
		}
	}
	r.economical(j)
}

// economical sees that growths were not tried again and again.
func (r *trial) economical(j job) {
	r.t.Helper()
	var more []string
	for _, s := range look(r.Cluster) {
		if s.ID > j.id && s.User == r.Cluster.Users()[0].Name && !slices.Contains(r.others, s.ID) {
			more = append(more, fmt.Sprintf("%d %s %s", s.ID, s.Name, s.State))
		}
	}
	growths := 0
	for i := 1; i < len(j.steps); i++ {
		if j.steps[i].Nodes > j.steps[i-1].Nodes {
			growths++
		}
	}
	if len(more) > growths+2 {
		r.errorf("%d growths took %d further jobs: %v", growths, len(more), more)
	}
}

// check compares what the job told, and what was seen from outside meanwhile, with what
// it asked for.
func (r *trial) check(j job, said told) {
	r.t.Helper()
	for _, w := range said.wrong {
		r.errorf("step %s", strings.TrimPrefix(w, "wrong "))
	}
	user := r.Cluster.Users()[0].Name
	has := j.has
	var base seen
	for i, s := range j.steps {
		step := said.steps[i]
		r.now.Drive = step.allocation.Drive
		if j.drive != "" && step.allocation.Drive != j.drive {
			r.errorf("its drive mode is %s, want %s", step.allocation.Drive, j.drive)
		}
		if i == 0 {
			r.now.Start = step.begin.Sub(j.submitted)
		} else if s.Nodes > j.steps[i-1].Nodes {
			r.now.Grow = max(r.now.Grow, step.begin.Sub(said.steps[i-1].leave))
		}
		slices.Sort(step.nodes)
		if n := len(slices.Compact(slices.Clone(step.nodes))); n != s.Nodes || len(step.nodes) != s.Nodes {
			r.errorf("step %d: a command over all nodes answers from %v, want %d nodes", i+1, step.nodes, s.Nodes)
		}
		var allocated []string
		for _, p := range step.allocation.Parts {
			allocated = append(allocated, p.NodeList...)
		}
		slices.Sort(allocated)
		if !slices.Equal(allocated, step.nodes) {
			r.errorf("step %d: evosctl env names %v, the command ran on %v", i+1, allocated, step.nodes)
		}
		for _, g := range step.gpus {
			if j.gpus != "" && g != j.gpus {
				r.errorf("step %d: a task sees the GPUs %q, want %q", i+1, g, j.gpus)
			}
		}
		shots := r.watch.between(step.settled, step.leave)
		if len(shots) == 0 {
			r.errorf("step %d was never seen from outside", i+1)
		}
		for _, shot := range shots {
			var parts []seen
			for _, s := range shot.Jobs {
				if s.User == user && s.ID >= j.id && len(s.Nodes) > 0 && !slices.Contains(r.others, s.ID) {
					parts = append(parts, s)
				}
				if s.ID == j.id {
					base = s
				}
			}
			if has == nil && len(step.nodes) > 0 { // of every node what it first had
				first := base.Nodes[step.nodes[0]]
				has = everywhere(first.Memory, first.GRES)
			}
			if wrong := j.compare(step.nodes, base, parts, has); wrong != "" {
				r.errorf("step %d, seen from outside: %s", i+1, wrong)
				for _, p := range parts {
					r.t.Log(p.line)
				}
				break
			}
		}
	}
}

// compare returns what is wrong with what the job has in Slurm, where its commands run on
// these nodes.
func (j job) compare(nodes []string, base seen, parts []seen, want func(string) share) string {
	var names []string
	for _, p := range parts {
		names = append(names, p.nodes()...)
		if p.Account != base.Account || p.QOS != base.QOS || p.Partition != base.Partition && p.Partition != j.over {
			return fmt.Sprintf("job %d is of account %s, QOS %s and partition %s; the base job of %s, %s and %s",
				p.ID, p.Account, p.QOS, p.Partition, base.Account, base.QOS, base.Partition)
		}
		for n, has := range p.Nodes {
			if has != want(n) {
				return fmt.Sprintf("node %s has memory %s and GRES %q, want %s and %q", n, has.Memory, has.GRES, want(n).Memory, want(n).GRES)
			}
			if slices.Contains(j.never, n) {
				return fmt.Sprintf("it has node %s, which it must never have", n)
			}
		}
		if j.part != nil {
			if wrong := j.part(p); wrong != "" {
				return wrong
			}
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, nodes) {
		return fmt.Sprintf("it has %v, the command ran on %v", names, nodes)
	}
	return ""
}

// gone sees that nothing is left but what the site had at first.
func (r *trial) gone() {
	r.t.Helper()
	if left := r.left(patience); left != "" {
		r.errorf("left behind: %s", left)
	}
}
