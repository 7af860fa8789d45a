package strategy

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-plugin"

	pb "github.com/evoslurm/evoslurm/plugins/strategypb"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestOlderHost checks that a plugin of this version works with a host that speaks only versions 1 and 2.
func TestOlderHost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "awake")
	if out, err := exec.Command("go", "build", "-o", path, "../cmd/awake").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	host := plugin.NewClient(&plugin.ClientConfig{HandshakeConfig: handshake, AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC}, AutoMTLS: true,
		Cmd: exec.Command(path), Logger: hostLog(), VersionedPlugins: map[int]plugin.PluginSet{planOnly: {service: &grpcPlugin{}}, withResize: {service: &grpcPlugin{}}}})
	defer host.Kill()
	protocol, err := host.Client()
	must.OK(t, err)
	rpc, err := protocol.Dispense(service)
	must.OK(t, err)
	c := &Client{client: host, rpc: rpc.(pb.StrategyClient)}
	d, err := c.Describe(t.Context(), nil)
	must.OK(t, err)
	if c.Version() != withResize || d.NodeSets {
		t.Errorf("version %d, %+v", c.Version(), d)
	}
}
