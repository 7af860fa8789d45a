package slurmctl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// JobUpdate is what to change of a job; what is zero or nil stays.
type JobUpdate struct {
	StartTime    time.Time     // of a pending job; a future one waits for Slurm's next cycle
	StartNow     bool          // instead of StartTime: now, at once
	TimeLimit    time.Duration // Unlimited: none; rounded up to minutes by Slurm
	EndTime      time.Time     // of a running job, to the second; not together with TimeLimit
	Reservation  *string       // or several, with commas; "": none, detaches a running job too
	Comment      *string       // at most 1,024 characters
	AdminComment *string       // at most 130,000 bytes; root, SlurmUser and administrators
	Nice         *int
	Dependency   *string // "": none; e.g. "afterok:12", "expand:12"
	Partition    string
	NumNodes     int // of a pending job

	// As is in whose name; nil: this process's. What root or an operator sets, Slurm exempts
	// from the limits of association and QOS (22.05: ADMIN_SET_LIMIT); what its owner sets of a
	// pending job, nodes and time limit up and down, it checks as at a submission.
	As *User
}

// UpdateJob changes a job by one scontrol. It fails with ErrUnknownJob,
// ErrAlreadyDone, ErrNotPending, ErrAccessDenied, ErrDBIndex, ….
func (c *Client) UpdateJob(ctx context.Context, id JobID, u JobUpdate) error {
	a := newSetting("update")
	a.user = u.As
	a.job(id)
	fixed := len(a.args)
	switch {
	case u.StartNow && !u.StartTime.IsZero():
		return errors.New("scontrol update: StartNow and StartTime exclude each other")
	case u.StartNow:
		a.raw("StartTime", "now")
	case !u.StartTime.IsZero():
		a.raw("StartTime", formatTime(u.StartTime))
	}
	if u.TimeLimit != 0 && !u.EndTime.IsZero() {
		return errors.New("scontrol update: TimeLimit and EndTime exclude each other")
	}
	if u.TimeLimit != 0 {
		a.add("TimeLimit", checkLimit(u.TimeLimit), formatDuration(u.TimeLimit))
	}
	if !u.EndTime.IsZero() {
		a.raw("EndTime", formatTime(u.EndTime))
	}
	if u.Reservation != nil {
		a.add("Reservation", orEmpty(checkNames), *u.Reservation)
	}
	if u.Dependency != nil {
		a.add("Dependency", orEmpty(checkDependency), *u.Dependency)
	}
	if u.Partition != "" {
		a.add("Partition", checkPartitions, u.Partition)
	}
	if u.Nice != nil {
		a.raw("Nice", strconv.Itoa(*u.Nice))
	}
	if u.NumNodes < 0 {
		return fmt.Errorf("scontrol update: %d nodes", u.NumNodes)
	}
	if u.NumNodes > 0 {
		a.raw("NumNodes", fmt.Sprintf("%d-%d", u.NumNodes, u.NumNodes))
	}
	if u.Comment != nil {
		a.add("Comment", checkText, *u.Comment)
	}
	if u.AdminComment != nil {
		a.add("AdminComment", checkText, *u.AdminComment)
	}
	if len(a.args) == fixed {
		return nil // nothing to change
	}
	return c.change(ctx, id, a)
}

func (a *setting) job(id JobID) {
	a.add("JobId", func(string) error { return checkID(id) }, formatID(id))
}

func orEmpty(check func(string) error) func(string) error {
	return func(s string) error {
		if s == "" {
			return nil
		}
		return check(s)
	}
}

func checkLimit(d time.Duration) func(string) error {
	return func(string) error {
		if d != Unlimited && (d < time.Second || d > maxDuration) {
			return fmt.Errorf("time limit %v", d)
		}
		return nil
	}
}

// Merge gives all nodes of a running expander to the base job that it was
// allocated for; the expander ends (COMPLETED). See the base job RUNNING just
// before (merging into an ended job leaks the nodes), merge one expander at a
// time, read the base job back, and again some seconds later: slurmctld saves
// its state lazily. It fails with ErrNotSupported (no permit_job_expansion),
// ErrHasSteps (PrologFlags=Contain), ErrNodeCount (no expand link: slurmctld was
// restarted) or ErrDBIndex (22.05 without slurmdbd, second resize).
func (c *Client) Merge(ctx context.Context, expander JobID) error {
	a := newSetting("update")
	a.job(expander)
	a.raw("NumNodes", "0")
	return c.change(ctx, expander, a)
}

// RegrowAfter is for how long after a [Client.Shrink] no step can be relied on to start on the nodes
// that it took from the job, should it have them again by a [Client.Merge], and how long after a job was
// requeued it must not be started again: slurmd refuses a credential that is not from a later second than
// its order to end the job there (src/slurmd/slurmd/cred_context.c, cred_revoked: "Job credential
// revoked"), and slurmctld ends a job whose script is refused as FAILED.
const RegrowAfter = time.Second

// Shrink leaves a running job only the nodes to keep, among them its batch host.
// Steps on the others are killed at once, without SIGTERM. It fails with
// ErrNodeName where the batch host is missing or a node is not the job's.
func (c *Client) Shrink(ctx context.Context, id JobID, keep []string) error {
	if len(keep) == 0 {
		return fmt.Errorf("job %d cannot shrink to no nodes", id)
	}
	a := newSetting("update")
	a.job(id)
	a.nodes("NodeList", keep)
	return c.change(ctx, id, a)
}

// Hold keeps a pending job from starting; its priority becomes 0.
func (c *Client) Hold(ctx context.Context, id JobID) error { return c.onJob(ctx, "hold", id) }

// Release undoes Hold.
func (c *Client) Release(ctx context.Context, id JobID) error { return c.onJob(ctx, "release", id) }

func (c *Client) onJob(ctx context.Context, verb string, id JobID) error {
	if err := checkID(id); err != nil {
		return err
	}
	_, err := c.output(ctx, "scontrol", verb, formatID(id))
	return err
}

// perCancel bounds the ids of one scancel.
const perCancel = 500

// cancelTime bounds a scancel in the name of a user, who can stop it.
const cancelTime = 5 * time.Second

// CancelAs does what Cancel does in the name of a user (nil: this process's), whom Slurm
// lets end no other user's job.
func (c *Client) CancelAs(ctx context.Context, u *User, ids ...JobID) error {
	if u.foreign() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, min(cancelTime, c.timeout()))
		defer cancel()
	}
	return c.cancel(ctx, u, ids)
}

// Cancel ends jobs. That a job has ended or is not known any more is no error.
// The id of an array cancels all its tasks, that of a heterogeneous job's first
// component all components.
func (c *Client) Cancel(ctx context.Context, ids ...JobID) error { return c.cancel(ctx, nil, ids) }

func (c *Client) cancel(ctx context.Context, u *User, ids []JobID) error {
	for len(ids) > 0 {
		some := ids[:min(perCancel, len(ids))]
		ids = ids[len(some):]
		args := []string{"--quiet"}
		for _, id := range some {
			if err := checkID(id); err != nil {
				return err
			}
			args = append(args, formatID(id))
		}
		if _, _, err := c.run(ctx, command{name: "scancel", args: args, user: u}); err != nil && !onlyGone(err) {
			return err
		}
	}
	return nil
}

// onlyGone reports whether scancel complained only of jobs that have gone.
func onlyGone(err error) bool {
	var ce *CommandError
	if !errors.As(err, &ce) || ce.ExitCode <= 0 {
		return false
	}
	said := false
	for line := range strings.Lines(ce.Stderr) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		one := &CommandError{Stderr: line}
		if !one.Is(ErrUnknownJob) && !one.Is(ErrAlreadyDone) {
			return false
		}
		said = true
	}
	return said
}

// SignalOptions say which processes of a job a signal goes to: the tasks of its
// steps, unless something else is set.
type SignalOptions struct {
	Batch bool // the batch script alone
	Full  bool // the batch script, its children and all steps
}

// Signal sends a signal, e.g. "USR1", to a running job. On a pending job scancel
// tries for long: give a context with a deadline.
func (c *Client) Signal(ctx context.Context, id JobID, sig string, o SignalOptions) error {
	if err := errors.Join(checkID(id), checkSignal(sig)); err != nil {
		return err
	}
	args := []string{"--signal=" + sig}
	if o.Batch {
		args = append(args, "--batch")
	}
	if o.Full {
		args = append(args, "--full")
	}
	_, err := c.output(ctx, "scancel", append(args, formatID(id))...)
	return err
}

// BatchScript gives a job's script as submitted, also of a job just ended; for
// its owner, root, SlurmUser and operators. A job without one (salloc) is an
// error. O(length of the script).
func (c *Client) BatchScript(ctx context.Context, id JobID) (string, error) {
	if err := checkID(id); err != nil {
		return "", err
	}
	args := []string{"write", "batch_script", formatID(id), "-"}
	out, stderr, err := c.run(ctx, command{name: "scontrol", args: args})
	if err != nil {
		return "", err
	}
	// The exit code is 0 even on failure: only the text tells.
	if !strings.HasPrefix(out, "#!") {
		return "", refused(append([]string{"scontrol"}, args...), 0, stderr, "no batch script")
	}
	return out, nil
}

// Reconfigure makes slurmctld read its configuration again.
func (c *Client) Reconfigure(ctx context.Context) error {
	_, err := c.output(ctx, "scontrol", "reconfigure")
	return err
}
