package web

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/show/chart"
	"github.com/evoslurm/evoslurm/adapter/show/display"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Bounds of one drawing, whatever there is.
const (
	mostRows    = 1000    // nodes
	mostListed  = 50      // jobs, in the list
	mostDrawn   = 300_000 // bytes of shapes
	mostChoices = 200     // users, accounts, partitions that are offered
	tall        = 640     // pixels that the nodes take, if a row can be so low
	lowest      = 1
	highest     = 20
)

// gantt is the first page.
type gantt struct {
	Window   window
	Now      time.Time
	Taken    time.Time // when Slurm was polled
	From, To time.Time
	Marks    []mark
	NowAt    string // position of the present; "" if out of view
	Width    time.Duration

	Zooms                          []choice
	Earlier, Later, In, Out        string
	Follow, Nodes, Lists, All      string
	Users, Accounts, Parts         []string
	Chart                          *chartByNode
	Jobs                           []row
	Matching, Running, Queued      int
	Previous, Next                 string // pages of the list
	Undrawn                        bool   // more jobs ended in this time than were read
	Series                         *series
	Free, Busy, Unusable, Everyone int // nodes
}

type choice struct {
	Text, Link string
	Chosen     bool
}

type mark struct{ X, Text string }

// chartByNode is the chart with a row for each node.
type chartByNode struct {
	Height     int
	Labels     []label
	Back, Fore []shape
	Words      []word
	First, All int // rows that are drawn, of all
	Last       int
	Previous   string
	Next       string
	Left       int // jobs that are not drawn, for want of room
}

type label struct {
	Y    int
	Text string
}

// shape holds what is drawn for one or many jobs.
type shape struct{ Class, Link, Title, Path string }

// word is a text on the chart.
type word struct {
	X    string
	Y    int
	Text string
}

// row is a job in the list.
type row struct {
	Job      api.Job
	Label    string // its ID as shown, or those of waiting tasks of an array
	Color    int
	Bars     []shape
	Said     string // the drawing in words
	Now      int    // position of the present; 0 if out of view
	Seconds  int64  // node-seconds allocated so far
	PlanEnds time.Time
}

const barHeight = 24

// gantt makes the first page, or returns one made a moment ago for a reader with the same rights.
func (p *Page) gantt(ctx context.Context, v visit) (any, error) {
	reader, ok := v.Reader.(interface{ Sees(context.Context) string })
	if !ok {
		return drawGantt(ctx, v)
	}
	return p.made.get(reader.Sees(ctx)+" "+v.URL.RawQuery, func() (any, error) { return drawGantt(ctx, v) })
}

func drawGantt(ctx context.Context, v visit) (any, error) {
	now := v.now
	w, err := parseWindow(v.URL.Query(), now.Location())
	if err != nil {
		return nil, err
	}
	all, err := v.Jobs(ctx, true)
	if err != nil {
		return nil, err
	}
	cluster, err := v.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	g := &gantt{Window: w, Now: now, Taken: cluster.Taken}
	g.offer(all, cluster)
	shown, last := g.choose(all)
	s, width := w.times(now, last)
	earlier, more, err := earlierJobs(ctx, v.Reader, all, s)
	if err != nil {
		return nil, err
	}
	ended, _ := g.choose(earlier)
	shown, g.Undrawn = append(shown, ended...), more
	g.From, g.To, g.Width = s.from, s.to, width
	for _, m := range s.marks() {
		g.Marks = append(g.Marks, mark{percent(s.x(m.At)), m.Text})
	}
	if x := s.present(now); x != 0 {
		g.NowAt = percent(x)
	}
	g.links()
	if w.By != "job" && g.Everyone > 0 {
		g.Chart = byNode(w, s, now, shown, cluster)
	}
	if w.By != "node" {
		g.list(shown, s)
	}
	if w.By == "" {
		g.Series = clusterSeries(s, now, shown, cluster)
	}
	return g, nil
}

// choose counts and returns the jobs that the window selects, and when the last of them is to end.
func (g *gantt) choose(all []api.Job) (shown []*api.Job, last time.Time) {
	shown, last = make([]*api.Job, 0, len(all)), g.Now // there may be 100,000, which are not copied
	for i := range all {
		j := &all[i]
		if !g.Window.matches(j.User, j.Account, j.Partition) {
			continue
		}
		shown = append(shown, j)
		if j.State == "ended" {
			continue
		}
		g.Matching++
		if j.Step > 0 {
			g.Running++
		} else {
			g.Queued++
		}
		if j.End.After(last) {
			last = j.End
		}
	}
	return shown, last
}

// offer notes what can be chosen and how the nodes are.
func (g *gantt) offer(jobs []api.Job, c api.Cluster) {
	users, accounts, parts := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range jobs {
		users[jobs[i].User], accounts[jobs[i].Account] = true, true
	}
	for _, j := range c.Others {
		users[j.User], accounts[j.Account] = true, true
	}
	g.Everyone = len(c.Nodes)
	for _, n := range c.Nodes {
		for _, p := range n.Partitions {
			parts[p] = true
		}
		switch {
		case !n.Usable:
			g.Unusable++
		case n.State == "idle":
			g.Free++
		default:
			g.Busy++
		}
	}
	for set, into := range map[*map[string]bool]*[]string{&users: &g.Users, &accounts: &g.Accounts, &parts: &g.Parts} {
		maps.DeleteFunc(*set, func(name string, _ bool) bool { return name == "" || text(name) != name }) // these are not offered
		*into = slices.Sorted(maps.Keys(*set))
		*into = (*into)[:min(len(*into), mostChoices)]
	}
}

// links adds the links of the page.
func (g *gantt) links() {
	at := g.Window
	at.Page, at.Rows = 0, 0
	for _, s := range spans {
		z := at
		z.Span = s
		g.Zooms = append(g.Zooms, choice{brief(s), z.link(), g.Window.Span == s})
	}
	middle := g.From.Add(g.Width / 2)
	move := func(by time.Duration) string {
		m := at
		m.Span, m.At = g.Width, middle.Add(by)
		return m.link()
	}
	g.Earlier, g.Later = move(-g.Width/2), move(g.Width/2)
	zoom := func(width time.Duration) string {
		z := at
		z.Span = min(max(width, time.Minute), 366*24*time.Hour)
		return z.link()
	}
	g.In, g.Out = zoom(g.Width/2), zoom(g.Width*2)
	f := at
	f.At = time.Time{}
	g.Follow = f.link()
	by := func(what string) string {
		b := at
		b.By = what
		return b.link()
	}
	g.All, g.Nodes, g.Lists = by(""), by("node"), by("job")
}

func brief(d time.Duration) string {
	switch {
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d == 24*time.Hour:
		return "1 day"
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

// color returns one of the ten hues, always the same for a job.
func color(id uint32) int { return int(id % 10) }

// list adds the jobs, one row each, ended ones last if requested.
func (g *gantt) list(all []*api.Job, s scale) {
	var running, queued, ended []*api.Job
	for _, j := range all {
		switch {
		case j.State == "ended" && g.Window.Ended:
			ended = append(ended, j)
		case j.State == "ended":
		case j.Step > 0:
			running = append(running, j)
		default:
			queued = append(queued, j)
		}
	}
	slices.SortStableFunc(ended, func(a, b *api.Job) int { return b.End.Compare(a.End) })
	var values []api.Job
	for _, j := range slices.Concat(running, queued, ended) {
		values = append(values, *j)
	}
	jobs := display.Fold(values, g.Window.Tasks)
	first := min(g.Window.Page*mostListed, len(jobs))
	page := func(n int) string {
		w := g.Window
		w.Page = n
		return w.link() + "#jobs"
	}
	if g.Window.Page > 0 {
		g.Previous = page(g.Window.Page - 1)
	}
	if first+mostListed < len(jobs) {
		g.Next = page(g.Window.Page + 1)
	}
	for _, l := range jobs[first:min(first+mostListed, len(jobs))] {
		g.Jobs = append(g.Jobs, rowOf(l, s, g.Now))
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rowOf draws a job as bars that are as high as it has nodes.
func rowOf(l display.Line, s scale, now time.Time) row {
	r := row{Job: l.Job, Label: l.Label(), Color: color(l.ID), Now: s.present(now)}
	drawn := chart.Spans(l.Job, now)
	r.Bars, r.Said = bars(drawn, s, peak(drawn), r.Color, now)
	for _, p := range drawn {
		if !p.Planned {
			r.Seconds += int64(p.End.Sub(p.Start)/time.Second) * int64(p.Nodes)
		} else {
			r.PlanEnds = p.End
		}
	}
	return r
}

func peak(spans []chart.Span) int {
	most := 1
	for _, s := range spans {
		most = max(most, s.Nodes)
	}
	return most
}

// bars draws stretches as high as they have nodes, peak being the full height, and says the same in words.
func bars(spans []chart.Span, s scale, peak, hue int, now time.Time) ([]shape, string) {
	var paths [2]pathOf
	var words []string
	for _, p := range spans {
		x, w, seen := s.across(p.Start, p.End)
		if seen {
			h := max(p.Nodes*barHeight/peak, 2)
			paths[boolInt(p.Planned)].rect(x, barHeight-h, w, h)
		}
		if len(words) < 20 {
			words = append(words, fmt.Sprintf("%s %d nodes from %s to %s", []string{"had", "planned"}[boolInt(p.Planned)], p.Nodes, clock(p.Start, now), clock(p.End, now)))
		}
	}
	var all []shape
	for i, class := range []string{"had", "plan"} {
		if len(paths[i].data) > 0 {
			all = append(all, shape{Class: fmt.Sprintf("%s c%d", class, hue), Path: paths[i].String()})
		}
	}
	return all, strings.Join(words, "; ")
}

// byNode draws the nodes of the window's partition, a row each.
func byNode(w window, s scale, now time.Time, jobs []*api.Job, c api.Cluster) *chartByNode {
	var names []string
	nodes := map[string]api.Node{}
	for _, n := range c.Nodes {
		if w.Partition == "" || slices.Contains(n.Partitions, w.Partition) {
			names = append(names, n.Name)
			nodes[n.Name] = n
		}
	}
	a := &chartByNode{All: len(names), First: min(w.Rows, len(names))}
	a.Last = min(a.First+mostRows, a.All)
	names = names[a.First:a.Last]
	page := func(first int) string {
		p := w
		p.Rows = first
		return p.link()
	}
	if a.First > 0 {
		a.Previous = page(max(a.First-mostRows, 0))
	}
	if a.Last < a.All {
		a.Next = page(a.Last)
	}
	height := lowest
	if len(names) > 0 {
		height = min(max(tall/len(names), lowest), highest)
	}
	a.Height = height * len(names)
	d := drawing{scale: s, height: height, index: make(map[string]int, len(names))}
	var unusable []int
	for i, name := range names {
		d.index[name] = i
		if !nodes[name].Usable {
			unusable = append(unusable, i)
		}
		if every := max(1, (14+height-1)/height); i%every == 0 {
			a.Labels = append(a.Labels, label{i*height + height/2, text(name)})
		}
	}
	var down pathOf
	for _, run := range runs(unusable) {
		down.rect(0, run[0]*height, wide, (run[1]-run[0])*height)
	}
	if len(unusable) > 0 {
		a.Back = append(a.Back, shape{Class: "down", Title: "not usable", Path: down.String()})
	}
	d.jobs(a, w, now, jobs)
	d.others(a, w, now, c)
	return a
}

// drawing is the state shared by all shapes of a chart by node.
type drawing struct {
	scale
	height int
	index  map[string]int // of visible nodes
	drawn  int            // bytes
}

// rows returns the visible rows of a list of nodes.
func (d *drawing) rows(list string) [][2]int {
	names, err := slurmctl.ExpandNodes(list)
	if err != nil {
		return nil // it is not drawn; the list of jobs shows it
	}
	rows := make([]int, 0, len(names))
	for _, name := range names {
		if i, ok := d.index[name]; ok {
			rows = append(rows, i)
		}
	}
	return runs(rows)
}

// add draws a period on nodes and returns the tallest of its rectangles.
func (d *drawing) add(p *pathOf, start, end time.Time, list string) (x, wd int, tallest [2]int) {
	x, wd, seen := d.across(start, end)
	if !seen {
		return 0, 0, tallest
	}
	if d.drawn >= mostDrawn { // in view, but beyond what can be drawn
		p.rect(x, 0, wd, 0)
		return x, wd, tallest
	}
	for _, run := range d.rows(list) {
		p.rect(x, run[0]*d.height, wd, (run[1]-run[0])*d.height)
		if run[1]-run[0] > tallest[1]-tallest[0] {
			tallest = run
		}
	}
	return x, wd, tallest
}

// room reports whether there is some for a shape.
func (d *drawing) room(p *pathOf) bool {
	if d.drawn+len(p.data) > mostDrawn {
		d.drawn = mostDrawn
		return false
	}
	d.drawn += len(p.data) + 60
	return true
}

// jobs draws what evolving jobs had and what is planned for them.
func (d *drawing) jobs(a *chartByNode, w window, now time.Time, jobs []*api.Job) {
	for _, j := range jobs {
		if !d.sees(j) {
			continue
		}
		if d.drawn >= mostDrawn {
			a.Left++
			continue
		}
		var paths [2]pathOf
		for _, p := range chart.Spans(*j, now) {
			x, wd, tallest := d.add(&paths[boolInt(p.Planned)], p.Start, p.End, p.NodeList)
			if h := (tallest[1] - tallest[0]) * d.height; h >= 13 && wd >= wide/14 && len(a.Words) < 400 {
				a.Words = append(a.Words, word{percent(x + wide/250), tallest[0]*d.height + h/2, j.Label()})
			}
		}
		title := ""
		for i, class := range []string{"had", "plan"} {
			if len(paths[i].data) == 0 {
				continue
			}
			if !d.room(&paths[i]) {
				a.Left++
				break
			}
			if title == "" {
				title = fmt.Sprintf("%s %s, %s, %s", j.Label(), text(j.Name), text(j.User), text(state(*j)))
			}
			a.Fore = append(a.Fore, shape{fmt.Sprintf("%s c%d", class, color(j.ID)), jobLink(j.ID), title, paths[i].String()})
		}
	}
}

func jobLink(id uint32) string { return "job?id=" + strconv.FormatUint(uint64(id), 10) }

// others draws stock jobs, holds and the site's reservations.
func (d *drawing) others(a *chartByNode, w window, now time.Time, c api.Cluster) {
	var rest pathOf // jobs that were filtered out, and those without a known end
	for _, j := range c.Others {
		var p pathOf
		end := j.End
		if end.IsZero() { // unknown end: it continues
			end = d.to
		} else if end.Before(now) {
			end = now
		}
		if j.ID == 0 {
			end = now.Add(d.to.Sub(d.from) / 200)
		}
		d.add(&p, j.Start, end, j.NodeList)
		if len(p.data) == 0 {
			continue
		}
		if !d.room(&p) {
			a.Left++
			continue
		}
		if j.ID == 0 || !w.matches(j.User, j.Account, j.Partition) {
			rest.data = append(rest.data, p.data...)
			continue
		}
		a.Back = append(a.Back, shape{"other", "", fmt.Sprintf("%d %s, %s, stock job until %s", j.ID, text(j.Name), text(j.User), clock(j.End, now)), p.String()})
	}
	if len(rest.data) > 0 {
		a.Back = append(a.Back, shape{Class: "other", Title: "other jobs", Path: rest.String()})
	}
	a.Left += c.More
	for _, v := range c.Reservations {
		var p pathOf
		d.add(&p, v.Start, v.End, v.NodeList)
		if len(p.data) == 0 || !d.room(&p) {
			continue
		}
		one := shape{"site", "", "reservation " + text(v.Name) + " until " + clock(v.End, now), p.String()}
		if v.Hold {
			one.Class, one.Title = "hold", fmt.Sprintf("held for job %d, step %d, from %s", v.Job, v.Step, clock(v.Start, now))
			if v.Job != 0 {
				one.Link = jobLink(v.Job)
			}
		}
		a.Fore = append(a.Fore, one)
	}
}
