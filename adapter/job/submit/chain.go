package submit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// sendChain runs sbatch once per step. If one fails, it cancels the earlier ones: half a chain
// would run and never finish.
func (s sender) sendChain(ctx context.Context, r submission, watched bool) (int, error) {
	var ids []slurmctl.JobID
	var waiting []<-chan error
	var first, previous uint32
	for i := range r.request.Profile {
		c, err := r.linkCall(i, first, previous)
		if err != nil {
			return 0, s.giveUp(ids, err)
		}
		l, err := s.sendLink(ctx, r, i, c, watched)
		if err != nil {
			return 0, s.giveUp(ids, err)
		}
		if l.status != 0 {
			if len(ids) > 0 {
				fmt.Fprintf(s.stderr, "evosbatch: error: %v\n", s.giveUp(ids, fmt.Errorf("step %d of %d was not submitted", i+1, len(r.request.Profile))))
			}
			return l.status, nil
		}
		if r.testOnly {
			continue
		}
		if i == 0 {
			first = l.id
		}
		previous = l.id
		ids = append(ids, slurmctl.JobID(l.id))
		if l.ended != nil {
			waiting = append(waiting, l.ended)
		}
	}
	s.report(r, ids)
	return highest(waiting)
}

// link is a job of a chain, as submitted.
type link struct {
	id     uint32
	status int          // sbatch's, if it submitted none
	ended  <-chan error // gets the outcome of a sbatch that waits for the job; nil: it waits for none
}

// sendLink runs sbatch for one step of a chain.
func (s sender) sendLink(ctx context.Context, r submission, i int, c call, watched bool) (link, error) {
	if err := ctx.Err(); err != nil {
		return link{}, errors.New("interrupted")
	}
	if !r.testOnly {
		c.extra = append(c.extra, "--parsable")
	}
	if watched {
		done, err := r.carry(&c)
		defer done()
		if err != nil {
			return link{}, err
		}
	}
	cmd := s.command(ctx, r.words(c))
	cmd.Env = slices.Concat(s.environ, r.stepVariables(i))
	if r.script.fromStdin {
		cmd.Stdin = bytes.NewReader(r.script.text)
	}
	var l link
	var text string
	var err error
	if _, waits := r.options.last("wait"); waits && !r.testOnly {
		text, l.ended, err = startWaiting(cmd)
	} else {
		var stdout bytes.Buffer
		cmd.Stdout = &stdout
		err = cmd.Run()
		text = stdout.String()
	}
	if l.status, err = statusOf(err); err != nil || l.status != 0 || r.testOnly {
		return l, err
	}
	if l.id, err = parseJobID(text); err == nil && watched {
		err = s.lookBack(ctx, r, c.request, slurmctl.JobID(l.id))
	}
	return l, err
}

// startWaiting starts sbatch --wait, and returns its job's ID once it has submitted it, and what
// gets its outcome.
func startWaiting(cmd *exec.Cmd) (string, <-chan error, error) {
	ended, ids := make(chan error, 1), make(chan uint32, 1)
	w := &idWatcher{out: &bytes.Buffer{}, look: func(id uint32) error { ids <- id; return nil }}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	go func() { ended <- runWith(cmd, w, true) }()
	select {
	case id := <-ids:
		return fmt.Sprint(id), ended, nil
	case err := <-ended:
		select {
		case id := <-ids:
			ended <- err
			return fmt.Sprint(id), ended, nil
		default:
		}
		return "", nil, err
	}
}

// highest waits for the jobs of a chain, and returns the highest status.
func highest(waiting []<-chan error) (int, error) {
	most := 0
	for _, ended := range waiting {
		status, err := statusOf(<-ended)
		if err != nil {
			return 0, err
		}
		most = max(most, status)
	}
	return most, nil
}

// giveUp cancels the jobs of a chain that cannot be completed and adds to err what became of them.
func (s sender) giveUp(ids []slurmctl.JobID, err error) error {
	if len(ids) == 0 {
		return err
	}
	var names []string
	for _, id := range ids {
		names = append(names, strconv.FormatUint(uint64(id), 10))
	}
	list := strings.Join(names, " ")
	if s.site.cluster == nil {
		return fmt.Errorf("%w; cancel the steps before it: scancel %s", err, list)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	if failed := s.site.cluster.Cancel(ctx, ids...); failed != nil {
		return fmt.Errorf("%w; cancelling the steps before it failed (%v): scancel %s", err, failed, list)
	}
	return fmt.Errorf("%w; the steps before it are cancelled: %s", err, list)
}

// report prints what sbatch would print for the chain's first job; the others go to stderr.
func (s sender) report(r submission, ids []slurmctl.JobID) {
	if r.testOnly || len(ids) == 0 || r.options.has("quiet") {
		return
	}
	if r.options.has("parsable") {
		fmt.Fprintln(s.stdout, ids[0])
		return
	}
	fmt.Fprintf(s.stdout, "Submitted batch job %d\n", ids[0])
	for i, id := range ids[1:] {
		fmt.Fprintf(s.stderr, "evosbatch: step %d of %d is job %d\n", i+2, len(ids), id)
	}
}
