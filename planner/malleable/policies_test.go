package malleable

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// drawJobs draws jobs as they may occur: also jobs without a usable size, that need not obey, or
// that must not be asked.
func drawJobs(t *rapid.T) []Job {
	jobs := make([]Job, rapid.IntRange(0, 7).Draw(t, "jobs"))
	for i := range jobs {
		j := Job{ID: fmt.Sprint(i), Start: rapid.Int64Range(0, 5).Draw(t, "start")}
		for {
			j.Sizes = rapid.SampledFrom([]Sizes{Any, Any, Pow2, 2, 3}).Draw(t, "sizes")
			j.Min = rapid.IntRange(1, 8).Draw(t, "min")
			j.Max = rapid.IntRange(j.Min, 40).Draw(t, "max")
			if j.bounds().Validate(j.Sizes) == nil {
				break
			}
		}
		j.Nodes = rapid.IntRange(j.Min, j.Max).Draw(t, "nodes")
		switch rapid.IntRange(0, 8).Draw(t, "kind") {
		case 0:
			j.Voluntary = true
		case 1:
			j.Held = true
		case 2, 3, 4:
			j.Speedup = Amdahl(rapid.Float64Range(0, 1).Draw(t, "parallel"))
		case 5:
			j.Speedup = Table{{2, 1}, {8, 5}, {32, 2}}
		}
		jobs[i] = j
	}
	return jobs
}

func policy(t *rapid.T) Policy {
	p, err := PolicyByName(rapid.SampledFrom(Policies()).Draw(t, "policy"))
	must.OK(t, err)
	return p
}

func drawRequest(t *rapid.T) Request {
	r := Request{Kind: Kind(rapid.IntRange(0, 2).Draw(t, "request")), Nodes: rapid.IntRange(0, 60).Draw(t, "by")}
	r.Mandatory = r.Kind == Shrink && rapid.Bool().Draw(t, "mandatory")
	return r
}

// TestPolicies checks that the changes of every policy pass Check, and that Check's promises hold.
func TestPolicies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs, p, r := drawJobs(t), policy(t), drawRequest(t)
		before := slices.Clone(jobs)
		changes := Distribute(p, jobs, r, Declared)
		if err := Check(jobs, r, changes); err != nil {
			t.Fatalf("%s: %v\n%+v\n%+v", p.Name(), err, r, changes)
		}
		if !slices.EqualFunc(before, jobs, func(a, b Job) bool { return a.Nodes == b.Nodes && a.Held == b.Held && a.ID == b.ID }) {
			t.Fatal("jobs have changed")
		}
		given := 0
		for _, c := range changes {
			j := jobs[c.Job]
			if size := c.Size(j); size < j.Min || size > j.Max || !j.Sizes.Has(size) {
				t.Fatalf("%s: %+v", p.Name(), c)
			}
			if given += c.Accepted; c.Kind == Grow && given > r.Nodes {
				t.Fatalf("%s: %d nodes given", p.Name(), given)
			}
			if c.Kind != changes[0].Kind {
				t.Fatalf("%s: grows and shrinks mixed", p.Name())
			}
		}
	})
}

// TestAnswers checks that, whatever applications answer, no job is below MIN or above MAX, no more
// nodes are given than exist, and no job is asked twice in a call.
func TestAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs, p, r := drawJobs(t), policy(t), drawRequest(t)
		times := map[string]int{}
		changes := p.Apply(jobs, r, func(j Job, r Request) int {
			if times[j.ID]++; times[j.ID] > 1 || r.Nodes < 1 || j.Held || j.Voluntary && r.Mandatory {
				t.Fatalf("%s asks %+v of %+v", p.Name(), r, j)
			}
			return rapid.IntRange(-3, 60).Draw(t, "answer")
		})
		given := 0
		for _, c := range changes {
			if size := c.Size(jobs[c.Job]); size < jobs[c.Job].Min || size > jobs[c.Job].Max {
				t.Fatalf("%s: %+v of %+v", p.Name(), c, jobs[c.Job])
			}
			given += c.Accepted
		}
		if r.Kind == Grow && given > r.Nodes {
			t.Fatalf("%s gives %d of %d nodes", p.Name(), given, r.Nodes)
		}
	})
}

// TestEGSEqual checks that EGS asks the same of all jobs, give or take one node, so that equal jobs
// stay equal, give or take one.
func TestEGSEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var jobs []Job
		min := rapid.IntRange(1, 5).Draw(t, "min")
		nodes := rapid.IntRange(min, 40).Draw(t, "nodes")
		for i := range rapid.IntRange(1, 9).Draw(t, "jobs") {
			jobs = append(jobs, Job{ID: fmt.Sprint(i), Start: rapid.Int64Range(0, 9).Draw(t, "start"), Nodes: nodes, Min: min, Max: 40})
		}
		r := drawRequest(t)
		if r.Kind == Balance {
			return
		}
		sizes := map[bool][]int{}
		for _, j := range after(jobs, EGS{}.Apply(jobs, r, Declared)) {
			sizes[true] = append(sizes[true], j.Nodes)
		}
		if slices.Max(sizes[true])-slices.Min(sizes[true]) > 1 {
			t.Fatalf("%+v of %d jobs of %d nodes: %v", r, len(jobs), nodes, sizes[true])
		}
	})
}

// TestFPSMAOrder checks that earlier jobs grow first and later jobs shrink first, each as far as
// possible before the next.
func TestFPSMAOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs, r := drawJobs(t), drawRequest(t)
		if r.Kind == Balance {
			return
		}
		var order []Job
		FPSMA{}.Apply(jobs, r, func(j Job, sent Request) int {
			if n := len(order); n > 0 && (r.Kind == Grow && order[n-1].Start > j.Start || r.Kind == Shrink && order[n-1].Start < j.Start) {
				t.Fatalf("%s of %+v comes after that of %+v", r.Kind, j, order[n-1])
			}
			order = append(order, j)
			return j.Accepts(sent)
		})
		for i, j := range after(jobs, FPSMA{}.Apply(jobs, r, Declared)) {
			asked := slices.IndexFunc(order, func(o Job) bool { return o.ID == j.ID })
			if asked >= 0 && asked < len(order)-1 && j.Accepts(Request{r.Kind, 1, r.Mandatory}) > 0 {
				t.Fatalf("%+v could %s more, and was not the last", jobs[i], r.Kind)
			}
		}
	})
}

// TestManageKeepsTo checks capacity, threshold, and precedence.
func TestManageKeepsTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := State{Jobs: drawJobs(t), Free: rapid.IntRange(0, 40).Draw(t, "free"), Threshold: rapid.IntRange(0, 60).Draw(t, "threshold")}
		for i := range rapid.IntRange(0, 4).Draw(t, "waiting") {
			s.Waiting = append(s.Waiting, Waiting{fmt.Sprint(i), rapid.IntRange(1, 30).Draw(t, "needs"), rapid.Bool().Draw(t, "malleable")})
		}
		total := 0
		for _, j := range s.Jobs {
			total += j.Nodes
			if j.Held {
				s.Coming += rapid.IntRange(0, j.Nodes-j.Min).Draw(t, "coming")
			}
		}
		approach := Approach(rapid.IntRange(0, 1).Draw(t, "approach"))
		d := Manage(approach, policy(t), s, Declared)
		if len(d.Changes) > 0 {
			must.OK(t, Check(s.Jobs, d.Request, d.Changes))
		}
		free, shrunk := s.Free, 0
		for _, c := range d.Changes {
			if c.Kind == Grow {
				free, total = free-c.Accepted, total+c.Accepted
			} else {
				shrunk += c.Accepted
			}
		}
		if s.Threshold > 0 && d.Request.Kind == Grow && len(d.Changes) > 0 && total > s.Threshold {
			t.Fatalf("malleable jobs have %d nodes after a growth", total)
		}
		for _, i := range d.Start {
			free -= s.Waiting[i].Nodes
			if s.Waiting[i].Malleable {
				if total += s.Waiting[i].Nodes; s.Threshold > 0 && total > s.Threshold {
					t.Fatalf("malleable jobs have %d nodes after a start", total)
				}
			}
		}
		if free < 0 {
			t.Fatalf("%d nodes are used that are not free: %+v", -free, d)
		}
		for _, i := range d.For {
			free -= s.Waiting[i].Nodes
		}
		switch {
		case free+shrunk+s.Coming < 0:
			t.Fatalf("%d nodes are missing for those for whom others shrink: %+v", -free-shrunk-s.Coming, d)
		case approach == PRA && (shrunk > 0 || len(d.For) > 0):
			t.Fatalf("running jobs shrink under PRA: %+v", d)
		case len(d.For) > 0 && d.Request.Kind == Grow && d.Request.Nodes > 0:
			t.Fatalf("jobs grow though others wait that can be helped: %+v", d)
		}
	})
}

// TestManageSettles checks that changes end if no job arrives or ends.
func TestManageSettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := State{Jobs: drawJobs(t), Free: rapid.IntRange(0, 60).Draw(t, "free"), Threshold: rapid.IntRange(0, 100).Draw(t, "threshold")}
		p, a := policy(t), Approach(rapid.IntRange(0, 1).Draw(t, "approach"))
		for range 60 {
			d := Manage(a, p, s, Declared)
			if len(d.Changes) == 0 {
				return
			}
			for _, c := range d.Changes {
				s.Free += s.Jobs[c.Job].Nodes - c.Size(s.Jobs[c.Job])
			}
			s.Jobs = after(s.Jobs, d.Changes)
		}
		t.Fatalf("%s never settles: %+v", p.Name(), s)
	})
}

// TestGainIsLargest checks that with Amdahl's law no other distribution of the nodes has a larger
// sum of speed-ups.
func TestGainIsLargest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var jobs []Job
		for i := range rapid.IntRange(1, 3).Draw(t, "jobs") {
			j := Job{ID: fmt.Sprint(i), Nodes: rapid.IntRange(1, 4).Draw(t, "nodes"), Min: 1, Max: 9, Speedup: Amdahl(rapid.Float64Range(.1, 1).Draw(t, "parallel"))}
			jobs = append(jobs, j)
		}
		r := Request{Kind: Kind(rapid.IntRange(0, 1).Draw(t, "request")), Nodes: rapid.IntRange(1, 8).Draw(t, "by")}
		result := after(jobs, Gain{}.Apply(jobs, r, Declared))
		sum, used := 0.0, 0
		for i, j := range result {
			sum += j.speedup(j.Nodes)
			used += j.Nodes - jobs[i].Nodes
		}
		best := 0.0
		var try func(i, left int, sum float64)
		try = func(i, left int, sum float64) {
			if i == len(jobs) {
				if r.Kind == Grow || left == 0 {
					best = max(best, sum)
				}
				return
			}
			for by := 0; by <= left; by++ {
				size := jobs[i].Nodes + by
				if r.Kind == Shrink {
					size = jobs[i].Nodes - by
				}
				if size >= 1 && size <= 9 {
					try(i+1, left-by, sum+jobs[i].speedup(size))
				}
			}
		}
		if r.Kind == Shrink && -used < r.Nodes {
			return // they cannot give as much
		}
		if try(0, r.Nodes, 0); math.Abs(sum-best) > 1e-6 {
			t.Fatalf("%+v: %v gives %v, the largest is %v", r, result, sum, best)
		}
	})
}

func sizesAfter(p Policy, jobs []Job, r Request) []int {
	return sizesOf(after(jobs, Distribute(p, jobs, r, Declared)))
}

// TestOthers shows by examples what equipartition, folding, and gain do.
func TestOthers(t *testing.T) {
	job := func(start int64, nodes int) Job {
		return Job{ID: fmt.Sprint(start), Start: start, Nodes: nodes, Min: 2, Max: 16}
	}
	jobs := []Job{job(1, 8), job(2, 2), job(3, 5)}
	scales := []Job{job(1, 4), job(2, 4)}
	scales[0].Speedup, scales[1].Speedup = Amdahl(.5), Amdahl(.99)
	falls := []Job{job(1, 4)}
	falls[0].Speedup = Table{{2, 2}, {8, 4}, {16, 3}}
	halves := []Job{job(1, 8), job(2, 8)} // gives four nodes for one
	halves[0].Sizes, halves[0].Speedup, halves[1].Speedup = Pow2, Amdahl(.5), Amdahl(.6)
	odd := []Job{{ID: "odd", Nodes: 7, Min: 2, Max: 16}}
	for _, c := range []struct {
		p    Policy
		jobs []Job
		r    Request
		want []int
	}{
		{Equipartition{}, jobs, Request{Kind: Grow, Nodes: 6}, []int{8, 7, 6}},
		{Equipartition{}, jobs, Request{Kind: Shrink, Nodes: 5}, []int{4, 2, 4}},
		{Equipartition{}, jobs, Request{Kind: Balance}, []int{5, 2, 5}},
		{Folding{}, jobs, Request{Kind: Grow, Nodes: 9}, []int{8, 8, 5}},
		{Folding{}, jobs, Request{Kind: Grow, Nodes: 16}, []int{8, 8, 10}},
		{Folding{}, jobs, Request{Kind: Shrink, Nodes: 2, Mandatory: true}, []int{4, 2, 5}},
		{Folding{}, odd, Request{Kind: Shrink, Nodes: 2}, []int{7}},
		{Folding{}, odd, Request{Kind: Shrink, Nodes: 2, Mandatory: true}, []int{5}},
		{Folding{}, jobs, Request{Kind: Balance}, []int{8, 2, 5}},
		{Gain{}, scales, Request{Kind: Grow, Nodes: 6}, []int{4, 10}},
		{Gain{}, scales, Request{Kind: Shrink, Nodes: 3}, []int{2, 3}},
		{Gain{}, scales, Request{Kind: Balance}, []int{2, 4}},
		{Gain{}, halves, Request{Kind: Shrink, Nodes: 1}, []int{8, 7}},
		{Gain{}, falls, Request{Kind: Grow, Nodes: 12}, []int{8}},
	} {
		if got := sizesAfter(c.p, c.jobs, c.r); !slices.Equal(got, c.want) {
			t.Errorf("%s, %v of %v: %v, want %v", c.p.Name(), c.r, sizesOf(c.jobs), got, c.want)
		}
	}
}

// TestCheckRefuses tries everything that a policy must not do.
func TestCheckRefuses(t *testing.T) {
	jobs := []Job{
		{ID: "a", Nodes: 8, Min: 2, Max: 16},
		{ID: "p", Nodes: 8, Min: 2, Max: 16, Sizes: Pow2},
		{ID: "v", Nodes: 8, Min: 2, Max: 16, Voluntary: true},
		{ID: "h", Nodes: 8, Min: 2, Max: 16, Held: true},
	}
	grow, shrink := Request{Kind: Grow, Nodes: 6}, Request{Shrink, 3, true}
	for why, c := range map[string]struct {
		r       Request
		changes []Change
	}{
		"no such job":        {grow, []Change{{4, grow, 1}}},
		"twice":              {grow, []Change{{0, grow, 1}, {0, grow, 1}}},
		"the other way":      {grow, []Change{{0, shrink, 3}}},
		"by nothing":         {grow, []Change{{0, grow, 0}}},
		"held":               {grow, []Change{{3, grow, 1}}},
		"need not obey":      {shrink, []Change{{2, shrink, 3}}},
		"above the maximum":  {Request{Kind: Grow, Nodes: 20}, []Change{{0, grow, 9}}},
		"below the minimum":  {shrink, []Change{{0, shrink, 7}}},
		"no power of two":    {shrink, []Change{{1, shrink, 3}}},
		"more than there is": {grow, []Change{{0, grow, 4}, {2, grow, 3}}},
		"too few":            {shrink, []Change{{0, shrink, 2}}},
		"none":               {shrink, nil},
		"far too many":       {Request{Shrink, 1, true}, []Change{{0, shrink, 5}}},
	} {
		if err := Check(jobs, c.r, c.changes); err == nil {
			t.Errorf("%s: passes", why)
		}
	}
	for _, c := range []struct {
		r       Request
		changes []Change
	}{{grow, nil}, {grow, []Change{{0, grow, 6}}}, {shrink, []Change{{0, shrink, 3}}}, {shrink, []Change{{1, shrink, 4}}}, {Request{Kind: Shrink, Nodes: 3}, nil}} {
		if err := Check(jobs, c.r, c.changes); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestPolicyByName(t *testing.T) {
	for _, name := range Policies() {
		p, err := PolicyByName(name)
		if err != nil || p.Name() != name || Help(name) == "" {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	if _, err := PolicyByName("noX"); err == nil {
		t.Error("noX is one")
	}
	for _, a := range []Approach{PRA, PWA} {
		if got, err := ParseApproach(a.String()); got != a || err != nil {
			t.Errorf("%s: %v, %v", a, got, err)
		}
	}
	if _, err := ParseApproach("both"); err == nil {
		t.Error("both is one")
	}
}
