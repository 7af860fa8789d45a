package slurmsim

import (
	"errors"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Process is something that runs in virtual time beside others: one of a sidecar's
// commands, the script of a job. It is a coroutine: of all processes and callbacks one
// alone runs at a time, and it runs until it waits, which it does in Sleep, Wait and
// Await and in every call of a [Client].
type Process struct {
	cluster *Cluster
	job     slurmctl.JobID // whose script it is; 0: nobody's
	run     func(*Process)
	on      *coroutine // nil: it has not begun
	onEnd   func()
	turn    uint64 // changes whenever it is let on
	killed  bool
	over    bool

	exit    int
	signals []string
	wakes   bool          // signals end the sleep
	asleep  bool          //
	left    time.Duration // of the sleep
	since   time.Duration // when that began, or went on
	halted  bool          // with its job suspended
}

// errKilled ends a process that was killed.
var errKilled = errors.New("slurmsim: killed")

// Go begins a process, at the present time but not before what is due already.
func (c *Cluster) Go(run func(*Process)) *Process { return c.begin(0, run, nil) }

func (c *Cluster) begin(job slurmctl.JobID, run func(*Process), onEnd func()) *Process {
	p := &Process{cluster: c, job: job, run: run, onEnd: onEnd}
	c.processes = append(c.processes, p)
	c.after(0, func() { p.let(0) })
	return p
}

// let has the process go on, if it still waits in that turn.
func (p *Process) let(turn uint64) {
	if p.over || p.turn != turn {
		return
	}
	p.turn++
	if p.on == nil {
		p.on = p.cluster.coroutine()
		p.on.task = func() { p.run(p) }
	}
	before := p.cluster.current
	p.cluster.current = p
	_, lives := p.on.next()
	p.cluster.current = before
	if lives && p.on.task != nil {
		return // it waits
	}
	if lives {
		p.cluster.idle = append(p.cluster.idle, p.on)
	}
	p.gone()
	if !p.killed && p.onEnd != nil {
		p.onEnd()
	}
}

func (p *Process) gone() {
	p.over = true
	all := p.cluster.processes
	if i := slices.Index(all, p); i >= 0 {
		p.cluster.processes = slices.Delete(all, i, i+1)
	}
}

// Kill ends a process where it waits; what it waits for it will not see. A command
// that it has begun takes effect all the same.
func (p *Process) Kill() {
	if p.over || p.killed {
		return
	}
	p.killed = true
	if p.cluster.current == p {
		return // where it waits next
	}
	p.turn++
	before := p.cluster.current
	p.cluster.current = p
	if p.on != nil {
		p.on.stop()
	}
	p.cluster.current = before
	p.gone()
}

// Close kills all processes: those that still wait would never be collected.
func (c *Cluster) Close() {
	for len(c.processes) > 0 {
		last := c.processes[len(c.processes)-1]
		last.Kill()
		if !last.over {
			return // called from within it
		}
	}
	for _, w := range c.idle {
		w.stop()
	}
	c.idle = nil
}

// Await waits until wake is called, which begin is given; it may be called from
// anywhere, also at once, and more than once.
func (p *Process) Await(begin func(wake func())) {
	turn, woken := p.turn, false
	begin(func() {
		if !woken {
			woken = true
			p.cluster.after(0, func() { p.let(turn) })
		}
	})
	if p.killed || !p.on.yield(struct{}{}) {
		panic(errKilled)
	}
}

// Sleep lets virtual time pass; while the process's job is suspended it does not count.
func (p *Process) Sleep(d time.Duration) {
	p.wakes = false
	p.sleep(d)
}

// Wait sleeps until its job gets a signal, at most for d, and gives the signal's name;
// "" where none came.
func (p *Process) Wait(d time.Duration) string {
	p.wakes = true
	if len(p.signals) == 0 {
		p.sleep(d)
	}
	p.wakes = false
	if len(p.signals) == 0 {
		return ""
	}
	first := p.signals[0]
	p.signals = p.signals[1:]
	return first
}

func (p *Process) sleep(d time.Duration) {
	p.asleep, p.left = true, d
	p.Await(func(func()) { p.doze() })
	p.asleep = false
}

// doze puts the end of a sleep on the agenda.
func (p *Process) doze() {
	p.since = p.cluster.now
	if p.halted {
		return
	}
	turn, left := p.turn, p.left
	p.cluster.after(left, func() {
		if p.asleep && !p.halted && p.left == left {
			p.let(turn)
		}
	})
}

// halt and resume go with the job's suspension.
func (p *Process) halt() {
	if p == nil || p.halted {
		return
	}
	p.halted = true
	p.left = max(p.left-(p.cluster.now-p.since), 0)
}

func (p *Process) resume() {
	if p == nil || !p.halted {
		return
	}
	p.halted = false
	if p.asleep {
		p.doze()
	}
}

// signal is one for its job.
func (p *Process) signal(name string) {
	if p == nil || p.over {
		return
	}
	p.signals = append(p.signals, name)
	if p.asleep && p.wakes {
		turn := p.turn
		p.cluster.after(0, func() { p.let(turn) })
	}
}

// Cluster is where the process runs.
func (p *Process) Cluster() *Cluster { return p.cluster }

// Now is the time.
func (p *Process) Now() time.Time { return p.cluster.Now() }

// Job is the record of the job whose script the process is, as squeue would show it.
func (p *Process) Job() slurmctl.Job {
	if j := p.cluster.jobs[p.job]; j != nil {
		return p.cluster.shown(j)
	}
	return slurmctl.Job{ID: p.job}
}

// Host is the node that the script runs on, whatever slurmctld takes for it.
func (p *Process) Host() string {
	if j := p.cluster.jobs[p.job]; j != nil && len(j.nodes) > 0 {
		return p.cluster.nodes[j.script].Name
	}
	return ""
}

// Exit sets the exit code with which the script will end.
func (p *Process) Exit(code int) { p.exit = code }

// block waits for something that begin sets going: a process as such; else, in a plain
// program, by letting the clock run.
func (c *Cluster) block(begin func(wake func())) {
	if c.current != nil {
		c.current.Await(begin)
		return
	}
	woken := false
	begin(func() { woken = true })
	for !woken && c.Step() {
	}
}
