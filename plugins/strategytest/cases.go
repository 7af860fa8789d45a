package strategytest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/plugins/strategy"
)

// Cases returns all cases of the kit.
func Cases() []Case { return slices.Concat(common, planning, resizing) }

// CasesFor returns the cases that apply: a strategy plans, a malleability policy resizes jobs, and
// a subject may do both. It returns all cases if the subject does not say.
func CasesFor(ctx context.Context, s Subject) []Case {
	i, err := s.open()
	if err != nil {
		return Cases()
	}
	defer i.close()
	d, err := i.describe(ctx, nil)
	if err != nil {
		return Cases()
	}
	cases := slices.Clone(common)
	if d.Plans {
		cases = append(cases, planning...)
	}
	if d.Resizes {
		cases = append(cases, resizing...)
	}
	return cases
}

var common = []Case{
	{"describes itself", describesItself},
	{"refuses what is no parameter", refusesParameters},
}

var planning = []Case{
	{"no jobs", noJobs},
	{"a free cluster", freeCluster},
	{"random queues", randomQueues},
	{"pinned jobs stay", pinnedStay},
	{"infeasible jobs", infeasibleJobs},
	{"moldable jobs", moldableJobs},
	{"sets of nodes", nodeSets},
	{"extreme values", extremes},
	{"the same again", deterministic},
	{"several requests in a call", severalRequests},
	{"several at once", concurrent},
	{"deadlines", deadlines},
	{"10,000 jobs of 5 steps", huge},
}

// variants returns parameters to try: the defaults, and each value of parameters with few values.
func (r *run) variants() ([]map[string]string, error) {
	d, err := r.instance.describe(r.ctx, nil)
	if err != nil {
		return nil, err
	}
	all := []map[string]string{nil}
	for _, p := range d.Parameters {
		values := p.Choices
		if p.Type == strategy.Bool {
			values = []string{"true", "false"}
		}
		for _, v := range append(values, p.Min) { // the largest may take long
			if v != "" && v != p.Default {
				all = append(all, map[string]string{p.Name: v})
			}
		}
	}
	return all, nil
}

// unhurried returns parameters with which equal requests get equal answers: durations that limit
// the search are as long as possible.
func (r *run) unhurried() (map[string]string, error) {
	d, err := r.instance.describe(r.ctx, nil)
	if err != nil {
		return nil, err
	}
	set := map[string]string{}
	for _, p := range d.Parameters {
		if p.Type == strategy.Duration && p.Max != "" {
			set[p.Name] = p.Max
		}
	}
	return set, nil
}

func describesItself(r *run) error {
	d, err := r.instance.describe(r.ctx, nil)
	if err != nil {
		return err
	}
	if d.Version == "" || d.Help == "" {
		return errors.New("version or help is empty")
	}
	for _, p := range d.Parameters {
		if p.Help == "" {
			return fmt.Errorf("parameter %s has no help", p.Name)
		}
	}
	return d.Validate()
}

func refusesParameters(r *run) error {
	if _, err := r.instance.describe(r.ctx, map[string]string{"no_such_parameter": "1"}); err == nil {
		return errors.New("it takes a parameter that it does not have")
	}
	d, err := r.instance.describe(r.ctx, nil)
	if err != nil {
		return err
	}
	for _, p := range d.Parameters {
		if p.Type == strategy.String && len(p.Choices) == 0 {
			continue
		}
		if _, err := r.instance.describe(r.ctx, map[string]string{p.Name: "no such value"}); err == nil {
			return fmt.Errorf("parameter %s takes %q", p.Name, "no such value")
		}
	}
	if d.Resizes {
		if _, err := r.resized(nil, malleables(rand.New(rand.NewPCG(1, 1)), 10)); err != nil {
			return err
		}
	}
	if !d.Plans {
		return nil
	}
	_, err = r.planned(nil, queue(rand.New(rand.NewPCG(1, 1)), 10)) // and it still works
	return err
}

func noJobs(r *run) error {
	a, err := r.planned(nil, strategy.Request{Problem: planner.Problem{Nodes: 4, Busy: []planner.Busy{{Duration: 10, Nodes: 4}}}})
	if err == nil && len(a.Schedule) != 0 {
		err = fmt.Errorf("%d placements", len(a.Schedule))
	}
	return err
}

func freeCluster(r *run) error {
	a, err := r.planned(nil, strategy.Request{Now: 100, Problem: planner.Problem{Nodes: 8, Jobs: []planner.Job{
		{ID: "1", Submit: 100, Profile: planner.Profile{{Duration: 10, Nodes: 2}, {Duration: 20, Nodes: 8}, {Duration: 5, Nodes: 1}}, ExpandLimit: 1},
	}}})
	if err != nil {
		return err
	}
	if got := a.Schedule[0]; got.Start != 100 || got.End() != 135 {
		return fmt.Errorf("a job alone on a free cluster runs from second %d to %d, want 100 to 135", got.Start, got.End())
	}
	return nil
}

// queue returns a random request with that many jobs.
func queue(rnd *rand.Rand, jobs int) strategy.Request {
	q := strategy.Request{Now: rnd.Int64N(1000)}
	q.Nodes = 1 + rnd.IntN(64)
	for range rnd.IntN(8) {
		q.Busy = append(q.Busy, planner.Busy{Start: q.Now + rnd.Int64N(500), Duration: rnd.Int64N(1000), Nodes: rnd.IntN(q.Nodes)/4 + 1})
	}
	limits := []planner.ExpandLimit{0, 1, 1.5, 2, planner.Infinite}
	for i := range jobs {
		j := planner.Job{ID: strconv.Itoa(i + 1), Submit: q.Now, ExpandLimit: limits[rnd.IntN(len(limits))]}
		if rnd.IntN(4) == 0 {
			j.Submit += rnd.Int64N(300)
		}
		for range 1 + rnd.IntN(6) {
			j.Profile = append(j.Profile, planner.Step{Duration: 1 + rnd.Int64N(200), Nodes: 1 + rnd.IntN(q.Nodes)})
		}
		q.Jobs = append(q.Jobs, j)
	}
	return q
}

func randomQueues(r *run) error {
	variants, err := r.variants()
	if err != nil {
		return err
	}
	for n, parameters := range variants {
		rnd := rand.New(rand.NewPCG(uint64(n), 2))
		queues := 40
		if n > 0 {
			queues = 10
		}
		for k := range queues {
			if _, err := r.planned(parameters, queue(rnd, 1+k%20)); err != nil {
				return err
			}
		}
	}
	return nil
}

func pinnedStay(r *run) error {
	q := queue(rand.New(rand.NewPCG(3, 3)), 10)
	q.Pinned = []planner.Placement{
		{Start: q.Now - 50, Steps: planner.Profile{{Duration: 20, Nodes: 1}, {Duration: 90, Nodes: 1}}},
		{Start: q.Now + 10, Steps: planner.Profile{{Duration: 30, Nodes: 1}}},
	}
	for _, p := range q.Pinned {
		at := p.Start
		for _, s := range p.Steps {
			q.Busy = append(q.Busy, planner.Busy{Start: at, Duration: s.Duration, Nodes: s.Nodes})
			at += s.Duration
		}
	}
	_, err := r.planned(nil, q) // the client compares the pinned rows
	return err
}

func infeasibleJobs(r *run) error {
	q := strategy.Request{Problem: planner.Problem{Nodes: 10, Busy: []planner.Busy{{Duration: planner.Forever, Nodes: 6}}}}
	for i, nodes := range []int{3, 5, 4, 10, 1} {
		q.Jobs = append(q.Jobs, planner.Job{ID: strconv.Itoa(i + 1), ExpandLimit: 1, Profile: planner.Profile{{Duration: 10, Nodes: 1}, {Duration: 10, Nodes: nodes}}})
	}
	a, err := r.planned(nil, q)
	if err != nil {
		return err
	}
	if len(a.Unfit) != 2 || a.Unfit[1] == "" || a.Unfit[3] == "" {
		return fmt.Errorf("on 4 nodes that are ever free, jobs 2 (5 nodes) and 4 (10 nodes) are infeasible; answered %v", a.Unfit)
	}
	return nil
}

// moldableJobs checks that a strategy that knows alternatives gives a single job the one that it
// prefers among those that fit. All strategies plan queues of such jobs beside others.
func moldableJobs(r *run) error {
	d, err := r.instance.describe(r.ctx, nil)
	if err != nil {
		return err
	}
	alone := func(by planner.Preference, widest int) strategy.Request {
		return strategy.Request{Problem: planner.Problem{Nodes: 8, Jobs: []planner.Job{{ID: "1", ExpandLimit: 1, By: by,
			Profile:      planner.Profile{{Duration: 100, Nodes: 1}, {Duration: 100, Nodes: 1}},
			Alternatives: []planner.Profile{{{Duration: 40, Nodes: widest}, {Duration: 30, Nodes: widest}}, {{Duration: 90, Nodes: 4}}}}}}}
	}
	for _, c := range []struct {
		by           planner.Preference
		widest, want int
	}{{planner.ByCompletion, 8, 1}, {planner.ByCompletion, 9, 2}, {planner.ByNodeHours, 8, 0}, {planner.ByWaste, 8, 1}} {
		a, err := r.planned(nil, alone(c.by, c.widest))
		if err != nil {
			return err
		}
		if got := a.Schedule[0].Choice; d.Moldable && (len(a.Unfit) > 0 || got != c.want) {
			return fmt.Errorf("a job alone that prefers %v got its profile %d (%v), want %d", c.by, got, a.Unfit, c.want)
		}
	}
	rnd := rand.New(rand.NewPCG(5, 5))
	for range 10 {
		q := queue(rnd, 12)
		for i := range q.Jobs {
			q.Jobs[i].By = planner.Preference(rnd.IntN(3))
			for range rnd.IntN(4) {
				var p planner.Profile
				for range 1 + rnd.IntN(4) {
					p = append(p, planner.Step{Duration: 1 + rnd.Int64N(200), Nodes: 1 + rnd.IntN(q.Nodes)})
				}
				q.Jobs[i].Alternatives = append(q.Jobs[i].Alternatives, p)
			}
		}
		if _, err := r.planned(nil, q); err != nil {
			return err
		}
	}
	return nil
}

// nodeSets checks that a strategy plans validly, and the same again, whatever it knows about the nodes.
func nodeSets(r *run) error {
	set, err := r.unhurried()
	if err != nil {
		return err
	}
	rnd := rand.New(rand.NewPCG(11, 11))
	for range 20 {
		q := queue(rnd, 12)
		for left := q.Nodes - rnd.IntN(q.Nodes); left > 0; {
			s := planner.NodeSet{Nodes: 1 + rnd.IntN(left), Weight: rnd.IntN(3), Power: planner.Power(rnd.IntN(5))}
			s.Free, s.Ready = rnd.IntN(s.Nodes+1), q.Now+rnd.Int64N(600)
			if rnd.IntN(2) == 0 {
				s.Switches, s.Features = []string{"leaf" + strconv.Itoa(rnd.IntN(9)), "top"}, []string{"rack", "été"}
			}
			left -= s.Nodes
			q.Sets = append(q.Sets, s)
		}
		first, err := r.planned(set, q)
		if err != nil {
			return err
		}
		again, err := r.planned(set, q)
		if err == nil && !reflect.DeepEqual(first, again) {
			err = errors.New("the same request got another answer the second time")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func extremes(r *run) error {
	longest := int64(planner.MaxDuration)
	q := strategy.Request{Now: -1000, Problem: planner.Problem{Nodes: 100000, Busy: []planner.Busy{
		{Start: -1000, Duration: 2000, Nodes: 100000}, {Start: 1 << 40, Duration: planner.Forever, Nodes: 1}, {Start: 5, Duration: 0, Nodes: 7},
	}}}
	for i := range 4 {
		q.Jobs = append(q.Jobs,
			planner.Job{ID: strconv.Itoa(i), Submit: -1000, ExpandLimit: planner.Infinite, Profile: planner.Profile{{Duration: longest, Nodes: 60000}, {Duration: 1, Nodes: 1}, {Duration: longest, Nodes: 99999}}},
			planner.Job{ID: strconv.Itoa(i), Submit: 1 << 33, ExpandLimit: 1.000001, Profile: planner.Profile{{Duration: 1, Nodes: 1}}})
	}
	_, err := r.planned(nil, q)
	return err
}

func deterministic(r *run) error {
	set, err := r.unhurried()
	if err != nil {
		return err
	}
	q := queue(rand.New(rand.NewPCG(4, 4)), 30)
	first, err := r.planned(set, q)
	if err != nil {
		return err
	}
	if _, err := r.planned(set, queue(rand.New(rand.NewPCG(5, 5)), 30)); err != nil { // earlier requests must not matter
		return err
	}
	again, err := r.planned(set, q)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(first, again) {
		return errors.New("the same request got another answer the second time")
	}
	other, err := r.subject.open()
	if err != nil {
		return err
	}
	defer other.close()
	fresh, err := (&run{r.ctx, r.subject, other}).planned(set, q)
	if err == nil && !reflect.DeepEqual(first, fresh) {
		err = errors.New("the same request got another answer from another process")
	}
	return err
}

// severalRequests checks that earlier requests in a call make no difference.
func severalRequests(r *run) error {
	set, err := r.unhurried()
	if err != nil {
		return err
	}
	var requests []strategy.Request
	for i := range 5 {
		requests = append(requests, queue(rand.New(rand.NewPCG(9, uint64(i))), 1+7*i))
	}
	requests = append(requests, requests[0])
	together, err := r.cycle(set, requests...)
	if err != nil {
		return err
	}
	for i, q := range requests {
		alone, err := r.planned(set, q)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(alone, together[i]) {
			return fmt.Errorf("request %d of a call got another answer than alone", i+1)
		}
	}
	return nil
}

func concurrent(r *run) error {
	set, err := r.unhurried()
	if err != nil {
		return err
	}
	const callers = 4
	var group sync.WaitGroup
	errs := make([]error, callers)
	for i := range callers {
		group.Go(func() {
			q := queue(rand.New(rand.NewPCG(6, uint64(i))), 20)
			alone, err := r.planned(set, q)
			for range 5 {
				if errs[i] = err; err != nil {
					return
				}
				var a strategy.Answer
				if a, err = r.planned(set, q); err == nil && !reflect.DeepEqual(a, alone) {
					err = errors.New("beside others, the same request got another answer")
				}
			}
			errs[i] = err
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// deadlines checks that a late answer is dropped and that the strategy works afterwards.
func deadlines(r *run) error {
	d, err := r.instance.describe(r.ctx, nil)
	if err != nil {
		return err
	}
	q := tenThousand()
	ctx, cancel := context.WithTimeout(r.ctx, 5*time.Millisecond)
	began := time.Now()
	_, err = r.instance.plan(ctx, nil, d, q)
	cancel()
	if took := time.Since(began); took > 20*time.Second {
		return fmt.Errorf("with 5 ms it took %v (%v)", took, err)
	}
	began = time.Now()
	if _, err := r.planned(nil, queue(rand.New(rand.NewPCG(7, 7)), 5)); err != nil {
		return err
	}
	if took := time.Since(began); took > 20*time.Second {
		return fmt.Errorf("a small plan took %v after a large one was given up", took)
	}
	return nil
}

func huge(r *run) error {
	_, err := r.planned(nil, tenThousand())
	return err
}

// tenThousand returns 10,000 jobs of 5 steps on 1,000 nodes.
func tenThousand() strategy.Request {
	rnd := rand.New(rand.NewPCG(8, 8))
	q := strategy.Request{Problem: planner.Problem{Nodes: 1000}}
	for i := range 10000 {
		j := planner.Job{ID: strconv.Itoa(i + 1), ExpandLimit: 1}
		for range 5 {
			j.Profile = append(j.Profile, planner.Step{Duration: 60 + rnd.Int64N(3600), Nodes: 1 + rnd.IntN(100)})
		}
		q.Jobs = append(q.Jobs, j)
	}
	return q
}

// TenThousand returns a request of 10,000 jobs of 5 steps on 1,000 nodes, always the
// same one, for benchmarks.
func TenThousand() strategy.Request { return tenThousand() }
