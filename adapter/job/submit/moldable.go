package submit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
)

// A moldable job is submitted as the alternative that begins with the fewest nodes, with that one's
// time limit. So Slurm's limits see a job that may run, and the sidecar only has to raise nodes and
// time, which it does as the user. Each alternative is checked as if it were the only one;
// infeasible ones are reported and left out.

// joinMoldable joins the requests of the command line and the script.
func (r *submission) joinMoldable(given, fromScript request.Request) error {
	if given.Profile != nil && given.Moldable != nil && len(given.Moldable.Alternatives) > 0 {
		for _, o := range r.options.command {
			if o.Name == "profile" && isEvolution(o) {
				return request.ErrBoth
			}
		}
	}
	m := fromScript.Moldable
	if given.Profile != nil {
		m = nil // the command line wins
	}
	if own := given.Moldable; own != nil {
		one := *own
		if len(one.Alternatives) == 0 && m != nil {
			one.Alternatives = m.Alternatives
		}
		m = &one
	}
	if m == nil {
		return nil
	}
	switch len(m.Alternatives) {
	case 0:
		return errors.New("--moldable-by says which alternative of --moldable is preferred, and there are none")
	case 1: // nothing to choose
		r.request.Profile = m.Alternatives[0]
		m = nil
	}
	r.request.Moldable = m
	if m != nil {
		r.request.Profile = m.Alternatives[m.Submitted()]
	}
	return nil
}

// checkMoldable refuses what cannot be for a moldable job, whichever profile it gets.
func (r *submission) checkMoldable() error {
	if o, given := r.options.last("nodes"); given {
		return fmt.Errorf("%s: the alternatives of --moldable say the nodes; leave the option out", o)
	}
	if o, given := r.options.last("gpus"); given {
		return fmt.Errorf("%s: each alternative has its own number of nodes: give --gpus-per-node", o)
	}
	if o, given := r.options.last("partition"); given && strings.Contains(o.Value, ",") {
		return fmt.Errorf("%s: a moldable job has one partition", o)
	}
	if r.request.MaxNodes > 0 {
		return fmt.Errorf("--max-nodes=%d: a moldable job makes no claim yet: give --profile, or leave the option out", r.request.MaxNodes)
	}
	m := r.request.Moldable
	if r.request.Drive != drivemode.Chain {
		return nil
	}
	for k, p := range m.Alternatives {
		if len(p) != len(m.Alternatives[0]) {
			return fmt.Errorf("--drive=chain: every step is a Slurm job, so all alternatives need as many steps as the first: %d, not the %d of alternative %d",
				len(m.Alternatives[0]), len(p), k+1)
		}
	}
	return nil
}

// eachAlternative leaves out the alternatives that fail the check, with the reason on stderr. It
// fails only if all do.
func (c *Command) eachAlternative(r *submission, check func(r *submission) error) error {
	m := *r.request.Moldable
	m.Minutes = slices.Clone(m.Minutes)
	if m.Minutes == nil {
		m.Minutes = make([][]int64, len(m.Alternatives))
		for k := range m.Minutes {
			m.Minutes[k] = []int64{unlimited}
		}
	}
	var reasons []string
	for k, p := range m.Alternatives {
		if len(m.Minutes[k]) == 0 {
			continue
		}
		one := *r
		one.request.Moldable, one.request.Profile = nil, p
		one.maxTime = m.Minutes[k][0]
		if err := check(&one); err != nil {
			reasons = append(reasons, fmt.Sprintf("alternative %s: %v", brief(p), err))
			m.Minutes[k] = nil
			continue
		}
		m.Minutes[k] = []int64{one.maxTime}
	}
	if !slices.ContainsFunc(m.Minutes, func(limits []int64) bool { return len(limits) > 0 }) {
		return fmt.Errorf("no alternative is feasible: %s", strings.Join(reasons, "; "))
	}
	for _, why := range reasons {
		fmt.Fprintf(c.Stderr, "evosbatch: warning: left out: %s\n", why)
	}
	r.request.Moldable = &m
	r.request.Profile = m.Alternatives[m.Submitted()]
	return nil
}

// reckonLimits sets the time limits of all alternatives, in place of the longest possible.
func (r *submission) reckonLimits() {
	m := *r.request.Moldable
	minutes := make([][]int64, len(m.Alternatives))
	for k, p := range m.Alternatives {
		most := int64(unlimited)
		if len(m.Minutes) > 0 {
			if len(m.Minutes[k]) == 0 {
				continue
			}
			most = m.Minutes[k][0]
		}
		one := *r
		one.maxTime = most
		if r.request.Drive == drivemode.Chain {
			for i := range p {
				minutes[k] = append(minutes[k], min(one.linkLimit(p, i), request.Unlimited))
			}
		} else {
			minutes[k] = []int64{min(one.wholeLimit(p), request.Unlimited)}
		}
	}
	m.Minutes = minutes
	r.request.Moldable = &m
}

// wholeLimit returns the time limit of a job with this profile: the user's, or what it needs.
func (r *submission) wholeLimit(p planner.Profile) int64 {
	if r.userTime > 0 {
		return r.userTime
	}
	return min(timeLimit(p, r.limit), r.maxTime)
}

// linkLimit returns the time limit of a chain's step i, from 0.
func (r *submission) linkLimit(p planner.Profile, i int) int64 {
	limit := min(timeLimit(p[i:i+1], r.limit), r.maxTime)
	if r.userTime > 0 {
		limit = min(limit, r.userTime)
	}
	return limit
}

// brief returns a profile that may be long.
func brief(p planner.Profile) string {
	if text := p.String(); len(text) <= 60 {
		return text
	}
	return p[:1].String() + ",…"
}

// checkAlternatives runs all checks of a moldable job: its options, then what the cluster and its
// limits allow. It reports problems of the cluster as a whole once.
func (c *Command) checkAlternatives(ctx context.Context, r *submission) error {
	stderr, warned := c.Stderr, map[string]bool{}
	defer func() { c.Stderr = stderr }()
	c.Stderr = onceWriter{stderr, warned}
	err := c.eachAlternative(r, func(one *submission) error {
		p := one.request.Profile
		if err := one.options.refuseTasks(p[0].Nodes); err != nil {
			return err
		}
		if _, err := one.options.nodeList(p); err != nil {
			return err
		}
		if _, err := one.options.checkTime(p); err != nil {
			return err
		}
		return c.checkCluster(ctx, one)
	})
	if err != nil {
		return err
	}
	if r.userTime, err = r.options.checkTime(r.request.Profile); err != nil {
		return err
	}
	if r.request.Nodes, err = r.options.nodeList(r.request.Profile); err != nil {
		return err
	}
	if k := r.request.Moldable.Submitted(); len(r.request.Moldable.Minutes[k]) > 0 {
		r.maxTime = r.request.Moldable.Minutes[k][0]
	}
	r.reckonLimits()
	return r.complete()
}

// onceWriter passes each text on once.
type onceWriter struct {
	io.Writer
	said map[string]bool
}

func (w onceWriter) Write(p []byte) (int, error) {
	if w.said[string(p)] {
		return len(p), nil
	}
	w.said[string(p)] = true
	return w.Writer.Write(p)
}
