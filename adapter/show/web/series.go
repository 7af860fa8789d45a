package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/show/chart"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// points is the number of times in a series, however long it is and however many jobs there are.
const points = 240

// series holds numbers of nodes over time. uPlot draws it if there is JavaScript; Table shows the
// same.
type series struct {
	From  int64         `json:"from"` // seconds since 1970
	To    int64         `json:"to"`
	Now   int64         `json:"now"`
	Zone  int           `json:"zone"`  // seconds east of Greenwich, on the sidecar's machine
	Marks []seriesMark  `json:"marks"` // the same as of the charts above it
	Lines []*seriesLine `json:"lines"`

	scale scale
}

// seriesMark is a time on the axis.
type seriesMark struct {
	At   int64  `json:"at"` // seconds since 1970
	Text string `json:"text"`
}

// seriesLine is one of the numbers.
type seriesLine struct {
	Name  string `json:"name"`
	Color int    `json:"color"`
	Nodes []int  `json:"nodes"` // at the middle of each part of the time
}

// seriesRow is a time in the table.
type seriesRow struct {
	At    time.Time
	Nodes []int
}

func newSeries(s scale, now time.Time, names ...string) *series {
	_, zone := now.Zone()
	a := &series{From: s.from.Unix(), To: s.to.Unix(), Now: now.Unix(), Zone: zone, scale: s}
	for _, m := range s.marks() {
		a.Marks = append(a.Marks, seriesMark{m.At.Unix(), m.Text})
	}
	for i, name := range names {
		a.Lines = append(a.Lines, &seriesLine{Name: name, Color: i, Nodes: make([]int, points+1)})
	}
	return a
}

// at returns the first point that is not before a time.
func (a *series) at(t time.Time) int {
	width := a.scale.to.Sub(a.scale.from)
	return int(min(max((float64(t.Sub(a.scale.from))/float64(width))*points+0.5, 0), points))
}

// add notes nodes for a stretch of time: as changes, which done adds up.
func (a *series) add(line, nodes int, start, end time.Time) {
	if i, k := a.at(start), a.at(end); k > i {
		a.Lines[line].Nodes[i] += nodes
		a.Lines[line].Nodes[k] -= nodes
	}
}

func (a *series) done() *series {
	for _, l := range a.Lines {
		for i := 1; i < points; i++ {
			l.Nodes[i] += l.Nodes[i-1]
		}
		l.Nodes = l.Nodes[:points]
	}
	return a
}

// JSON returns the script's data.
func (a *series) JSON() (string, error) {
	text, err := json.Marshal(a)
	return string(text), err
}

// Table returns a dozen of the times.
func (a *series) Table() []seriesRow {
	var rows []seriesRow
	for i := points / 24; i < points; i += points / 12 {
		r := seriesRow{At: a.scale.from.Add(a.scale.to.Sub(a.scale.from) * time.Duration(2*i+1) / (2 * points))}
		for _, l := range a.Lines {
			r.Nodes = append(r.Nodes, l.Nodes[i])
		}
		rows = append(rows, r)
	}
	return rows
}

// Said returns the series in words.
func (a *series) Said() string {
	var words []string
	for _, l := range a.Lines {
		most := 0
		for _, n := range l.Nodes {
			most = max(most, n)
		}
		words = append(words, fmt.Sprintf("%s: at most %d nodes", l.Name, most))
	}
	return strings.Join(words, "; ")
}

// clusterSeries returns what evolving jobs had and are planned to have, what is held for them, and
// what waiting jobs request for their start. Its time is proportional to the jobs.
func clusterSeries(s scale, now time.Time, jobs []*api.Job, c api.Cluster) *series {
	a := newSeries(s, now, "allocated, then planned", "held", "waited for")
	seen := map[uint32]bool{}
	for _, j := range jobs {
		seen[j.ID] = true
		begun := j.Start
		for i, p := range j.Past {
			if p.End.IsZero() || p.End.After(now) {
				p.End = now
			}
			a.add(0, p.Nodes, p.Start, p.End)
			if i == 0 {
				begun = p.Start
			}
		}
		if j.State != "ended" {
			for _, p := range j.Plan {
				if p.Start.Before(now) {
					p.Start = now
				}
				a.add(0, p.Nodes, p.Start, p.End)
			}
		}
		if j.Submit.IsZero() || j.State == "ended" && len(j.Past) == 0 {
			continue
		}
		if len(j.Past) == 0 && begun.Before(now) { // its start is unknown
			begun = s.to
		}
		first, _, _ := strings.Cut(j.Profile, "@")
		if n, err := strconv.Atoi(first); err == nil {
			a.add(2, n, j.Submit, begun)
		}
	}
	a.held(1, c.Reservations, func(job uint32) bool { return seen[job] })
	return a.done()
}

// jobSeries returns what a job requested, is planned to have, had, and what is held for it.
func jobSeries(p *jobPage, c api.Cluster) *series {
	if len(p.Marks) == 0 {
		return nil
	}
	a := newSeries(p.scale, p.Now, "requested", "planned", "allocated", "held")
	if profile, err := planner.ParseProfile(p.Job.Profile); err == nil {
		at := p.begun()
		for _, s := range profile {
			end := at.Add(time.Duration(s.Duration) * time.Second)
			a.add(0, s.Nodes, at, end)
			at = end
		}
	}
	for _, s := range p.Job.Plan {
		a.add(1, s.Nodes, s.Start, s.End)
	}
	for _, s := range chart.Spans(api.Job{State: "ended", Past: p.Job.Past}, p.Now) {
		a.add(2, s.Nodes, s.Start, s.End)
	}
	a.held(3, c.Reservations, func(job uint32) bool { return job == p.Job.ID })
	return a.done()
}

// held adds the nodes held for some of the jobs. Holds overlap: a node in several at a time counts
// once. Unparsable node lists are not counted.
func (a *series) held(line int, all []api.Reservation, wanted func(job uint32) bool) {
	stretches := map[string][][2]int{}
	for _, v := range all {
		if !v.Hold || !wanted(v.Job) {
			continue
		}
		names, err := slurmctl.ExpandNodes(v.NodeList)
		if err != nil {
			continue
		}
		for _, name := range names {
			stretches[name] = append(stretches[name], [2]int{a.at(v.Start), a.at(v.End)})
		}
	}
	for _, of := range stretches {
		slices.SortFunc(of, func(x, y [2]int) int { return cmp.Compare(x[0], y[0]) })
		last := 0
		for _, s := range of {
			if from := max(s[0], last); s[1] > from {
				a.Lines[line].Nodes[from]++
				a.Lines[line].Nodes[s[1]]--
				last = s[1]
			}
		}
	}
}
