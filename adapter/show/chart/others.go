package chart

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// forever is the length of a job without a time limit.
const forever = 100 * 365 * 24 * time.Hour

// Others returns how many nodes stock jobs have over time, for Options.Others; a shared node counts
// once. A job that is past its limit, or whose end is hidden, has its nodes until now.
func Others(jobs []api.OtherJob, now time.Time) []api.Span {
	type change struct {
		at    time.Time
		nodes []string
		by    int
	}
	var changes []change
	for _, j := range jobs {
		names, err := slurmctl.ExpandNodes(j.NodeList)
		if err != nil {
			continue // the list of jobs shows the raw text
		}
		end := later(j.End, now)
		if j.End.IsZero() && j.ID != 0 {
			end = now.Add(forever)
		}
		changes = append(changes, change{earlier(j.Start, now), names, 1}, change{end.Add(1), names, -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	var spans []api.Span
	of := map[string]int{} // how many jobs a node has
	for i, c := range changes {
		for _, name := range c.nodes {
			if of[name] += c.by; of[name] == 0 {
				delete(of, name)
			}
		}
		if i+1 < len(changes) && len(of) > 0 && changes[i+1].at.After(c.at) {
			spans = append(spans, api.Span{Start: c.at, End: changes[i+1].at, Nodes: len(of)})
		}
	}
	return spans
}
