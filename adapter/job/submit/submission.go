package submit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// submission is one evolving job, ready to be submitted.
type submission struct {
	request  request.Request
	inScript bool                // the script's #EVO lines hold the profile that applies
	limit    planner.ExpandLimit // the effective one: the job's, otherwise the site's

	options  layers
	dashes   bool
	operands []string
	gres     gres
	script   []byte // read from standard input; nil: sbatch finds it itself
	text     []byte // the script; nil with --wrap
	links    []link // of a chain with --wait
	watched  bool   // plugins may change it on its way
	quiet    bool   // sbatch must print the job's ID, which is then not passed on

	userTime int64 // the user's own time limit in minutes; 0: none
	implied  bool  // from the partition
	maxTime  int64 // allowed by the partition, in minutes
	testOnly bool
	doubt    error    // why it is infeasible as requested, if plugins may move it elsewhere
	settled  bool     // its options are what Slurm has made of them
	leftOut  []string // variables that do not go with the rest
}

// newSubmission joins the requests of the command line and the script; defaults are the site's. It
// ignores variables that do not apply to the rest: a variable set for all jobs must not make a good
// command fail.
func newSubmission(line getopt.Line, fromScript request.Request, options layers, defaults request.Request, now time.Time) (*submission, error) {
	r, err := joined(line, fromScript, options, defaults, now)
	var malformed *variableError
	if err == nil || errors.As(err, &malformed) {
		return r, err
	}
	var left []getopt.Option // first the options that say how the job evolves, then those that go with them
	fewer := options
	for _, shape := range []bool{true, false} {
		for _, o := range options.own {
			if slices.Contains(shapes, o.Name) != shape {
				continue
			}
			fewer.own = append(slices.Clone(left), o)
			if _, e := joined(line, fromScript, fewer, defaults, now); shape || e == nil {
				left = fewer.own
			}
		}
	}
	fewer.own = left
	if r, err = joined(line, fromScript, fewer, defaults, now); err != nil {
		return nil, err
	}
	for _, o := range options.own {
		if !slices.ContainsFunc(left, func(l getopt.Option) bool { return l.Name == o.Name }) {
			r.leftOut = append(r.leftOut, o.Source)
		}
	}
	return r, nil
}

// joined returns a submission by all of its options.
func joined(line getopt.Line, fromScript request.Request, options layers, defaults request.Request, now time.Time) (*submission, error) {
	given, err := requested(options)
	if err != nil {
		return nil, err
	}
	r := &submission{options: options, dashes: line.Dashes, operands: line.Operands, maxTime: unlimited}
	r.inScript = given.Profile == nil
	r.request = given
	if r.request.Profile == nil {
		r.request.Profile = fromScript.Profile
	}
	if err := r.joinMoldable(given, fromScript); err != nil {
		return nil, err
	}
	if r.request.ExpandLimit == 0 {
		r.request.ExpandLimit = fromScript.ExpandLimit
	}
	if r.request.Drive == "" {
		r.request.Drive = fromScript.Drive
	}
	if r.request.MaxNodes == 0 {
		r.request.MaxNodes = fromScript.MaxNodes
	}
	r.request.Hooks = r.request.Hooks.Over(fromScript.Hooks)
	if r.request.Drive == "" && defaults.Drive == drivemode.Chain {
		r.request.Drive = drivemode.Chain // a chain is made here, not by the sidecar
	}
	if r.limit = r.request.ExpandLimit; r.limit == 0 {
		r.limit = defaults.ExpandLimit
	}
	if err := r.joinMalleable(given, fromScript); err != nil {
		return nil, err
	}
	if r.request.Profile == nil {
		return nil, errors.New("no evolution profile: give --profile=NODES@DURATION[,NODES@DURATION…], --moldable=ALTERNATIVES, --malleable=MIN-MAX or an #EVO line in the script (for a job that does not evolve, leave out evosbatch's own options, --require-profile among them)")
	}
	if err := r.request.CheckClaim(); err != nil {
		return nil, err
	}
	if err := r.checkHooks(); err != nil {
		return nil, err
	}
	if err := options.refuse(r.request.Profile); err != nil {
		return nil, err
	}
	if r.request.Moldable != nil {
		if err := r.checkMoldable(); err != nil {
			return nil, err
		}
	}
	if _, err := options.constraint(); err != nil {
		return nil, err
	}
	if r.gres, err = options.gres(r.request.Profile[0].Nodes); err != nil {
		return nil, err
	}
	if len(r.gres.perNode) > 0 && r.request.Drive == drivemode.Merge {
		return nil, fmt.Errorf("--drive=merge cannot work for a job that asks for %s: Slurm merges no job with generic resources; leave it out", slurmctl.JoinGRES(r.gres.perNode))
	}
	if r.request.Nodes, err = options.nodeList(r.request.Claimed()); err != nil && r.request.Moldable == nil {
		return nil, err
	}
	if r.userTime, err = options.checkTime(r.request.Profile); err != nil && r.request.Moldable == nil {
		return nil, err
	}
	if o, ok := options.last("begin"); ok {
		begin, err := parseBegin(o.Value, now)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o, err)
		}
		if begin.After(now) {
			r.request.Begin = begin
		}
	}
	if o, ok := options.last("comment"); ok {
		r.request.Comment = o.Value
	}
	r.testOnly = options.has("test-only")
	if r.request.Moldable != nil {
		return r, nil // once the feasible alternatives are known
	}
	return r, r.complete()
}

// complete sees that the request fits into a job's comment.
func (r *submission) complete() error {
	if r.request.Drive == drivemode.Chain {
		return r.checkChain()
	}
	_, err := r.marker(nil)
	return err
}

// marker returns the comment of the job, or of one of a chain.
func (r *submission) marker(link *request.ChainLink) (string, error) {
	s := r.request
	s.Chain = link
	text, ok := s.Marker()
	if !ok && r.inScript {
		text, ok = s.ScriptMarker()
	}
	switch {
	case ok:
		return text, nil
	case r.inScript || len(s.Profile) == 1:
		return "", fmt.Errorf("--comment is too long: %d bytes of Slurm's %d are left for it beside the request",
			max(0, len(s.Comment)-(len(text)-request.MaxComment)), request.MaxComment)
	}
	return "", fmt.Errorf("the profile does not fit into a job's comment with all the rest (%d bytes, Slurm takes %d): write it into the script, as #EVO --profile=%s",
		len(text), request.MaxComment, legible.Brief(s.Profile.String()))
}

// step holds what one call of sbatch submits: some steps of the profile.
type step struct {
	nodes   int
	time    int64 // the time limit in minutes; 0: the user's own applies
	marker  string
	request request.Request // contents of the marker
	extra   []string        // further options
}

// whole returns the job as one Slurm job: the first step's nodes, everything's time.
func (r *submission) whole() (step, error) {
	marker, err := r.marker(nil)
	s := step{nodes: r.request.Profile[0].Nodes, marker: marker, request: r.request}
	if r.userTime == 0 {
		s.time = r.wholeLimit(r.request.Profile)
	} else if r.implied {
		s.time = r.userTime
	}
	return s, err
}

// words returns sbatch's arguments for one step: the user's options as written, then added ones,
// which override them, then the script.
func (r *submission) words(s step) []string {
	var words []string
	for _, o := range r.options.command {
		if !isOwn(o) && !(r.quiet && o.Name == "quiet") {
			words = append(words, o.Words...)
		}
	}
	words = append(words, "--nodes="+strconv.Itoa(s.nodes), "--exclusive", "--comment="+s.marker)
	if r.request.Nodes != "" {
		words = append(words, "--nodelist=") // none: the marker holds it
	}
	if s.time > 0 {
		words = append(words, "--time="+formatMinutes(s.time))
	}
	if !r.testOnly { // a parked job would start at the end of the century
		words = append(words, "--begin="+ParkedUntil)
	}
	words = append(words, r.gres.options(s.nodes)...)
	words = append(words, r.hookExport()...)
	words = append(words, s.extra...)
	if r.dashes {
		words = append(words, "--")
	}
	return slices.Concat(words, r.operands)
}
