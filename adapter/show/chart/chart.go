package chart

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// Options are how a chart is drawn. The zero value is 80 columns of UTF-8
// without colour.
type Options struct {
	Width  int  // columns; 0: 80, and never below 40 nor above 2000
	Height int  // rows that the chart should keep to by drawing jobs in one row instead of two; 0: no bound
	Color  bool // ANSI colours, 256 of them
	ASCII  bool // for a terminal without UTF-8

	Nodes  int        // size of the cluster, for the stack of all jobs; 0: no stack
	Others []api.Span // nodes allocated to others than evolving jobs, drawn at the stack's bottom; no end: until now

	From, To time.Time // the period shown; zero for what the jobs need
}

const (
	defaultWidth = 80
	minWidth     = 40
	maxWidth     = 2000 // COLUMNS may be anything
	maxStack     = 8    // rows of the stack, unless it has fewer nodes
)

// Render draws the jobs at the time now, whose location sets the time zone. Every line ends in a
// newline and has at most opts.Width columns. O(columns × spans).
func Render(jobs []api.Job, now time.Time, opts Options) string {
	if len(jobs) == 0 {
		return "No evolving jobs.\n"
	}
	c := newCanvas(jobs, now, opts)
	var b strings.Builder
	for _, line := range c.lines() {
		b.WriteString(strings.TrimRight(line, " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// lane is one job, ready to be drawn.
type lane struct {
	job   api.Job
	hue   hue
	spans []span
}

// span is a stretch of a lane with a constant node count, past or planned.
type span struct {
	start, end time.Time
	nodes      int
	planned    bool
}

// canvas has what all rows share.
type canvas struct {
	opts   Options
	glyphs glyphs
	now    time.Time
	lanes  []lane
	peak   int // largest node count shown: a bar of full height

	from time.Time
	cell time.Duration // of one column
	left int           // columns of text beside the bars
	cols int           // columns of the bars
	at   int           // the column of now, where nothing else is drawn; -1 if out of view
}

func newCanvas(jobs []api.Job, now time.Time, opts Options) *canvas {
	if opts.Width == 0 {
		opts.Width = defaultWidth
	}
	opts.Width = min(max(opts.Width, minWidth), maxWidth)
	c := &canvas{opts: opts, glyphs: unicodeGlyphs, now: now}
	if opts.ASCII {
		c.glyphs = asciiGlyphs
	}
	for _, j := range jobs {
		l := lane{job: j, spans: spansOf(j, now)}
		for _, s := range l.spans {
			c.peak = max(c.peak, s.nodes)
		}
		c.lanes = append(c.lanes, l)
	}
	colorLanes(c.lanes)
	c.left = c.labelWidth()
	c.cols = opts.Width - c.left
	c.setTime()
	return c
}

// spansOf returns what Spans has, as lanes draw it.
func spansOf(j api.Job, now time.Time) []span {
	all := Spans(j, now)
	spans := make([]span, len(all))
	for i, s := range all {
		spans[i] = span{s.Start, s.End, s.Nodes, s.Planned}
	}
	return spans
}

// colorLanes gives every job a colour that stays while other jobs come and go.
func colorLanes(lanes []lane) {
	order := make([]int, len(lanes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(lanes[a].job.ID, lanes[b].job.ID) })
	used := map[int]int{}
	for _, i := range order {
		best := int(lanes[i].job.ID) % len(palette)
		for k := range palette {
			other := (int(lanes[i].job.ID) + k) % len(palette)
			if used[other] < used[best] {
				best = other
			}
		}
		used[best]++
		lanes[i].hue = palette[best]
	}
}

// setTime fits the period into the columns. The future is shown completely; of the past, five
// minutes or three times the future, so that a long past cannot crush the plan. The present is
// between two columns and has its own.
func (c *canvas) setTime() {
	first, last := c.now, c.now
	for _, l := range c.lanes {
		for _, s := range l.spans {
			first, last = earlier(first, s.start), later(last, s.end)
		}
	}
	if ahead := last.Sub(c.now); ahead > 0 {
		first = later(first, c.now.Add(-max(3*ahead, 5*time.Minute)))
	}
	if !c.opts.From.IsZero() {
		first = c.opts.From
	}
	if !c.opts.To.IsZero() {
		last = later(c.opts.To, first)
	}
	room := time.Duration(c.cols - 2) // the column of now, and one for rounding
	c.cell = max((last.Sub(first)+room-1)/room, time.Second/10)
	c.from, c.at = first, -1
	if !c.now.Before(first) && !c.now.After(last) {
		c.at = int((c.now.Sub(first) + c.cell/2) / c.cell)
		c.from = c.now.Add(-time.Duration(c.at) * c.cell)
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// start returns when a column's period begins; it ends where the next one begins. The column of now
// has no period.
func (c *canvas) start(col int) time.Time {
	if c.at >= 0 && col > c.at {
		col--
	}
	return c.from.Add(time.Duration(col) * c.cell)
}

// column returns the column of a time.
func (c *canvas) column(t time.Time) int {
	col := int(t.Sub(c.from) / c.cell)
	if t.Before(c.from) {
		return -1
	}
	if c.at >= 0 && col >= c.at && !t.Before(c.now) {
		col++
	}
	return col
}

// spanAt returns the span that fills most of a column; none leaves nodes at 0.
func (c *canvas) spanAt(l lane, col int) (best span, index int) {
	if col == c.at {
		return span{}, -1
	}
	index = -1
	start, end := c.start(col), c.start(col).Add(c.cell)
	var most time.Duration
	for i, s := range l.spans {
		if overlap := earlier(s.end, end).Sub(later(s.start, start)); overlap > most {
			best, index, most = s, i, overlap
		}
	}
	return best, index
}
