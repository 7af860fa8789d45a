package observed

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// tracked is a job of the last poll. The core may change the times of the poll's job, so they are kept here.
type tracked struct {
	job      *slurmctl.Job // as the last poll showed it
	turn     int           // the last poll that showed it
	submit   int64
	eligible int64
	begin    int64
	start    int64
	expected int64 // squeue's StartTime while it waits
	end      int64 // squeue's EndTime
	nodes    int
	sizes    []Resize
	depends  string
	evolving bool
}

const (
	mostSizes = 64
	mostName  = 64
	mostText  = 256
)

// watchJobs records which jobs have started, changed their size, or ended since the poll before.
func (w *Watcher) watchJobs(o msg.Observation, before time.Time, missed bool) {
	marked := make(map[slurmctl.JobID]bool, len(o.Marks))
	for i := range o.Marks {
		marked[o.Marks[i].Job] = true
	}
	for i := range o.Jobs {
		r := &o.Jobs[i]
		t := w.jobs[r.ID]
		if t != nil && t.start > 0 && (r.State == slurmctl.Pending || t.submit != unix(r.SubmitTime) && unix(r.SubmitTime) > t.start) {
			w.ended(t, "REQUEUED", before, missed)
			t = nil
		}
		if t == nil {
			t = &tracked{evolving: marked[r.ID], depends: clip(r.Dependency, mostText)}
			w.jobs[r.ID] = t
		}
		w.watchJob(t, r)
	}
	for id, t := range w.jobs {
		if t.turn != w.turn {
			w.ended(t, "", before, missed)
			delete(w.jobs, id)
			delete(w.predicted, id)
		}
	}
}

// watchJob takes what a poll shows of a job.
func (w *Watcher) watchJob(t *tracked, r *slurmctl.Job) {
	t.job, t.turn, t.submit, t.end = r, w.turn, unix(r.SubmitTime), unix(r.EndTime)
	now := w.at.Unix()
	if r.State == slurmctl.Pending {
		t.waits(now, w.turn == 1)
		return
	}
	if t.start == 0 && !r.StartTime.IsZero() && len(r.NodeList) > 0 {
		t.start, t.nodes = r.StartTime.Unix(), len(r.NodeList)
		if t.eligible == 0 {
			t.eligible = max(t.submit, t.begin)
		}
		if !t.evolving && t.start >= w.begun.Unix() {
			w.started(t)
		}
		delete(w.predicted, r.ID)
	}
	if n := len(r.NodeList); n != t.nodes && r.State == slurmctl.Running {
		t.nodes = n
		if len(t.sizes) < mostSizes {
			t.sizes = append(t.sizes, Resize{now, n})
		}
	}
}

// waits takes what a poll shows of a pending job.
func (t *tracked) waits(now int64, first bool) {
	r := t.job
	t.expected = unix(r.StartTime)
	switch r.Reason {
	case "BeginTime":
		t.begin = t.expected
		return
	case "Dependency", "DependencyNeverSatisfied", "JobHeldUser", "JobHeldAdmin", "JobArrayTaskLimit":
		return
	}
	if t.eligible != 0 || r.Priority == 0 {
		return
	}
	if t.eligible = now; first || t.begin == 0 && t.depends == "" {
		t.eligible = max(t.submit, t.begin)
	}
}

// started records a start with what was predicted for it.
func (w *Watcher) started(t *tracked) {
	r := t.job
	s := &Start{Job: r.ID, Partition: r.Partition, Nodes: t.nodes, Limit: seconds(r.TimeLimit), Submit: t.submit, Start: t.start}
	h := w.predicted[r.ID]
	if r.ArrayJobID != 0 && r.ArrayJobID != r.ID {
		s.Array = r.ArrayJobID
		if rest := w.jobs[r.ArrayJobID]; h == nil && rest != nil {
			h = w.predicted[r.ArrayJobID]
			s.Tasks = max(rest.job.ArrayTasks, 1) + 1
		}
	}
	if h != nil {
		s.Before = h.before(t.start)
	}
	w.writeOf(r.UID, Record{Start: s})
}

// ended records a job that is gone since the poll before.
func (w *Watcher) ended(t *tracked, state string, before time.Time, missed bool) {
	one := w.job(t)
	if state != "" {
		one.State = state
	}
	if one.Missed = missed; missed {
		one.End = w.at.Unix()
	} else if one.End = (before.Unix() + w.at.Unix()) / 2; t.job.State == slurmctl.Completing && t.end > 0 || t.end > 0 && t.end >= before.Unix() && t.end <= w.at.Unix() {
		one.End = t.end
	}
	w.writeOf(t.job.UID, Record{Job: one})
}

// job returns the record of a job.
func (w *Watcher) job(t *tracked) *Job {
	r := t.job
	j := &Job{ID: r.ID, User: w.names.Word("user", r.User), Account: w.names.Word("account", r.Account), QOS: w.names.Word("qos", r.QOS),
		Partition: clip(r.Partition, mostText), Name: w.names.Word("job", clip(r.Name, mostName)),
		Nodes: r.NumNodes, CPUs: r.NumCPUs, Exclusive: r.Exclusive, MinCPUs: r.MinCPUs, MinMemory: r.MinMemory,
		Features: clip(r.Features, mostText), TRES: clip(r.TRESPer, mostText),
		ReqNodes: clip(slurmctl.CompressNodes(r.ReqNodes), mostText), ExcNodes: clip(slurmctl.CompressNodes(r.ExcNodes), mostText),
		Limit: seconds(r.TimeLimit), Priority: r.Priority, Nice: r.Nice, Submit: t.submit, Eligible: t.eligible, Begin: t.begin, Start: t.start,
		State: string(r.State), Reserved: w.names.Word("reservation", r.Reservation), Depends: t.depends, Evolving: t.evolving, Sizes: t.sizes}
	if t.start > 0 {
		j.NodeList = slurmctl.CompressNodes(r.NodeList)
	}
	if r.State == slurmctl.Pending && r.Reason != "" {
		j.State += " " + clip(r.Reason, mostName)
	}
	if r.ArrayJobID != r.ID {
		j.Array = r.ArrayJobID
	}
	if r.ArrayTasks > 1 {
		j.Array, j.Tasks = r.ArrayJobID, r.ArrayTasks
	}
	return j
}

// seconds returns a limit; -1: unlimited.
func seconds(d time.Duration) int64 {
	if d == slurmctl.Unlimited {
		return -1
	}
	return int64(d / time.Second)
}
