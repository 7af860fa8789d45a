package paper

import (
	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/profile"
)

// Metrics are the paper's measures of one schedule (section 5.1).
type Metrics struct {
	// System-centric.
	Waste                float64 // node-seconds allocated but not used, in percent of those used
	Utilisation          float64 // node-seconds allocated, in percent of nodes × makespan
	EffectiveUtilisation float64 // node-seconds used, in percent of nodes × makespan
	Makespan             int64   // seconds, the latest completion
	Allocated            float64 // node-seconds
	Used                 float64 // node-seconds, the requested area

	// User-centric.
	AvgCompletion float64 // seconds from submission to completion
	AvgWait       float64 // seconds from submission to start
	ExpandedApps  float64 // jobs with an expanded step, in percent
	Apps          []AppMetrics
}

// AppMetrics are the measures of one job.
type AppMetrics struct {
	Completion int64   // seconds from submission
	Wait       int64   // seconds from submission
	Expansion  float64 // percent of its requested duration
	Waste      float64 // node-seconds allocated but not used, in percent of those used
}

// Measure computes the metrics of a schedule, also for rigid: there the requested area counts as
// used. The paper's text defines waste as a share of what exists or is allocated. Its tables use a
// share of what is used (rigid wastes up to 116 %), and so does Measure. It takes O(steps).
func Measure(p Problem, s Schedule) Metrics {
	m := Metrics{Apps: make([]AppMetrics, len(p.Jobs))}
	expanded := 0
	var completion, wait exact.Wide // seconds, of all jobs
	for i, j := range p.Settled(s).Jobs {
		requested, held := j.Profile.Duration(), s[i].Steps.Duration()
		used, allocated := area(j.Profile), area(s[i].Steps)
		app := AppMetrics{
			Completion: s[i].End() - j.Submit,
			Wait:       s[i].Start - j.Submit,
			Expansion:  percent(float64(held-requested), float64(requested)),
			Waste:      percent(allocated-used, used),
		}
		if held > requested {
			expanded++
		}
		m.Used += used
		m.Allocated += allocated
		completion.Add(1, app.Completion)
		wait.Add(1, app.Wait)
		m.Makespan = max(m.Makespan, s[i].End())
		m.Apps[i] = app
	}
	if n := float64(len(p.Jobs)); n > 0 {
		m.AvgCompletion = completion.Float() / n
		m.AvgWait = wait.Float() / n
		m.ExpandedApps = percent(float64(expanded), n)
	}
	total := float64(p.Nodes) * float64(m.Makespan)
	m.Waste = percent(m.Allocated-m.Used, m.Used)
	m.Utilisation = percent(m.Allocated, total)
	m.EffectiveUtilisation = percent(m.Used, total)
	return m
}

// area returns the node-seconds under a profile as a floating point number, exact below 2^53.
func area(p profile.Profile) float64 { return p.WideArea().Float() }

func percent(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * part / whole
}
