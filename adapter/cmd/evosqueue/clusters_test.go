package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/show/display"
)

// TestTogether: clusters are shown in their order, whichever answers first, each below its name. One that is away keeps no other
// from being shown.
func TestTogether(t *testing.T) {
	o := options{}
	second := make(chan struct{})
	says := func(text string, after, before chan struct{}) viewer {
		return func(context.Context, time.Time, display.Terminal) (string, error) {
			if after != nil {
				<-after
			}
			if before != nil {
				close(before)
			}
			return text, nil
		}
	}
	away := func(context.Context, time.Time, display.Terminal) (string, error) { return "", errors.New("away") }
	parts := []part{{"a", says("1\n", second, nil)}, {"b", away}, {"c", says("3\n", nil, second)}}
	text, err := o.together(parts)(t.Context(), time.Now(), display.Terminal{})
	if want := "CLUSTER: a\n1\n\nCLUSTER: c\n3\n"; text != want || err == nil || err.Error() != "cluster b: away" {
		t.Errorf("%q, %v, want %q and that b is away", text, err, want)
	}
	o.noHeader, second = true, make(chan struct{})
	parts = []part{{"a", says("1\n", second, nil)}, {"c", says("3\n", nil, second)}}
	if text, err := o.together(parts)(t.Context(), time.Now(), display.Terminal{}); text != "1\n3\n" || err != nil {
		t.Errorf("without headings: %q, %v", text, err)
	}
}

// TestClusters: --clusters asks each cluster's sidecar; --local and no name ask the configured one.
func TestClusters(t *testing.T) {
	t.Setenv("SLURM_CLUSTER_NAME", "own")
	site := config.Default()
	site.API, site.Clusters.Dir = "unix://"+t.TempDir()+"/own", t.TempDir()
	if err := os.WriteFile(filepath.Join(site.Clusters.Dir, "b.yaml"), []byte("api: unix://"+t.TempDir()+"/b"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nobody listens: the errors say who was asked
	for _, c := range []struct {
		o    options
		want []string
	}{
		{options{}, []string{"/own does not answer"}},
		{options{asSqueue: asSqueue{clusters: []string{""}}}, []string{"/own does not answer"}},
		{options{asSqueue: asSqueue{clusters: []string{"b"}, local: true}}, []string{"/own does not answer"}},
		{options{asSqueue: asSqueue{clusters: []string{"b"}}}, []string{"cluster b: ", "/b does not answer"}},
		{options{asSqueue: asSqueue{clusters: []string{"all"}}}, []string{"cluster own: ", "/own does not answer", "cluster b: ", "/b does not answer"}},
		{options{asSqueue: asSqueue{clusters: []string{"x"}}}, []string{`no cluster "x" is known here: there are own, b`}},
	} {
		show, err := c.o.shown(t.Context(), site)
		if err == nil {
			_, err = show(ctx, time.Now(), display.Terminal{})
		}
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q, local %v: %v, want %q", c.o.clusters, c.o.local, err, want)
			}
		}
		if asked := strings.Count(strings.Join(c.want, ""), "does not answer"); err != nil && strings.Count(err.Error(), "Evoslurm's sidecar at") != asked {
			t.Errorf("%q: %v, want %d sidecars asked", c.o.clusters, err, asked)
		}
	}
}
