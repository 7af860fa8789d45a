package strategytest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/planner/profile"
	"github.com/evoslurm/evoslurm/plugins/strategy"
)

// resizing holds the cases for malleability policies. malleable.Check checks every answer: sizes
// within the bounds and usable by the job, no more nodes than there are, grows and shrinks never
// mixed, mandatory shrinks met if possible.
var resizing = []Case{
	{"nobody to resize", nobody},
	{"a job alone grows", aloneGrows},
	{"random malleable jobs", randomMalleables},
	{"mandatory shrinks to the last node", toTheLast},
	{"malleable jobs of extreme sizes", extremeSizes},
	{"the same sizes again", sameSizes},
	{"resizing by a deadline", resizeDeadline},
	{"1,000 malleable jobs", manyMalleables},
}

// resized asks for changes and checks them.
func (r *run) resized(parameters map[string]string, q strategy.ResizeRequest) ([]malleable.Change, error) {
	changes, err := r.instance.resize(r.ctx, parameters, q)
	if err == nil {
		err = malleable.Check(q.Jobs, q.Asked, changes)
	}
	if err != nil {
		return nil, fmt.Errorf("resize with %v, %s by %d nodes of %d jobs: %w", parameters, q.Asked.Kind, q.Asked.Nodes, len(q.Jobs), err)
	}
	return changes, nil
}

// Malleables returns a random request about that many jobs, from the seed.
func Malleables(seed uint64, jobs int) strategy.ResizeRequest {
	return malleables(rand.New(rand.NewPCG(seed, 11)), jobs)
}

func malleables(rnd *rand.Rand, jobs int) strategy.ResizeRequest {
	q := strategy.ResizeRequest{Now: 1000 + rnd.Int64N(1000), Asked: malleable.Request{Kind: malleable.Kind(rnd.IntN(3)), Nodes: rnd.IntN(8*jobs + 2)}}
	q.Asked.Mandatory = q.Asked.Kind == malleable.Shrink && rnd.IntN(4) > 0
	for range rnd.IntN(4) {
		q.Waiting = append(q.Waiting, 1+rnd.IntN(20))
	}
	for len(q.Jobs) < jobs {
		j := malleable.Job{Start: rnd.Int64N(1000), Min: 1 + rnd.IntN(8), Sizes: []malleable.Sizes{malleable.Any, malleable.Any, malleable.Pow2, 3}[rnd.IntN(4)]}
		j.Max = j.Min + rnd.IntN(40)
		j.Nodes = j.Min + rnd.IntN(j.Max-j.Min+1)
		switch rnd.IntN(8) {
		case 0:
			j.Held = true
		case 1:
			j.Voluntary = true
		case 2, 3, 4:
			j.Speedup = malleable.Amdahl(rnd.Float64())
		case 5:
			j.Speedup = malleable.Table{{Nodes: 1, Speedup: 1}, {Nodes: 8, Speedup: 6}, {Nodes: 30, Speedup: 3}}
		}
		if j.Validate() == nil {
			q.Jobs = append(q.Jobs, j)
			q.Nodes += j.Nodes
		}
	}
	slices.SortStableFunc(q.Jobs, func(a, b malleable.Job) int { return cmp.Compare(a.Start, b.Start) })
	for i := range q.Jobs {
		q.Jobs[i].ID = strconv.Itoa(i + 1)
	}
	if q.Asked.Kind != malleable.Shrink {
		q.Free = q.Asked.Nodes
	}
	q.Nodes += q.Free + 10
	return q
}

func nobody(r *run) error {
	for kind := malleable.Grow; kind <= malleable.Balance; kind++ {
		for _, nodes := range []int{0, 5} {
			if _, err := r.resized(nil, strategy.ResizeRequest{Nodes: 8, Free: 5, Asked: malleable.Request{Kind: kind, Nodes: nodes}}); err != nil {
				return err
			}
		}
		q := malleables(rand.New(rand.NewPCG(1, 12)), 5)
		q.Asked = malleable.Request{Kind: kind}
		for i := range q.Jobs {
			q.Jobs[i].Held = true
		}
		if changes, err := r.resized(nil, q); err != nil || len(changes) > 0 {
			return fmt.Errorf("%d changes of jobs that cannot be asked (%v)", len(changes), err)
		}
	}
	return nil
}

// aloneGrows checks what a policy is for; the policy may be slow.
func aloneGrows(r *run) error {
	j := malleable.Job{ID: "1", Nodes: 2, Min: 2, Max: 16, Speedup: malleable.Amdahl(1)}
	for range 20 {
		changes, err := r.resized(nil, strategy.ResizeRequest{Nodes: 32, Free: 32 - j.Nodes, Jobs: []malleable.Job{j}, Asked: malleable.Request{Kind: malleable.Grow, Nodes: 32 - j.Nodes}})
		if err != nil {
			return err
		}
		for _, c := range changes {
			j.Nodes = c.Size(j)
		}
	}
	if j.Nodes == 2 {
		return errors.New("a job alone on a free cluster, that becomes faster with every node, does not grow")
	}
	return nil
}

func randomMalleables(r *run) error {
	variants, err := r.variants()
	if err != nil {
		return err
	}
	for n, parameters := range variants {
		for k := range 120 / (n + 1) {
			if _, err := r.resized(parameters, Malleables(uint64(1000*n+k), 1+k%12)); err != nil {
				return err
			}
		}
	}
	return nil
}

func toTheLast(r *run) error {
	for seed := range uint64(20) {
		q := Malleables(seed, 6)
		all := 0
		for _, j := range q.Jobs {
			all += j.Reclaimable()
		}
		for _, nodes := range []int{1, all, all + 1, 2*all + 7} {
			q.Asked = malleable.Request{Kind: malleable.Shrink, Nodes: nodes, Mandatory: true}
			q.Waiting = []int{nodes}
			if _, err := r.resized(nil, q); err != nil {
				return err
			}
		}
	}
	return nil
}

func extremeSizes(r *run) error {
	jobs := []malleable.Job{
		{ID: "1", Start: -1 << 40, Nodes: 1, Min: 1, Max: profile.MaxNodes, Sizes: malleable.Pow2},
		{ID: "2", Nodes: 7, Min: 7, Max: 7, Sizes: 7},
		{ID: "3", Nodes: 3, Min: 3, Max: 1 << 20, Sizes: 1000, Speedup: malleable.Amdahl(.999)},
		{ID: "4", Start: 1 << 40, Nodes: 5, Min: 1, Max: 9, Sizes: malleable.Pow2, Speedup: malleable.Table{{Nodes: 1, Speedup: 1e-9}, {Nodes: 2, Speedup: 1e9}}},
	}
	for kind := malleable.Grow; kind <= malleable.Balance; kind++ {
		for _, nodes := range []int{0, 1, 100_000} {
			q := strategy.ResizeRequest{Nodes: 200_000, Now: 1 << 41, Jobs: jobs, Asked: malleable.Request{Kind: kind, Nodes: nodes, Mandatory: kind == malleable.Shrink}}
			if _, err := r.resized(nil, q); err != nil {
				return err
			}
		}
	}
	return nil
}

func sameSizes(r *run) error {
	set, err := r.unhurried()
	if err != nil {
		return err
	}
	other, err := r.subject.open()
	if err != nil {
		return err
	}
	defer other.close()
	for seed := range uint64(20) {
		q := Malleables(seed, 10)
		first, err := r.resized(set, q)
		if err != nil {
			return err
		}
		if _, err := r.resized(set, Malleables(seed+100, 10)); err != nil { // earlier requests must not matter
			return err
		}
		again, err := r.resized(set, q)
		if err == nil && !reflect.DeepEqual(first, again) {
			err = errors.New("the same request got other sizes the second time")
		}
		if err != nil {
			return err
		}
		fresh, err := (&run{r.ctx, r.subject, other}).resized(set, q)
		if err == nil && !reflect.DeepEqual(first, fresh) {
			err = errors.New("the same request got other sizes from another process")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// resizeDeadline checks that a late answer is dropped and that the policy works afterwards.
func resizeDeadline(r *run) error {
	ctx, cancel := context.WithTimeout(r.ctx, time.Millisecond)
	began := time.Now()
	_, err := r.instance.resize(ctx, nil, Malleables(1, 1000))
	cancel()
	if took := time.Since(began); took > 20*time.Second {
		return fmt.Errorf("with 1 ms it took %v (%v)", took, err)
	}
	_, err = r.resized(nil, Malleables(2, 5))
	return err
}

func manyMalleables(r *run) error {
	for seed := range uint64(3) {
		q := Malleables(seed, 1000)
		q.Asked.Kind = malleable.Kind(seed)
		q.Asked.Mandatory = q.Asked.Kind == malleable.Shrink
		if _, err := r.resized(nil, q); err != nil {
			return err
		}
	}
	return nil
}
