package drive

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// network is a Slurm whose topology cannot be read.
type network struct {
	Slurm
	plugin string
	err    error
}

func (n network) Config(context.Context) (slurmctl.Config, error) {
	return slurmctl.Config{Values: map[string]string{"TopologyPlugin": n.plugin}}, nil
}
func (n network) Topology(context.Context) (slurmctl.Topology, error) {
	return slurmctl.Topology{}, n.err
}
func (network) Nodes(context.Context) ([]slurmctl.Node, []slurmctl.Partition, error) {
	return nil, nil, nil
}
func (network) Reservations(context.Context) ([]slurmctl.Reservation, error) { return nil, nil }
func (network) Jobs(context.Context) ([]slurmctl.Job, error)                 { return nil, nil }
func (network) Calls() uint64                                                { return 0 }
func (network) WantsAccount() bool                                           { return false }

// TestPollTopology checks that a topology that is not understood does not end a poll, unlike a silent slurmctld.
func TestPollTopology(t *testing.T) {
	odd := errors.New("topology: line 1: it is there twice")
	for _, c := range []struct {
		network
		fails, unread error
	}{
		{network{nil, "topology/tree", odd}, nil, odd},
		{network{nil, "topology/tree", slurmctl.ErrUnreachable}, slurmctl.ErrUnreachable, slurmctl.ErrUnreachable},
		{network{nil, "topology/default", odd}, nil, nil},
	} {
		d := New(c.network, time.Now)
		if o := d.Poll(t.Context(), msg.Poll{Config: true}); o.Err != c.fails || o.NoTopology != c.unread {
			t.Errorf("%+v: %v, %v", c.network, o.Err, o.NoTopology)
		}
	}
}

// allied is a Slurm that may be in a federation.
type allied struct {
	network
	storage, name string
	failure       error
}

func (a allied) Config(context.Context) (slurmctl.Config, error) {
	return slurmctl.Config{Values: map[string]string{"AccountingStorageType": a.storage}}, nil
}
func (a allied) Federation(context.Context) (string, error) { return a.name, a.failure }

// TestPollFederation checks that a cluster in a federation is refused, by the federation's name.
func TestPollFederation(t *testing.T) {
	for _, c := range []struct {
		allied
		want string
	}{
		{allied{storage: "accounting_storage/slurmdbd"}, ""},
		{allied{storage: "accounting_storage/slurmdbd", name: "north"}, slurmctl.Federated("north").Error()},
		{allied{storage: "(null)", name: "north"}, ""}, // not asked
		{allied{storage: "accounting_storage/slurmdbd", failure: slurmctl.ErrUnreachable}, slurmctl.ErrUnreachable.Error()},
		{allied{storage: "accounting_storage/slurmdbd", failure: slurmctl.ErrUnspecified}, ""}, // perhaps it does not know the question
	} {
		got := ""
		if o := New(c.allied, time.Now).Poll(t.Context(), msg.Poll{Config: true}); o.Err != nil {
			got = o.Err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.allied, got, c.want)
		}
	}
}
