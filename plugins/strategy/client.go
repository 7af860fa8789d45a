package strategy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evoslurm/evoslurm/planner"
	pb "github.com/evoslurm/evoslurm/plugins/strategypb"
)

// Launch says how to start a plugin's process: Command, or what Runner makes.
type Launch struct {
	Command *exec.Cmd
	Runner  Runner

	Group   string        // group that may use the socket's folder, with Runner; "" for the process's own
	Timeout time.Duration // for the start; 0 for 10 s
}

// Runner returns what runs a plugin. The plugin's sockets must be in the folder.
type Runner func(cmd *exec.Cmd, socketDir string) (runner.Runner, error)

// Client is a client of one plugin process.
type Client struct {
	client  *plugin.Client
	rpc     pb.StrategyClient
	sockets string // the folder of its sockets
}

// Description holds what a plugin says about itself with the given parameters.
type Description struct {
	Definition                      // New is nil
	ExpandLimit planner.ExpandLimit // of jobs without their own; 0 if it does not say
	Rigid       bool                // it plans every job at its peak for its whole duration
	Plans       bool                // it is a strategy
	Resizes     bool                // it is a malleability policy
	Moldable    bool                // it knows alternatives: planner.KnowsAlternatives
	NodeSets    bool                // it plans by Request.Sets
}

// ErrNoPlan is the answer of a plugin that is only a malleability policy.
var ErrNoPlan = errors.New("it is a malleability policy and does not plan")

// ErrBroken ends a call when the plugin is gone.
var ErrBroken = errors.New("the connection broke")

// Bounds on a plugin's answer, in bytes.
const (
	maxDescription = 1 << 20
	maxAnswer      = 64 << 10 // plus, for every step and job:
	perStep        = 12       // ten for a duration, and some reserve
	perJob         = 300
)

// Start starts a plugin and connects to it. On an error, it leaves nothing running.
func Start(l Launch) (*Client, error) {
	if l.Timeout == 0 {
		l.Timeout = 10 * time.Second
	}
	config := &plugin.ClientConfig{
		HandshakeConfig:  handshake,
		VersionedPlugins: map[int]plugin.PluginSet{planOnly: {service: &grpcPlugin{}}, withResize: {service: &grpcPlugin{}}, withSets: {service: &grpcPlugin{}}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         true,
		SkipHostEnv:      true,
		StartTimeout:     l.Timeout,
		Logger:           hostLog(),
		UnixSocketConfig: &plugin.UnixSocketConfig{Group: l.Group},
		GRPCDialOptions:  []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxDescription))},
	}
	c := &Client{}
	if l.Runner != nil {
		config.RunnerFunc = runnerFunc(func(cmd *exec.Cmd, socketDir string) (runner.Runner, error) {
			c.sockets = socketDir
			return l.Runner(cmd, socketDir)
		})
	} else {
		var err error
		if c.sockets, err = os.MkdirTemp("", "strategy-"); err != nil {
			return nil, err
		}
		config.Cmd = l.Command
		config.Cmd.Env = append(config.Cmd.Env, plugin.EnvUnixSocketDir+"="+c.sockets)
	}
	c.client = plugin.NewClient(config)
	protocol, err := c.client.Client()
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("start: %s", Clean(err.Error(), 500))
	}
	rpc, err := protocol.Dispense(service)
	if err != nil {
		c.Close()
		return nil, err
	}
	c.rpc = rpc.(pb.StrategyClient)
	return c, nil
}

// Version returns the negotiated protocol version.
func (c *Client) Version() int { return c.client.NegotiatedVersion() }

// Exited reports whether the process has ended.
func (c *Client) Exited() bool { return c.client.Exited() }

// Close ends the process. If the process may hang, kill it first.
func (c *Client) Close() {
	c.client.Kill()
	if c.sockets != "" { // left by a process that never started, or had no time to remove it
		_ = os.RemoveAll(c.sockets)
	}
}

// Describe asks the plugin for its description with these parameters.
func (c *Client) Describe(ctx context.Context, parameters map[string]string) (Description, error) {
	m, err := c.rpc.Describe(ctx, &pb.DescribeRequest{Parameters: parameters})
	if err != nil {
		return Description{}, c.failure(err)
	}
	d, err := decodeDescription(m)
	d.Resizes, d.NodeSets = d.Resizes && c.Version() >= withResize, d.NodeSets && c.Version() >= withSets
	return d, err
}

// failure returns why a call failed.
func (c *Client) failure(err error) error {
	s := status.Convert(err)
	text := Clean(s.Message(), 1000)
	switch s.Code() {
	case codes.DeadlineExceeded:
		return fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)
	case codes.Canceled:
		return context.Canceled
	case codes.Unavailable:
		return fmt.Errorf("%w: %s", ErrBroken, text)
	case codes.ResourceExhausted:
		return errors.New("the answer is too large: " + text)
	case codes.Unknown, codes.Internal, codes.InvalidArgument:
		return errors.New(text)
	}
	return errors.New(s.Code().String() + ": " + text)
}
