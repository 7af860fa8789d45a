package injob

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/bag"
)

// bagOwn lists the options of evosrun --tasks that --follow does not have.
var bagOwn = []string{"tasks", "bag", "campaign", "retries", "checkpoint", "checkpoint-signal", "checkpoint-cmd", "restart-cmd", "task-time"}

// notInBag lists options of srun and --follow that make no sense for a bag.
var notInBag = []struct{ name, why string }{
	{"drain", "a worker drains its tasks; see --checkpoint"},
	{"drain-signal", "see --checkpoint-signal"},
	{"restart", "see --retries"},
	{"kill-on-bad-exit", "a task that fails is reported, and the others go on"},
	{"label", "each task has an output of its own"},
	{"unbuffered", "each task has an output of its own"},
	{"open-mode", "each task has an output of its own"},
	{"overcommit", "give each node more tasks at once with --ntasks-per-node"},
}

// inWorkers lists srun's options that are for tasks, or for the leader, and not for the srun of a worker.
var inWorkers = []string{"output", "error", "cpus-per-task"}

const mostRetries = 1000

// workerFlag makes evosrun a worker of a bag.
const workerFlag = "--bag-worker"

// The exit statuses of evosrun --tasks, besides 0 and those of signals.
const (
	tasksFailed = 1
	tasksLeft   = 75 // EX_TEMPFAIL: started again with the same folder, it goes on
)

// DefaultBag returns the folder of a job's bag.
func DefaultBag(job uint32) string { return "evobag-" + formatJob(job) }

// work is the worker of a bag.
func work() error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	bag.Work(os.Stdin, os.Stdout, os.Stderr, signals)
	return nil
}

// crew works a bag off with the instances of a follower.
type crew struct {
	*bag.Leader
	perTask, perNode int // CPUs of a task; tasks of a node, 0 for as many as there are CPUs for
	worker           []string
}

// parseBag reads the options of evosrun --tasks.
func parseBag(s srunArgs, job uint32) (o bag.Options, err error) {
	for _, no := range notInBag {
		if s.has(no.name) {
			return o, fmt.Errorf("--%s cannot be used with --tasks: %s", no.name, no.why)
		}
	}
	if len(s.command) == 0 {
		return o, errors.New("no command to run the tasks with")
	}
	if s.has("campaign") && !s.has("bag") {
		return o, errors.New("--campaign: name its folder with --bag")
	}
	if text, given := s.last("retries"); given {
		if o.Retries, err = strconv.Atoi(text); err != nil || o.Retries < 0 || o.Retries > mostRetries {
			return o, fmt.Errorf("--retries=%s: want 0 to %d", text, mostRetries)
		}
	}
	if o.Dir, err = parseFolder(s, job); err != nil {
		return o, err
	}
	o.Command, o.Job = s.command, job
	if o.Output, o.Error, err = parseOutputs(s, o.Dir); err != nil {
		return o, err
	}
	if o.Keep, err = parseKeeping(s); err != nil {
		return o, err
	}
	o.TaskTime, err = parseTaskTime(s, o.Keep.Kind)
	return o, err
}

// parseTaskTime reads how long a task takes; 0: it is learnt.
func parseTaskTime(s srunArgs, kind string) (d time.Duration, err error) {
	text, given := s.last("task-time")
	switch {
	case !given:
		return 0, nil
	case kind != bag.KeepNone:
		return 0, errors.New("--task-time is for tasks without a checkpoint: with one, they go on elsewhere")
	}
	if d, err = parseTime(text); err != nil || d < time.Second {
		return 0, fmt.Errorf("--task-time=%s: want a length of time of a second or more, such as 20m", text)
	}
	return d, nil
}

// parseFolder returns the bag's folder.
func parseFolder(s srunArgs, job uint32) (string, error) {
	dir, given := s.last("bag")
	if !given {
		dir = DefaultBag(job)
	} else if dir == "" {
		return "", errors.New("--bag: no folder")
	}
	dir, err := filepath.Abs(dir)
	if err == nil && strings.Contains(dir, "%") {
		err = fmt.Errorf("--bag=%s: a folder without %% in its name is needed", dir)
	}
	return dir, err
}

// parseOutputs returns where the outputs and errors of tasks go.
func parseOutputs(s srunArgs, dir string) (output, errs string, err error) {
	output = filepath.Join(dir, "out", "%a")
	for name, to := range map[string]*string{"output": &output, "error": &errs} {
		pattern, given := s.last(name)
		if !given {
			continue
		}
		if err := bag.CheckOutput(name, pattern); err != nil {
			return "", "", err
		}
		if *to, err = filepath.Abs(pattern); err != nil {
			return "", "", err
		}
		if _, err := os.Stat(filepath.Dir(*to)); err != nil && !strings.Contains(filepath.Dir(*to), "%") {
			return "", "", fmt.Errorf("--%s: %w", name, err)
		}
	}
	return output, errs, nil
}

// CheckBag refuses arguments of evosrun --tasks that are wrong in any job.
func CheckBag(args []string) error {
	s, err := parseSrun(args)
	if err != nil {
		return err
	}
	if _, err := parseFollow(s); err != nil {
		return err
	}
	_, err = parseBag(s, 0)
	return err
}

// makeCrew opens the bag and starts to lead it.
func (f *follower) makeCrew() (*crew, error) {
	o, err := parseBag(f.args, f.Allocation.Job)
	if err != nil {
		return nil, err
	}
	c := &crew{perTask: 1}
	if n, given, err := f.args.number("cpus-per-task"); err != nil {
		return nil, err
	} else if given {
		c.perTask = n
	} else if n := positive(f.getenv("SLURM_CPUS_PER_TASK")); n > 0 {
		c.perTask = n
	}
	if f.args.has("ntasks-per-node") {
		c.perNode = f.perNode
	} else {
		c.perNode = positive(f.getenv("SLURM_NTASKS_PER_NODE"))
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c.worker = []string{self, workerFlag}
	if strings.HasPrefix(filepath.Base(self), "evosctl") {
		c.worker = []string{self, "run", workerFlag}
	}
	spec, _ := f.args.last("tasks")
	tasks, err := bag.Tasks(spec)
	if err != nil {
		return nil, fmt.Errorf("--tasks: %w", err)
	}
	o.Say = f.say
	c.Leader, err = f.leadBag(o, tasks)
	return c, err
}

// leadBag starts to lead a bag, or a part of a campaign.
func (f *follower) leadBag(o bag.Options, tasks bag.List) (*bag.Leader, error) {
	if f.args.has("campaign") {
		joined, err := bag.Join(o.Dir, tasks, f.getenv("SLURM_CLUSTER_NAME"), o.Job)
		if err != nil {
			return nil, fmt.Errorf("--campaign: %w", err)
		}
		return bag.LeadCampaign(o, joined), nil
	}
	journal, state, err := bag.Open(o.Dir, tasks, o.Job, time.Now())
	if err != nil {
		return nil, fmt.Errorf("--bag: %w", err)
	}
	return bag.Lead(o, journal, state), nil
}

// slots returns how many tasks run on a node at once.
func (c *crew) slots(f *follower, node string) int {
	if c.perNode > 0 {
		return c.perNode
	}
	for _, p := range f.has.Parts {
		if at := slices.Index(p.NodeList, node); at >= 0 && at < len(p.CPUs) {
			return max(p.CPUs[at]/max(c.perTask, 1), 1)
		}
	}
	return 1
}

// isOver reports whether nothing is left to do.
func (c *crew) isOver() bool {
	select {
	case <-c.Over():
		return true
	default:
		return false
	}
}

// join returns the srun of a worker on an instance's node.
func (f *follower) join(i *instance) (*process, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	i.member, i.input = f.crew.Join(i.node, f.crew.slots(f, i.node), write), read
	i.member.Until(f.until(i.node))
	given := f.args
	given.command = f.crew.worker
	r := f.srun(i, 1, given)
	r.stdin = read
	c := f.Command
	c.Stdout = i.member
	return c.process(f.Srun, r, together{}), nil
}

// promise tells a bag until when it has the nodes.
func (f *follower) promise() {
	if f.crew == nil {
		return
	}
	for _, i := range f.instances {
		if i.member != nil {
			i.member.Until(f.until(i.node))
		}
	}
	f.crew.Ends(f.end)
}

// until returns by when a node has to be left: at the end of the job, or before, as planned. Zero: unknown.
func (f *follower) until(node string) time.Time {
	first := f.end
	before := []time.Time{f.lent[node]}
	if f.has.Coming != nil && slices.Contains(Leaving(f.has, nil, f.getenv("SLURMD_NODENAME")), node) {
		before = append(before, f.has.Coming.At)
	}
	for _, at := range before {
		if at.After(time.Now()) && (first.IsZero() || at.Before(first)) { // otherwise it is late already, and was not taken
			first = at
		}
	}
	return first
}

// drainMembers has workers of a bag end their tasks.
func (f *follower) drainMembers(procs []*draining, limit time.Duration) {
	for _, d := range procs {
		if d.member != nil {
			d.member.Drain(limit)
		}
	}
}

// drainLimit returns the time for draining: with --drain-time=auto what checkpoints took, and half of that again.
func (f *follower) drainLimit() time.Duration {
	if !f.drainAuto {
		return f.drainTime
	}
	if took, ok := f.crew.GraceTaken(); ok {
		return min(max(took+took/2+lastWords, shortestAuto), longestAuto)
	}
	return f.drainTime
}

// demandLimit returns how long draining may take if nodes are demanded. Tasks without checkpoints were started to end by the time
// at which the plan has lent nodes leave, so they get that time.
func (f *follower) demandLimit(nodes []string, deadline time.Time) time.Duration {
	planned := f.crew != nil && f.crew.Keep.Kind == bag.KeepNone
	for _, node := range nodes {
		planned = planned && !f.lent[node].IsZero() && f.lent[node].Sub(deadline) < aboutThen
	}
	if planned {
		return max(time.Until(deadline)-lastWords-killTime, 0)
	}
	return f.limit(deadline)
}

const (
	aboutThen    = 10 * time.Second // a demand is made some seconds early, and plans move a little
	shortestAuto = 5 * time.Second
	longestAuto  = 10 * time.Minute
)

// closeBag ends the bag, and returns the exit status for it.
func (f *follower) closeBag() int {
	s, err := f.crew.Close()
	f.say("%v", s)
	switch {
	case err != nil:
		f.say("%v", err)
		return max(f.status, tasksLeft)
	case f.status > 128:
		return f.status
	case s.Done+s.Failed < s.Tasks:
		return tasksLeft
	case s.Failed > 0 || s.Collected == "failed":
		return tasksFailed
	}
	return 0
}

// parseKeeping reads how tasks are checkpointed.
func parseKeeping(s srunArgs) (k bag.Keeping, err error) {
	value, given := s.last("checkpoint")
	if !given {
		value = bag.KeepNone
	}
	k = bag.Keeping{Signal: "TERM"}
	if k.Kind, k.Period, err = parseKind(value); err != nil {
		return k, fmt.Errorf("--checkpoint=%s: %w", value, err)
	}
	if err := checkHow(s, value); err != nil {
		return k, err
	}
	if text, given := s.last("checkpoint-signal"); given {
		if k.Signal = strings.TrimPrefix(text, "SIG"); !slices.Contains(LeaveSignals, k.Signal) {
			return k, fmt.Errorf("--checkpoint-signal=%s: want HUP, INT, QUIT, TERM, USR1 or USR2", text)
		}
	}
	for name, to := range map[string]*[]string{"checkpoint-cmd": &k.Command, "restart-cmd": &k.Restart} {
		if text, given := s.last(name); given {
			if *to, err = bag.Words(text); err != nil {
				return k, fmt.Errorf("--%s: %w", name, err)
			}
		}
	}
	if k.Kind == bag.KeepPeriodic && k.Command == nil && !s.has("checkpoint-signal") {
		return k, errors.New("--checkpoint=periodic:TIME: say how, with --checkpoint-cmd or --checkpoint-signal")
	}
	if value == "dmtcp" {
		return dmtcp(k)
	}
	return k, nil
}

// checkHow refuses options that say how to checkpoint where nothing is checkpointed so.
func checkHow(s srunArgs, value string) error {
	for _, name := range []string{"checkpoint-signal", "checkpoint-cmd", "restart-cmd"} {
		switch {
		case s.has(name) && value == bag.KeepNone:
			return fmt.Errorf("--%s is for --checkpoint=demand or periodic:TIME", name)
		case s.has(name) && value == "dmtcp":
			return fmt.Errorf("--%s cannot be used with --checkpoint=dmtcp, which has its own", name)
		}
	}
	return nil
}

// parseKind reads when tasks are checkpointed.
func parseKind(value string) (string, time.Duration, error) {
	kind, text, periodic := strings.Cut(value, ":")
	switch {
	case value == bag.KeepNone || value == bag.KeepDemand:
		return value, 0, nil
	case value == "dmtcp":
		return bag.KeepDemand, 0, nil
	case !periodic || kind != bag.KeepPeriodic:
		return "", 0, errors.New("want none, demand, periodic:TIME, or dmtcp")
	}
	period, err := parseTime(text)
	if err != nil || period < time.Second {
		return "", 0, errors.New("want a length of time of a second or more, such as periodic:20m")
	}
	return kind, period, nil
}

// dmtcpCheckpoint makes a checkpoint in place of the one before: dmtcp_restart would go on with the processes of both.
const dmtcpCheckpoint = `cd "$1" && rm -rf .old && mkdir .old && for f in ckpt_*; do [ ! -e "$f" ] || mv "$f" .old; done
if dmtcp_command --coord-port "$(cat .port)" --bcheckpoint; then rm -rf .old; else rm -rf ckpt_*; mv .old/* . 2>/dev/null; exit 1; fi`

// dmtcp sets checkpoints by DMTCP: each task has a coordinator of its own, which the port in the checkpoint's folder names.
func dmtcp(k bag.Keeping) (bag.Keeping, error) {
	for _, name := range []string{"dmtcp_launch", "dmtcp_command", "dmtcp_restart"} {
		if _, err := exec.LookPath(name); err != nil {
			return k, fmt.Errorf("--checkpoint=dmtcp: %w: install DMTCP, here and on the nodes", err)
		}
	}
	k.Folder = true
	k.Launch = []string{"dmtcp_launch", "--quiet", "--new-coordinator", "--coord-port", "0", "--port-file", "{dir}/.port", "--ckptdir", "{dir}", "--no-gzip"}
	k.Command = []string{"sh", "-c", dmtcpCheckpoint, "sh", "{dir}"}
	k.Restart = []string{"sh", "-c", `cd "$1" && exec dmtcp_restart --quiet --new-coordinator --coord-port 0 --port-file .port --ckptdir . ckpt_*.dmtcp`, "sh", "{dir}"}
	return k, nil
}
