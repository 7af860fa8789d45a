package slurmsim

import "slices"

// prioritise gives a job the priority of a newly submitted or released job.
func prioritise(c *Cluster, j *job) {
	j.Priority = uint64(max(int64(firstPriority)-int64(j.ID)+1-int64(j.Request.Nice), 1))
	if c.options.MultifactorAge > 0 {
		j.Priority = 1
		age(c, j)
	}
}

// age updates the job's priority under priority/multifactor: it grows from the time at which the
// job became eligible.
func age(c *Cluster, j *job) {
	if c.options.MultifactorAge == 0 || j.Priority == 0 {
		return
	}
	since := j.SubmitTime
	if j.Request.Begin.After(since) {
		since = j.Request.Begin
	}
	old := min(max(c.Now().Sub(since).Seconds()/c.options.MaxAge.Seconds(), 0), 1)
	j.Priority = uint64(max(int64(float64(c.options.MultifactorAge)*old)-int64(j.Nice), 1))
}

// inOrder returns the pending jobs, most urgent first (sort_job_queue2).
func inOrder(c *Cluster) []*job {
	if c.options.MultifactorAge > 0 {
		for _, j := range c.Pending {
			age(c, j)
		}
		c.Disorder = true
	}
	if c.Disorder {
		c.Disorder = false
		slices.SortStableFunc(c.Pending, byUrgency)
	}
	return c.Pending
}
