package main

import (
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/api/reach"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
)

// TestObservingByConfiguration checks that the configuration says whether jobs are driven while no sidecar answers.
func TestObservingByConfiguration(t *testing.T) {
	site := config.Default()
	site.API = "unix://" + t.TempDir() + "/none.sock"
	client, err := reach.Client(site)
	if err != nil {
		t.Fatal(err)
	}
	if err := observing(site, word(t.Context(), client)()); err != nil {
		t.Errorf("mode act: %v", err)
	}
	site.Mode = config.ModeObserve
	if err := observing(site, word(t.Context(), nil)()); err == nil || !strings.Contains(err.Error(), "--rigid") {
		t.Errorf("mode observe: %v", err)
	}
}
