package submit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/evoslurm/evoslurm/adapter/display"
	"github.com/evoslurm/evoslurm/adapter/getopt"
	"github.com/evoslurm/evoslurm/adapter/spec"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// request is one evolving job, ready to be submitted.
type request struct {
	spec     spec.Spec
	inScript bool                // the script's #EVO lines hold the profile that applies
	limit    planner.ExpandLimit // the one to reckon with: the job's, else the site's

	options  layers
	dashes   bool
	operands []string
	gres     gres
	script   []byte // read from standard input; nil: sbatch finds it itself
	text     []byte // the script, wherever it is; nil with --wrap
	watched  bool   // plugins may change it on its way
	quiet    bool   // sbatch must print the job's id, which is then not passed on

	userTime int64 // the user's own time limit in minutes; 0: none
	maxTime  int64 // what the partition allows, in minutes
	testOnly bool
}

// newRequest joins what the command line and the script ask for. Defaults are
// the site's.
func newRequest(line getopt.Line, fromScript spec.Spec, options layers, defaults spec.Spec, now time.Time) (*request, error) {
	given, err := requested(line.Options)
	if err != nil {
		return nil, err
	}
	r := &request{options: options, dashes: line.Dashes, operands: line.Operands, maxTime: unlimited}
	r.inScript = given.Profile == nil
	r.spec = given
	if r.spec.Profile == nil {
		r.spec.Profile = fromScript.Profile
	}
	if r.spec.ExpandLimit == 0 {
		r.spec.ExpandLimit = fromScript.ExpandLimit
	}
	if r.spec.Drive == "" {
		r.spec.Drive = fromScript.Drive
	}
	if r.spec.Drive == "" && defaults.Drive == spec.Chain {
		r.spec.Drive = spec.Chain // a chain is made here, not by the sidecar
	}
	if r.limit = r.spec.ExpandLimit; r.limit == 0 {
		r.limit = defaults.ExpandLimit
	}
	if r.spec.Profile == nil {
		return nil, errors.New("no evolution profile: give --profile=NODES@DURATION[,NODES@DURATION…] or an #EVO line in the script (for a job that does not evolve there is sbatch)")
	}
	if err := options.refuse(r.spec.Profile); err != nil {
		return nil, err
	}
	if _, err := options.constraint(); err != nil {
		return nil, err
	}
	if r.gres, err = options.gres(r.spec.Profile[0].Nodes); err != nil {
		return nil, err
	}
	if len(r.gres.perNode) > 0 && r.spec.Drive == spec.Merge {
		return nil, fmt.Errorf("--drive=merge cannot work for a job that asks for %s: Slurm merges no job with generic resources; leave it out", slurmctl.JoinGRES(r.gres.perNode))
	}
	if r.spec.Nodes, err = options.nodeList(r.spec.Profile); err != nil {
		return nil, err
	}
	if r.userTime, err = options.checkTime(r.spec.Profile); err != nil {
		return nil, err
	}
	if o, ok := options.last("begin"); ok {
		begin, err := parseBegin(o.Value, now)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o, err)
		}
		if begin.After(now) {
			r.spec.Begin = begin
		}
	}
	if o, ok := options.last("comment"); ok {
		r.spec.Comment = o.Value
	}
	r.testOnly = options.has("test-only")
	if r.spec.Drive == spec.Chain {
		return r, r.checkChain()
	}
	_, err = r.marker(nil)
	return r, err
}

// marker is the comment of the job, or of one of a chain.
func (r *request) marker(link *spec.ChainLink) (string, error) {
	s := r.spec
	s.Chain = link
	text, ok := s.Marker()
	if !ok && r.inScript {
		text, ok = s.ScriptMarker()
	}
	switch {
	case ok:
		return text, nil
	case r.inScript:
		return "", fmt.Errorf("--comment is too long: %d bytes of Slurm's %d are left for it beside the request",
			max(0, len(s.Comment)-(len(text)-spec.MaxComment)), spec.MaxComment)
	}
	return "", fmt.Errorf("the profile does not fit into a job's comment with all the rest (%d bytes, Slurm takes %d): write it into the script, as #EVO --profile=%s",
		len(text), spec.MaxComment, display.Brief(s.Profile.String()))
}

// step is what one call of sbatch submits: some steps of the profile.
type step struct {
	nodes  int
	time   int64 // the time limit in minutes; 0: the user's own applies
	marker string
	spec   spec.Spec // what the marker says
	extra  []string  // further options
}

// whole is the job as one Slurm job: the first step's nodes, everything's time.
func (r *request) whole() (step, error) {
	marker, err := r.marker(nil)
	s := step{nodes: r.spec.Profile[0].Nodes, marker: marker, spec: r.spec}
	if r.userTime == 0 {
		s.time = min(timeLimit(r.spec.Profile, r.limit), r.maxTime)
	}
	return s, err
}

// words are the arguments of sbatch for one step: the user's options as they
// were written, then what is added, which wins over them, then the script.
func (r *request) words(s step) []string {
	var words []string
	for _, o := range r.options.command {
		if !isOwn(o) && !(r.quiet && o.Name == "quiet") {
			words = append(words, o.Words...)
		}
	}
	words = append(words, "--nodes="+strconv.Itoa(s.nodes), "--exclusive", "--comment="+s.marker)
	if r.spec.Nodes != "" {
		words = append(words, "--nodelist=") // none: it is in the marker
	}
	if s.time > 0 {
		words = append(words, "--time="+formatMinutes(s.time))
	}
	if !r.testOnly { // a parked job would start at the end of the century
		words = append(words, "--begin="+ParkedUntil)
	}
	words = append(words, r.gres.options(s.nodes)...)
	words = append(words, s.extra...)
	if r.dashes {
		words = append(words, "--")
	}
	return slices.Concat(words, r.operands)
}
