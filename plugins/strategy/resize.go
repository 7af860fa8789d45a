package strategy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/planner/profile"
	pb "github.com/evoslurm/evoslurm/plugins/strategypb"
)

// ResizeRequest is a request to a malleability policy.
type ResizeRequest struct {
	Asked   malleable.Request // grow or shrink, and the number of nodes
	Jobs    []malleable.Job   // by increasing start time
	Nodes   int               // of the cluster, or of these jobs' part of it
	Now     int64
	Free    int   // nodes that are idle
	Waiting []int // nodes that waiting jobs need to start, in the order of the queue
}

// Resizer is a malleability policy that wants more information: which jobs wait, the time, and its
// deadline (from ctx).
type Resizer interface {
	malleable.Policy
	// Resize returns every job's size, in the order of the request.
	Resize(ctx context.Context, r ResizeRequest) (sizes []int, err error)
}

// ErrNoResize is the answer of a plugin that is not a malleability policy.
var ErrNoResize = errors.New("the strategy does not resize jobs")

// Resize asks a policy in this process. Run malleable.Check on the changes.
func Resize(ctx context.Context, p malleable.Policy, r ResizeRequest) ([]malleable.Change, error) {
	resizer, ok := p.(Resizer)
	if !ok {
		return malleable.Distribute(p, r.Jobs, r.Asked, malleable.Declared), nil
	}
	sizes, err := resizer.Resize(ctx, r)
	if err != nil {
		return nil, err
	}
	return changes(r, sizes)
}

// changes converts sizes into changes.
func changes(r ResizeRequest, sizes []int) (all []malleable.Change, err error) {
	if len(sizes) != len(r.Jobs) {
		return nil, fmt.Errorf("%d sizes for %d jobs", len(sizes), len(r.Jobs))
	}
	for i, j := range r.Jobs {
		by := sizes[i] - j.Nodes
		switch {
		case by > 0:
			all = append(all, malleable.Change{Job: i, Request: malleable.Request{Kind: malleable.Grow, Nodes: by, Mandatory: r.Asked.Mandatory}, Accepted: by})
		case by < 0:
			all = append(all, malleable.Change{Job: i, Request: malleable.Request{Kind: malleable.Shrink, Nodes: -by, Mandatory: r.Asked.Mandatory}, Accepted: -by})
		}
	}
	return all, nil
}

// Resize asks a plugin which jobs grow or shrink, and checks the answer with malleable.Check. A
// plugin that is not a malleability policy returns ErrNoResize.
func (c *Client) Resize(ctx context.Context, parameters map[string]string, r ResizeRequest) ([]malleable.Change, error) {
	if c.Version() < withResize {
		return nil, ErrNoResize
	}
	m := encodeResize(r, parameters)
	if deadline, ok := ctx.Deadline(); ok {
		m.DeadlineMs = uint32(min(max(time.Until(deadline).Milliseconds(), 1), math.MaxUint32))
	}
	answer, err := c.rpc.Resize(ctx, m, grpc.MaxCallRecvMsgSize(maxAnswer+perStep*len(r.Jobs)), grpc.MaxCallSendMsgSize(math.MaxInt32))
	switch {
	case status.Code(err) == codes.Unimplemented:
		return nil, ErrNoResize
	case err != nil:
		return nil, c.failure(err)
	}
	return decodeResized(r, answer)
}

// decodeResized reads and checks an answer.
func decodeResized(r ResizeRequest, m *pb.ResizeResponse) ([]malleable.Change, error) {
	sizes := make([]int, len(m.JobNodes))
	for i, n := range m.JobNodes {
		sizes[i] = int(n)
	}
	all, err := changes(r, sizes)
	if err == nil {
		err = malleable.Check(r.Jobs, r.Asked, all)
	}
	if err != nil {
		return nil, fmt.Errorf("invalid sizes: %w", err)
	}
	return all, nil
}

var changeKinds = map[malleable.Kind]pb.Change{malleable.Grow: pb.Change_CHANGE_GROW, malleable.Shrink: pb.Change_CHANGE_SHRINK, malleable.Balance: pb.Change_CHANGE_BALANCE}

// maxPoints bounds the points of one job's speed-up.
const maxPoints = 64

func encodeResize(r ResizeRequest, parameters map[string]string) *pb.ResizeRequest {
	m := &pb.ResizeRequest{Parameters: parameters, Nodes: uint32(r.Nodes), Now: r.Now, Free: uint32(r.Free),
		Change: changeKinds[r.Asked.Kind], By: uint32(r.Asked.Nodes), Mandatory: r.Asked.Mandatory}
	for _, n := range r.Waiting {
		m.WaitingNodes = append(m.WaitingNodes, uint32(n))
	}
	for _, j := range r.Jobs {
		m.JobNodes, m.JobStart = append(m.JobNodes, uint32(j.Nodes)), append(m.JobStart, j.Start)
		m.JobMin, m.JobMax = append(m.JobMin, uint32(j.Min)), append(m.JobMax, uint32(j.Max))
		m.JobSizes = append(m.JobSizes, int32(j.Sizes))
		m.JobFixed = append(m.JobFixed, j.Held || j.Voluntary && r.Asked.Mandatory)
		points := sample(j)
		m.JobPoints = append(m.JobPoints, uint32(len(points)))
		for _, p := range points {
			m.PointNodes, m.PointSpeedup = append(m.PointNodes, uint32(p.Nodes)), append(m.PointSpeedup, p.Speedup)
		}
	}
	return m
}

// sample returns a job's speed-up on its current size and on its possible sizes: on all of them or,
// if they are many, on some at growing distances.
func sample(j malleable.Job) (t malleable.Table) {
	if j.Speedup == nil {
		return nil
	}
	factor := math.Pow(float64(j.Max)/float64(j.Min), 1.0/(maxPoints-2))
	for n := j.Least(); n > 0 && n <= j.Max && len(t) < maxPoints; {
		t = append(t, malleable.Point{Nodes: n, Speedup: j.Speedup.At(n)})
		next := n + 1
		if j.Max-j.Min >= maxPoints {
			next = max(next, int(float64(n)*factor))
		}
		n = j.Sizes.Ceil(next)
	}
	if most := j.Most(); len(t) > 0 && t[len(t)-1].Nodes < most {
		t[len(t)-1] = malleable.Point{Nodes: most, Speedup: j.Speedup.At(most)}
	}
	i, found := slices.BinarySearchFunc(t, j.Nodes, func(p malleable.Point, n int) int { return p.Nodes - n })
	if !found { // at its start, it may have an unusable size
		t = slices.Insert(t, i, malleable.Point{Nodes: j.Nodes, Speedup: j.Speedup.At(j.Nodes)})
	}
	return t
}

// decodeResize reads a request.
func decodeResize(m *pb.ResizeRequest) (ResizeRequest, error) {
	n := len(m.JobNodes)
	if len(m.JobMin) != n || len(m.JobMax) != n || len(m.JobStart) != n || len(m.JobSizes) != n || len(m.JobFixed) != n || len(m.JobPoints) != n {
		return ResizeRequest{}, errors.New("the columns of the jobs differ in length")
	}
	if len(m.PointNodes) != len(m.PointSpeedup) {
		return ResizeRequest{}, errors.New("the columns of the speed-ups differ in length")
	}
	r := ResizeRequest{Nodes: int(m.Nodes), Now: m.Now, Free: int(m.Free), Asked: malleable.Request{Kind: -1, Nodes: int(m.By), Mandatory: m.Mandatory}}
	for kind, sent := range changeKinds {
		if sent == m.Change {
			r.Asked.Kind = kind
		}
	}
	if r.Asked.Kind < 0 {
		return ResizeRequest{}, fmt.Errorf("unknown change %d", m.Change)
	}
	for _, n := range m.WaitingNodes {
		r.Waiting = append(r.Waiting, int(n))
	}
	points := 0
	for i := range n {
		j := malleable.Job{ID: strconv.Itoa(i + 1), Nodes: int(m.JobNodes[i]), Min: int(m.JobMin[i]), Max: int(m.JobMax[i]),
			Start: m.JobStart[i], Sizes: malleable.Sizes(m.JobSizes[i]), Held: m.JobFixed[i]}
		if j.Sizes < malleable.Pow2 || j.Max > profile.MaxNodes {
			return ResizeRequest{}, fmt.Errorf("job %s: unknown sizes %d, or too many nodes", j.ID, m.JobSizes[i])
		}
		if err := j.Validate(); err != nil {
			return ResizeRequest{}, err
		}
		count := int(m.JobPoints[i])
		if count > len(m.PointNodes)-points {
			return ResizeRequest{}, fmt.Errorf("there are fewer points than the jobs have: %d", len(m.PointNodes))
		}
		if count > 0 {
			t := make(malleable.Table, count)
			for k := range t {
				t[k] = malleable.Point{Nodes: int(m.PointNodes[points+k]), Speedup: m.PointSpeedup[points+k]}
			}
			if err := t.Validate(); err != nil {
				return ResizeRequest{}, fmt.Errorf("job %s: %w", j.ID, err)
			}
			j.Speedup = t
		}
		points += count
		r.Jobs = append(r.Jobs, j)
	}
	if points != len(m.PointNodes) {
		return ResizeRequest{}, fmt.Errorf("there are %d points more than the jobs have", len(m.PointNodes)-points)
	}
	return r, nil
}

// Resize answers a request in the plugin.
func (s *server) Resize(ctx context.Context, m *pb.ResizeRequest) (_ *pb.ResizeResponse, err error) {
	defer rescue(&err)
	if s.definition.NewPolicy == nil {
		return nil, status.Error(codes.Unimplemented, ErrNoResize.Error())
	}
	p, err := get(s, &s.policies, m.Parameters, s.definition.NewPolicy)
	if err != nil {
		return nil, err
	}
	r, err := decodeResize(m)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if m.DeadlineMs > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(m.DeadlineMs)*time.Millisecond)
		defer cancel()
	}
	changes, err := Resize(ctx, p, r)
	if err != nil {
		return nil, err
	}
	answer := &pb.ResizeResponse{JobNodes: make([]uint32, len(r.Jobs))}
	for i, j := range r.Jobs {
		answer.JobNodes[i] = uint32(j.Nodes)
	}
	for _, c := range changes {
		if c.Job < 0 || c.Job >= len(r.Jobs) {
			return nil, fmt.Errorf("it changes job %d of %d", c.Job+1, len(r.Jobs))
		}
		answer.JobNodes[c.Job] = uint32(max(c.Size(r.Jobs[c.Job]), 0))
	}
	return answer, nil
}
