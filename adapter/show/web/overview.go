package web

import (
	"context"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// Overseer is a Reader that shows operators what limits promises, and what they cost.
type Overseer interface {
	Budget(ctx context.Context) (api.Budget, error)
	Settings(ctx context.Context) (api.Settings, error)
}

// overview is an administrator's page.
type overview struct {
	Now    time.Time
	Budget api.Budget
	Set    []api.Setting // that differ from the configuration
	Doubts []string
}

// mayRun reports whether a reader may be an operator. A client of the API does not know, and the sidecar decides.
func mayRun(r Reader) bool {
	_, sees := r.(Overseer)
	o, knows := r.(interface{ Operates() bool })
	return sees && (!knows || o.Operates())
}

func (p *Page) overview(ctx context.Context, v visit) (any, error) {
	o, ok := v.Reader.(Overseer)
	if !ok {
		return nil, api.Errorf(api.ErrNotFound, "there is no overview here")
	}
	settings, err := o.Settings(ctx) // refuses all but operators
	if err != nil {
		return nil, err
	}
	a := &overview{Now: v.now, Doubts: settings.Warnings}
	a.Set = slices.DeleteFunc(settings.Settings, func(s api.Setting) bool { return s.Value == s.Configured })
	if a.Budget, err = o.Budget(ctx); err != nil {
		return nil, err
	}
	a.Budget.Use = a.Budget.Use[:min(len(a.Budget.Use), mostListed)]
	return a, nil
}
