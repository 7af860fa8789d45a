package slurmsim

import (
	"errors"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Program runs in a process. In a checkpoint, it must be plain data.
type Program interface{ Run(*Process) }

// Func is a program that cannot be written: no checkpoint is possible while it runs.
type Func func(*Process)

// Run implements Program.
func (run Func) Run(p *Process) { run(p) }

// Process runs in virtual time beside other processes: one of a sidecar's commands, or the script
// of a job. It is a coroutine: only one process or callback runs at a time. It runs until it waits,
// in Sleep, Wait, Await, or any call of a [Client].
type Process struct {
	cluster *Cluster   `codec:"-"`
	on      *coroutine `codec:"-"` // nil before it begins, and after a checkpoint

	Program Program
	Script  slurmctl.JobID // job whose script it is; 0 if none
	Turn    uint64         // changes whenever it continues
	Woken   uint64         // the last turn in which it was woken, plus 1
	Keeps   any            // what the program needs to continue its wait after a checkpoint
	Killed  bool
	Over    bool

	Code    int
	Signals []string
	Wakes   bool          // signals end the sleep
	Asleep  bool          //
	Left    time.Duration // remaining sleep
	Since   time.Duration // start or resumption of the sleep
	Halted  bool          // stopped because its job is suspended
}

// errKilled ends a killed process.
var errKilled = errors.New("slurmsim: killed")

// Go starts a process at the current time, after events that are already due.
func (c *Cluster) Go(run func(*Process)) *Process { return c.Start(Func(run)) }

// Start does what Go does, with a program.
func (c *Cluster) Start(run Program) *Process { return c.begin(0, run) }

func (c *Cluster) begin(script slurmctl.JobID, run Program) *Process {
	p := &Process{cluster: c, Script: script, Program: run}
	c.Processes = append(c.Processes, p)
	c.Later(0, continues{p, 0})
	return p
}

// continues continues a process if it still waits in that turn.
type continues struct {
	P    *Process
	Turn uint64
}

// Act implements Action.
func (g continues) Act(c *Cluster) {
	p := g.P
	if p.Over || p.Turn != g.Turn {
		return
	}
	p.Turn++
	if p.on == nil {
		p.on = c.coroutine()
		p.on.task = func() { p.Program.Run(p) }
		p.on.resumed = g.Turn > 0
	}
	before := c.current
	c.current = p
	_, lives := p.on.next()
	c.current = before
	if lives && p.on.task != nil {
		return // it is waiting
	}
	if lives {
		c.idle = append(c.idle, p.on)
	}
	p.gone()
	if !p.Killed && p.Script != 0 {
		c.turns.ended(p)
	}
}

// Resumed reports whether the process has continued from a checkpoint, and its program has begun again. The program must then go to where
// it waited, without any effect. The wait there ends at once.
func (p *Process) Resumed() bool { return p.on.resumed }

// Resting reports whether the process is in Sleep or Wait.
func (p *Process) Resting() bool { return p.Asleep }

func (p *Process) gone() {
	p.Over = true
	all := p.cluster.Processes
	if i := slices.Index(all, p); i >= 0 {
		p.cluster.Processes = slices.Delete(all, i, i+1)
	}
}

// Kill ends a process where it waits; the process never sees the result. A command that it has
// started still takes effect.
func (p *Process) Kill() {
	if p.Over || p.Killed {
		return
	}
	p.Killed = true
	if p.cluster.current == p {
		return // where it waits next
	}
	p.Turn++
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
	for len(c.Processes) > 0 {
		last := c.Processes[len(c.Processes)-1]
		last.Kill()
		if !last.Over {
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
	if p.on.resumed {
		p.on.resumed = false
		return
	}
	wake := p.Wake()
	begin(func() { wake.Act(p.cluster) })
	if p.Killed || !p.on.yield(struct{}{}) {
		panic(errKilled)
	}
}

// Wake is an action that ends a process's wait.
type Wake struct {
	P    *Process
	Turn uint64
}

// Wake returns what ends the next wait.
func (p *Process) Wake() Wake { return Wake{p, p.Turn} }

// Act implements Action.
func (w Wake) Act(c *Cluster) {
	if w.P != nil && w.P.Woken != w.Turn+1 {
		w.P.Woken = w.Turn + 1
		c.Later(0, continues(w))
	}
}

// Sleep lets virtual time pass, without the time that the process's job is suspended.
func (p *Process) Sleep(d time.Duration) {
	p.Wakes = false
	p.sleep(d)
}

// Wait sleeps until the job gets a signal, at most for d, and returns the signal's name, or "".
func (p *Process) Wait(d time.Duration) string {
	p.Wakes = true
	if len(p.Signals) == 0 || p.on.resumed {
		p.sleep(d)
	}
	p.Wakes = false
	if len(p.Signals) == 0 {
		return ""
	}
	first := p.Signals[0]
	p.Signals = p.Signals[1:]
	return first
}

func (p *Process) sleep(d time.Duration) {
	if !p.on.resumed {
		p.Asleep, p.Left = true, d
	}
	p.Await(func(func()) { p.doze() })
	p.Asleep = false
}

// doze puts the end of a sleep on the agenda.
func (p *Process) doze() {
	p.Since = p.cluster.Moment
	if p.Halted {
		return
	}
	p.cluster.Later(p.Left, wakesUp{continues{p, p.Turn}, p.Left})
}

// wakesUp ends a sleep that was to last as long.
type wakesUp struct {
	Then continues
	Left time.Duration
}

// Act implements Action.
func (w wakesUp) Act(c *Cluster) {
	if p := w.Then.P; p.Asleep && !p.Halted && p.Left == w.Left {
		w.Then.Act(c)
	}
}

// halt and resume follow the job's suspension.
func (p *Process) halt() {
	if p == nil || p.Halted {
		return
	}
	p.Halted = true
	p.Left = max(p.Left-(p.cluster.Moment-p.Since), 0)
}

func (p *Process) resume() {
	if p == nil || !p.Halted {
		return
	}
	p.Halted = false
	if p.Asleep {
		p.doze()
	}
}

// signal delivers a signal for the job.
func (p *Process) signal(name string) {
	if p == nil || p.Over {
		return
	}
	p.Signals = append(p.Signals, name)
	if p.Asleep && p.Wakes {
		p.cluster.Later(0, continues{p, p.Turn})
	}
}

// Cluster returns the cluster that the process runs on.
func (p *Process) Cluster() *Cluster { return p.cluster }

// Now returns the time by the cluster's clock.
func (p *Process) Now() time.Time { return p.cluster.Now() }

// Exit sets the exit code of the script.
func (p *Process) Exit(code int) { p.Code = code }

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
