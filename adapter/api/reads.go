package api

import (
	"context"
	"errors"
	"time"
)

// backendTimeout bounds a request that does not wait for a job.
const backendTimeout = 10 * time.Second

// desk answers requests of known callers.
type desk struct {
	backend Backend
	rights  *rights
	shares  *shares
	wait    time.Duration   // longest wait of a request
	ending  context.Context // done: no request waits any more

	ship func(context.Context, ShipRequest) (Shipment, error)
	acts func() error
}

func (d *desk) status(ctx context.Context, r request) (any, error) {
	if err := d.rights.mayAsk(r.caller); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	is, err := d.backend.Status(ctx)
	is.Now, is.Operator = time.Now().Add(time.Duration(is.ClockLead*float64(time.Second))), d.rights.trusted(r.caller)
	discreet(&is, d.rights.discretion(ctx, r.caller))
	is.StrategyNote, is.PolicyNote = d.rights.noteFor(r.caller, is.StrategyNote), d.rights.noteFor(r.caller, is.PolicyNote)
	if sight := d.rights.sight(ctx, r.caller); sight != nil && err == nil {
		is.Nodes, err = d.rights.nodesShown(ctx, sight)
	}
	return is, err
}

func (d *desk) jobs(ctx context.Context, r request) (any, error) {
	if err := d.rights.mayAsk(r.caller); err != nil {
		return nil, err
	}
	all, err := r.flag("all")
	if err != nil {
		return nil, err
	}
	plans, err := r.flag("plan")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	jobs, err := d.backend.Jobs(ctx, all)
	if err != nil {
		return nil, err
	}
	visible := make([]Job, 0, len(jobs))
	everything, sees, with := d.rights.seesAll(ctx, r.caller), d.rights.seer(ctx, r.caller), d.rights.discretion(ctx, r.caller)
	for _, j := range jobs {
		if everything || j.UID == r.caller.uid || j.Account != "" && sees(j.Account) {
			discreet(&j, with)
			visible = append(visible, j)
		}
	}
	return shorten(visible, plans), nil
}

func (d *desk) job(ctx context.Context, r request) (any, error) {
	j, err := readJob(ctx, d, r, d.backend.Job)
	if id, e := r.id(); err != nil && e == nil {
		return d.past(ctx, r.caller, id, err)
	}
	return j, err
}

func (d *desk) allocation(ctx context.Context, r request) (any, error) {
	return readJob(ctx, d, r, d.backend.Allocation)
}

// readJob answers a request about one job with the result of read.
func readJob[T any](ctx context.Context, d *desk, r request, read func(context.Context, uint32) (T, error)) (any, error) {
	id, err := r.id()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	if err := d.rights.mayRead(ctx, r.caller, id); err != nil {
		return nil, err
	}
	answer, err := read(ctx, id)
	with := d.rights.discretion(ctx, r.caller)
	discreet(&answer, with)
	return answer, discreetError(err, with)
}

// cluster returns what the caller may read: of other users' jobs and holds by the rules for jobs,
// of nodes and reservations what Slurm shows the caller.
func (d *desk) cluster(ctx context.Context, r request) (any, error) {
	if err := d.rights.mayAsk(r.caller); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	whole, err := d.backend.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	all, sight := d.rights.seesAll(ctx, r.caller), d.rights.sight(ctx, r.caller)
	if all && sight == nil {
		return *whole, nil
	}
	own, sees := *whole, d.rights.seer(ctx, r.caller)
	own.Nodes, own.Others, own.Reservations = sight.nodes(whole.Nodes), make([]OtherJob, len(whole.Others)), []Reservation{}
	for i, j := range whole.Others {
		if !all && j.UID != r.caller.uid && !(j.Account != "" && sees(j.Account)) {
			j = OtherJob{Start: whole.Taken, NodeList: j.NodeList}
		}
		own.Others[i] = j
	}
	for _, v := range whole.Reservations {
		if (all || !v.Hold || v.UID == r.caller.uid) && sight.shows(v) {
			own.Reservations = append(own.Reservations, v)
		}
	}
	return own, nil
}

// events returns the events that the caller may read: about jobs by the rules for jobs, the
// sidecar's own only to operators.
func (d *desk) events(ctx context.Context, r request) (any, error) {
	if err := d.rights.mayAsk(r.caller); err != nil {
		return nil, err
	}
	q, err := parseQuery(r.URL.Query())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	var past *uint32 // user of an ended job
	if q.Job != 0 {
		if err := d.rights.mayRead(ctx, r.caller, q.Job); err != nil {
			was, err := d.past(ctx, r.caller, q.Job, err)
			if err != nil {
				return nil, err
			}
			past = &was.UID
		}
	}
	q.Sidecar = d.rights.trusted(r.caller)
	if !d.rights.seesAll(ctx, r.caller) {
		q.Owner = &r.caller.uid
		if j, err := d.backend.Job(ctx, q.Job); past != nil {
			q.Owner = past
		} else if q.Job != 0 && err == nil {
			q.Owner = &j.UID // not of one that had the same number before
		}
	}
	events, err := d.backend.Events(ctx, q)
	with := d.rights.discretion(ctx, r.caller)
	for i := range events {
		discreet(&events[i], with)
	}
	if events == nil {
		events = []Event{}
	}
	return events, err
}

// strategies lists all of a kind, or the one named in the path.
func (d *desk) strategies(ctx context.Context, r request) (any, error) {
	if err := d.rights.mayAsk(r.caller); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	all, err := d.backend.Strategies(ctx, strategyKind(r))
	all = d.rights.strategiesFor(r.caller, all)
	name := r.PathValue("name")
	if err != nil || name == "" {
		return all, err
	}
	for _, one := range all {
		if one.Name == name {
			return one, nil
		}
	}
	return nil, Errorf(ErrNotFound, "there is no strategy %q", name)
}

// past returns the last ended job with an ID that the caller may read, although the backend does not know the
// job any more, or knows another user's with the same ID. Otherwise it returns the given refusal.
func (d *desk) past(ctx context.Context, c caller, id uint32, refused error) (Job, error) {
	if !errors.Is(refused, ErrNotFound) || d.rights.mayAsk(c) != nil {
		return Job{}, refused
	}
	q := HistoryQuery{Jobs: []uint32{id}, Limit: 1}
	if !d.rights.seesAll(ctx, c) {
		q.Owner = &c.uid
	}
	page, err := d.backend.History(ctx, q)
	if err != nil || len(page.Jobs) == 0 {
		return Job{}, refused
	}
	return page.Jobs[0], nil
}
