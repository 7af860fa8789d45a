package adopt

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// An array of evolving jobs stays parked in one record. Its next tasks get records of their own here ("unfold"), and
// are adopted like other jobs. The rest gets a name of its own: squeue shows a waiting task apart from the rest only if
// their names differ.

// mostWaiting is how many waiting tasks of arrays a user may have with records of their own.
const mostWaiting = 32

// waitingName ends the name of the record in which an array's other tasks wait.
const waitingName = " (waiting)"

// longestName is the longest job name to which waitingName is added: Slurm takes 1,024 bytes.
const longestName = 1000

// ownName returns the name that the user gave a job.
func ownName(r *slurmctl.Job) string {
	if r.ArrayJobID == r.ID && !strings.Contains(r.Display, "_") {
		return r.Name
	}
	return strings.TrimSuffix(r.Name, waitingName)
}

// tally counts tasks with records of their own.
type tally struct {
	waiting map[uint32]int          // by user: not started, adopted or soon adopted
	under   map[slurmctl.JobID]int  // by array: not ended
	refused map[slurmctl.JobID]bool // arrays with a refused task
}

func tallied(c *state.Core, s *state.Snapshot) tally {
	t := tally{map[uint32]int{}, map[slurmctl.JobID]int{}, map[slurmctl.JobID]bool{}}
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if _, is := r.Task(); !is {
			continue
		}
		t.under[r.ArrayJobID]++
		j := c.Owner(r.ID)
		_, coming := c.Coming[r.ID]
		switch {
		case c.Refused[r.ID].ID != 0:
			t.refused[r.ArrayJobID] = true
		case r.State == slurmctl.Pending && (coming || j != nil && j.State == row.Queued):
			t.waiting[r.UID]++
		}
	}
	return t
}

// Unfold gives the next tasks of arrays records of their own.
func Unfold(c *state.Core, s *state.Snapshot) {
	var t tally
	for i := range s.Jobs {
		r := &s.Jobs[i]
		switch _, one := r.Task(); {
		case one && strings.HasSuffix(r.Name, waitingName) && c.Owner(r.ID) != nil && !r.Ended():
			rename(c, r)
		case r.ArrayTasks > 1 && r.State == slurmctl.Pending && c.Refused[r.ID].ID == 0 && slurm.Driven(c, r.Partition):
			if t.waiting == nil {
				t = tallied(c, s)
			}
			unfold(c, s, r, &t)
		}
	}
}

// noteArrays notes how many tasks of each array may run at once, and forgets arrays that are gone. The last task's
// record does not say it.
func noteArrays(c *state.Core, s *state.Snapshot) {
	there := map[slurmctl.JobID]bool{}
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if _, one := r.Task(); !one && r.ArrayTasks == 1 {
			continue
		}
		there[r.ArrayJobID] = true
		if a := c.Arrays[r.ArrayJobID]; r.ArrayTasks > 1 && a.Most != r.ArrayLimit {
			a.Most = r.ArrayLimit
			c.Arrays[r.ArrayJobID] = a
		}
	}
	maps.DeleteFunc(c.Arrays, func(id slurmctl.JobID, _ state.Array) bool { return !there[id] })
}

// rename gives a task the name that its user gave the array.
func rename(c *state.Core, r *slurmctl.Job) {
	if c.Work.Room() && c.Reached(c.Now, c.Arrays[r.ID].Again) {
		c.Ask(nil, unfoldKey(r.ID), state.KindUnfold, msg.Task{Command: msg.Update{Job: r.ID, Change: slurmctl.JobUpdate{Name: ownName(r)}}}, state.Args{Of: r.ID, UID: r.UID})
	}
}

func unfoldKey(id slurmctl.JobID) string { return fmt.Sprint("unfold ", id) }

// unfold gives the next tasks of an array records of their own, or refuses the array.
func unfold(c *state.Core, s *state.Snapshot, r *slurmctl.Job, t *tally) {
	c.Handling.Note(r.ID, r.SubmitTime, msg.First)
	sp, asked, err := requestOf(c, s, r)
	if err == nil && asked {
		if refuseAside(c, r) || refuseDrained(c, r) {
			return
		}
		if err = errors.Join(denied(c, r, nil), arrayOf(sp, r)); err == nil {
			if a := c.Arrays[r.ID]; !a.Ours {
				a.Ours = true
				c.Arrays[r.ID] = a
			}
			unfoldNext(c, r, t)
			return
		}
	}
	if err != nil {
		Refuse(c, r, err)
	}
}

// arrayOf returns why the tasks of an array cannot evolve, or nil.
func arrayOf(sp request.Request, r *slurmctl.Job) error {
	switch {
	case sp.Chain != nil:
		return errors.New("a chain cannot be an array: its steps are jobs of their own")
	case len(r.Name) > longestName+len(waitingName):
		return fmt.Errorf("the name of an array has at most %d bytes", longestName)
	}
	return nil
}

// unfoldNext gives as many tasks records of their own as may be planned now.
func unfoldNext(c *state.Core, r *slurmctl.Job, t *tally) {
	n := min(mostWaiting-t.waiting[r.UID], r.ArrayTasks-1)
	if r.ArrayLimit > 0 {
		n = min(n, r.ArrayLimit-t.under[r.ID])
	}
	if n <= 0 || t.refused[r.ID] || r.Priority == 0 || waitsForOthers(r) || c.Work.Keys[unfoldKey(r.ID)] || !c.Reached(c.Now, c.Arrays[r.ID].Again) || !c.Work.Room() {
		return
	}
	t.waiting[r.UID] += n
	tasks, _ := r.WaitingTasks()
	do := msg.Unfold{Array: r.ID, Name: ownName(r)}
	if !strings.HasSuffix(r.Name, waitingName) {
		do.RestName = r.Name + waitingName
	}
	var err error
	if do.Tasks, err = slurmctl.FirstTasks(tasks, n); err != nil {
		Refuse(c, r, err)
		return
	}
	c.Ask(nil, unfoldKey(r.ID), state.KindUnfold, msg.Task{Command: do}, state.Args{Of: r.ID, UID: r.UID})
}

// waitsForOthers reports whether all tasks of a record wait for other jobs. With aftercorr, each waits for its own.
func waitsForOthers(r *slurmctl.Job) bool {
	return slices.ContainsFunc(strings.FieldsFunc(r.Dependency, func(c rune) bool { return c == ',' || c == '?' }), func(d string) bool {
		return strings.Contains(d, "(unfulfilled)") && !strings.HasPrefix(d, "aftercorr:") || strings.Contains(d, "(failed)")
	})
}

// Rests returns the records in which tasks of arrays wait for records of their own, as evosqueue shows them.
func Rests(c *state.Core) (shown []api.Job) {
	if c.Snapshot == nil {
		return nil
	}
	refused := refusedTasks(c)
	for _, id := range slices.Sorted(maps.Keys(c.Arrays)) {
		r := c.Snapshot.ByID[id]
		if !c.Arrays[id].Ours || r == nil || r.ArrayTasks <= 1 || r.State != slurmctl.Pending || c.Refused[id].ID != 0 {
			continue
		}
		why := cmp.Or(refused[id], "waits for earlier tasks")
		if r.Priority == 0 || waitsForOthers(r) {
			why = r.Reason
		}
		rest := Stranger(r, why)
		rest.Name = ownName(r)
		shown = append(shown, rest)
	}
	return shown
}

// refusedTasks says of each array with a refused task why the rest waits for that one.
func refusedTasks(c *state.Core) map[slurmctl.JobID]string {
	why := map[slurmctl.JobID]string{}
	for _, id := range slices.Sorted(maps.Keys(c.Refused)) {
		if r := c.Snapshot.ByID[id]; r != nil {
			if task, is := r.Task(); is && why[r.ArrayJobID] == "" {
				why[r.ArrayJobID] = fmt.Sprintf("waits for task %d, %s", task, c.Refused[id].Reason)
			}
		}
	}
	return why
}

// mostRest bounds the text of the tasks that a user's array has in its record, in bytes.
const mostRest = 512

// nameTasks says which tasks of an array a record stands for.
func nameTasks(a *api.Job, r *slurmctl.Job) {
	a.Array, a.ArrayTask = taskOf(r)
	if text, all := r.WaitingTasks(); r.ArrayTasks > 1 && text != "" {
		if !all {
			text += ",..."
		}
		a.Array, a.ArrayRest, a.ArrayLimit = uint32(r.ArrayJobID), slurmctl.CutTasks(text, mostRest), r.ArrayLimit
	}
}

// taskOf returns the array and the number of the task that a record stands for; 0 if it is no task.
func taskOf(r *slurmctl.Job) (array, task uint32) {
	if n, is := r.Task(); is {
		return uint32(r.ArrayJobID), n
	}
	return 0, 0
}

// OtherTasks reports whether a record stands for another task of an array than the job, or for several.
func OtherTasks(j *state.Job, r *slurmctl.Job) bool {
	array, task := taskOf(r)
	return r.ArrayTasks > 1 || j.Array != 0 && (array != j.Array || task != j.Task)
}

// unfoldAgain is how long the sidecar waits after a failure.
const unfoldAgain = 30 * time.Second

// SettleUnfold is called when tasks have records of their own, or that failed. Slurm then may have changed a part: the
// next poll shows it.
func SettleUnfold(c *state.Core, _ *state.Job, p *state.Pending, o msg.Outcome) {
	c.NextCycle = c.Now
	if o.Err == nil {
		return
	}
	a := c.Arrays[p.Args.Of]
	a.Again = c.Now.Add(unfoldAgain)
	c.Arrays[p.Args.Of] = a
	if !state.Transient(o.Err) && c.MayTell(p.Args.UID) {
		c.Log.WithField("job", p.Args.Of).WithError(o.Err).Warn("cannot give tasks of an array records of their own")
	}
}

// noMergeInArray returns why nothing may be merged into a task of an array, or "". An expander's dependency on the task
// that keeps the array's ID would be on the whole array. Slurm takes a task that is resized for one that has ended, and
// counts it again when slurmctld starts: then it starts fewer tasks than an array's limit allows, for good.
func noMergeInArray(c *state.Core, r *slurmctl.Job) string {
	_, is := r.Task()
	switch {
	case is && r.ID == r.ArrayJobID:
		return "Slurm merges nothing into the task that keeps its array's ID"
	case is && c.Arrays[r.ArrayJobID].Most > 0:
		return "Slurm miscounts the running tasks of an array with a limit once it has merged something into one"
	}
	return ""
}
