package web

import (
	"slices"
	"strconv"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/show/chart"
)

// wide is the width of a drawing in its own units, independent of the screen.
const wide = 2000

// pathOf collects rectangles as the data of one SVG path.
type pathOf struct {
	data []byte
}

func (p *pathOf) rect(x, y, w, h int) {
	p.data = append(p.data, 'M')
	p.data = strconv.AppendInt(p.data, int64(x), 10)
	p.data = append(p.data, ' ')
	p.data = strconv.AppendInt(p.data, int64(y), 10)
	p.data = append(p.data, 'h')
	p.data = strconv.AppendInt(p.data, int64(w), 10)
	p.data = append(p.data, 'v')
	p.data = strconv.AppendInt(p.data, int64(h), 10)
	p.data = append(p.data, 'h', '-')
	p.data = strconv.AppendInt(p.data, int64(w), 10)
	p.data = append(p.data, 'z')
}

func (p *pathOf) String() string { return string(p.data) }

// scale maps times to the width of a drawing.
type scale struct{ from, to time.Time }

// mostMarks is how many times an axis has.
const mostMarks = 8

// marks returns the times on the axis, the same for each drawing of a page.
func (s scale) marks() []chart.Mark { return chart.Marks(s.from, s.to, mostMarks) }

// across returns the position of a period, and false if it is out of view. In view, it is at least
// one unit wide.
func (s scale) across(start, end time.Time) (x, w int, seen bool) {
	if !end.After(start) || !end.After(s.from) || !start.Before(s.to) {
		return 0, 0, false
	}
	a, b := s.x(start), s.x(end)
	return min(a, wide-1), max(b-a, 1), true
}

// sees reports whether anything that a job had, or is to have, may be in view.
func (s scale) sees(j *api.Job) bool {
	in := func(p api.Span) bool { return (p.End.IsZero() || p.End.After(s.from)) && p.Start.Before(s.to) }
	return slices.ContainsFunc(j.Past, in) || j.State != "ended" && slices.ContainsFunc(j.Plan, in)
}

// x returns the position of a time within the drawing.
func (s scale) x(t time.Time) int {
	at := float64(t.Sub(s.from)) / float64(s.to.Sub(s.from)) * wide
	return int(min(max(at, 0), wide))
}

// present returns the position of now, or 0 if out of view.
func (s scale) present(now time.Time) int {
	if !now.After(s.from) || !now.Before(s.to) {
		return 0
	}
	return max(s.x(now), 1)
}

// percent is x as SVG has a part of a width.
func percent(x int) string { return strconv.FormatFloat(float64(x)*100/wide, 'f', -1, 64) + "%" }

// runs joins rows that lie side by side: pairs of the first and the one after the last.
func runs(rows []int) [][2]int {
	slices.Sort(rows)
	var all [][2]int
	for _, r := range rows {
		if n := len(all); n > 0 && r <= all[n-1][1] {
			all[n-1][1] = max(all[n-1][1], r+1)
			continue
		}
		all = append(all, [2]int{r, r + 1})
	}
	return all
}
