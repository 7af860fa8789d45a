package malleable

// Folding doubles and halves sizes (McCann and Zahorjan 1994): processes are folded onto half of
// the nodes and unfolded again, so that every node has the same number of them. It doubles the
// smallest job that can double, and halves the largest. Of equal jobs, the one that started first
// is doubled first and halved last. If halving cannot meet a mandatory shrink, the largest job
// gives the rest. O(n²) for n jobs.
type Folding struct{}

// Name implements Policy.
func (Folding) Name() string { return "folding" }

// Apply implements Policy.
func (p Folding) Apply(jobs []Job, r Request, ask Ask) []Change {
	if r.Kind == Balance {
		return nil // jobs fold to make room only for waiting jobs
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

// foldAndMore halves while it can, then takes node by node.
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
