package injob

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

const (
	lastWords   = 2 * time.Second // for instances after their signal, if the drain command used all the time
	signalPause = 500 * time.Millisecond
	killTime    = time.Second // that killing what did not end takes

	// Slurm may lose the signal of a step whose program is just starting. An instance younger than
	// young when signalled gets a second signal after signalAgain.
	young       = 10 * time.Second
	signalAgain = 5 * time.Second
)

// drainNodes ends the instances on nodes, within limit, and prevents new ones there; it calls done
// in the loop when none of them runs any more.
func (f *follower) drainNodes(nodes []string, limit time.Duration, done func()) {
	var running []*instance
	var procs []*draining
	var exits []chan struct{}
	for _, node := range nodes {
		f.leaving[node]++
		i := f.instances[node]
		switch {
		case i == nil:
		case i.proc == nil:
			delete(f.instances, node)
		default:
			if i.phase != drained { // otherwise another drain has begun
				procs = append(procs, &draining{instance: i, proc: i.proc, exited: i.exited, started: i.started, drain: f.drainOf(i)})
			}
			i.phase = drained
			running = append(running, i)
			exits = append(exits, i.exited)
		}
	}
	if len(running) == 0 {
		done()
		return
	}
	go func() {
		if len(procs) > 0 {
			f.drainAll(procs, limit)
		}
		for _, exit := range exits {
			<-exit
		}
		f.post(func() {
			for _, i := range running {
				if f.instances[i.node] == i {
					delete(f.instances, i.node)
				}
			}
			done()
		})
	}()
}

// limit returns how long draining may take before a deadline, when the nodes must be given back.
func (f *follower) limit(deadline time.Time) time.Duration {
	return min(f.drainLimit(), max(time.Until(deadline)-lastWords-killTime, 0))
}

// stay takes back that nodes leave: they have left, or have not.
func (f *follower) stay(nodes []string) {
	for _, node := range nodes {
		if f.leaving[node]--; f.leaving[node] <= 0 {
			delete(f.leaving, node)
		}
	}
}

// draining is an instance as the loop knew it.
type draining struct {
	*instance
	proc      *process
	exited    chan struct{}
	started   time.Time
	drain     run       // of the drain command, if there is one
	signals   int       // how often it was signalled
	signalled time.Time // when it was last
}

// wantsSignal reports whether an instance should be signalled.
func (d *draining) wantsSignal(now time.Time) bool {
	switch d.signals {
	case 0:
		return true
	case 1:
		return d.signalled.Sub(d.started) < young && now.Sub(d.signalled) >= signalAgain
	}
	return false
}

func (d *draining) has() bool {
	select {
	case <-d.exited:
		return true
	default:
		return false
	}
}

// drainAll ends instances: by the drain command on each node, then the signal, and when the
// time is over for good.
func (f *follower) drainAll(procs []*draining, limit time.Duration) {
	deadline := time.Now().Add(limit)
	f.drainMembers(procs, limit)
	if f.drain != "" {
		f.runDrains(procs, limit)
		if time.Until(deadline) < lastWords {
			deadline = time.Now().Add(lastWords)
		}
	}
	allExited := make(chan struct{})
	go func() {
		for _, d := range procs {
			<-d.exited
		}
		close(allExited)
	}()
	timeout := time.After(time.Until(deadline))
	for told := false; ; {
		// One that was just started may have no step yet.
		if err := f.signalSteps(procs); err != nil && !told {
			f.say("%v", err)
			told = true
		}
		select {
		case <-allExited:
			return
		case <-time.After(signalPause):
			continue
		case <-timeout:
		}
		break
	}
	hung := stopHung(procs)
	if len(hung) == 0 { // the last has ended just now
		<-allExited
		return
	}
	f.say("on %s it did not end within %v and is killed", slurmctl.CompressNodes(hung), limit.Round(time.Second/10))
	select {
	case <-allExited:
	case <-time.After(killDelay):
		for _, d := range procs {
			d.proc.signal(os.Kill)
		}
		<-allExited
	}
}

// stopHung stops what still runs, and returns its nodes.
func stopHung(procs []*draining) (hung []string) {
	for _, d := range procs {
		if !d.has() {
			hung = append(hung, d.node)
			d.proc.stop() // srun has its tasks killed
		}
	}
	return hung
}

// drainOf returns the srun that runs the drain command on an instance's node, without cores of its own.
func (f *follower) drainOf(i *instance) (r run) {
	if f.drain == "" {
		return r
	}
	r = f.srun(i, 1, srunArgs{options: f.args.options, command: []string{"/bin/sh", "-c", f.drain}})
	r.args[slices.Index(r.args, "--job-name="+f.name)] += "-drain"
	return r
}

// runDrains runs the drain command on every node.
func (f *follower) runDrains(procs []*draining, limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.ctx), limit)
	defer cancel()
	var wg sync.WaitGroup
	for _, d := range procs {
		p := f.process(f.Srun, d.drain, together{label: labelled(f.args, f.getenv)})
		wg.Go(func() {
			finished := make(chan struct{})
			defer close(finished)
			go func() {
				select {
				case <-finished:
				case <-ctx.Done():
					p.stop()
				}
			}()
			status := p.runToEnd(context.WithoutCancel(f.ctx))
			switch {
			case ctx.Err() != nil:
				f.say("--drain: on %s it did not end within %v", d.node, limit.Round(time.Second/10))
			case status != 0:
				f.say("--drain: on %s it ended with status %d", d.node, status)
			}
		})
	}
	wg.Wait()
}

// signalSteps sends the drain signal to instances that run and want it.
func (f *follower) signalSteps(procs []*draining) error {
	var jobs []slurmctl.JobID
	wanted := map[string]*draining{}
	for _, d := range procs {
		if !d.has() && d.member == nil && d.wantsSignal(time.Now()) {
			wanted[d.node] = d
			if id := slurmctl.JobID(d.part); !slices.Contains(jobs, id) {
				jobs = append(jobs, id)
			}
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.ctx), max(f.drainTime, lastWords))
	defer cancel()
	steps, err := f.slurm.Steps(ctx, jobs...)
	if err != nil {
		return err
	}
	var ids []string
	for _, s := range steps {
		if strings.TrimSpace(s.Name) == f.name && len(s.Nodes) == 1 && wanted[s.Nodes[0]] != nil {
			ids = append(ids, s.ID)
			d := wanted[s.Nodes[0]]
			d.signals, d.signalled = d.signals+1, time.Now()
		}
	}
	return f.slurm.SignalSteps(ctx, f.drainSignal, ids...)
}
