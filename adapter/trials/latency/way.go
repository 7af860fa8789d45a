package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// obliging is the script of a malleable job that accepts whatever it is offered, or asked for.
const obliging = `after=0
while :; do
	eval "$(evosctl wait-event --shell=sh --after=$after)" || { sleep 1; continue; }
	after=$EVO_OFFER
	eval "$(evosctl accept $EVO_OFFER_NODES)"
done`

// stockNodes are the nodes of each stock job.
const stockNodes = 3

// givesWay measures how soon a stock job begins when two malleable jobs have all nodes and give way, beside one that
// begins on free nodes.
func (l *latency) givesWay(ctx context.Context) error {
	var alone, beside, demand, back, start times
	for range l.stock {
		from, begun, err := l.stockJob(ctx)
		if err != nil {
			return err
		}
		alone = append(alone, begun.Sub(from))
	}
	for range 2 {
		if _, errs, err := l.As(0, "evosbatch", "--parsable", "--output=/dev/null", "--exclusive", "--malleable=1-8", "--time=60", "--wrap="+obliging); err != nil {
			return fmt.Errorf("evosbatch: %w\n%s", err, errs)
		}
	}
	for range l.stock {
		if err := l.allLent(ctx); err != nil {
			return err
		}
		from, begun, err := l.stockJob(ctx)
		if err != nil {
			return err
		}
		demanded, accepted, err := l.gave(from, begun)
		if err != nil {
			return err
		}
		beside = append(beside, begun.Sub(from))
		demand, back, start = append(demand, demanded.Sub(from)), append(back, accepted.Sub(demanded)), append(start, begun.Sub(accepted))
	}
	fmt.Printf("| %d stock jobs of %d nodes, two malleable jobs on all of 8 | |\n|---|---|\n", l.stock, stockNodes)
	for _, row := range []struct {
		name string
		took times
	}{{"from sbatch to its script, on free nodes", alone}, {"from sbatch to its script, as malleable jobs give way", beside}, {"of that until the nodes are demanded", demand},
		{"until the last application lets go of them", back}, {"until the script begins", start}} {
		fmt.Printf("| %s | %v |\n", row.name, row.took)
	}
	fmt.Println()
	_, err := l.Cluster.Run(ctx, slurmtest.Root, "scancel", "--user="+l.Cluster.Users()[0].Name)
	return err
}

// stockJob runs a stock job: when sbatch was called, and its script began.
func (l *latency) stockJob(ctx context.Context) (from, begun time.Time, err error) {
	note := fmt.Sprintf("%s/out/stock-%d", l.Dir, time.Now().UnixNano())
	from = time.Now()
	_, errs, err := l.As(1, "sbatch", "--parsable", "--output=/dev/null", "--exclusive", fmt.Sprintf("--nodes=%d", stockNodes), "--time=2",
		fmt.Sprintf("--wrap=echo begun 1 0 $(date +%%s.%%N) >%s; sleep 2", note))
	if err != nil {
		return from, begun, fmt.Errorf("sbatch: %w\n%s", err, errs)
	}
	return from, begun, l.until(ctx, "a stock job begins", func() error {
		notes, err := read(note)
		if err == nil && notes["begun 1"].at.IsZero() {
			err = errors.New("not yet")
		}
		begun = notes["begun 1"].at
		return err
	})
}

// allLent waits until malleable jobs have all nodes.
func (l *latency) allLent(ctx context.Context) error {
	return l.until(ctx, "malleable jobs have all nodes", func() error {
		text, err := l.Cluster.Run(ctx, slurmtest.Root, "sinfo", "--noheader", "--Node", "--format=%N:%t")
		// idle, planned, reserved, completing …: there are many ways not to be in use
		free := slices.DeleteFunc(strings.Fields(text), func(node string) bool { return strings.HasSuffix(node, ":alloc") })
		if err == nil && len(free) > 0 {
			err = fmt.Errorf("%v are free", free)
		}
		left, err2 := l.Cluster.Run(ctx, slurmtest.Root, "squeue", "--noheader", "--user="+l.Cluster.Users()[1].Name)
		if err2 == nil && strings.TrimSpace(left) != "" {
			err2 = errors.New("the last stock job is there still")
		}
		return errors.Join(err, err2)
	})
}

// gave returns when nodes were first demanded between two times, and when it was last accepted to give them back.
func (l *latency) gave(from, to time.Time) (demanded, accepted time.Time, err error) {
	out, err := l.Cluster.Run(context.Background(), slurmtest.Root, "env", append(l.Env(), l.Bin+"/evosctl", "events", "--json")...)
	if err != nil {
		return demanded, accepted, err
	}
	var seen []string
	for line := range strings.Lines(out) {
		var e api.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return demanded, accepted, err
		}
		if e.At.After(from.Add(-time.Minute)) {
			seen = append(seen, line)
		}
		switch {
		case e.At.Before(from) || e.At.After(to):
		case e.Kind == "demanded" && demanded.IsZero():
			demanded = e.At
		case e.Kind == "offer accepted":
			accepted = e.At
		}
	}
	if demanded.IsZero() || accepted.IsZero() {
		return demanded, accepted, fmt.Errorf("a stock job was submitted at %v and began at %v, and nothing was given back for it:\n%s", from, to, strings.Join(seen, ""))
	}
	return demanded, accepted, nil
}

// until waits for something.
func (l *latency) until(ctx context.Context, what string, is func() error) error {
	for end := time.Now().Add(5 * time.Minute); ; {
		err := is()
		switch {
		case err == nil:
			return nil
		case time.Now().After(end) || ctx.Err() != nil:
			return fmt.Errorf("%s: %w", what, err)
		}
		if errors.Is(err, os.ErrNotExist) {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		time.Sleep(50 * time.Millisecond)
	}
}
