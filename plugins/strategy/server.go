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
	"github.com/evoslurm/evoslurm/planner/malleable"
	pb "github.com/evoslurm/evoslurm/plugins/strategypb"
)

// server is the plugin's side.
type server struct {
	pb.UnimplementedStrategyServer
	definition Definition
	strategies made[planner.Strategy]
	policies   made[malleable.Policy]
}

// strategy returns the strategy for these parameters.
func (s *server) strategy(given map[string]string) (planner.Strategy, error) {
	if s.definition.New == nil {
		return nil, status.Error(codes.Unimplemented, ErrNoPlan.Error())
	}
	return get(s, &s.strategies, given, s.definition.New)
}

// get returns what new makes with these parameters.
func get[T any](s *server, all *made[T], given map[string]string, make_ func(Values) (T, error)) (t T, err error) {
	values, err := s.definition.Values(given)
	if err != nil {
		return t, status.Error(codes.InvalidArgument, err.Error())
	}
	key, err := json.Marshal(values) // in order of the names
	if err != nil {
		return t, err
	}
	return all.get(string(key), func() (T, error) { return make_(values) })
}

func (s *server) Describe(_ context.Context, m *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	d := encodeDefinition(s.definition)
	d.NoPlan, d.Resizes = s.definition.New == nil, s.definition.NewPolicy != nil
	if d.Resizes {
		if _, err := get(s, &s.policies, m.Parameters, s.definition.NewPolicy); err != nil || d.NoPlan {
			return d, err
		}
	}
	st, err := s.strategy(m.Parameters)
	if err != nil {
		return nil, err
	}
	d.ExpandLimit, d.Rigid, d.Moldable = float64(ownLimit(st)), planner.IsRigid(st), planner.KnowsAlternatives(st)
	d.NodeSets = plansBySets(st)
	return d, nil
}

// ownLimit returns the strategy's expand limit, or 0 if it does not say.
func ownLimit(s planner.Strategy) planner.ExpandLimit {
	if _, ok := s.(interface{ ExpandLimit() planner.ExpandLimit }); ok {
		return planner.ExpandLimitOf(s)
	}
	return 0
}

// Plan answers request by request until the caller has no more.
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

// rescue turns a strategy's panic into an error, so that its author finds it in the sidecar's log.
func rescue(err *error) {
	if r := recover(); r != nil {
		*err = status.Error(codes.Internal, fmt.Sprintf("panic: %v\n%s", r, debug.Stack()))
	}
}
