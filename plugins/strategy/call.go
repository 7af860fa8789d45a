package strategy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evoslurm/evoslurm/planner"
	pb "github.com/evoslurm/evoslurm/plugins/strategypb"
)

// Size is the size of a request, pinned jobs included.
type Size struct{ Jobs, Steps int }

// Size returns the request's size.
func (r Request) Size() Size {
	s := Size{Jobs: len(r.Pinned) + len(r.Jobs)}
	for _, p := range r.Pinned {
		s.Steps += len(p.Steps)
	}
	for _, j := range r.Jobs {
		most := len(j.Profile)
		for _, a := range j.Alternatives {
			most = max(most, len(a))
		}
		s.Steps += most
	}
	return s
}

// Call is a call of Plan: everything that one cycle asks a plugin. Only one goroutine may use it.
// After an error, it is useless.
type Call struct {
	client      *Client
	parameters  map[string]string
	description Description
	stream      grpc.BidiStreamingClient[pb.PlanRequest, pb.PlanResponse]
	cancel      context.CancelFunc
}

// Call begins a call; Close ends it. d is what Describe returned for the same parameters. No
// request may be larger than size, which bounds the answers. The call ends with ctx.
func (c *Client) Call(ctx context.Context, parameters map[string]string, d Description, size Size) (*Call, error) {
	ctx, cancel := context.WithCancel(ctx)
	most := maxAnswer + perStep*size.Steps + perJob*size.Jobs
	stream, err := c.rpc.Plan(ctx, grpc.MaxCallRecvMsgSize(most), grpc.MaxCallSendMsgSize(1<<31-1))
	if err != nil {
		cancel()
		return nil, c.failure(err)
	}
	return &Call{client: c, parameters: maps.Clone(parameters), description: d, stream: stream, cancel: cancel}, nil
}

// Plan asks for a plan. The answer has the right shape, and pinned jobs are unchanged; run Check
// for the rest. The plugin gets the context's deadline.
func (c *Call) Plan(ctx context.Context, r Request) (Answer, error) {
	defer context.AfterFunc(ctx, c.cancel)()
	left := time.Duration(1<<32-1) * time.Millisecond
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	if !c.description.NodeSets {
		r.Sets = nil
	}
	err := planner.CheckNodeSets(r.Sets, r.Nodes)
	if err != nil {
		return Answer{}, err
	}
	err = c.stream.Send(encodeRequest(r, c.parameters, left))
	var answer *pb.PlanResponse
	if err == nil || errors.Is(err, io.EOF) { // the received error says what went wrong
		answer, err = c.stream.Recv()
	}
	switch {
	case err == nil:
		return decodeAnswer(r, c.description.Rigid, answer)
	case errors.Is(err, io.EOF):
		return Answer{}, errors.New("it ended the call without an answer")
	case status.Code(err) == codes.Canceled && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return Answer{}, fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)
	}
	return Answer{}, c.client.failure(err)
}

// closing is how long a plugin may take to end a call.
const closing = time.Second

// Close ends the call. The plugin may take a short time to end it.
func (c *Call) Close() {
	_ = c.stream.CloseSend() // otherwise it is broken, and cancelled anyway
	late := time.AfterFunc(closing, c.cancel)
	go func() {
		_, _ = c.stream.Recv() // its end
		late.Stop()
		c.cancel()
	}()
}

// Plan asks for one plan in a call of its own; see Call.
func (c *Client) Plan(ctx context.Context, parameters map[string]string, d Description, r Request) (Answer, error) {
	call, err := c.Call(ctx, parameters, d, r.Size())
	if err != nil {
		return Answer{}, err
	}
	defer call.Close()
	return call.Plan(ctx, r)
}
