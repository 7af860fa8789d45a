package injob

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/bag"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Sidecar is the interface of the sidecar that a follower uses.
type Sidecar interface {
	Allocation(ctx context.Context, job uint32) (api.Allocation, error)
	Next(ctx context.Context, job uint32, req api.NextRequest) (api.Allocation, error)
	Job(ctx context.Context, job uint32) (api.Job, error)
	Offer(ctx context.Context, job uint32, q api.OfferQuery) (api.Offer, error)
	Answer(ctx context.Context, job uint32, req api.AnswerRequest) (api.Answer, error)
}

// Signaller signals the srun steps of a user's jobs.
type Signaller interface {
	Steps(ctx context.Context, jobs ...slurmctl.JobID) ([]slurmctl.Step, error)
	SignalSteps(ctx context.Context, sig string, ids ...string) error
}

const (
	followPause = 5 * time.Second // interval for polling what the job has
	nextPause   = 10 * time.Second
	settled     = time.Minute // an instance that ran this long has started well
	longestStay = 30 * time.Second
	judgeWithin = 10 * time.Second // for the sidecar to say whether an instance's node has left
	soon        = 500 * time.Millisecond
)

// followScript runs a task of an instance: the number of its first task and the base job,
// then the command, which no shell reads.
const followScript = `export EVO_RANK=$(($1 + SLURM_PROCID)) EVO_JOB_ID=$2 EVO_PART_ID=$SLURM_JOB_ID EVO_NODE=$SLURMD_NODENAME
shift 2
exec "$@"`

// follower keeps a command running on every node of a job. Only the loop touches its state; other
// goroutines send functions to the loop.
type follower struct {
	Command
	followOptions
	args    srunArgs
	io      redirections
	sidecar Sidecar
	slurm   Signaller
	id      string // among all followers on the machine
	name    string // of the srun steps
	address string // of the sidecar
	socket  string // where other processes meet it
	mail    chan func()
	pokes   chan struct{}

	ctx       context.Context
	has       api.Allocation
	seen      int       // how often has was learned
	began     time.Time // of its step, as far as is known here
	end       time.Time
	instances map[string]*instance
	leaving   map[string]int       // nodes being given back, with the number of requests
	lent      map[string]time.Time // until when, by the plan that they were offered by
	unsure    bool                 // a process that drained nodes then fell silent
	ending    bool                 // the step
	boundary  *time.Timer
	told      error
	answered  int64 // the last offer that another follower has answered

	status    int // highest status of the instances that ended on their own
	ended     int // instances that have
	finishing bool
	over      bool

	hooks chan []string // environments of --on-nodes
	crew  *crew         // works a bag off; nil without --tasks
}

// instance is the command on one node.
type instance struct {
	node     string
	part     uint32
	number   int
	proc     *process      // nil: it does not run
	member   *bag.Member   // of a crew, with its input
	input    *os.File      //
	exited   chan struct{} // closed when it does not any more
	started  time.Time
	failures int // one after the other
	status   int
	phase    phase
}

type phase int

const (
	runs    phase = iota
	judged        // it failed, or its node has left
	pausing       // it restarts soon
	drained       // it is being ended
	ended         // for good
)

// Follow keeps the command running on every node of the job: it starts the command on arriving
// nodes and drains it from leaving nodes before they are given back. It returns when all instances
// have ended for good, when the job's last step has ended, or by a signal.
func (c Command) Follow(ctx context.Context, sidecar Sidecar, address string, slurm Signaller, signals <-chan os.Signal) (int, error) {
	f := &follower{Command: c, sidecar: sidecar, slurm: slurm, address: address, id: followerID(), mail: make(chan func()), pokes: make(chan struct{}, 1),
		instances: map[string]*instance{}, leaving: map[string]int{}, lent: map[string]time.Time{}, hooks: make(chan []string, 1)}
	if err := f.prepare(); err != nil {
		return 1, err
	}
	if f.crew != nil && f.crew.isOver() {
		return f.closeBag(), nil
	}
	ctx, cancel := context.WithCancel(ctx)
	f.ctx = ctx
	leave := f.beMet()
	defer func() { cancel(); leave() }()
	go f.look()
	if f.onNodes != "" {
		go f.runHooks()
	}
	if f.accept != acceptNone {
		go f.answerOffers()
	}
	f.learn(c.Allocation)
	if f.crew != nil {
		go func() {
			<-f.crew.Over()
			f.post(func() { f.finish(0) })
		}()
	}
	go func() {
		f.hook(f.hooksFor(c.Allocation, 0).Undone().Begun(ctx, c.Allocation, nil))
	}()
	f.poke()
	for !f.over {
		select {
		case do := <-f.mail:
			do()
		case s := <-signals:
			f.signalled(s)
		}
	}
	if f.crew != nil {
		return f.closeBag(), nil
	}
	return f.status, nil
}

// prepare checks the options.
func (f *follower) prepare() (err error) {
	if f.args, err = parseSrun(f.Args); err != nil {
		return err
	}
	if f.args, err = f.sharing(f.args); err != nil {
		return err
	}
	if f.followOptions, err = parseFollow(f.args); err != nil {
		return err
	}
	switch {
	case len(f.args.command) == 0:
		return errors.New("no command to run")
	case drivemode.Mode(f.Allocation.Drive).Means().StepsAreJobs:
		return errors.New("--follow: in drive mode chain every step is a job of its own, whose nodes stay the same: use evosrun without it")
	}
	if err := check(f.Allocation); err != nil {
		return err
	}
	if _, err := slurmctl.ExpandNodes(f.exclude); err != nil {
		return fmt.Errorf("--exclude: %w", err)
	}
	if f.Srun == "" {
		if f.Srun, err = exec.LookPath("srun"); err != nil {
			return err
		}
	}
	base := filepath.Base(f.args.command[0])
	if name, given := f.args.last("job-name"); given {
		base = name
	}
	f.name = fmt.Sprintf("%.40s@%s", strings.TrimLeft(strings.Join(strings.Fields(base), "_"), "-"), f.id)
	if f.args.has("tasks") {
		f.restart = restartAlways
		f.crew, err = f.makeCrew()
		return err
	}
	f.io, err = f.redirections(f.args, nil)
	f.io.append = !f.args.has("open-mode") && f.args.has("output", "error")
	return err
}

// post has something done in the loop.
func (f *follower) post(do func()) {
	select {
	case f.mail <- do:
	case <-f.ctx.Done():
	}
}

// learn applies a new allocation.
func (f *follower) learn(a api.Allocation) {
	if err := check(a); err != nil {
		f.say("%v", err)
		return
	}
	if a.Step < f.has.Step { // an answer that was overtaken
		return
	}
	own, _ := OfComponent(a, f.component)
	had, _ := OfComponent(f.has, f.component)
	arrived, left := difference(NodesOf(own), NodesOf(had)), difference(NodesOf(had), NodesOf(own))
	if f.seen++; a.Step != f.has.Step {
		f.began = time.Now()
	}
	f.has = a
	if a.Done {
		forgetHooks(f.address, a.Job)
		f.finish(0)
		return
	}
	excluded, _ := slurmctl.ExpandNodes(f.exclude)
	on := map[string]bool{}
	for _, p := range own.Parts {
		if p.Job != a.Job && drivemode.Mode(a.Drive).Means().MergesGrowths {
			continue // a step in an expander would forbid the merge
		}
		for _, node := range p.NodeList {
			on[node] = true
			i := f.instances[node]
			if i != nil && i.part == p.Job || f.leaving[node] > 0 || f.finishing || slices.Contains(excluded, node) {
				continue
			}
			if i != nil && i.proc != nil { // in a Slurm job that no longer has the node
				i.proc.stop()
			}
			f.start(&instance{node: node, part: p.Job, number: f.number()})
		}
	}
	for node, i := range f.instances {
		if !on[node] {
			delete(f.instances, node)
			delete(f.lent, node)
			if i.proc != nil {
				i.proc.stop()
			}
		} else if i.phase == judged {
			f.judge(i)
		}
	}
	if len(arrived)+len(left) > 0 {
		f.changed(arrived, left)
	}
	f.arm()
	f.promise()
	f.checkEnd()
}

// difference returns the names of a that b has not.
func difference(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(name string) bool { return slices.Contains(b, name) })
}

// number returns the lowest that no instance has.
func (f *follower) number() int {
	used := map[int]bool{}
	for _, i := range f.instances {
		used[i.number] = true
	}
	n := 0
	for used[n] {
		n++
	}
	return n
}

// srun returns the srun that runs a command on an instance's node.
func (f *follower) srun(i *instance, tasks int, given srunArgs) run {
	own := append([]string{"component", "jobid", "job-name", "exclude", "ntasks-per-node", "kill-on-bad-exit"}, followOwn...)
	stdin := []string{"--input=none"}
	if f.crew != nil {
		own, stdin = append(append(own, bagOwn...), inWorkers...), nil
		if !given.has("cpu-bind") {
			stdin = []string{"--cpu-bind=none"} // the tasks share all CPUs of the node
		}
	}
	args := append(given.without(own...), "--jobid="+strconv.FormatUint(uint64(i.part), 10), "--nodes=1", "--ntasks="+strconv.Itoa(tasks), "--nodelist="+i.node,
		"--overlap", "--job-name="+f.name)
	args = append(args, stdin...)
	if killOnBadExit(f.args, f.getenv) {
		args = append(args, "--kill-on-bad-exit=1")
	}
	if f.io.append {
		args = append(args, "--open-mode=append")
	}
	args = append(args, given.shell(followScript, strconv.Itoa(i.number*f.perNode), formatJob(f.Allocation.Job))...)
	var env []string
	for _, entry := range withoutSlurm(atFrequency(f.has, f.Environ)) {
		switch name, _, _ := strings.Cut(entry, "="); name {
		case VarStep, VarSteps, VarNodes, VarNodeList, VarGaveBack, VarDone, VarError, "EVO_NTASKS": // of the moment
		default:
			if !strings.HasPrefix(name, VarNodeList+"_") { // of a component
				env = append(env, entry)
			}
		}
	}
	return run{args: append(args, given.command...), env: env, first: i.number * f.perNode}
}

// start starts the command on a node.
func (f *follower) start(i *instance) {
	f.instances[i.node] = i
	proc, err := f.launch(i)
	if err != nil {
		f.say("%v", err)
		f.again(i)
		return
	}
	exited := make(chan struct{})
	i.proc, i.exited, i.started, i.phase = proc, exited, time.Now(), runs
	go func() {
		status := proc.runToEnd(context.WithoutCancel(f.ctx))
		if i.member != nil {
			i.member.Leave()
			i.input.Close()
		}
		close(exited)
		f.post(func() { f.exited(i, status) })
	}()
}

// launch prepares the srun of an instance.
func (f *follower) launch(i *instance) (*process, error) {
	if f.crew != nil {
		return f.join(i)
	}
	return f.process(f.Srun, f.srun(i, f.perNode, f.args), together{label: labelled(f.args, f.getenv)}), nil
}

// exited is called when an instance has.
func (f *follower) exited(i *instance, status int) {
	i.proc, i.status = nil, status
	switch {
	case f.instances[i.node] != i || i.phase == drained: // its node has left, or leaves
	case status == 0 && f.restart == restartAlways:
		f.again(i)
	case status == 0:
		f.endedForGood(i)
	default: // it may have failed because its node has left
		i.phase = judged
		f.poke()
		time.AfterFunc(judgeWithin, func() {
			f.post(func() {
				if f.instances[i.node] == i && i.phase == judged {
					f.judge(i)
				}
			})
		})
	}
}

// judge decides what becomes of an instance that failed on a node that the job has.
func (f *follower) judge(i *instance) {
	if f.restart == restartNever {
		f.say("on %s it failed with status %d", i.node, i.status)
		f.endedForGood(i)
		return
	}
	f.again(i)
}

// again starts an instance once more, after a pause, or not if it has failed too often.
func (f *follower) again(i *instance) {
	if time.Since(i.started) >= settled {
		i.failures = 0
	}
	if i.failures++; i.failures > f.restartLimit {
		f.say("on %s it ended with status %d, and so it did %d times before, one after the other, each within %v: it is not started there again", i.node, i.status, i.failures-1, settled)
		f.endedForGood(i)
		return
	}
	pause := min(time.Second<<min(i.failures-1, 10), longestStay)
	f.say("on %s it ended with status %d; it is started again in %v", i.node, i.status, pause)
	i.phase = pausing
	time.AfterFunc(pause, func() {
		f.post(func() {
			if f.instances[i.node] == i && i.phase == pausing {
				f.start(i)
			}
		})
	})
}

// endedForGood is an instance that is not started again.
func (f *follower) endedForGood(i *instance) {
	i.phase = ended
	f.ended++
	f.status = max(f.status, i.status)
	if i.status != 0 && killOnBadExit(f.args, f.getenv) {
		f.finish(i.status)
		return
	}
	f.checkEnd()
}

// checkEnd ends the follower once no instance runs or will run again. Those that were
// drained do not count: others may take their place.
func (f *follower) checkEnd() {
	if f.ended == 0 || f.finishing || f.ending || len(f.leaving) > 0 {
		return
	}
	for _, i := range f.instances {
		if i.phase != ended {
			return
		}
	}
	f.over = true
}

// finish drains all that runs, and ends.
func (f *follower) finish(status int) {
	f.status = max(f.status, status)
	if f.finishing {
		return
	}
	f.finishing = true
	f.drainNodes(f.nodes(), f.drainLimit(), func() { f.over = true })
}

func (f *follower) nodes() []string {
	var nodes []string
	for node := range f.instances {
		nodes = append(nodes, node)
	}
	slices.Sort(nodes)
	return nodes
}

// signalled handles a signal: signals that end a job's script end the follower; all others go to
// the instances.
func (f *follower) signalled(s os.Signal) {
	sig, _ := s.(syscall.Signal)
	switch {
	case sig != syscall.SIGINT && sig != syscall.SIGTERM && sig != syscall.SIGHUP:
		for _, i := range f.instances {
			if i.proc != nil {
				i.proc.signal(s)
			}
		}
	case f.finishing: // a second one
		for _, i := range f.instances {
			if i.proc != nil {
				i.proc.stop()
			}
		}
	default:
		f.finish(128 + int(sig))
	}
}

// poke has the sidecar asked now.
func (f *follower) poke() {
	select {
	case f.pokes <- struct{}{}:
	default:
	}
}

// look polls what the job has. If the sidecar is away, this takes long, and everything continues
// unchanged.
func (f *follower) look() {
	for {
		select {
		case <-f.pokes:
		case <-time.After(followPause):
		case <-f.ctx.Done():
			return
		}
		var seen int
		var unsure bool
		f.post(func() { seen, unsure = f.seen, f.unsure })
		f.post(func() {}) // seen and unsure are there
		a, err := f.sidecar.Allocation(f.ctx, f.Allocation.Job)
		var j api.Job
		if err == nil && (a.Coming == nil || unsure) {
			j, err = f.sidecar.Job(f.ctx, f.Allocation.Job)
		}
		if err != nil {
			continue // of a job that is ending; Slurm ends all
		}
		f.post(func() {
			if f.seen != seen { // it was learned otherwise meanwhile
				f.poke()
				return
			}
			if j.ID != 0 {
				f.end = time.Time{}
				if n := len(j.Plan); n > 0 {
					f.end = j.Plan[n-1].End
				}
				if f.unsure && j.State != api.Waiting {
					f.unsure = false
					clear(f.leaving)
				}
			}
			f.learn(a)
		})
	}
}

// arm sets the timer for the end of the current step, if the follower should end it.
func (f *follower) arm() {
	if f.boundary != nil {
		f.boundary.Stop()
		f.boundary = nil
	}
	if at, ok := f.due(); ok && !f.ending && !f.finishing {
		f.boundary = time.AfterFunc(time.Until(at), func() { f.post(f.endStep) })
	}
}

// due returns when the follower must begin to end the step. If nodes leave, it starts draining
// before the planned time, so that they are available on time.
func (f *follower) due() (time.Time, bool) {
	switch next := f.has.Coming; {
	case f.script:
	case next == nil && !f.end.IsZero():
		return f.end.Add(-f.lead(f.end)), true
	case next == nil:
	case next.At.IsZero(): // it lasts longer than planned already
		return time.Now(), true
	case next.Nodes < f.has.Nodes || len(next.Handing) > 0:
		return next.At.Add(-f.lead(next.At)), true
	default:
		return next.At, true
	}
	return time.Time{}, false
}

// lead returns how long before its end a step is begun to end: half of a short one at most.
func (f *follower) lead(end time.Time) time.Duration {
	return min(f.drainLimit(), max(end.Sub(f.began)/2, 0))
}

// endStep ends the step if it is still due according to the sidecar; if the sidecar is away, once
// it is back.
func (f *follower) endStep() {
	if f.ending || f.finishing {
		return
	}
	f.ending = true
	go func() {
		unlock := f.alone("step")
		a, err := f.sidecar.Allocation(f.ctx, f.Allocation.Job)
		f.post(func() {
			f.ending = false
			if err != nil {
				unlock()
				f.later(err)
				return
			}
			f.learn(a)
			if at, ok := f.due(); !ok || f.finishing || time.Until(at) > soon {
				unlock() // another has ended it, maybe
				return   // learn has set the timer
			}
			f.ending = true
			leaving := Leaving(a, nil, f.getenv("SLURMD_NODENAME"))
			going := Going(a, leaving)
			req := meetRequest{Leaving: going}
			if a.Coming == nil {
				going, req = f.nodes(), meetRequest{All: true}
			}
			f.drainEverywhere(going, f.drainLimit(), req, func(others *Meeting) { f.next(a, leaving, going, others, unlock) })
		})
	}()
}

// next gives leaving nodes back, where those going were drained. It ends the step and takes in what comes then; the other followers do when it has ended.
func (f *follower) next(a api.Allocation, leaving, going []string, others *Meeting, unlock func()) {
	req := api.NextRequest{From: a.Step, Release: leaving}
	if a.Coming == nil {
		req.Release = nil
	}
	go func() {
		defer others.End(nil)
		hooks := f.hooksFor(a, 0)
		f.hook(hooks.Leaving(f.ctx, a, req.Release))
		b, err := f.sidecar.Next(f.ctx, a.Job, req)
		if err == nil {
			others.End(&b)
		}
		unlock()
		if err == nil {
			defer func() { f.hook(hooks.Begun(f.ctx, b, NodesOf(a))) }() // in parallel to the instances
		}
		f.post(func() {
			f.ending = false
			f.stay(going)
			if err != nil {
				f.later(err)
				return
			}
			f.learn(b)
		})
	}()
}

// hooksFor returns the hooks that the job was submitted with, for the end of the step with
// allocation a, or for an offer.
func (f *follower) hooksFor(a api.Allocation, offer int64) Hooks {
	h := Hooks{Hooks: request.HooksOf(f.getenv), Environ: f.Environ, Output: f.Stderr}
	return h.For(f.ctx, f.sidecar, f.address, a, offer)
}

// hook reports a failed hook. A hook that another process runs when the follower ends has not
// failed: that process reports its result.
func (f *follower) hook(err error) {
	if err != nil && (f.ctx.Err() == nil || !errors.Is(err, errBusy)) {
		f.say("%v", err)
	}
}

// later retries to end the step after a pause; it reports the obstacle once.
func (f *follower) later(err error) {
	if f.told == nil || f.told.Error() != err.Error() {
		f.say("the step could not be ended: %v", err)
		f.told = err
	}
	f.learn(f.has) // what was drained starts again
	if f.boundary != nil {
		f.boundary.Stop()
	}
	f.boundary = time.AfterFunc(nextPause, func() { f.post(f.endStep) })
}

// changed runs --on-nodes for a change, one after another.
func (f *follower) changed(arrived, left []string) {
	if f.onNodes == "" {
		return
	}
	e, err := ExportsOf(f.has, f.getenv)
	if err != nil {
		return
	}
	e.Set = append(e.Set, Var{"EVO_ARRIVED", slurmctl.CompressNodes(arrived)}, Var{"EVO_LEFT", slurmctl.CompressNodes(left)})
	env := e.Apply(f.Environ)
	select {
	case <-f.hooks: // one that has not begun: the later one has all nodes
	default:
	}
	f.hooks <- env
}

// runHooks runs the commands of --on-nodes.
func (f *follower) runHooks() {
	for {
		select {
		case env := <-f.hooks:
			ctx, cancel := context.WithTimeout(f.ctx, max(f.drainTime, time.Second))
			cmd := exec.CommandContext(ctx, "/bin/sh", "-c", f.onNodes)
			cmd.Env, cmd.Stdout, cmd.Stderr = env, f.Stdout, f.Stderr
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
			cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
			cmd.WaitDelay = time.Second
			if err := cmd.Run(); err != nil && f.ctx.Err() == nil {
				if ctx.Err() != nil {
					err = fmt.Errorf("ended after %v", f.drainTime)
				}
				f.say("--on-nodes: %v", err)
			}
			cancel()
		case <-f.ctx.Done():
			return
		}
	}
}

func (f *follower) say(format string, args ...any) {
	fmt.Fprintf(f.Stderr, "evosrun: "+format+"\n", args...)
}

// beMet makes the follower reachable by others until leave is called. If that is impossible, it
// continues anyway.
func (f *follower) beMet() (leave func()) {
	listener, taken, err := listenForSteps(f.address, f.Allocation.Job, f.id)
	if taken != "" {
		f.say("warning: %s does not belong to you alone: using another folder; have it removed", taken)
	}
	if err != nil {
		f.say("warning: evosctl next and other followers will not find this one, so nodes may go before it has drained them: %v", err)
		return func() {}
	}
	f.socket = listener.Addr().String()
	go f.meetAll(listener)
	return func() { f.leave(listener) }
}

// meetAll answers the processes that end steps.
func (f *follower) meetAll(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go f.meet(conn)
	}
}

// meet drains leaving nodes for a process that ends a step, and learns what the job has afterwards.
func (f *follower) meet(conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(f.ctx, func() { conn.Close() })()
	read := bufio.NewReaderSize(conn, 4096)
	var req meetRequest
	if readLine(read, &req) != nil {
		return
	}
	send := func(text string) { _, _ = conn.Write([]byte(text + "\n")) }
	limit := f.drainLimit()
	if req.By > 0 {
		limit = f.limit(time.Now().Add(time.Duration(req.By * float64(time.Second))))
	}
	send(fmt.Sprintf(`{"within":%g}`, (limit + lastWords + killDelay).Seconds()))
	f.post(func() {
		if req.All {
			req.Leaving = f.nodes()
		}
		f.drainNodes(req.Leaving, limit, func() { send(`{"drained":true}`) })
	})
	var res meetResult
	err := readLine(read, &res)
	f.post(func() {
		if err == nil && res.Allocation != nil {
			f.stay(req.Leaving)
			f.answered = max(f.answered, res.Offer)
			f.learn(*res.Allocation)
			return
		}
		// It was ended or has failed: the sidecar will say whether the nodes leave.
		f.unsure = f.unsure || len(req.Leaving) > 0
		f.poke()
	})
}
