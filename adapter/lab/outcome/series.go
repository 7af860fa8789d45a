package outcome

import (
	"math"
	"slices"
)

// Series is a time series: means over equal periods.
type Series []float64

// Series returns the nodes in use, the number of waiting jobs, and the nodes that these need at
// least, over n periods up to second end.
func (r *Run) Series(end int64, n int) (used, waiting, wanted Series) {
	u, w, a := newMeans(end, n), newMeans(end, n), newMeans(end, n)
	for i := range r.Jobs {
		j := &r.Jobs[i]
		j.spans(func(start, end int64, nodes int) { u.add(start, end, float64(nodes)) })
		if j.Start >= 0 && len(j.Sizes) > 0 {
			w.add(j.Submit, j.Start, 1)
			a.add(j.Submit, j.Start, float64(j.Sizes[0].Nodes))
		}
	}
	return u.series(), w.series(), a.series()
}

// means adds up steps over time: in each period what begins and ends there, and by differences what
// covers it whole. O(1) per step.
type means struct {
	width       float64
	parts, full []float64
}

func newMeans(end int64, n int) *means {
	return &means{float64(max(end, 1)) / float64(n), make([]float64, n), make([]float64, n+1)}
}

func (m *means) add(start, end int64, x float64) {
	if end <= start {
		return
	}
	from, to := float64(start)/m.width, min(float64(end)/m.width, float64(len(m.parts)))
	a, b := int(from), int(to)
	if a >= len(m.parts) {
		return
	}
	if a == b {
		m.parts[a] += (to - from) * x
		return
	}
	m.parts[a] += (float64(a+1) - from) * x
	if b < len(m.parts) {
		m.parts[b] += (to - float64(b)) * x
	}
	m.full[a+1] += x
	m.full[b] -= x
}

func (m *means) series() Series {
	s, now := make(Series, len(m.parts)), 0.
	for i := range s {
		now += m.full[i]
		s[i] = max(now+m.parts[i], 0)
	}
	return s
}

// Quantiles is the number of quantiles in a distribution: minimum, percentiles, maximum.
const Quantiles = 101

// Distributions returns the quantiles of waits and bounded slowdowns, the least first.
func (r *Run) Distributions() (waits, slowdowns []float64) {
	for i := range r.Jobs {
		if j := &r.Jobs[i]; j.Ran() {
			waits, slowdowns = append(waits, float64(j.Wait())), append(slowdowns, j.slowdown())
		}
	}
	return quantiles(waits), quantiles(slowdowns)
}

func quantiles(x []float64) []float64 {
	if len(x) == 0 {
		return nil
	}
	slices.Sort(x)
	q := make([]float64, Quantiles)
	for i := range q {
		q[i] = x[max(int(math.Ceil(float64(i)/(Quantiles-1)*float64(len(x))))-1, 0)]
	}
	return q
}

// Longest returns the n jobs with the longest waits, longest first.
func (r *Run) Longest(n int) []*Job {
	var all []*Job
	for i := range r.Jobs {
		if r.Jobs[i].Ran() {
			all = append(all, &r.Jobs[i])
		}
	}
	slices.SortStableFunc(all, func(a, b *Job) int { return int(min(max(b.Wait()-a.Wait(), -1), 1)) })
	return all[:min(n, len(all))]
}
