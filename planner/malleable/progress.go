package malleable

import (
	"fmt"
	"math"
	"slices"
)

// Report is an application's report of its progress: at a second of its run, the fraction of its
// work that was done, and its number of nodes.
type Report struct {
	At       int64   `json:"at"`
	Fraction float64 `json:"fraction"`
	Nodes    int     `json:"nodes"`
	Since    int64   `json:"since,omitempty"` // second since which it has run on these nodes
}

// Progress measures an application by its reports. The zero value has no reports.
type Progress struct {
	Last *Report `json:"last,omitempty"`
	Runs []Run   `json:"runs,omitempty"` // in ascending order of their nodes
}

// Run is how far the application came in some time on that many nodes.
type Run struct {
	Nodes    int     `json:"nodes"`
	Seconds  int64   `json:"seconds"`
	Fraction float64 `json:"fraction"`
}

// Add adds a report; an error changes nothing. It rejects progress that falls, and a report earlier
// than the last. The time since the last report counts only if the application had these nodes all
// the time. So report before a change as well, and nothing is lost.
func (p *Progress) Add(r Report) error {
	switch {
	case !(r.Fraction >= 0 && r.Fraction <= 1):
		return fmt.Errorf("progress %v is not within 0 … 1", r.Fraction)
	case r.Nodes < 1:
		return fmt.Errorf("progress on %d nodes", r.Nodes)
	}
	last := p.Last
	switch {
	case last == nil:
		p.Last = &r
		return nil
	case r.Fraction < last.Fraction:
		return fmt.Errorf("progress falls from %v to %v", last.Fraction, r.Fraction)
	case r.At < last.At:
		return fmt.Errorf("progress at second %d comes after that at second %d", r.At, last.At)
	}
	p.Last = &r
	if r.Nodes != last.Nodes || r.Since > last.At {
		return nil
	}
	i, found := slices.BinarySearchFunc(p.Runs, r.Nodes, func(run Run, n int) int { return run.Nodes - n })
	if !found {
		p.Runs = slices.Insert(slices.Clone(p.Runs), i, Run{Nodes: r.Nodes})
	} else {
		p.Runs = slices.Clone(p.Runs) // copies of p keep theirs
	}
	p.Runs[i].Seconds += r.At - last.At
	p.Runs[i].Fraction += r.Fraction - last.Fraction
	return nil
}

// Speedup returns the Amdahl's law that fits the runs best, or nil until the application has been
// measured on two sizes. By the law, the time for all work on n nodes is a + b/n, a straight line
// in 1/n. It fits by least squares and weighs each size by its measured time. O(sizes).
func (p *Progress) Speedup() Speedup {
	var weight, x, y, xx, xy float64
	sizes := 0
	for _, r := range p.Runs {
		if r.Fraction <= 0 || r.Seconds <= 0 {
			continue // it shows no time
		}
		w, inverse, whole := float64(r.Seconds), 1/float64(r.Nodes), float64(r.Seconds)/r.Fraction
		weight, x, y = weight+w, x+w*inverse, y+w*whole
		xx, xy = xx+w*inverse*inverse, xy+w*inverse*whole
		sizes++
	}
	if sizes < 2 {
		return nil
	}
	parallel := (weight*xy - x*y) / (weight*xx - x*x)
	serial := (y - parallel*x) / weight
	switch {
	case math.IsNaN(parallel) || parallel <= 0: // no faster on more nodes
		return Amdahl(0)
	case serial <= 0: // faster than ideal, e.g. because caches finally suffice
		return Amdahl(1)
	}
	return Amdahl(parallel / (serial + parallel))
}
