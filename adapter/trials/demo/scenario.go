package demo

import (
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/planner"
)

// Job is one job of a scenario.
type Job struct {
	Name     string
	User     int           // 0 or 1; a cluster without root has but one
	After    time.Duration // submitted so long after the beginning
	Evolving bool          // else a stock sbatch job, whose profile is one step
	Profile  planner.Profile
	// Limit is the evolving job's expand limit; 0: the site's, which is never.
	Limit planner.ExpandLimit
}

// expandLimit returns the job's own, else the site's.
func (j Job) expandLimit() planner.ExpandLimit {
	if j.Limit == 0 {
		return 1
	}
	return j.Limit
}

// rigid returns the job at its peak size for the whole of its duration.
func (j Job) rigid() planner.Profile {
	return planner.Profile{{Nodes: j.Profile.Peak(), Duration: j.Profile.Duration()}}
}

// scenarioNodes is the cluster that the standard scenario is made for.
const scenarioNodes = 8

// Standard returns the demo's scenario: jobs that grow, shrink, or do both. Each would keep the
// others waiting at its peak size. Another user's stock jobs compete for the same nodes.
func Standard() []Job {
	return []Job{
		stock("render", 1, 0, "3@16s"),
		evolving("refine", 0, 0, "1@10s,3@10s,5@12s"),
		evolving("reduce", 1, 0, "5@12s,3@10s,1@10s"),
		evolving("amr", 0, 1*time.Second, "2@10s,6@10s,2@10s"),
		stock("sweep", 0, 2*time.Second, "2@14s"),
		evolving("pulse", 1, 3*time.Second, "1@10s,3@10s,1@10s"),
		stock("fft", 1, 10*time.Second, "4@12s"),
	}
}

func evolving(name string, user int, after time.Duration, profile string) Job {
	return Job{Name: name, User: user, After: after, Evolving: true, Profile: must(profile)}
}

func stock(name string, user int, after time.Duration, profile string) Job {
	return Job{Name: name, User: user, After: after, Profile: must(profile)}
}

func must(profile string) planner.Profile {
	p, err := planner.ParseProfile(profile)
	if err != nil {
		panic(err)
	}
	return p
}

// scale fits jobs that are made for one cluster size to another one.
func scale(jobs []Job, from, to int) ([]Job, error) {
	if to < from {
		return nil, fmt.Errorf("the demo needs %d nodes at least", from)
	}
	scaled := make([]Job, len(jobs))
	for i, j := range jobs {
		scaled[i] = j
		scaled[i].Profile = make(planner.Profile, len(j.Profile))
		for k, s := range j.Profile {
			scaled[i].Profile[k] = planner.Step{Duration: s.Duration, Nodes: s.Nodes * to / from}
		}
	}
	return scaled, nil
}
