package science

import "math/rand/v2"

// Job is a stock job of another user.
type Job struct {
	Submit  float64 // seconds after the cluster is up
	Nodes   int
	Minutes int // its time limit
	Seconds int // that it runs
}

const (
	backlog = 9    // jobs at the beginning
	every   = 15.5 // seconds between two jobs after that, on average
)

// Stream returns the jobs of others in order, up to a time: a backlog, and then as many as keep a cluster of twelve nodes full. They end
// 5 to 14 seconds before their time limits. Equal seeds give equal jobs.
func Stream(seed uint64, seconds float64) (jobs []Job) {
	chance := rand.New(rand.NewPCG(seed, 30))
	for at := 0.; at < seconds; {
		if len(jobs) >= backlog {
			at += every * (0.5 + chance.Float64())
		}
		minutes := 1 + chance.IntN(2)
		jobs = append(jobs, Job{at, 1 + chance.IntN(4), minutes, 60*minutes - 5 - chance.IntN(10)})
	}
	return jobs
}
