package core

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/request"
	"github.com/evoslurm/evoslurm/adapter/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Where Slurm needs slurmdbd for a resize it is asked first whether that answers, which
// takes 0.2 s on 22.05 (two exchanges of 86 ms: SLURM-FACTS): more than all else that the
// sidecar adds to a growth. So it is asked ahead, when a step is about to end.

const (
	// dbdAhead is how long before the end of a step slurmdbd is asked.
	dbdAhead = 4 * time.Second
	// dbdFor is for how long its answer is believed, from the question on.
	dbdFor = 10 * time.Second
)

// needsDBD reports whether slurmdbd is to be asked before a resize.
func (c *Core) needsDBD() bool {
	age := c.now.Sub(c.dbdAnswered)
	return slurmctl.ResizeNeedsSlurmdbd(c.slurmConfig) && (age < 0 || age > dbdFor)
}

// askDBD asks slurmdbd for the jobs that are soon to be resized.
func (c *Core) askDBD() {
	age := c.now.Sub(c.dbdAnswered)
	if !slurmctl.ResizeNeedsSlurmdbd(c.slurmConfig) || age >= 0 && age <= dbdFor-dbdAhead || !c.work.room() {
		return
	}
	for _, j := range c.active {
		if !c.resizesSoon(j) {
			continue
		}
		asked := c.now
		c.ask(nil, "slurmdbd", Task{Command: AskDBD{}}, func(o Outcome) {
			if o.Err == nil { // else it is asked again by whatever needs it
				c.dbdAnswered = asked
			}
		})
		return
	}
}

// resizesSoon reports whether a job's next step is due soon, or a little late, and changes
// the base job.
func (c *Core) resizesSoon(j *job) bool {
	if !j.runs() || j.Step == 0 || j.last() || j.isChain() || j.busy || j.isSuspended() {
		return false
	}
	have, want := len(j.nodes()), j.Profile[j.Step].Nodes
	if want == have || want > have && request.Drive(j.Drive) != request.Merge || want < have && c.bare {
		return false
	}
	due := j.expected()
	if j.State == row.Waiting {
		if due = c.now.Unix(); j.next() != nil {
			due = j.next().start
		}
	}
	left := time.Unix(due, 0).Sub(c.now)
	return left <= dbdAhead && left > -dbdFor
}
