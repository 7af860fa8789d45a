package submit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/job/request"
)

// A moldable job is submitted as the alternative that begins with the fewest nodes, with that one's
// time limit. So Slurm's limits see a job that may run, and the sidecar only has to raise nodes and
// time, which it does as the user. alternatives.go checks each alternative.

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

// checkMoldable refuses options that a moldable job cannot have, whichever profile it gets.
func (r submission) checkMoldable() error {
	m := r.request.Moldable
	if m == nil {
		return nil
	}
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
	return r.request.CheckLinks()
}
