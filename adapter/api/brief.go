package api

// Many clients request the list of jobs every few seconds, so it holds only what evosqueue shows in
// a line. It includes plans only on request, and per user only so many that others need not wait
// for them.

const (
	// mostText bounds the bytes of a profile in a list without plans.
	mostText = 512
	// userShare bounds the bytes of one user's plans in a list with plans, about 25,000 steps. Jobs
	// beyond it come without plans; the answer for a single job has them.
	userShare = 4 << 20
	// spanBytes is the size of a plan's step in a list, without its nodes.
	spanBytes = 150
)

// brief returns a job for a list: without its plan and its past, and with the beginning of a
// long profile.
func (j Job) brief() Job {
	j.Plan, j.Past = []Span{}, []Span{}
	j.Profile, j.Bounds, j.CPUFreq = beginning(j.Profile), beginning(j.Bounds), beginning(j.CPUFreq)
	if m := j.Moldable; m != nil {
		one := *m
		one.Alternatives = make([]Alternative, len(m.Alternatives))
		for i, a := range m.Alternatives {
			a.Profile = beginning(a.Profile)
			one.Alternatives[i] = a
		}
		j.Moldable = &one
	}
	return j
}

func beginning(profile string) string {
	if len(profile) <= mostText {
		return profile
	}
	return profile[:mostText-1] + "+"
}

// bytes returns about how many bytes a list with plans has more for the job.
func (j *Job) bytes() int {
	n := len(j.Profile) + len(j.Bounds) + len(j.CPUFreq) + spanBytes*(len(j.Plan)+len(j.Past))
	for _, spans := range [][]Span{j.Plan, j.Past} {
		for i := range spans {
			n += len(spans[i].NodeList)
		}
	}
	if j.Moldable != nil {
		for i := range j.Moldable.Alternatives {
			n += len(j.Moldable.Alternatives[i].Profile)
		}
	}
	return n
}

// shorten makes a list of jobs, which it may change, as long as a list may be.
func shorten(jobs []Job, plans bool) []Job {
	used := map[uint32]int{} // by user
	for i := range jobs {
		j := &jobs[i]
		if plans {
			if used[j.UID] += j.bytes(); used[j.UID] <= userShare {
				continue
			}
		}
		*j = j.brief()
	}
	return jobs
}
