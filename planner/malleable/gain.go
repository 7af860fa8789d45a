package malleable

import "math"

// Gain gives every node to the job that gains the most speed-up from it, and takes nodes where the
// loss is least. The sum of all speed-ups, the cluster's work per second, is then as large as
// possible. (Hungershöfer et al. 2001 bias equipartition to that end.) No job grows without
// becoming faster. For speed-ups whose gain falls with every node, such as Amdahl's, the sum is the
// maximum. If all nodes are in use, Gain moves nodes between jobs if that raises the sum by a
// twentieth. O(nodes · n log nodes) for n jobs.
type Gain struct{}

// Assumed is the speed-up of a job without a known one.
const Assumed = Amdahl(0.9)

// worth is the factor by which the sum of speed-ups must rise before jobs are disturbed.
const worth = 1.05

// Name implements Policy.
func (Gain) Name() string { return "gain" }

// Apply implements Policy.
func (p Gain) Apply(jobs []Job, r Request, ask Ask) []Change { return byTargets(jobs, r, ask, p) }

// speedup returns a job's speed-up on that many nodes.
func (j Job) speedup(nodes int) float64 {
	if j.Speedup == nil {
		return Assumed.At(nodes)
	}
	return j.Speedup.At(nodes)
}

// grow looks beyond the next size, at doubling distances: a speed-up may rise only there.
func (Gain) grow(s *share) (job, size int) {
	job = -1
	best := 1e-9
	for _, i := range s.list {
		j, now := s.jobs[i], s.sizes[i]
		from := j.speedup(now)
		most := min(j.Most(), j.Sizes.Floor(now+s.left))
		for distance := 1; distance <= most-now; distance *= 2 {
			next := j.Sizes.Ceil(now + distance)
			if next > most {
				break
			}
			if gain := (j.speedup(next) - from) / float64(next-now); gain > best*(1+1e-12) {
				best, job, size = gain, i, next
			}
		}
	}
	return job, size
}

// shrink returns no credit for nodes beyond the need.
func (Gain) shrink(s *share) (job, size int) {
	job = -1
	best := math.Inf(1)
	for _, i := range s.list {
		j, now := s.jobs[i], s.sizes[i]
		from := j.speedup(now)
		for distance := 1; ; distance *= 2 {
			next := j.Sizes.Floor(now - min(distance, s.left))
			if next < j.Least() || next < 1 {
				break
			}
			loss := (from - j.speedup(next)) / float64(min(now-next, s.left))
			if loss <= best*(1+1e-12) { // of equal jobs, take the last: it started last
				if job != i || loss < best {
					best, job, size = loss, i, next
				}
			}
			if distance >= s.left {
				break
			}
		}
	}
	return job, size
}

func (Gain) worthwhile(now, ideal *share) bool { return ideal.sum() > worth*now.sum() }

// sum returns the sum of the speed-ups of the jobs that may change.
func (s *share) sum() float64 {
	sum := 0.0
	for _, i := range s.list {
		sum += s.jobs[i].speedup(s.sizes[i])
	}
	return sum
}
