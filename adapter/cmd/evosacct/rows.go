package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/show/display"
	"github.com/evoslurm/evoslurm/adapter/show/ran"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// row is a job, or one of its steps.
type row struct {
	job         api.Job
	label       string // its ID as shown
	cluster     string // named by --clusters
	step        int    // 0: the job as a whole
	state       string
	start, end  time.Time // zero: not yet
	elapsed     time.Duration
	nodes       int // at most
	nodeList    string
	nodeSeconds float64
	wasted      float64 // of these, neither requested nor lent
	lent        float64 // of these, beyond the profile of a malleable job
	joules      float64 // by the configured watts
	energy      drawn
	grown       []ran.Promise // its planned growths, of a step the one that it began with
}

// short are Slurm's codes of states.
var short = map[string]string{"PENDING": "PD", "RUNNING": "R", "SUSPENDED": "S", "COMPLETED": "CD", "CANCELLED": "CA", "FAILED": "F", "TIMEOUT": "TO",
	"NODE_FAIL": "NF", "OUT_OF_MEMORY": "OOM", "BOOT_FAIL": "BF", "DEADLINE": "DL", "PREEMPTED": "PR"}

// state returns a job's state in Slurm's words.
func state(j api.Job) string {
	switch j.State {
	case "ended":
		return strings.ToUpper(j.EndState)
	case "queued", "starting":
		return "PENDING"
	case api.Suspended:
		return "SUSPENDED"
	}
	return "RUNNING"
}

// most returns the largest size of each step, or nil if unknown.
func most(j api.Job) []int {
	var nodes []int
	if bounds, err := malleable.ParseProfile(j.Bounds); err == nil {
		for _, s := range bounds {
			nodes = append(nodes, s.Max)
		}
	} else if profile, err := planner.ParseProfile(j.Profile); err == nil {
		for _, s := range profile {
			nodes = append(nodes, s.Nodes)
		}
	}
	return nodes
}

// steps returns what the job really had, step by step. A step whose nodes changed during it is one
// row, with its largest size, not counting nodes beyond the step's size, which come early for the
// next step. The node-seconds of these until then count here, where they were used.
func (m *meter) steps(j api.Job, grown []ran.Promise, now time.Time) []row {
	var rows []row
	may := most(j)
	for _, p := range j.Past {
		end, until := p.End, p.End
		if end.IsZero() {
			until = now
		}
		took := max(until.Sub(p.Start), 0)
		i := slices.IndexFunc(rows, func(r row) bool { return r.step == p.Step })
		if i < 0 {
			i = len(rows)
			rows = append(rows, row{job: j, label: j.Label(), cluster: m.cluster, step: p.Step, start: p.Start})
			if g := slices.IndexFunc(grown, func(g ran.Promise) bool { return g.Step == p.Step }); g >= 0 {
				rows[i].grown = grown[g : g+1]
			}
		}
		r := &rows[i]
		r.end, r.elapsed = end, r.elapsed+took
		r.nodeSeconds += took.Seconds() * float64(p.Nodes)
		r.joules += took.Seconds() * m.busy(p)
		nexts := p.Step <= len(may) && p.Nodes > may[p.Step-1] && r.nodes > 0
		if p.Nodes >= r.nodes && !nexts {
			r.nodes, r.nodeList = p.Nodes, p.NodeList
		}
	}
	for i := range rows {
		if rows[i].state = "COMPLETED"; i == len(rows)-1 {
			rows[i].state = state(j)
		}
		rows[i].spend(now)
		rows[i].energy = m.of(rows[i])
	}
	return rows
}

// spend computes how much of what a step had was lent or wasted, as evosctl report does.
func (r *row) spend(now time.Time) {
	profile, err := planner.ParseProfile(r.job.Profile)
	if err != nil || r.step > len(profile) {
		return
	}
	asked := profile[r.step-1]
	for _, p := range r.job.Past {
		until := p.End
		if until.IsZero() {
			until = now
			if p.Step == r.step { // it goes on
				asked.Duration = min(asked.Duration, int64(r.elapsed.Seconds()))
			}
		}
		if p.Step == r.step && r.job.Bounds != "" {
			r.lent += max(until.Sub(p.Start), 0).Seconds() * float64(max(p.Nodes-asked.Nodes, 0))
		}
	}
	r.wasted = max(r.nodeSeconds-r.lent-float64(asked.Duration)*float64(asked.Nodes), 0)
}

// whole returns the job as one row.
func whole(j api.Job, steps []row, grown []ran.Promise, now time.Time) row {
	r := row{job: j, state: state(j), grown: grown}
	if j.State == "queued" {
		return r
	}
	r.start = j.Start
	until := now
	if j.State == "ended" {
		r.end, until = j.End, j.End
	}
	if !r.start.IsZero() {
		r.elapsed = max(until.Sub(r.start), 0)
	}
	for _, s := range steps {
		r.nodeSeconds, r.wasted, r.lent, r.energy = r.nodeSeconds+s.nodeSeconds, r.wasted+s.wasted, r.lent+s.lent, r.energy.add(s.energy)
		if s.nodes >= r.nodes {
			r.nodes, r.nodeList = s.nodes, s.nodeList
		}
	}
	return r
}

// column is one of the table.
type column struct {
	name  string
	width int // as sacct: negative to the left
	text  func(r row) string
}

// all lists the columns, by sacct's names if it has them, and Evoslurm's own.
var all = []column{
	{"JobID", -12, func(r row) string {
		if r.step > 0 {
			return r.label + "/" + strconv.Itoa(r.step)
		}
		return r.label
	}},
	{"JobIDRaw", -12, func(r row) string { return strconv.FormatUint(uint64(r.job.ID), 10) }},
	{"Step", 4, func(r row) string {
		if r.step == 0 {
			return ""
		}
		return strconv.Itoa(r.step)
	}},
	{"JobName", 10, func(r row) string { return r.job.Name }},
	{"User", 9, func(r row) string { return r.job.User }},
	{"UID", 6, func(r row) string { return strconv.FormatUint(uint64(r.job.UID), 10) }},
	{"Account", 10, func(r row) string { return r.job.Account }},
	{"Cluster", 10, func(r row) string { return r.cluster }},
	{"Partition", 10, func(r row) string { return r.job.Partition }},
	{"State", 10, func(r row) string { return r.state }},
	{"Submit", 19, func(r row) string { return at(r.job.Submit) }},
	{"Start", 19, func(r row) string { return at(r.start) }},
	{"End", 19, func(r row) string { return at(r.end) }},
	{"Elapsed", 10, func(r row) string { return clock(r.elapsed) }},
	{"ElapsedRaw", 10, func(r row) string { return strconv.Itoa(int(r.elapsed.Seconds())) }},
	{"NNodes", 8, func(r row) string { return strconv.Itoa(r.nodes) }},
	{"NodeList", 15, func(r row) string {
		if r.nodeList == "" {
			return "None assigned"
		}
		return r.nodeList
	}},
	{"NodeSeconds", 12, func(r row) string { return strconv.FormatFloat(r.nodeSeconds, 'f', 0, 64) }},
	{"HeldIdle", 9, func(r row) string {
		if r.step > 0 {
			return ""
		}
		return strconv.FormatInt(r.job.HeldIdle, 10)
	}},
	{"Wasted", 12, func(r row) string { return strconv.FormatFloat(r.wasted, 'f', 0, 64) }},
	{"Lent", 12, func(r row) string { return strconv.FormatFloat(r.lent, 'f', 0, 64) }},
	{"Energy", 9, func(r row) string { return r.energy.String() }},
	{"Profile", -24, func(r row) string { return r.job.Asked() }},
	{"Promised", 19, func(r row) string {
		if r.step == 0 || len(r.grown) == 0 {
			return ""
		}
		return at(r.grown[0].At)
	}},
	{"Late", 8, func(r row) string {
		if len(r.grown) == 0 {
			return ""
		}
		most := time.Duration(0)
		for _, p := range r.grown {
			most = max(most, p.Late(time.Now()))
		}
		return strconv.FormatFloat(most.Seconds(), 'f', 1, 64)
	}},
	{"Promise", 13, promise},
	{"Cause", -40, func(r row) string {
		if r.step == 0 || len(r.grown) == 0 {
			return ""
		}
		return r.grown[0].Cause()
	}},
	{"Drive", 9, func(r row) string { return r.job.Drive }},
	{"ExpandLimit", 11, func(r row) string { return r.job.ExpandLimit }},
	{"Reason", -30, func(r row) string { return r.job.Reason }},
}

// told lists the columns that need events.
var told = []string{"Promised", "Late", "Promise", "Cause"}

// promise returns the outcome of a planned growth; for a job, how many of its due growths were on
// time.
func promise(r row) string {
	switch {
	case len(r.grown) == 0:
		return ""
	case r.step > 0:
		return r.grown[0].Outcome(time.Now())
	}
	kept, due := 0, 0
	for _, p := range r.grown {
		switch {
		case p.Kept():
			kept, due = kept+1, due+1
		case !p.Came.IsZero() || p.Lapsed:
			due++
		}
	}
	return fmt.Sprintf("%d of %d kept", kept, due)
}

const defaultFormat = "jobid,jobname,partition,account,state,nnodes,start,elapsed,nodeseconds"

func columnNames() []string {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.name
	}
	return names
}

// parseColumns reads a list of NAME or NAME%WIDTH.
func parseColumns(text string) ([]column, error) {
	var columns []column
	for word := range strings.SplitSeq(text, ",") {
		name, width, sized := strings.Cut(word, "%")
		i := slices.IndexFunc(all, func(c column) bool { return strings.EqualFold(c.name, name) })
		if i < 0 {
			return nil, fmt.Errorf("invalid field requested: %q; there are %s", name, strings.Join(columnNames(), ", "))
		}
		c := all[i]
		if sized {
			n, err := strconv.Atoi(width)
			if err != nil || n == 0 || n > 1000 || n < -1000 {
				return nil, fmt.Errorf("invalid width of field %s: %q", name, width)
			}
			c.width = n
		}
		columns = append(columns, c)
	}
	return columns, nil
}

func (c column) columns() int { return max(c.width, -c.width) }

// fit returns a cell as wide as the column; one that was cut ends in the mark.
func (c column) fit(text, mark string) string {
	text = legible.Cut(text, c.columns(), mark)
	gap := strings.Repeat(" ", max(c.columns()-legible.Columns(text), 0))
	if c.width < 0 {
		return text + gap
	}
	return gap + text
}

// at returns a time in sacct's form.
func at(t time.Time) string { return display.SlurmTime(t, time.Now(), os.Getenv("SLURM_TIME_FORMAT")) }

// clock returns a duration in sacct's form.
func clock(d time.Duration) string {
	s := int64(d / time.Second)
	if s >= 86400 {
		return fmt.Sprintf("%d-%02d:%02d:%02d", s/86400, s/3600%24, s/60%60, s%60)
	}
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}
