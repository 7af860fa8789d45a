package submit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// dryRun prints the calls of sbatch; in a chain with 1, 2, … for the jobs' IDs to come.
func (s sender) dryRun(r submission) error {
	if !r.request.Drive.Means().StepsAreJobs {
		c, err := r.wholeCall()
		if err != nil {
			return err
		}
		s.explain(r)
		s.show(r.words(c), r.variables()...)
		return nil
	}
	for i := range r.request.Profile {
		c, err := r.linkCall(i, 1, uint32(i))
		if err != nil {
			return err
		}
		s.show(r.words(c), r.frequencyVariables(i)...)
	}
	return nil
}

// send submits the job and returns sbatch's exit status.
func (s sender) send(ctx context.Context, r submission) (int, error) {
	r, done, err := r.withStaging()
	defer done()
	if err != nil {
		return 0, err
	}
	watched := !r.testOnly && (r.options.target != "" || s.site.seesSubmissions(ctx) || request.HasLine(r.script.text))
	if r.request.Drive.Means().StepsAreJobs {
		return s.sendChain(ctx, r, watched)
	}
	c, err := r.wholeCall()
	if err != nil {
		return 0, err
	}
	if r.testOnly {
		s.explain(r)
	}
	if watched {
		return s.sendWatched(ctx, r, c)
	}
	return 0, s.become(r.words(c), r.script)
}

// sendWatched runs sbatch and then checks that the job still carries its request. It passes on
// sbatch's output and status, but prints the job's ID only after the check, because a lost job
// counts as not submitted.
func (s sender) sendWatched(ctx context.Context, r submission, c call) (int, error) {
	done, err := r.carry(&c)
	defer done()
	if err != nil {
		return 0, err
	}
	c.loud = r.options.has("quiet")
	cmd := s.command(ctx, r.words(c))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if r.script.fromStdin {
		f, err := fileOf(r.script.text)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		cmd.Stdin = f
	}
	w := &idWatcher{out: s.stdout, look: func(id uint32) error { return s.lookBack(ctx, r, c.request, slurmctl.JobID(id)) }}
	if c.loud {
		w.out = io.Discard
		errorsOnly := &errorLines{out: s.stderr}
		defer func() { errorsOnly.pass(errorsOnly.held.String()) }()
		cmd.Stderr = errorsOnly
	}
	err = runWith(cmd, w, r.options.has("wait"))
	if lost := w.finish(); lost != nil {
		return 0, lost
	}
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		if status, ok := failed.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal()), nil
		}
		s.explain(r)
		return failed.ExitCode(), nil
	}
	if err != nil {
		return 0, fmt.Errorf("sbatch: %w", err)
	}
	return 0, nil
}

// explain prints what speaks against a job as requested, if sbatch rejects it.
func (s sender) explain(r submission) {
	if r.doubt != nil {
		fmt.Fprintf(s.stderr, "evosbatch: as requested: %v\n", r.doubt)
	}
}
