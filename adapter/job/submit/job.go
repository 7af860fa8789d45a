package submit

import (
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
)

// submission is one evolving job on its way to sbatch.
type submission struct {
	request  request.Request
	inScript bool                // the script's #EVO lines hold the profile that applies
	limit    planner.ExpandLimit // the effective one: the job's, otherwise the site's

	options  layers
	dashes   bool
	operands []string
	script   script
	gres     gres

	userTime     int64 // the user's own time limit in minutes; 0: none
	timed        bool  // it lasts as long as its time limit
	implied      bool  // from the partition
	maxTime      int64 // allowed by the partition, in minutes
	testOnly     bool
	ownFrequency bool    // the user set SLURM_CPU_FREQ_REQ, which ranks before the profile
	staging      staging // of its input files
	doubt        error   // why it is infeasible as requested, if plugins may move it elsewhere
}

// script is a batch script.
type script struct {
	name      string // for messages
	text      []byte // nil with --wrap
	fromStdin bool   // otherwise sbatch finds it itself
}

// marker returns the comment of the job, or of one of a chain.
func (r submission) marker(link *request.ChainLink) (string, error) {
	s := r.request
	s.Chain = link
	text, ok := s.Marker()
	if !ok && r.inScript {
		text, ok = s.ScriptMarker()
	}
	switch {
	case ok:
		return text, nil
	case r.inScript || len(s.Profile) == 1:
		return "", fmt.Errorf("--comment is too long: %d bytes of Slurm's %d are left for it beside the request",
			max(0, len(s.Comment)-(len(text)-request.MaxComment)), request.MaxComment)
	}
	return "", fmt.Errorf("the profile does not fit into a job's comment with all the rest (%d bytes, Slurm takes %d): write it into the script, as #EVO --profile=%s",
		len(text), request.MaxComment, legible.Brief(s.Profile.String()))
}

// takes returns how long the job runs, in minutes; for a chain, how long the longest of its jobs does.
func (r submission) takes() int64 {
	return request.Minutes(r.request.Profile, r.request.Drive.Means().StepsAreJobs)
}

// needMinutes returns the time limit that a partition must allow, in minutes: the user's, or what the profile
// takes. The jobs of a chain take no longer than their steps.
func (r submission) needMinutes() int64 {
	if r.request.Drive.Means().StepsAreJobs {
		return r.takes()
	}
	return max(r.takes(), r.userTime)
}

// wholeLimit returns the time limit of a job with this profile: the user's, or what it needs.
func (r submission) wholeLimit(p planner.Profile) int64 {
	if r.userTime > 0 {
		return r.userTime
	}
	return min(timeLimit(p, r.limit), r.maxTime)
}

// linkLimit returns the time limit of a chain's step i, from 0.
func (r submission) linkLimit(p planner.Profile, i int) int64 {
	limit := min(timeLimit(p[i:i+1], r.limit), r.maxTime)
	if r.userTime > 0 {
		limit = min(limit, r.userTime)
	}
	return limit
}
