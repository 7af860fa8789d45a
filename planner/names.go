package planner

import (
	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/paper"
	"github.com/evoslurm/evoslurm/planner/profile"
	"github.com/evoslurm/evoslurm/planner/search"
	"github.com/evoslurm/evoslurm/planner/timeline"
)

// The rooms' names, so that a caller that plans needs only this package.
type (
	Step        = profile.Step
	Profile     = profile.Profile
	Placement   = profile.Placement
	ExpandLimit = profile.ExpandLimit
	ParseError  = profile.ParseError

	Timeline = timeline.Timeline
	Span     = timeline.Span

	Job          = paper.Job
	Busy         = paper.Busy
	Problem      = paper.Problem
	ProblemError = paper.ProblemError
	Schedule     = paper.Schedule
	Strategy     = paper.Strategy
	FitError     = paper.FitError
	FitOptions   = paper.FitOptions
	VerifyError  = paper.VerifyError
	Metrics      = paper.Metrics
	Preference   = paper.Preference
	Option       = paper.Option
	AppMetrics   = paper.AppMetrics

	Search       = search.Search
	SearchResult = search.SearchResult
	Objective    = search.Objective
	Bound        = search.Bound
)

// Bounds, and the values for "no bound".
const (
	MaxNodes    = profile.MaxNodes
	MaxDuration = profile.MaxDuration
	MaxSteps    = profile.MaxSteps
	Forever     = exact.Forever

	MaxAlternatives = paper.MaxAlternatives
	ByCompletion    = paper.ByCompletion
	ByWaste         = paper.ByWaste
	ByNodeHours     = paper.ByNodeHours

	Makespan           = search.Makespan
	MeanCompletion     = search.MeanCompletion
	DefaultEvaluations = search.DefaultEvaluations
)

// Infinite is the expand limit without bound.
var Infinite = profile.Infinite

// ParseProfile is [profile.ParseProfile].
func ParseProfile(text string) (Profile, error) { return profile.ParseProfile(text) }

// ParseDuration is [profile.ParseDuration].
func ParseDuration(text string) (int64, error) { return profile.ParseDuration(text) }

// FormatDuration is [profile.FormatDuration].
func FormatDuration(seconds int64) string { return profile.FormatDuration(seconds) }

// ParseExpandLimit is [profile.ParseExpandLimit].
func ParseExpandLimit(text string) (ExpandLimit, error) { return profile.ParseExpandLimit(text) }

// Fit is [paper.Fit].
func Fit(res *Timeline, capacity int, p Profile, o FitOptions) (Placement, bool) {
	return paper.Fit(res, capacity, p, o)
}

// FitMinWaste is [paper.FitMinWaste].
func FitMinWaste(res *Timeline, capacity int, p Profile, o FitOptions) (Placement, bool) {
	return paper.FitMinWaste(res, capacity, p, o)
}

// Keep is [paper.Keep].
func Keep(p Problem, plan Schedule, limit ExpandLimit) (Schedule, error) {
	return paper.Keep(p, plan, limit)
}

// Verify is [paper.Verify].
func Verify(p Problem, s Schedule, limit ExpandLimit) error { return paper.Verify(p, s, limit) }

// ParsePreference is [paper.ParsePreference].
func ParsePreference(text string) (Preference, error) { return paper.ParsePreference(text) }

// Preferences is [paper.Preferences].
func Preferences() []string { return paper.Preferences() }

// KnowsAlternatives is [paper.KnowsAlternatives].
func KnowsAlternatives(s Strategy) bool { return paper.KnowsAlternatives(s) }

// Options is [paper.Options].
func Options(p Problem, s Schedule, limit ExpandLimit) [][]Option { return paper.Options(p, s, limit) }

// Measure is [paper.Measure].
func Measure(p Problem, s Schedule) Metrics { return paper.Measure(p, s) }

// ExpandLimitOf is [paper.ExpandLimitOf].
func ExpandLimitOf(s Strategy) ExpandLimit { return paper.ExpandLimitOf(s) }

// IsRigid is [paper.IsRigid].
func IsRigid(s Strategy) bool { return paper.IsRigid(s) }

// PaperStrategies is [paper.PaperStrategies].
func PaperStrategies() []string { return paper.PaperStrategies() }

// LowerBound is [search.LowerBound].
func LowerBound(p Problem, o Objective, limit ExpandLimit) Bound {
	return search.LowerBound(p, o, limit)
}
