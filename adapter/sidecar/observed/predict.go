package observed

import (
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

const (
	// kept is how many predictions are kept for each of the Leads, an eighth of it apart.
	kept, apart = 10, 8
	// histories is how many times more jobs have a history than are planned at a time.
	histories = 4
	// firstSample is the age at which the second sample of a job is due.
	firstSample = 60
)

// history holds predictions for a job: for each of the Leads, the last ones that far apart.
type history struct {
	first, due, last int64 // when it was first predicted; when the next sample is due; when it was last predicted
	rings            [len(Leads)]ring
}

type ring struct {
	made [kept]Prediction
	n    int // ever
}

// add takes a prediction.
func (h *history) add(p Prediction) {
	h.last = p.At
	for i, lead := range Leads {
		r := &h.rings[i]
		if r.n == 0 || p.At-r.made[(r.n-1)%kept].At >= lead/apart {
			r.made[r.n%kept] = p
			r.n++
		}
	}
}

// before returns the predictions that were made closest to the Leads before a start.
func (h *history) before(start int64) (all []Lead) {
	for i, lead := range Leads {
		r, off := &h.rings[i], lead/apart+1
		best := Lead{Lead: lead}
		for _, p := range r.made[:min(r.n, kept)] {
			if d := start - lead - p.At; max(d, -d) < off {
				best.Prediction, off = p, max(d, -d)
			}
		}
		if best.At != 0 {
			all = append(all, best)
		}
	}
	return all
}

// planned takes the starts that were planned for the jobs of the last poll.
func (w *Watcher) planned(starts []msg.PlannedStart) {
	now := w.at.Unix()
	for _, s := range starts {
		t := w.jobs[s.Job]
		if t == nil || t.evolving || t.start > 0 || s.Start == 0 && t.expected == 0 {
			continue
		}
		h := w.predicted[s.Job]
		if h == nil {
			w.makeRoom()
			h = &history{first: now}
			w.predicted[s.Job] = h
		}
		p := Prediction{now, s.Start, t.expected}
		if h.add(p); now >= h.due {
			age := now - h.first
			h.due = h.first + max(2*age, firstSample)
			w.writeOf(t.job.UID, Record{Sample: &Sample{s.Job, age, p}})
		}
	}
}

// makeRoom forgets the history that was not continued for the longest time, if there are too many.
func (w *Watcher) makeRoom() {
	if len(w.predicted) < histories*max(w.cfg.StockJobs, 1) {
		return
	}
	oldest := slurmctl.JobID(0)
	for id, h := range w.predicted {
		if o := w.predicted[oldest]; o == nil || h.last < o.last {
			oldest = id
		}
	}
	delete(w.predicted, oldest)
}
