package submit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// variableError is a variable that cannot be read.
type variableError struct{ error }

func (e *variableError) Unwrap() error { return e.error }

// newSubmission joins the requests of the command line, the variables, and the script; defaults are
// the site's. It ignores variables that do not apply to the rest, and returns their names: a
// variable set for all jobs must not make a good command fail.
func newSubmission(src sources, defaults request.Request, now time.Time) (r submission, ignored []string, err error) {
	r, err = joined(src, defaults, now)
	var malformed *variableError
	if err == nil || errors.As(err, &malformed) {
		return r, nil, err
	}
	var left []getopt.Option // first the options that say how the job evolves, then those that go with them
	fewer := src
	for _, shape := range []bool{true, false} {
		for _, o := range src.options.own {
			if slices.Contains(shapes, o.Name) != shape {
				continue
			}
			fewer.options.own = append(slices.Clone(left), o)
			if _, e := joined(fewer, defaults, now); shape || e == nil {
				left = fewer.options.own
			}
		}
	}
	fewer.options.own = left
	if r, err = joined(fewer, defaults, now); err != nil {
		return r, nil, err
	}
	for _, o := range src.options.own {
		if !contains(left, o.Name) {
			ignored = append(ignored, o.Source)
		}
	}
	return r, ignored, nil
}

// joined returns a submission by all of its sources.
func joined(src sources, defaults request.Request, now time.Time) (submission, error) {
	r, err := evolution(src, defaults)
	if err != nil {
		return r, err
	}
	_, constraint := r.options.constraint()
	if err := cmp.Or(r.request.CheckComponents(), r.request.CheckClaim(), r.checkAim(), r.checkFrequencies(), r.checkHooks(), r.options.refuse(r.request.Profile), r.checkArray(), r.checkInside(), r.checkMoldable(), constraint); err != nil {
		return r, err
	}
	if err := r.readOptions(now); err != nil || r.request.Moldable != nil {
		return r, err // complete once the feasible alternatives are known
	}
	return r, r.complete()
}

// evolution joins what says how the job evolves.
func evolution(src sources, defaults request.Request) (submission, error) {
	given, err := requested(src.options)
	if err != nil {
		return submission{}, err
	}
	if given, err = src.options.bestEffort(given, src.evo); err != nil {
		return submission{}, err
	}
	r := submission{options: src.options, dashes: src.line.Dashes, operands: src.line.Operands, script: src.script, maxTime: unlimited,
		inScript: given.Profile == nil, request: given}
	fromScript := src.evo.MaxNodes
	if r.request.Profile == nil {
		r.request.Profile, r.request.Components, r.request.Frequencies, r.request.Tail = src.evo.Profile, src.evo.Components, src.evo.Frequencies, src.evo.Tail
	} else if r.request.Tail > 0 { // a claim of its own
		fromScript = 0
	}
	if err := r.joinMoldable(given, src.evo); err != nil {
		return r, err
	}
	r.request.ExpandLimit = cmp.Or(r.request.ExpandLimit, src.evo.ExpandLimit)
	r.request.Drive = cmp.Or(r.request.Drive, src.evo.Drive)
	r.request.MaxNodes = cmp.Or(r.request.MaxNodes, fromScript)
	r.request.Aim = cmp.Or(r.request.Aim, src.evo.Aim)
	if err := r.request.SettleTail(); err != nil {
		return r, err
	}
	r.request.Hooks = r.request.Hooks.Over(src.evo.Hooks)
	if r.request.Inputs == nil {
		r.request.Inputs = src.evo.Inputs
	}
	if r.request.Drive == "" && defaults.Drive.Means().StepsAreJobs {
		r.request.Drive = defaults.Drive // a chain is made here, not by the sidecar
	}
	r.limit = cmp.Or(r.request.ExpandLimit, defaults.ExpandLimit)
	if err := r.joinMalleable(given, src.evo); err != nil {
		return r, err
	}
	if r.request.Profile == nil {
		return r, errors.New("no evolution profile: give --profile=NODES@DURATION[,NODES@DURATION…], --moldable=ALTERNATIVES, --malleable=MIN-MAX, --best-effort, or an #EVO line in the script (for a job that does not evolve, leave out evosbatch's own options, --require-profile among them)")
	}
	return r, r.stage(src.staging)
}

// requested returns the request of the command line, completed from the environment.
func requested(l layers) (request.Request, error) {
	var s request.Request
	shape := slices.ContainsFunc(l.command, func(o getopt.Option) bool { return isOwn(o) && slices.Contains(shapes, o.Name) })
	if err := request.Contradiction(func(name string) bool {
		return !shape && contains(l.own, name)
	}); err != nil {
		return request.Request{}, fmt.Errorf("in EVOSBATCH_ variables: %w", err)
	}
	aims := slices.ContainsFunc(l.command, func(o getopt.Option) bool { return request.IsAim(o.Name) })
	for _, o := range l.own {
		if isShape := slices.Contains(shapes, o.Name); isShape && shape || !isShape && l.has(o.Name) || aims && request.IsAim(o.Name) {
			continue
		}
		if err := s.Set(o.Name, o.Value); err != nil {
			return request.Request{}, &variableError{fmt.Errorf("%s: %w", o.Source, err)}
		}
	}
	for _, o := range l.command {
		if asksToEvolve(o) {
			if err := s.Set(o.Name, o.Value); err != nil {
				return request.Request{}, err
			}
		}
	}
	return s, s.SettleComponents()
}

// checkAim returns an error if what the job wants of its own placement does not go with the rest.
func (r submission) checkAim() error {
	if o, given := r.options.last("switches"); given && r.request.Aim != planner.NoAim {
		return fmt.Errorf("%s and %s: a job waits for one better placement only; leave one of them out", r.request.Aim.Option(), o)
	}
	return r.request.CheckAim()
}

// readOptions takes from sbatch's options what the plan needs.
func (r *submission) readOptions(now time.Time) (err error) {
	if r.gres, err = r.options.gres(r.request.Profile[0].Nodes); err != nil {
		return err
	}
	if len(r.gres.perNode) > 0 && r.request.Drive.Means().MergesGrowths {
		return fmt.Errorf("--drive=merge cannot work for a job that asks for %s: Slurm merges no job with generic resources; leave it out", slurmctl.JoinGRES(r.gres.perNode))
	}
	// Each alternative of a moldable job is checked by itself later.
	if r.request.Nodes, err = r.options.nodeList(r.request.Claimed()); err != nil && r.request.Moldable == nil {
		return err
	}
	if r.userTime, err = r.checkTime(); err != nil && r.request.Moldable == nil {
		return err
	}
	if o, ok := r.options.last("begin"); ok {
		begin, err := parseBegin(o.Value, now)
		if err != nil {
			return fmt.Errorf("%s: %w", o, err)
		}
		if begin.After(now) {
			r.request.Begin = begin
		}
	}
	r.request.Comment, r.request.Prefer = r.options.value("comment"), r.options.value("prefer")
	if err := r.request.CheckPrefer(); err != nil {
		return err
	}
	r.testOnly = r.options.has("test-only")
	return nil
}
