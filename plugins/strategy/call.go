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

	pb "github.com/evoslurm/evoslurm/plugins/strategypb"
)

// Size is how much a request is about, pinned jobs included.
type Size struct{ Jobs, Steps int }

// Size is the request's.
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

// Call is a call of Plan: all that one cycle asks a plugin. It is for one
// goroutine. After an error it is of no use any more.
type Call struct {
	client      *Client
	parameters  map[string]string
	description Description
	stream      grpc.BidiStreamingClient[pb.PlanRequest, pb.PlanResponse]
	cancel      context.CancelFunc
}

// Call begins a call; Close ends it. d is what Describe answered for the same
// parameters; no request is to be larger than size, which bounds the answers. The
// call ends with ctx.
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

// Plan asks for a plan. The answer has the right shape, and pinned jobs are as
// they were; Check the rest. The context's deadline is the plugin's, too.
func (c *Call) Plan(ctx context.Context, r Request) (Answer, error) {
	defer context.AfterFunc(ctx, c.cancel)()
	left := time.Duration(1<<32-1) * time.Millisecond
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	err := c.stream.Send(encodeRequest(r, c.parameters, left))
	var answer *pb.PlanResponse
	if err == nil || errors.Is(err, io.EOF) { // what went wrong is in what is received
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

// Close ends the call. The plugin ends it in its own time, but soon.
func (c *Call) Close() {
	_ = c.stream.CloseSend() // else it is broken, and cancelled anyway
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
