package chart

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

// lines returns the rows of the chart, at most Options.Height: jobs first shrink to one row, then
// the stack is dropped, then the last jobs.
func (c *canvas) lines() []string {
	const around = 3 // two rows of axis, one of legend
	rows, stack := 2, 0
	if c.opts.Nodes > 0 {
		stack = min(c.opts.Nodes, maxStack) + 1
	}
	shown := len(c.lanes)
	offers := 0 // rows of them
	for _, l := range c.lanes {
		if len(l.job.Offers) > 0 {
			offers++
		}
	}
	if h := c.opts.Height; h > 0 {
		if around+rows*shown+offers+stack > h {
			offers = 0
		}
		if around+rows*shown+stack > h {
			rows = 1
		}
		if around+rows*shown+stack > h {
			stack = 0
		}
		if around+rows*shown > h {
			shown = max(1, h-around-1)
		}
	}
	letters := stack > 0 && !c.opts.Color
	lines := c.axis()
	for i, l := range c.lanes[:shown] {
		letter := ""
		if letters {
			letter = letterOf(i) + " "
		}
		if rows == 2 {
			lines = append(lines, c.label(letter+heading(l.job), l.hue.allocated)+c.counts(l))
			lines = append(lines, c.label(strings.Repeat(" ", len(letter))+c.condition(l.job), 0)+c.bars(l, false))
			if offers > 0 && len(l.job.Offers) > 0 {
				lines = append(lines, c.label(strings.Repeat(" ", len(letter))+c.lastOffer(l.job), 0)+c.offers(l))
			}
		} else {
			lines = append(lines, c.label(letter+heading(l.job), l.hue.allocated)+c.bars(l, true))
		}
	}
	if more := len(c.lanes) - shown; more > 0 {
		lines = append(lines, c.paint(fmt.Sprintf("and %d more", more), gray))
	}
	if stack > 0 {
		lines = append(lines, c.stack(stack-1, letters)...)
	}
	return append(lines, c.legend(stack > 0, letters, offers > 0))
}

func heading(j api.Job) string {
	text := j.Label() + " " + j.Name
	if m := j.Moldable; m != nil {
		text += fmt.Sprintf(" alt %d/%d", m.Choice, len(m.Alternatives))
	}
	return text
}

// condition returns the second line beside a bar: the job's owner and state.
func (c *canvas) condition(j api.Job) string {
	text := j.User + " " + j.State
	switch {
	case j.State == "ended" && j.EndState != "":
		text = j.User + " " + strings.ToLower(j.EndState)
	case j.Step > 0:
		text += fmt.Sprintf(" %d/%d", j.Step, j.Steps)
	}
	return text
}

// labelWidth returns how wide the text beside the bars must be, within bounds.
func (c *canvas) labelWidth() int {
	width := len(dateFormat)
	for _, l := range c.lanes {
		width = max(width, legible.Columns(heading(l.job))+2, legible.Columns(c.condition(l.job))+2)
		if len(l.job.Offers) > 0 {
			width = max(width, legible.Columns(c.lastOffer(l.job))+2)
		}
	}
	return min(width, c.opts.Width/3, 30) + 2
}

// label returns the text beside a bar, cut or filled to its width.
func (c *canvas) label(text string, color int) string {
	return c.paint(c.fit(text, c.left-2), color) + "  "
}

// counts writes each step's node count above the place where it begins.
func (c *canvas) counts(l lane) string {
	row := c.blank()
	free := 0 // first column that nothing is written in
	previous, last := -1, 0
	for col := range c.cols {
		s, i := c.spanAt(l, col)
		if col == c.at {
			row[col] = c.nowCell()
			free = max(free, col+1)
			continue
		}
		if i < 0 {
			last = 0
			continue
		}
		if i == previous || s.nodes == last {
			previous = i
			continue
		}
		text := strconv.Itoa(s.nodes)
		if col < free || !c.fits(col, len(text)) {
			continue // perhaps there is room further along the step
		}
		for k := range len(text) {
			row[col+k] = c.paint(text[k:k+1], l.hue.allocated)
		}
		free, previous, last = col+len(text)+1, i, s.nodes
	}
	return strings.Join(row, "")
}

// fits reports whether a text of n columns can be written at col.
func (c *canvas) fits(col, n int) bool {
	return col+n <= c.cols && (c.at < col || c.at >= col+n)
}

// bars draws a lane as high as its node counts, with the counts in it if inlaid.
func (c *canvas) bars(l lane, inlaid bool) string {
	row := c.blank()
	previous, last := -1, 0
	for col := 0; col < c.cols; col++ {
		s, i := c.spanAt(l, col)
		switch {
		case col == c.at:
			row[col] = c.nowCell()
			continue
		case i < 0:
			last = 0
			continue
		}
		row[col] = c.bar(l, s.nodes, c.peak, s.planned)
		if !inlaid || i == previous || s.nodes == last {
			previous = i
			continue
		}
		previous, last = i, s.nodes
		text := strconv.Itoa(s.nodes)
		if !c.fits(col, len(text)) {
			continue
		}
		if _, end := c.spanAt(l, col+len(text)-1); end != i {
			continue
		}
		for k := range len(text) {
			row[col+k] = c.paint(text[k:k+1], l.hue.allocated)
		}
		col += len(text) - 1
	}
	return strings.Join(row, "")
}

// stack draws all jobs on top of each other, up to the cluster's size.
func (c *canvas) stack(height int, letters bool) []string {
	lines := []string{strings.Repeat(" ", c.left) + strings.Join(c.ruleCells(), "")}
	others := c.others()
	for row := range height {
		node := ((height-row)*2 - 1) * c.opts.Nodes / (2 * height) // in the middle of the row, from 0
		cells := c.blank()
		for col := range c.cols {
			if col == c.at {
				cells[col] = c.nowCell()
				continue
			}
			cells[col] = c.occupant(others[col], node, col, letters)
		}
		label := ""
		switch row {
		case 0:
			label = fmt.Sprintf("%d nodes", c.opts.Nodes)
			if c.opts.Nodes == 1 {
				label = "1 node"
			}
		case height / 2:
			if height > 2 {
				label = strconv.Itoa((c.opts.Nodes*(height-row) + height - 1) / height)
			}
		}
		label = strings.Repeat(" ", max(0, c.left-2-len(label))) + label
		lines = append(lines, c.label(label, 0)+strings.Join(cells, ""))
	}
	return lines
}

// others returns how many nodes others have in each column: in its middle, and at present beside
// the column of now, so that nodes released at once are still seen.
func (c *canvas) others() []int {
	nodes := make([]int, c.cols)
	for col := range nodes {
		at := c.start(col).Add(c.cell / 2)
		if c.at >= 0 && col == c.at+1 {
			at = c.now
		}
		for _, s := range c.opts.Others {
			if !s.Start.After(at) && (s.End.After(at) || s.End.IsZero() && !at.After(c.now)) {
				nodes[col] += s.Nodes
			}
		}
	}
	return nodes
}

// occupant returns the cell of the job that has the node, counted from the bottom of the stack,
// where others are lowest.
func (c *canvas) occupant(below, node, col int, letters bool) string {
	if node < below {
		return c.paint(c.glyphs.other, gray)
	}
	for i, l := range c.lanes {
		s, at := c.spanAt(l, col)
		if at < 0 {
			continue
		}
		if below += s.nodes; node < below {
			switch {
			case letters && s.planned:
				return strings.ToLower(letterOf(i))
			case letters:
				return letterOf(i)
			}
			return c.bar(l, 1, 1, s.planned)
		}
	}
	return " "
}

// letterOf names a job in a stack without colours.
func letterOf(i int) string { return string(rune('A' + i%26)) }

// blank returns a row of empty cells.
func (c *canvas) blank() []string {
	row := make([]string, c.cols)
	for i := range row {
		row[i] = " "
	}
	return row
}

// nowCell returns the cell of the present.
func (c *canvas) nowCell() string { return c.paint(c.glyphs.now, white) }

// legend explains the glyphs, as far as there is room.
func (c *canvas) legend(stack, letters, offers bool) string {
	sample := lane{hue: hue{allocated: gray, planned: darkGray}}
	past, planned := " allocated", " planned"
	if letters {
		past, planned = " A allocated", " a planned"
	}
	type entry struct{ glyph, text string }
	entries := []entry{{c.bar(sample, 1, 1, false), past}, {c.bar(sample, 1, 1, true), planned}}
	if c.at >= 0 {
		entries = append(entries, entry{c.glyphs.now, " now"})
	}
	if stack && len(c.opts.Others) > 0 {
		entries = append(entries, entry{c.paint(c.glyphs.other, gray), " other jobs"})
	}
	if offers {
		entries = append(entries, entry{"+", "3 offered"}, entry{"-", "3 asked back"}, entry{markDone, " done"}, entry{markNone, " not"}, entry{markTaken, " taken"})
	}
	line, room := strings.Repeat(" ", c.left), c.cols
	for _, e := range entries {
		if room -= 1 + len(e.text); room < 0 {
			break
		}
		line += e.glyph + e.text + "   "
		room -= 3
	}
	return line
}

// ticks lists the possible distances of marks on the axis.
var ticks = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	24 * time.Hour, 2 * 24 * time.Hour, 7 * 24 * time.Hour, 14 * 24 * time.Hour, 28 * 24 * time.Hour,
}

const dateFormat = "Mon _2 Jan 15:04:05"

// axis returns two rows: the times, and a rule with a mark at each.
func (c *canvas) axis() []string {
	tick := c.tick()
	times := c.blank()
	rule := c.ruleCells()
	free := 0
	for t := firstMark(c.from.In(c.now.Location()), tick); ; t = t.Add(tick) {
		col := c.column(t)
		if col >= c.cols {
			break
		}
		if col < 0 || col == c.at {
			continue
		}
		rule[col] = c.paint(c.glyphs.tick, gray)
		text := clock(t, tick)
		if col < free || col+len(text) > c.cols {
			continue
		}
		for k := range len(text) {
			times[col+k] = text[k : k+1]
		}
		free = col + len(text) + 2
	}
	present := c.now.Format(dateFormat)
	if len(present) > c.left-2 {
		present = c.now.Format("15:04:05")
	}
	return []string{
		c.label(present, white) + strings.Join(times, ""),
		strings.Repeat(" ", c.left) + strings.Join(rule, ""),
	}
}

// tick returns the smallest distance of marks that leaves room for their times.
func (c *canvas) tick() time.Duration {
	const apart = 12 // columns
	for _, t := range ticks {
		if t/c.cell >= apart {
			return t
		}
	}
	t := ticks[len(ticks)-1]
	for t/c.cell < apart {
		t *= 2
	}
	return t
}

// clock writes a tick's time as finely as ticks are apart.
func clock(t time.Time, tick time.Duration) string {
	switch {
	case tick < time.Minute:
		return t.Format("15:04:05")
	case tick < 24*time.Hour && (t.Hour() != 0 || t.Minute() != 0):
		return t.Format("15:04")
	}
	return t.Format("2 Jan")
}

// ruleCells returns the line between the parts of the chart.
func (c *canvas) ruleCells() []string {
	row := make([]string, c.cols)
	for i := range row {
		row[i] = c.paint(c.glyphs.rule, gray)
		if i == c.at {
			row[i] = c.paint(c.glyphs.mark, white)
		}
	}
	return row
}
