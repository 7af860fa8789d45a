package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
)

// Options are how the demo is run.
type Options struct {
	Bin      string         // folder of the built commands
	Nodes    int            // of the cluster, 8 at least
	Drive    drivemode.Mode // merge or companion
	Jobs     []Job          // made for 8 nodes; nil: Standard
	Plain    bool           // event lines even on a terminal
	KeepLogs bool           // keep the folder with logs, traces and database
	Out      *os.File
}

// ErrNotAsRequested is the verdict that something is not as it must be; all of it
// has been written.
var ErrNotAsRequested = errors.New("not everything is as requested")

// Run runs the demo and writes what happens, what was measured and the verdict.
// It takes about three minutes. When ctx is done everything is stopped first.
func Run(ctx context.Context, o Options) (err error) {
	began := time.Now()
	if o.Jobs == nil {
		o.Jobs = Standard()
	}
	if o.Jobs, err = scale(o.Jobs, scenarioNodes, o.Nodes); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Booting a private Slurm of %d nodes, with evoslurmd beside it\n", o.Nodes)
	l, err := openLab(ctx, o)
	defer func() {
		keep := l.cluster != nil && (o.KeepLogs || err != nil && ctx.Err() == nil)
		err = errors.Join(err, l.close(keep))
		if keep {
			fmt.Fprintln(o.Out, "Logs, traces and database are kept in", l.dir)
		}
	}()
	if err != nil {
		return err
	}
	status, err := l.api.Status(ctx)
	if err != nil {
		return err
	}
	header := fmt.Sprintf("Evoslurm demo: %d nodes, Slurm %s, drive mode %s", o.Nodes, l.cluster.Version(), status.Drive)
	fmt.Fprintf(o.Out, "%s (after %.1f s)\n\n", header, time.Since(began).Seconds())

	t := look(o.Out)
	var s screen = &live{out: o.Out, header: header, terminal: t}
	if o.Plain || t.file == nil {
		s = &plain{out: o.Out, terminal: t}
	}
	evolving, err := runPhase(ctx, l, s, o, false)
	if err != nil {
		return err
	}
	rigid, err := runPhase(ctx, l, s, o, true)
	if err != nil {
		return err
	}
	summarise(o.Out, t, evolving, rigid)
	return verdict(o.Out, t, evolving, rigid, time.Since(began))
}

func runPhase(ctx context.Context, l *lab, s screen, o Options, rigid bool) (outcome, error) {
	title, name := "1 of 2: evolving jobs by evosbatch among stock jobs", "evolving"
	if rigid {
		title, name = "2 of 2: the same jobs at their peak sizes, by stock sbatch", "rigid"
	}
	if p, ok := s.(*plain); ok {
		fmt.Fprintln(o.Out, p.bold(title))
	}
	w := newWatch(l, s, title, rigid)
	p := phase{lab: l, drive: o.Drive, rigid: rigid, name: name, watch: w}
	out, err := p.run(ctx, o.Jobs)
	s.leave(w.last)
	return out, err
}

// verdict says in one line whether all is as it must be, or else what is not.
func verdict(out io.Writer, t terminal, evolving, rigid outcome, took time.Duration) error {
	faults := judge(evolving, rigid)
	fmt.Fprintln(out)
	if len(faults) == 0 {
		fmt.Fprintf(out, "%s every evolving job had the nodes it asked for, each step's within %.0f s;\nSlurm is left clean. (%.0f s in all)\n",
			t.green("PASSED:"), tolerance.Seconds(), took.Seconds())
		return nil
	}
	fmt.Fprintln(out, t.red("FAILED:"))
	for _, f := range faults {
		fmt.Fprintln(out, " ", f)
	}
	return ErrNotAsRequested
}
