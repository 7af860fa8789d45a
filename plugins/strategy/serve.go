package strategy

import (
	"context"
	"fmt"
	"math"
	"os"
	"sync"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	pb "github.com/evoslurm/evoslurm/plugins/strategypb"
)

// Protocol versions, as in the contract.
const (
	planOnly   = 1
	withResize = 2
	withSets   = 3
)

// handshake shows a plugin that Evoslurm started it, not a user by hand; it is no secret.
var handshake = plugin.HandshakeConfig{ProtocolVersion: planOnly, MagicCookieKey: "EVOSLURM_STRATEGY", MagicCookieValue: "evoslurm.strategy"}

const service = "strategy"

// Serve makes the process a plugin that serves the strategy; it returns when the process should
// end. Started by hand, the process prints what it is and exits with status 1. The strategy's
// standard output is discarded; its standard error goes to the sidecar's log.
func Serve(d Definition) {
	serve(d, withSets)
}

func serve(d Definition, newest int) {
	if err := d.Validate(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if os.Getenv(handshake.MagicCookieKey) != handshake.MagicCookieValue {
		fmt.Fprintf(os.Stderr, "%s %s is a strategy of Evoslurm: put it into the sidecar's folder of strategies,\nthen: evosctl strategy reload; evosctl strategy use %s\n\n%s\n", d.Name, d.Version, d.Name, d.Help)
		os.Exit(1)
	}
	versions := map[int]plugin.PluginSet{}
	for v := planOnly; v <= newest; v++ {
		versions[v] = plugin.PluginSet{service: &grpcPlugin{server: &server{definition: d}}}
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  handshake,
		VersionedPlugins: versions,
		Logger:           pluginLog(),
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options, grpc.MaxRecvMsgSize(math.MaxInt32))...)
		},
	})
}

// grpcPlugin implements both ends of the connection.
type grpcPlugin struct {
	plugin.NetRPCUnsupportedPlugin
	server pb.StrategyServer
}

func (p *grpcPlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	pb.RegisterStrategyServer(s, p.server)
	return nil
}

func (*grpcPlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return pb.NewStrategyClient(c), nil
}

// made caches strategies by their parameters.
type made[T any] struct {
	mu  sync.Mutex
	all map[string]T
}

// get makes a strategy if there is none with these parameters yet. If there are many, it drops old
// ones.
func (m *made[T]) get(key string, make_ func() (T, error)) (T, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t, ok := m.all[key]; ok {
		return t, nil
	}
	t, err := make_()
	if err != nil {
		return t, err
	}
	if m.all == nil || len(m.all) >= 16 {
		m.all = map[string]T{}
	}
	m.all[key] = t
	return t, nil
}
