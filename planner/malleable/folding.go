package malleable

// Folding doubles and halves (McCann and Zahorjan 1994): processes are folded onto half of
// the nodes, and unfolded again, so that all nodes keep the same number of them. The smallest job
// that can be doubled is, the largest is halved; of equals the one that started first is
// doubled first, and halved last. A mandatory shrink that halves cannot meet takes the rest
// from the largest. O(n²) for n jobs.
type Folding struct{}

// Name implements Policy.
func (Folding) Name() string { return "folding" }

// Apply implements Policy.
func (p Folding) Apply(jobs []Job, r Request, ask Ask) []Change {
	if r.Kind == Balance {
		return nil // a job folds to make room for others only where they wait
	}
	if r.Kind == Shrink && r.Mandatory {
		trial := &share{jobs: jobs, list: asked(jobs, r), sizes: sizesOf(jobs), left: r.Nodes}
		if trial.run(p.shrink); trial.left > 0 {
			return byTargets(jobs, r, ask, &foldAndMore{})
		}
	}
	return byTargets(jobs, r, ask, p)
}

func (Folding) grow(s *share) (job, size int) {
	job = -1
	for _, i := range s.list {
		double := 2 * s.sizes[i]
		if s.sizes[i] <= s.left && double <= s.jobs[i].Max && s.jobs[i].Sizes.Has(double) && (job < 0 || s.sizes[i] < s.sizes[job]) {
			job, size = i, double
		}
	}
	return job, size
}

func (Folding) shrink(s *share) (job, size int) {
	job = -1
	for _, i := range s.list {
		half := s.sizes[i] / 2
		if 2*half == s.sizes[i] && half >= s.jobs[i].Min && s.jobs[i].Sizes.Has(half) && (job < 0 || s.sizes[i] >= s.sizes[job]) {
			job, size = i, half
		}
	}
	return job, size
}

func (Folding) worthwhile(now, ideal *share) bool { return false }

// foldAndMore halves as long as it can, then takes node by node.
type foldAndMore struct {
	Folding
	folded bool
}

func (p *foldAndMore) shrink(s *share) (job, size int) {
	if !p.folded {
		if job, size = p.Folding.shrink(s); job >= 0 {
			return job, size
		}
		p.folded = true
	}
	return Equipartition{}.shrink(s)
}
