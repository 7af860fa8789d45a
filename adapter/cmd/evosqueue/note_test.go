package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/show/display"
)

// faulted is a sidecar whose strategy fails.
type faulted struct{ fixed }

func (faulted) Status(context.Context) (api.Status, error) {
	return api.Status{Strategy: "mine", StrategyNote: "noX plans in its place"}, nil
}

// observing is a sidecar that changes nothing.
type observing struct{ fixed }

func (observing) Status(context.Context) (api.Status, error) { return api.Status{Mode: "observe"}, nil }

func TestStrategyNote(t *testing.T) {
	for _, o := range []options{{}, {long: true}} {
		text, err := o.view(context.Background(), faulted{}, time.Now(), display.Terminal{})
		if err != nil || !strings.HasSuffix(text, "\nStrategy mine: noX plans in its place\n") {
			t.Errorf("%+v: %q, %v", o, text, err)
		}
	}
	if text, err := new(options).view(context.Background(), observing{}, time.Now(), display.Terminal{}); err != nil || !strings.Contains(text, "\nObserving: ") {
		t.Errorf("%q, %v", text, err)
	}
	o := options{noHeader: true}
	if text, err := o.view(context.Background(), faulted{}, time.Now(), display.Terminal{}); err != nil || strings.Contains(text, "mine") {
		t.Errorf("for scripts: %q, %v", text, err)
	}
}
