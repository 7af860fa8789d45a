package api

import (
	"context"
	"strings"
	"time"
)

// strategyTimeout bounds an action on a strategy: a plugin may have to start.
const strategyTimeout = 40 * time.Second

// changeStrategy uses or tries the strategy named in the path, or reloads.
func (d *desk) changeStrategy(ctx context.Context, r request) (any, error) {
	if !r.caller.known {
		return nil, Errorf(ErrDenied, "this needs a MUNGE credential")
	}
	kind := strategyKind(r)
	if !d.rights.trusted(r.caller) {
		what := map[StrategyKind]string{Planning: "strategies", Resizing: "malleability policies"}[kind]
		return nil, Errorf(ErrForbidden, "%s are for operators (see operators in the configuration)", what)
	}
	var req StrategyRequest
	if err := readOne(r, &req); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, strategyTimeout)
	defer cancel()
	name := r.PathValue("name")
	switch {
	case name == "" && len(req.Parameters) > 0:
		return nil, Errorf(ErrInvalid, "the request's body: a reload takes no parameters")
	case name == "":
		return d.backend.ReloadStrategies(ctx, userName(r.caller.uid))
	case strings.HasSuffix(r.URL.Path, "/try"):
		return d.backend.TryStrategy(ctx, name, req)
	}
	return d.backend.UseStrategy(ctx, kind, name, req, userName(r.caller.uid))
}

func (d *desk) cancelHolds(ctx context.Context, r request) (any, error) {
	id, err := r.id()
	if err != nil {
		return nil, err
	}
	if !r.caller.known {
		return nil, Errorf(ErrDenied, "this needs a MUNGE credential")
	}
	if !d.rights.trusted(r.caller) {
		return nil, Errorf(ErrForbidden, "holds are cancelled by operators (see operators in the configuration)")
	}
	var req CancelHolds
	if err := readOne(r, &req); err != nil {
		return nil, err
	}
	req.By = userName(r.caller.uid)
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	return d.backend.CancelHolds(ctx, id, req)
}
