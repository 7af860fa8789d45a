package submit

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// A malleable job is submitted with its smallest size, which must be feasible. Its larger sizes are
// cut to what the partition, the user's nodes, and limits can ever allow, with a message
// (fit.go).

// joinMalleable joins the requests of the command line and the script. A plain profile, or
// alternatives, on the command line override bounds in the script.
func (r *submission) joinMalleable(given, fromScript request.Request) error {
	overridden := map[string]bool{}
	for _, o := range r.options.command {
		overridden[o.Name] = overridden[o.Name] || o.Name != "profile" || isEvolution(o)
	}
	if err := request.Contradiction(func(name string) bool { return overridden[name] }); err != nil {
		return err
	}
	for _, o := range r.options.own {
		overridden[o.Name] = true // the environment also overrides the script
	}
	r.request.Malleable = given.Malleable
	bounded := given.Malleable != nil && given.Malleable.Max != nil
	if fromScript.Malleable != nil && (bounded || given.Profile == nil && given.Moldable == nil) {
		r.request.Malleable = overlaid(given.Malleable, *fromScript.Malleable, overridden)
	}
	if r.request.Malleable == nil {
		return nil
	}
	if err := r.request.Settle(); err != nil {
		return err
	}
	if !r.request.Endless() {
		return r.request.CheckMalleable()
	}
	return r.readDuration()
}

// overlaid returns what the script says of a malleable job, with the command line's own bounds and
// those options that it overrides.
func overlaid(given *request.Malleable, fromScript request.Malleable, overridden map[string]bool) *request.Malleable {
	if given == nil {
		return &fromScript
	}
	if given.Max != nil {
		fromScript.Max, fromScript.BestEffort = given.Max, given.BestEffort
	}
	if overridden["size"] {
		fromScript.Sizes = given.Sizes
	}
	if overridden["grace"] {
		fromScript.Grace = given.Grace
	}
	if overridden["speedup"] {
		fromScript.Speedup = given.Speedup
	}
	return &fromScript
}

// readDuration gives a job with --malleable the duration of its --time, if it has one; otherwise the
// partition's limit applies (feasible.go).
func (r *submission) readDuration() error {
	r.inScript = false // the script does not say how long
	r.timed = true
	known := r.request
	known.Lasts(1)
	if err := known.CheckMalleable(); err != nil {
		return err
	}
	o, timed := r.options.last("time")
	if !timed {
		return nil
	}
	limit, err := parseTimeLimit(o.Value)
	if err == nil && limit > planner.MaxDuration/60 {
		err = errNoEnd
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o, err)
	}
	r.request.Lasts(limit * 60)
	return nil
}

var errNoEnd = errors.New("a malleable job is planned for as long as it may run: give a --time that ends")

// maxSpeedup bounds a file with a speed-up, in bytes.
const maxSpeedup = 64 << 10

// withSpeedup reads the file of --speedup, whose contents then travel with the request.
func (r submission) withSpeedup() (submission, error) {
	if r.request.Malleable == nil || r.request.Malleable.SpeedupFile() == "" {
		return r, nil
	}
	m := *r.request.Malleable
	table, err := readSpeedup(m.SpeedupFile())
	if err == nil {
		err = m.SetSpeedup(table)
	}
	if err != nil {
		return r, fmt.Errorf("--speedup=%s: %w", r.request.Malleable.SpeedupFile(), err)
	}
	r.request.Malleable = &m
	return r, r.complete()
}

func readSpeedup(path string) (malleable.Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSpeedup+1))
	if err == nil && len(text) > maxSpeedup {
		err = fmt.Errorf("larger than %d KiB", maxSpeedup>>10)
	}
	if err != nil {
		return nil, err
	}
	return malleable.ParseTable(string(text))
}
