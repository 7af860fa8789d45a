package slurmsim

import (
	"errors"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Process runs in virtual time beside other processes: one of a sidecar's commands, or the script
// of a job. It is a coroutine: only one process or callback runs at a time. It runs until it waits,
// in Sleep, Wait, Await, or any call of a [Client].
type Process struct {
	cluster *Cluster
	job     slurmctl.JobID // job whose script it is; 0 if none
	run     func(*Process)
	on      *coroutine // nil before it begins
	onEnd   func()
	turn    uint64 // changes whenever it continues
	killed  bool
	over    bool

	exit    int
	signals []string
	wakes   bool          // signals end the sleep
	asleep  bool          //
	left    time.Duration // remaining sleep
	since   time.Duration // start or resumption of the sleep
	halted  bool          // stopped because its job is suspended
}

// errKilled ends a killed process.
var errKilled = errors.New("slurmsim: killed")

// Go starts a process at the current time, after events that are already due.
func (c *Cluster) Go(run func(*Process)) *Process { return c.begin(0, run, nil) }

func (c *Cluster) begin(job slurmctl.JobID, run func(*Process), onEnd func()) *Process {
	p := &Process{cluster: c, job: job, run: run, onEnd: onEnd}
	c.processes = append(c.processes, p)
	c.after(0, func() { p.let(0) })
	return p
}

// let continues the process if it still waits in that turn.
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
		return // it is waiting
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

// Kill ends a process where it waits; the process never sees the result. A command that it has
// started still takes effect.
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

// Close kills all processes: waiting ones would never be collected.
func (c *Cluster) Close() {
	for len(c.processes) > 0 {
		last := c.processes[len(c.processes)-1]
		last.Kill()
		if !last.over {
			return // called from within the process
		}
	}
	for _, w := range c.idle {
		w.stop()
	}
	c.idle = nil
}

// Await waits for a call of wake, which begin receives. wake may be called from anywhere, at once,
// and more than once.
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

// Sleep lets virtual time pass, without the time that the process's job is suspended.
func (p *Process) Sleep(d time.Duration) {
	p.wakes = false
	p.sleep(d)
}

// Wait sleeps until the job gets a signal, at most for d, and returns the signal's name, or "".
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

// halt and resume follow the job's suspension.
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

// signal delivers a signal for the job.
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

// Cluster returns the cluster that the process runs on.
func (p *Process) Cluster() *Cluster { return p.cluster }

// Now returns the time by the cluster's clock.
func (p *Process) Now() time.Time { return p.cluster.Now() }

// Exit sets the exit code of the script.
func (p *Process) Exit(code int) { p.exit = code }

// block waits for something that begin starts: as a process or, in a plain program, by advancing
// the clock.
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
