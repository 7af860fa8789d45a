package submit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// runWatched runs sbatch and then checks that the job still carries its request. It passes on
// sbatch's output and status, but prints the job's ID only after the check, because a lost job
// counts as not submitted.
func (c *Command) runWatched(ctx context.Context, r *submission, s step) (int, error) {
	done, err := r.carry(&s)
	defer done()
	if err != nil {
		return 0, err
	}
	r.quiet = r.options.has("quiet")
	stdin := c.Stdin
	if r.script != nil {
		if stdin, err = fileOf(r.script); err != nil {
			return 0, err
		}
		defer stdin.Close()
	}
	w := &idWatcher{out: c.Stdout, look: func(id uint32) error { return c.lookBack(ctx, r, s.request, slurmctl.JobID(id)) }}
	if r.quiet {
		w.out = io.Discard
	}
	stderr := c.Stderr
	if r.quiet {
		errorsOnly := &errorLines{out: c.Stderr}
		defer errorsOnly.flush()
		stderr = errorsOnly
	}
	cmd := exec.CommandContext(ctx, c.Sbatch, r.words(s)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env, cmd.Stdin, cmd.Stderr = c.Environ, stdin, stderr
	err = c.runWith(cmd, w, r.options.has("wait"))
	if lost := w.finish(); lost != nil {
		return 0, lost
	}
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		if status, ok := failed.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal()), nil
		}
		c.explain(r)
		return failed.ExitCode(), nil
	}
	if err != nil {
		return 0, fmt.Errorf("sbatch: %w", err)
	}
	return 0, nil
}

// explain prints what speaks against a job as requested, if sbatch rejects it.
func (c *Command) explain(r *submission) {
	if r.doubt != nil {
		fmt.Fprintf(c.Stderr, "evosbatch: as requested: %v\n", r.doubt)
	}
}

// runWith runs a command with standard output to w. If it waits for the job, it gets a terminal:
// into a pipe, sbatch would write the ID only at its end.
func (c *Command) runWith(cmd *exec.Cmd, w io.Writer, waits bool) error {
	if !waits {
		cmd.Stdout = w
		return cmd.Run()
	}
	master, slave, err := openTerminal()
	if err != nil {
		cmd.Stdout = w
		return cmd.Run()
	}
	defer master.Close()
	cmd.Stdout = slave
	err = cmd.Start()
	slave.Close()
	if err != nil {
		return err
	}
	_, _ = io.Copy(w, master) // ends with EIO once the other side is closed
	return cmd.Wait()
}

// idWatcher passes sbatch's output on once the job that its first id names was looked
// at.
type idWatcher struct {
	out  io.Writer
	look func(id uint32) error

	mu     sync.Mutex
	held   bytes.Buffer
	looked bool
	lost   error
}

func (w *idWatcher) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held.Write(p)
	if !w.looked {
		whole := w.held.Bytes()[:bytes.LastIndexByte(w.held.Bytes(), '\n')+1]
		id, err := parseJobID(submitted(lastLine(string(whole))))
		if err != nil {
			return len(p), nil
		}
		w.looked, w.lost = true, w.look(id)
	}
	if w.lost == nil {
		_, _ = w.held.WriteTo(w.out)
	}
	return len(p), nil
}

// submitted returns the ID in sbatch's output without --parsable: "Submitted batch job 7", with "
// on cluster c" if clusters are named.
func submitted(line string) string {
	rest, ok := strings.CutPrefix(line, "Submitted batch job ")
	if !ok {
		return line
	}
	id, _, _ := strings.Cut(rest, " on cluster ")
	return id
}

// finish passes on the rest and reports the result of the check.
func (w *idWatcher) finish() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost == nil {
		_, _ = w.held.WriteTo(w.out)
	}
	return w.lost
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	line := text[strings.LastIndexByte(text, '\n')+1:]
	line, _, _ = strings.Cut(line, " on cluster ")
	return line
}

// errorLines passes on what sbatch prints with --quiet: errors.
type errorLines struct {
	out  io.Writer
	held bytes.Buffer
}

func (e *errorLines) Write(p []byte) (int, error) {
	e.held.Write(p)
	for bytes.IndexByte(e.held.Bytes(), '\n') >= 0 {
		line, _ := e.held.ReadString('\n')
		e.pass(line)
	}
	return len(p), nil
}

func (e *errorLines) flush() { e.pass(e.held.String()) }

func (e *errorLines) pass(line string) {
	if rest, own := strings.CutPrefix(line, "sbatch: "); !own || strings.HasPrefix(rest, "error:") || strings.HasPrefix(rest, "fatal:") {
		_, _ = io.WriteString(e.out, line)
	}
}

// lookBack checks that a new job still carries its request in its comment or script. If not, the
// job would wait forever, so it is cancelled.
func (c *Command) lookBack(ctx context.Context, r *submission, want request.Request, id slurmctl.JobID) error {
	if ctx.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	unknown := func(err error) error {
		fmt.Fprintf(c.Stderr, "evosbatch: warning: what this site's plugins have made of job %d is not known: %v\n", id, err)
		return nil
	}
	if c.Cluster == nil {
		return nil
	}
	jobs, err := c.Cluster.Glance(ctx, id)
	if err != nil {
		return unknown(err)
	}
	if len(jobs) == 0 || jobs[0].State != slurmctl.Pending {
		return nil // it runs already, or has ended
	}
	if err := c.checkMoved(ctx, r, want, jobs[0]); err != nil {
		return c.takeBack(ctx, id, err)
	}
	got, asked, err := request.ParseMarker(jobs[0].Comment)
	if asked && err == nil && (got.Same(want) || got.Profile == nil) {
		return c.mayGrow(ctx, want, id)
	}
	text, err := c.Cluster.BatchScript(ctx, id)
	var none *slurmctl.CommandError
	if err != nil && (!errors.As(err, &none) || none.ExitCode != 0) {
		return unknown(err)
	}
	given, asked, err := request.FromStored([]byte(text))
	inScript := asked && err == nil && given.Same(want)
	if inScript && jobs[0].StartTime.After(time.Now().Add(parkedAhead)) {
		return c.mayGrow(ctx, want, id)
	}
	why, remedy := "neither its comment nor its script says what it asked for any more", "ask your administrators to leave the part of comments that begins with evo: and ends in ;; as it is"
	switch cannot := r.cannotCarry(); {
	case inScript:
		why, remedy = "its comment and its begin time are not as they were submitted", "ask your administrators to leave one of them as it is"
	case cannot != "":
		why, remedy = "its comment does not say what it asked for any more, and "+cannot, "write the request into the script, as #EVO --profile="+legible.Brief(want.Profile.String())
	}
	err = fmt.Errorf("this site's submission plugins have changed job %d: %s (the comment is now %q). Evoslurm would never start it; %s", id, why, legible.Brief(jobs[0].Comment), remedy)
	return c.takeBack(ctx, id, err)
}

// mayGrow sees that the site lets the job that was just submitted grow. One that it does
// not is cancelled.
func (c *Command) mayGrow(ctx context.Context, want request.Request, id slurmctl.JobID) error {
	slurm, ok := c.Cluster.(interface {
		Request(context.Context, slurmctl.JobID, slurmctl.Config) (slurmctl.JobRequest, error)
		MayAllocate(context.Context, slurmctl.AllocateRequest) error
	})
	grows := want.Whole()
	if !ok || want.Chain != nil || request.MostAtOnce(grows) == 0 {
		return nil
	}
	var asked slurmctl.JobRequest
	cfg, err := c.Cluster.Config(ctx)
	if err == nil {
		asked, err = slurm.Request(ctx, id, cfg)
	}
	if gres, bad := asked.GRESPerNode(grows[0].Nodes); err == nil && bad == nil { // otherwise the sidecar asks again
		if why := request.MayGrow(ctx, slurm, asked, request.MostAtOnce(grows), gres, nil); why != nil {
			return c.takeBack(ctx, id, why)
		}
	}
	return nil
}

// takeBack cancels a job because of err.
func (c *Command) takeBack(ctx context.Context, id slurmctl.JobID, err error) error {
	if failed := c.Cluster.Cancel(ctx, id); failed != nil {
		return fmt.Errorf("%w. Cancelling it failed (%v): scancel %d", err, failed, id)
	}
	return fmt.Errorf("%w. The job is cancelled", err)
}

// parkedAhead is how far ahead the begin time of a job lies, at least, that waits for
// Evoslurm (ParkedUntil).
const parkedAhead = 5 * 365 * 24 * time.Hour
