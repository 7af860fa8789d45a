package slurmsim_test

import (
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// records returns how squeue shows the array, by the record's display.
func (w *world) records(array slurmctl.JobID) map[string]slurmctl.Job {
	w.Helper()
	jobs, err := w.Jobs(w.ctx)
	w.must(err)
	found := map[string]slurmctl.Job{}
	for _, j := range jobs {
		if j.ArrayJobID == array {
			found[j.Display] = j
		}
	}
	return found
}

// are checks how squeue shows an array.
func (w *world) are(array slurmctl.JobID, displays ...string) map[string]slurmctl.Job {
	w.Helper()
	found := w.records(array)
	for _, d := range displays {
		if _, is := found[fmt.Sprintf("%d_%s", array, d)]; !is || len(found) != len(displays) {
			w.Fatalf("array %d is %v, want %q", array, found, displays)
		}
	}
	return found
}

var arrayFeatures = []feature{
	{"tasks of an array get records of their own, which a name shows", func(w *world) {
		id := w.start(slurmsim.Job{Name: "work", Nodes: 1, Array: 5, ArrayLimit: 2, Begin: w.now().Add(time.Hour), Lasts: time.Hour})
		w.must(w.UpdateTasks(w.ctx, id, "1", slurmctl.JobUpdate{Name: "work"}))
		if all := w.records(id); len(all) != 1 || all[fmt.Sprintf("%d_[1-5%%2]", id)].ArrayTasks+all[fmt.Sprintf("%d_[2-5%%2]", id)].ArrayTasks < 4 {
			// squeue joins a waiting task with the same name; up to 22.05 it then leaves out the limit
			if _, is := all[fmt.Sprintf("%d_[1-5]", id)]; !is {
				w.Errorf("%v", all)
			}
		}
		w.must(w.UpdateTasks(w.ctx, id, "2-5", slurmctl.JobUpdate{Name: "work rest"}))
		all := w.are(id, "1", "[2-5%2]")
		if rest := all[fmt.Sprintf("%d_[2-5%%2]", id)]; rest.ID != id || rest.Name != "work rest" || rest.ArrayTasks != 4 || rest.ArrayLimit != 2 {
			w.Errorf("%+v", rest)
		}
		if one := all[fmt.Sprintf("%d_1", id)]; one.ID == id || one.ArrayJobID != id || one.Name != "work" || one.ArrayTasks != 1 || one.SubmitTime != w.job(id).SubmitTime {
			w.Errorf("%+v", one)
		}
		w.must(w.UpdateTasks(w.ctx, id, "2-4", slurmctl.JobUpdate{Name: "work"}))
		all = w.are(id, "1", "2", "3", "4", "5")
		if last := all[fmt.Sprintf("%d_5", id)]; last.ID != id || last.Name != "work rest" {
			w.Errorf("the last one: %+v", last)
		}
		w.must(w.UpdateJob(w.ctx, id, slurmctl.JobUpdate{Name: "work"}))
		w.are(id, "1", "2", "3", "4", "5") // none is joined to the last one
	}},
	{"a command on a task means it alone, also on the one with the array's ID", func(w *world) {
		id := w.start(slurmsim.Job{Name: "work", Nodes: 1, Array: 3, Begin: w.now().Add(time.Hour), Lasts: time.Hour})
		w.must(w.UpdateTasks(w.ctx, id, "1-3", slurmctl.JobUpdate{Name: "work rest"}))
		w.must(w.UpdateTasks(w.ctx, id, "1-2", slurmctl.JobUpdate{Name: "work"}))
		all := w.are(id, "1", "2", "3")
		first, second := all[fmt.Sprintf("%d_1", id)].ID, all[fmt.Sprintf("%d_2", id)].ID
		w.must(w.UpdateJob(w.ctx, id, slurmctl.JobUpdate{StartNow: true}))
		w.until(id, slurmctl.Running)
		w.must(w.Cancel(w.ctx, first))
		w.until(first, slurmctl.Cancelled)
		w.must(w.UpdateJob(w.ctx, second, slurmctl.JobUpdate{StartNow: true}))
		w.until(second, slurmctl.Running)
		w.must(w.Cancel(w.ctx, id))
		w.until(id, slurmctl.Cancelled)
		w.stays(second, slurmctl.Running)
		w.must(w.requeue(second))
		w.until(second, slurmctl.Pending)
		w.are(id, "2")
	}},
	{"an array's limit holds for tasks with records of their own", func(w *world) {
		id := w.start(slurmsim.Job{Name: "work", Nodes: 1, Array: 3, ArrayLimit: 1, Begin: w.now().Add(time.Hour), Lasts: time.Hour})
		w.must(w.UpdateTasks(w.ctx, id, "1-3", slurmctl.JobUpdate{Name: "work rest"}))
		w.must(w.UpdateTasks(w.ctx, id, "1-2", slurmctl.JobUpdate{Name: "work"}))
		all := w.are(id, "1", "2", "3")
		first, second := all[fmt.Sprintf("%d_1", id)].ID, all[fmt.Sprintf("%d_2", id)].ID
		w.must(w.UpdateJob(w.ctx, first, slurmctl.JobUpdate{StartNow: true}))
		w.until(first, slurmctl.Running)
		w.must(w.UpdateJob(w.ctx, second, slurmctl.JobUpdate{StartNow: true}))
		w.until(second, slurmctl.Pending, "JobArrayTaskLimit")
		w.must(w.Cancel(w.ctx, first))
		w.until(second, slurmctl.Running)
	}},
	{"an expander merges into a task with an ID of its own", func(w *world) {
		id := w.start(slurmsim.Job{Name: "work", Nodes: 1, Array: 2, Begin: w.now().Add(time.Hour), Lasts: time.Hour})
		w.must(w.UpdateTasks(w.ctx, id, "1", slurmctl.JobUpdate{StartNow: true}))
		w.eventually("a task runs", func() error { return w.count(1, slurmctl.Running) })
		task := w.records(id)[fmt.Sprintf("%d_1", id)]
		k, err := w.allocate(slurmctl.AllocateRequest{Nodes: 2, ExpandJob: task.ID, TimeLimit: time.Minute})
		w.must(err)
		w.must(w.Merge(w.ctx, k.ID))
		if j := w.until(task.ID, slurmctl.Running); len(j.NodeList) != 3 {
			w.Errorf("%+v", j)
		}
		w.must(w.Shrink(w.ctx, task.ID, w.job(task.ID).NodeList[:1]))
	}},
}
