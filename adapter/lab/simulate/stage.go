package simulate

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// stage holds what a history is about: the sidecar, the jobs, and what is wrong with them.
type stage struct {
	s     *Sidecar
	out   io.Writer
	jobs  map[string]slurmctl.JobID
	apps  map[string]*App
	order []string

	evolving map[slurmctl.JobID]bool // with all links of chains
	forged   map[slurmctl.JobID]bool
	stocks   map[slurmctl.JobID]bool // that may have any nodes
	sharing  map[slurmctl.JobID]bool // stock jobs that may have some CPUs of any nodes
	lossy    bool                    // jobs may have lost nodes
	crashed  bool                    // slurmctld has crashed and may have forgotten changes of jobs
	slow     sluggish                // slurmctld
	stopped  map[string]bool         // users who stop every salloc that runs in their name
	calmFrom time.Duration           // until then stock jobs may be late: something failed, or the clock was set
	had      map[string]int          // nodes of applications as slurmctld crashed; nil: it is up
	told     map[slurmctl.JobID]bool // jobs excused by the event log of a lost database
	reserved time.Time               // until then administrators keep nodes
	blamed   map[string]bool
	errs     []error
}

func newStage(out io.Writer) *stage {
	return &stage{out: out, jobs: map[string]slurmctl.JobID{}, apps: map[string]*App{}, evolving: map[slurmctl.JobID]bool{}, forged: map[slurmctl.JobID]bool{},
		stocks: map[slurmctl.JobID]bool{}, sharing: map[slurmctl.JobID]bool{}, told: map[slurmctl.JobID]bool{}, stopped: map[string]bool{}, blamed: map[string]bool{}}
}

func stamp(d time.Duration) string {
	d = d.Round(time.Millisecond)
	return fmt.Sprintf("%d:%02d.%03d", int(d.Minutes()), int(d.Seconds())%60, d.Milliseconds()%1000)
}

func (h *stage) say(text string) {
	fmt.Fprintf(h.out, "%9s  %s\n", stamp(h.s.Cluster.Elapsed()), text)
}

// blame records an error, once per wording.
func (h *stage) blame(err error) {
	if err == nil || h.blamed[err.Error()] {
		return
	}
	h.blamed[err.Error()] = true
	h.say("WRONG: " + err.Error())
	h.errs = append(h.errs, fmt.Errorf("%s: %w", stamp(h.s.Cluster.Elapsed()), err))
}

// wrong returns all errors found.
func (h *stage) wrong() error { return errors.Join(h.errs...) }

// jobOf returns the job of that name, unless slurmctld has forgotten it and its number is another
// job's. It also finds companions by name.
func (h *stage) jobOf(name string) (slurmctl.JobID, bool) {
	if strings.HasPrefix(name, "evo_") {
		for _, r := range h.s.Cluster.Queue() {
			if r.Name == name && !r.Ended() {
				return r.ID, true
			}
		}
	}
	if first, link, isLink := strings.Cut(name, "/"); isLink { // Slurm numbers them consecutively
		n, err := strconv.Atoi(link)
		id := h.jobs[first] + slurmctl.JobID(n-1)
		r, known := h.s.Cluster.Record(id)
		return id, err == nil && known && r.Name == first && h.apps[first].Drive.Means().StepsAreJobs
	}
	a := h.apps[name]
	if a != nil && a.Task > 0 {
		return h.taskOf(a)
	}
	return h.wholeOf(name, a)
}

// wholeOf does what jobOf does, for a job that is no link or task.
func (h *stage) wholeOf(name string, a *App) (slurmctl.JobID, bool) {
	id, ok := h.jobs[name]
	r, known := h.s.Cluster.Record(id)
	if known && strings.TrimSuffix(r.Name, " (waiting)") != name || !known && a != nil && len(a.Steps) == 0 {
		return 0, false
	}
	return id, ok
}

// taskOf returns the record of its own that a task of an array has.
func (h *stage) taskOf(a *App) (slurmctl.JobID, bool) {
	for _, r := range h.s.Cluster.Queue() {
		if n, is := r.Task(); is && r.ArrayJobID == a.Array && n == a.Task {
			h.jobs[a.Name] = r.ID
			return r.ID, true
		}
	}
	return 0, false
}

// tricks reports whether a job is a forged one. slurmctld may have forgotten it, and its number may
// be another job's.
func (h *stage) tricks(r slurmctl.Job) bool {
	return h.forged[r.ID] && strings.HasPrefix(r.Name, "evo_")
}

func (h *stage) record(id slurmctl.JobID) (slurmctl.Job, bool) {
	for _, r := range h.s.Cluster.Queue() {
		if r.ID == id {
			return r, true
		}
	}
	return slurmctl.Job{}, false
}

// over reports whether no job has anything left to do.
func (h *stage) over() bool {
	for _, r := range h.s.Cluster.Queue() {
		if !r.Ended() && !h.tricks(r) {
			return false
		}
	}
	return true
}

// excused reports whether the event log explains why a job is not as planned.
func (h *stage) excused(id slurmctl.JobID) bool {
	for _, e := range h.s.Database.Events {
		if h.s.Database.Jobs[e.Job].Job.SlurmID == uint32(id) && slices.Contains(excuses, e.Kind) {
			return true
		}
	}
	return h.told[id]
}

// excuses lists the events that explain why a job is not as planned.
var excuses = []string{"delayed", "overrun", "lapsed", "suspended", "resumed", "requeued", "step corrected", "nodes changed", "kept back", "given up", "failed", "changed"}

// why returns evosqueue's explanation of a job.
func (h *stage) why(id slurmctl.JobID) string {
	if v := h.s.View(); v != nil {
		for _, j := range v.Jobs {
			if j.ID == v.Base[uint32(id)] {
				return j.State + ": " + j.Reason
			}
		}
	}
	return "unknown to the sidecar"
}

// refused reports whether the sidecar has refused the job in words: the job stays parked.
func (h *stage) refused(id slurmctl.JobID) bool {
	return strings.Contains(h.why(id), "refused: ") || strings.Contains(h.why(id), "can never begin")
}

// appOf returns the application of a job, or nil.
func (h *stage) appOf(id uint32) *App {
	for name, a := range h.apps {
		if own, known := h.jobOf(name); known && uint32(own) == id {
			return a
		}
	}
	return nil
}

// has returns how many nodes an application has in Slurm.
func (h *stage) has(name string) (nodes int) {
	own := fmt.Sprintf("evo_%d_", h.jobs[name])
	for _, r := range h.s.Cluster.Queue() {
		if r.State == slurmctl.Running && (r.ID == h.jobs[name] || strings.HasPrefix(r.Name, own) && !h.tricks(r)) {
			nodes += len(r.NodeList)
		}
	}
	return nodes
}

// keepExcuses keeps what the event log excuses, before another takes its place.
func (h *stage) keepExcuses() {
	for _, a := range h.order {
		if id, known := h.jobOf(a); known && h.excused(id) {
			h.told[id] = true
		}
	}
}
