package core

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Write is a change of the database. All writes of one step are one transaction, together with the intents of
// its tasks. The transaction ends before any of these tasks begins, so a crash leaves no half-written state.
type Write interface {
	Effect
	write()
}

type (
	// AddJob adds a job with everything known about it or, with Again, a job that was considered ended.
	AddJob struct {
		Job   row.Job
		Parts []row.Part
		Bound string
		Again bool
	}
	// SaveJob saves the current state of a job.
	SaveJob struct{ Job row.Job }
	// SaveProfile replaces the profile that a job asks for.
	SaveProfile struct {
		Job     int64
		Profile planner.Profile
	}
	// SaveParts saves which Slurm jobs the job consists of.
	SaveParts struct {
		Job   int64
		Parts []row.Part
	}
	// SaveAllocation saves what the job has from then on.
	SaveAllocation struct {
		Job      int64
		Step     int
		At       time.Time
		Nodes    int
		NodeList string
	}
	// SavePlan replaces the plan of a job.
	SavePlan struct {
		Job  int64
		Plan []row.Span
	}
	// AddEvent appends to the event log.
	AddEvent struct {
		Job    int64 // 0: none
		At     time.Time
		Kind   string
		Detail any
	}
	// Settle saves the outcome of an intent; "": it worked.
	Settle struct {
		Intent int64
		At     time.Time
		Err    string
	}
)

func (AddJob) effect()         {}
func (SaveJob) effect()        {}
func (SaveProfile) effect()    {}
func (SaveParts) effect()      {}
func (SaveAllocation) effect() {}
func (SavePlan) effect()       {}
func (AddEvent) effect()       {}
func (Settle) effect()         {}

func (AddJob) write()         {}
func (SaveJob) write()        {}
func (SaveProfile) write()    {}
func (SaveParts) write()      {}
func (SaveAllocation) write() {}
func (SavePlan) write()       {}
func (AddEvent) write()       {}
func (Settle) write()         {}

func (c *Core) emit(e Effect) { c.effects = append(c.effects, c.out(e)) }

// event appends to the event log.
func (c *Core) event(j *job, kind string, detail map[string]any) {
	id := int64(0)
	if j != nil {
		if id = j.ID; byAsking[kind] {
			c.askedEvent(j, kind, detail)
			return
		}
		if kind == "ended" {
			c.unmute(j)
		}
	}
	c.emit(AddEvent{Job: id, At: c.now, Kind: kind, Detail: detail})
}

// save saves the current state of a job.
func (c *Core) save(j *job) {
	j.settlePrice()
	c.emit(SaveJob{*j.Job})
}

// saveParts saves which Slurm jobs the job consists of.
func (c *Core) saveParts(j *job) { c.emit(SaveParts{j.ID, j.parts()}) }

// saveAllocation saves what the job has from then on.
func (c *Core) saveAllocation(j *job, at time.Time, nodes int, list string) {
	c.emit(SaveAllocation{j.ID, j.Step, at, nodes, list})
}

// addJob adds a new job, or again one that was considered ended.
func (c *Core) addJob(j *job, detail map[string]any) {
	kind := "adopted"
	k, again := c.known[j.id()]
	if again = again && k.UID == j.UID && k.Submitted.Equal(j.Submitted); again {
		j.ID, kind = k.ID, "adopted again"
	} else {
		c.lastRow++
		j.ID = c.lastRow
	}
	c.known[j.id()] = row.Known{ID: j.ID, SlurmID: j.SlurmID, UID: j.UID, Submitted: j.Submitted, Steps: len(j.Profile)}
	c.emit(AddJob{Job: *j.Job, Parts: j.parts(), Bound: j.bound, Again: again})
	if again { // it may have changed, and had a plan
		c.emit(SaveProfile{j.ID, j.Profile})
		c.unsaved[j] = true
	}
	c.event(j, kind, detail)
}

// savePlans saves the plans that have changed.
func (c *Core) savePlans() {
	for _, j := range c.active {
		if c.unsaved[j] {
			c.emit(SavePlan{j.ID, spans(j.plan)})
		}
	}
	clear(c.unsaved)
}

func spans(plan []plannedStep) []row.Span { return spansBy(plan, slurmctl.CompressNodes) }

func spansBy(plan []plannedStep, text func([]string) string) []row.Span {
	rows := make([]row.Span, len(plan))
	for i, p := range plan {
		rows[i] = row.Span{Step: i + 1, Start: time.Unix(p.start, 0), End: time.Unix(p.end, 0),
			Nodes: len(p.nodes), NodeList: text(p.nodes)}
	}
	return rows
}
