package submit

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
)

// unlimited stands for a time limit without bound, in minutes.
const unlimited = math.MaxInt64

// margin is added to computed time limits for what happens between steps.
const margin = 60 // seconds

// limitWithoutBound is the multiple of the durations that becomes the time limit if the expand
// limit has no bound, or only the site knows it.
const limitWithoutBound = 2

// parseTimeLimit reads a value of sbatch's --time, in minutes rounded up.
func parseTimeLimit(text string) (int64, error) {
	switch strings.ToLower(text) {
	case "infinite", "unlimited", "-1":
		return unlimited, nil
	}
	if strings.Trim(text, "0123456789:-") == "" && strings.Trim(text, "0:-") == "" && text != "" {
		return unlimited, nil // sbatch takes a limit of zero for none
	}
	seconds, err := planner.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("time limit %q is not understood (MM, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS)", legible.Brief(text))
	}
	return minutes(seconds), nil
}

func minutes(seconds int64) int64 { return (seconds + 59) / 60 }

// timeLimit returns how long a job with these steps may need, in minutes: every step
// expanded to its limit, and a minute.
func timeLimit(steps planner.Profile, limit planner.ExpandLimit) int64 {
	if limit == 0 || limit == planner.Infinite {
		limit = limitWithoutBound
	}
	const most = math.MaxInt32 * 60 // Slurm keeps minutes in 32 bits, the highest values are for "none"
	var seconds int64 = margin
	for _, s := range steps {
		seconds = min(seconds+min(limit.Stretch(s.Duration), most), most)
	}
	return minutes(seconds)
}

// checkTime checks that the user's own time limit, if any, is not shorter than the profile, or than the longest step of
// a chain, whose jobs each have that limit. It returns the limit in minutes, or 0.
func (r submission) checkTime() (int64, error) {
	o, given := r.options.last("time")
	if !given || !o.HasValue {
		return 0, nil
	}
	limit, err := parseTimeLimit(o.Value)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", o, err)
	}
	what, takes := "profile", r.request.Profile.Duration()
	if r.request.Drive.Means().StepsAreJobs {
		what, takes = "chain's longest step", request.Longest(r.request.Profile)
	}
	if need := minutes(takes); limit < need {
		return 0, fmt.Errorf("%s: shorter than the %s, which takes %s; give at least --time=%s, or none",
			o, what, planner.FormatDuration(takes), formatMinutes(need))
	}
	return limit, nil
}

// formatMinutes writes a time limit for sbatch: as minutes while that is easy to read, otherwise as
// D-HH:MM.
func formatMinutes(m int64) string {
	if m < 24*60 {
		return strconv.FormatInt(m, 10)
	}
	return fmt.Sprintf("%d-%02d:%02d", m/1440, m/60%24, m%60)
}
