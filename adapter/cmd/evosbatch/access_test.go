package main

import (
	"context"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/api/reach"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
)

// doorkeeper is a sidecar whose operators deny the account bad, and would compare partitions.
type doorkeeper struct{ api.Backend }

func (doorkeeper) Access(_ context.Context, _ uint32, q api.AccessQuery) (api.Access, error) {
	return api.Access{Allowed: q.Account != "bad", Reason: "not bad", Unchecked: []string{"partitions"}}, nil
}

// TestMayEvolve: what operators set at run time counts in place of the configuration, while the sidecar answers.
func TestMayEvolve(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	socket := filepath.Join(t.TempDir(), "s")
	server := &api.Server{Backend: doorkeeper{}, Log: logrus.New(), Socket: socket}
	if err := server.Listen(); err != nil {
		t.Fatal(err)
	}
	go server.Serve(ctx)
	site := config.Default()
	site.Deny.Accounts, site.Allow.QOS = []string{"other"}, []string{"high"}
	for _, c := range []struct {
		api, account string
		unchecked    []string
		fails        string
	}{
		{socket, "good", []string{"partitions"}, ""},
		{socket, "bad", nil, "not bad"},
		{socket, "other", []string{"partitions"}, ""},
		{socket + "-away", "good", []string{"qos"}, ""},
		{socket + "-away", "other", []string{"qos"}, "denies evolving jobs to account other"},
	} {
		site.API = "unix://" + c.api
		client, err := reach.Client(site)
		if err != nil {
			t.Fatal(err)
		}
		unchecked, err := mayEvolve(ctx, site, client, config.Names{Accounts: []string{c.account}})
		if !reflect.DeepEqual(unchecked, c.unchecked) || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s at %s: %v, %v; want %v, %q", c.account, c.api, unchecked, err, c.unchecked, c.fails)
		}
	}
}
