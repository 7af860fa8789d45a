package malleable

// Equipartition makes all jobs as equal as their bounds and sizes allow: node by node, the smallest
// grow and the largest shrink. If all nodes are in use and sizes still differ, it moves nodes from
// large jobs to small ones if that makes a real difference. Of equal jobs, the one that started
// first grows first and shrinks last. O(nodes · n) for n jobs.
type Equipartition struct{}

// Name implements Policy.
func (Equipartition) Name() string { return "equipartition" }

// Apply implements Policy.
func (p Equipartition) Apply(jobs []Job, r Request, ask Ask) []Change {
	return byTargets(jobs, r, ask, p)
}

func (Equipartition) grow(s *share) (job, size int) {
	job = -1
	for _, i := range s.list {
		next := s.next(i)
		if next-s.sizes[i] <= s.left && next <= s.jobs[i].Most() && (job < 0 || s.sizes[i] < s.sizes[job]) {
			job, size = i, next
		}
	}
	return job, size
}

func (Equipartition) shrink(s *share) (job, size int) {
	job = -1
	for _, i := range s.list {
		if previous := s.previous(i); previous >= s.jobs[i].Least() && (job < 0 || s.sizes[i] >= s.sizes[job]) {
			job, size = i, previous
		}
	}
	return job, size
}

// worthwhile compares the sums of 1/size: a smaller sum means more nodes, or the same nodes shared
// more equally.
func (Equipartition) worthwhile(now, ideal *share) bool {
	sum := func(s *share) (sum float64) {
		for _, i := range s.list {
			sum += 1 / float64(s.sizes[i])
		}
		return sum
	}
	return worth*sum(ideal) < sum(now)
}

// share holds tentative sizes of jobs.
type share struct {
	jobs  []Job
	list  []int // of the jobs that may change, in increasing order of their start times
	sizes []int // of all
	left  int   // nodes still to give or, when shrinking, still to get
}

// next returns the next larger size of the job.
func (s *share) next(i int) int { return s.jobs[i].Sizes.Ceil(s.sizes[i] + 1) }

// previous returns the next smaller size of the job.
func (s *share) previous(i int) int { return s.jobs[i].Sizes.Floor(s.sizes[i] - 1) }

// stepwise is a policy that decides on sizes step by step, before any job is asked.
type stepwise interface {
	grow(s *share) (job, size int)   // the next job to grow, with its next size; -1 if none
	shrink(s *share) (job, size int) // the same for shrinking
	// worthwhile reports whether the current shares, with free nodes given out, are so far from
	// ideal that jobs should be disturbed.
	worthwhile(now, ideal *share) bool
}

func (s *share) run(step func(*share) (job, size int)) {
	for s.left > 0 {
		i, size := step(s)
		if i < 0 {
			return
		}
		if s.sizes[i] > size {
			s.left -= s.sizes[i] - size
		} else {
			s.left -= size - s.sizes[i]
		}
		s.sizes[i] = size
	}
}

// byTargets asks jobs for the sizes that a stepwise policy wants. What one job does not accept goes
// to jobs that were not asked yet.
func byTargets(jobs []Job, r Request, ask Ask, p stepwise) (changes []Change) {
	list := asked(jobs, r)
	if r.Kind == Balance {
		return balance(jobs, list, r, ask, p)
	}
	left := r.Nodes
	for left > 0 && len(list) > 0 {
		s := &share{jobs: jobs, list: list, sizes: sizesOf(jobs), left: left}
		if r.Kind == Grow {
			s.run(p.grow)
		} else {
			s.run(p.shrink)
		}
		var others []int
		for _, i := range list {
			by := s.sizes[i] - jobs[i].Nodes
			if r.Kind == Shrink {
				by = -by
			}
			if by <= 0 || left <= 0 {
				others = append(others, i)
				continue
			}
			if r.Kind == Grow {
				by = min(by, left)
			}
			left -= send(jobs, i, Request{r.Kind, by, r.Mandatory}, ask, &changes)
		}
		if len(others) == len(list) {
			break
		}
		list = others
	}
	return changes
}

// balance asks jobs to shrink that have more nodes than in a new distribution of all nodes, if
// others have less.
func balance(jobs []Job, list []int, r Request, ask Ask, p stepwise) (changes []Change) {
	ideal := &share{jobs: jobs, list: list, sizes: sizesOf(jobs), left: r.Nodes}
	for _, i := range list {
		if least := jobs[i].Least(); ideal.sizes[i] > least {
			ideal.left += ideal.sizes[i] - least
			ideal.sizes[i] = least
		}
	}
	now := &share{jobs: jobs, list: list, sizes: sizesOf(jobs), left: r.Nodes}
	ideal.run(p.grow)
	now.run(p.grow)
	less := false
	for _, i := range list {
		less = less || ideal.sizes[i] > now.sizes[i]
	}
	if !less || !p.worthwhile(now, ideal) {
		return nil
	}
	for _, i := range list {
		send(jobs, i, Request{Shrink, jobs[i].Nodes - ideal.sizes[i], false}, ask, &changes)
	}
	return changes
}

func sizesOf(jobs []Job) []int {
	sizes := make([]int, len(jobs))
	for i, j := range jobs {
		sizes[i] = j.Nodes
	}
	return sizes
}
