package submit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A malleable job is submitted with its smallest size, which must be feasible. Its larger sizes are
// cut to what the partition, the user's nodes, and limits can ever allow, with a message.

// joinMalleable joins the requests of the command line and the script. A plain profile, or
// alternatives, on the command line override bounds in the script.
func (r *submission) joinMalleable(given, fromScript request.Request) error {
	commanded := map[string]bool{}
	for _, o := range r.options.command {
		commanded[o.Name] = commanded[o.Name] || o.Name != "profile" || isEvolution(o)
	}
	if err := request.Contradiction(func(name string) bool { return commanded[name] }); err != nil {
		return err
	}
	for _, o := range r.options.own {
		commanded[o.Name] = true // the environment also overrides the script
	}
	m, of := given.Malleable, fromScript.Malleable
	if given.Profile == nil && given.Moldable == nil && of != nil || m != nil && m.Max != nil && of != nil {
		one := *of
		if m != nil {
			if m.Max != nil {
				one.Max = m.Max
			}
			for name, take := range map[string]func(){
				"size":    func() { one.Sizes = m.Sizes },
				"grace":   func() { one.Grace = m.Grace },
				"speedup": func() { one.Speedup = m.Speedup },
			} {
				if commanded[name] {
					take()
				}
			}
		}
		m = &one
	}
	if r.request.Malleable = m; m == nil {
		return nil
	}
	if err := r.request.Settle(); err != nil {
		return err
	}
	if !r.request.Endless() {
		return r.request.CheckMalleable()
	}
	r.inScript = false // the script does not say how long
	known := r.request
	known.Lasts(1)
	if err := known.CheckMalleable(); err != nil {
		return err
	}
	o, timed := r.options.last("time")
	if !timed {
		return nil // the partition's: see lasts
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

// lasts gives a job with --malleable but without --time sbatch's time limit: the partition's
// default, otherwise its maximum; of several partitions, the shortest.
func (c *Command) lasts(ctx context.Context, r *submission) error {
	if !r.request.Endless() {
		return nil
	}
	if c.Cluster == nil {
		return errNoEnd
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	least := int64(unlimited)
	places, err := r.options.places(ctx, c.Cluster, r.gres)
	limits, s, known := c.limits(ctx, r)
	if known {
		for _, s.Partition = range c.partitionNames(r, places, limits) {
			if given := limits.GivenMinutes(s); given >= 0 {
				least = min(least, given)
			}
		}
	} else if err != nil {
		return fmt.Errorf("--malleable: for how long is not known, give --time: %w", err)
	}
	for _, p := range places {
		for _, limit := range []time.Duration{p.partition.DefaultTime, p.partition.MaxTime} {
			if limit != slurmctl.Unlimited && limit > 0 {
				least = min(least, int64(limit/time.Minute))
				break
			}
		}
	}
	if least > planner.MaxDuration/60 {
		return fmt.Errorf("%w, as the partition has none", errNoEnd)
	}
	r.request.Lasts(least * 60)
	r.userTime, r.implied = least, true
	return r.complete()
}

// readSpeedup reads the file of --speedup, which then travels with the request.
func (r *submission) readSpeedup() error {
	m := r.request.Malleable
	if m == nil || m.SpeedupFile() == "" {
		return nil
	}
	const most = 64 << 10
	table, err := func() (malleable.Table, error) {
		f, err := os.Open(m.SpeedupFile())
		if err != nil {
			return nil, err
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, most+1))
		if err == nil && len(text) > most {
			err = fmt.Errorf("larger than %d KiB", most>>10)
		}
		if err != nil {
			return nil, err
		}
		return malleable.ParseTable(string(text))
	}()
	if err == nil {
		one := *m
		if err = one.SetSpeedup(table); err == nil {
			r.request.Malleable = &one
			return r.complete()
		}
	}
	return fmt.Errorf("--speedup=%s: %w", m.SpeedupFile(), err)
}

// cutMost limits a malleable job's larger sizes to what can ever be.
func (c *Command) cutMost(r *submission, most int, why string) {
	before := r.request.MostNodes()
	if most >= before || !r.request.CutMax(most) {
		return
	}
	now := "it runs on " + plural(r.request.MostNodes(), "node")
	if r.request.Malleable != nil {
		now = "it is malleable up to " + strconv.Itoa(r.request.MostNodes())
	}
	fmt.Fprintf(c.Stderr, "evosbatch: warning: %s, not %d: %s\n", now, before, why)
}

// cutToPlaces bounds it by the nodes of the partitions, and of --nodelist.
func (c *Command) cutToPlaces(r *submission, places []place) {
	if r.request.Malleable == nil {
		return
	}
	if names, err := r.options.nodeNames("nodelist"); err == nil && len(names) > 0 {
		o, _ := r.options.last("nodelist")
		c.cutMost(r, len(names), fmt.Sprintf("%s names %s", o, plural(len(names), "node")))
	}
	most, why := 0, []string{}
	for _, p := range places {
		most = max(most, p.usable)
		why = append(why, fmt.Sprintf("partition %s has %d for this job%s", p.partition.Name, p.usable, p.with))
	}
	if len(places) > 0 {
		c.cutMost(r, most, strings.Join(why, ", "))
	}
}

// checkGrace rejects a malleable job that requests more time to give nodes back than the site
// allows.
func (c *Command) checkGrace(m *request.Malleable) error {
	if m != nil && c.MaxGrace > 0 && time.Duration(m.Grace)*time.Second > c.MaxGrace {
		return fmt.Errorf("--grace=%s: the site allows %v at most (malleable.max_grace)", planner.FormatDuration(int64(m.Grace)), c.MaxGrace)
	}
	return nil
}
