package strategy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evoslurm/evoslurm/planner"
	pb "github.com/evoslurm/evoslurm/plugins/strategypb"
)

// Resizer is a strategy that also decides on the sizes of malleable jobs.
type Resizer interface {
	Resize(ctx context.Context, r ResizeRequest) ([]int, error)
}

// ResizeRequest is the malleable jobs and what else uses the cluster.
type ResizeRequest struct {
	Nodes int
	Now   int64
	Busy  []planner.Busy // without what the jobs have
	Jobs  []Malleable
}

// Malleable is a running malleable job.
type Malleable struct {
	Nodes    int // allocated
	Min, Max int
	Start    int64 // second
}

// server is the plugin's side.
type server struct {
	pb.UnimplementedStrategyServer
	definition Definition
	strategies made[planner.Strategy]
}

func newServer(d Definition) *server { return &server{definition: d} }

// strategy is the one for these parameters.
func (s *server) strategy(given map[string]string) (planner.Strategy, error) {
	values, err := s.definition.Values(given)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	key, err := json.Marshal(values) // in order of the names
	if err != nil {
		return nil, err
	}
	return s.strategies.get(string(key), func() (planner.Strategy, error) { return s.definition.New(values) })
}

func (s *server) Describe(_ context.Context, m *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	d := encodeDefinition(s.definition)
	st, err := s.strategy(m.Parameters)
	if err != nil {
		return nil, err
	}
	d.ExpandLimit, d.Rigid = float64(ownLimit(st)), planner.IsRigid(st)
	return d, nil
}

// ownLimit is the strategy's expand limit, 0 if it does not tell.
func ownLimit(s planner.Strategy) planner.ExpandLimit {
	if _, ok := s.(interface{ ExpandLimit() planner.ExpandLimit }); ok {
		return planner.ExpandLimitOf(s)
	}
	return 0
}

// Plan answers request by request, until the caller has no more.
func (s *server) Plan(call grpc.BidiStreamingServer[pb.PlanRequest, pb.PlanResponse]) error {
	for {
		m, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		answer, err := s.plan(call.Context(), m)
		if err != nil {
			return err
		}
		if err := call.Send(answer); err != nil {
			return err
		}
	}
}

func (s *server) plan(ctx context.Context, m *pb.PlanRequest) (_ *pb.PlanResponse, err error) {
	defer rescue(&err)
	st, err := s.strategy(m.Parameters)
	if err != nil {
		return nil, err
	}
	r, pinned, err := decodeRequest(m)
	if err == nil {
		err = r.Validate()
	}
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if m.DeadlineMs > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(m.DeadlineMs)*time.Millisecond)
		defer cancel()
	}
	a, err := Run(ctx, st, r)
	if err != nil {
		return nil, err
	}
	return encodeAnswer(r, pinned, planner.IsRigid(st), a), nil
}

func (s *server) Resize(ctx context.Context, m *pb.ResizeRequest) (_ *pb.ResizeResponse, err error) {
	defer rescue(&err)
	st, err := s.strategy(m.Parameters)
	if err != nil {
		return nil, err
	}
	resizer, ok := st.(Resizer)
	if !ok {
		return nil, status.Error(codes.Unimplemented, "this strategy does not resize jobs")
	}
	n := len(m.JobNodes)
	if len(m.BusyStart) != len(m.BusyDuration) || len(m.BusyStart) != len(m.BusyNodes) || len(m.JobMin) != n || len(m.JobMax) != n || len(m.JobStart) != n {
		return nil, status.Error(codes.InvalidArgument, "columns differ in length")
	}
	r := ResizeRequest{Nodes: int(m.Nodes), Now: m.Now}
	for i := range m.BusyStart {
		r.Busy = append(r.Busy, planner.Busy{Start: m.BusyStart[i], Duration: m.BusyDuration[i], Nodes: int(m.BusyNodes[i])})
	}
	for i := range n {
		r.Jobs = append(r.Jobs, Malleable{Nodes: int(m.JobNodes[i]), Min: int(m.JobMin[i]), Max: int(m.JobMax[i]), Start: m.JobStart[i]})
	}
	sizes, err := resizer.Resize(ctx, r)
	if err != nil {
		return nil, err
	}
	answer := &pb.ResizeResponse{JobNodes: make([]uint32, len(sizes))}
	for i, nodes := range sizes {
		answer.JobNodes[i] = uint32(nodes)
	}
	return answer, nil
}

// rescue makes a strategy's panic an error, so that its author reads it in the
// sidecar's log.
func rescue(err *error) {
	if r := recover(); r != nil {
		*err = status.Error(codes.Internal, fmt.Sprintf("panic: %v\n%s", r, debug.Stack()))
	}
}
