package slurmctl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// JobUpdate describes changes to a job; zero and nil values leave it unchanged.
type JobUpdate struct {
	StartTime    time.Time     // of a pending job; a future one waits for Slurm's next cycle
	StartNow     bool          // instead of StartTime: start now
	TimeLimit    time.Duration // Unlimited for none; Slurm rounds up to minutes
	EndTime      time.Time     // of a running job, to the second; not together with TimeLimit
	Reservation  *string       // one or several, with commas; "" for none, which also detaches a running job
	Comment      *string       // at most 1,024 characters
	Name         string        // free text
	AdminComment *string       // at most 130,000 bytes; root, SlurmUser and administrators
	Nice         *int
	Dependency   *string // "": none; e.g. "afterok:12", "expand:12"
	Partition    string
	NumNodes     int  // of a pending job
	Switches     int  // start on so many leaf switches, or else at once on more
	Hold         bool // keep a pending job from starting, as scontrol hold does

	// As is the user to run the update as; nil for this process's user. Values set by root or an
	// operator are exempt from association and QOS limits (22.05: ADMIN_SET_LIMIT). Slurm checks
	// the owner's changes to nodes and time limit of a pending job, up and down, as at submission.
	As *User
}

// UpdateJob changes a job by one scontrol. It fails with ErrUnknownJob,
// ErrAlreadyDone, ErrNotPending, ErrAccessDenied, ErrDBIndex, ….
func (c *Client) UpdateJob(ctx context.Context, id JobID, u JobUpdate) error {
	a := newSetting("update")
	a.user = u.As
	a.job(c, id)
	fixed := len(a.args)
	if err := u.settings(a); err != nil || len(a.args) == fixed {
		return err // or nothing to change
	}
	return c.change(ctx, id, a)
}

// settings adds the changes to an update.
func (u *JobUpdate) settings(a *setting) error {
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
	return u.requests(a)
}

// requests adds the changes to what a job asks for, and its texts.
func (u *JobUpdate) requests(a *setting) error {
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
	if u.Hold {
		a.raw("Priority", "0")
	}
	if u.NumNodes > 0 {
		a.raw("NumNodes", fmt.Sprintf("%d-%d", u.NumNodes, u.NumNodes))
	}
	if u.Switches > 0 {
		a.raw("Switches", strconv.Itoa(u.Switches)+"@0")
	}
	if u.Comment != nil {
		a.add("Comment", checkText, *u.Comment)
	}
	if u.AdminComment != nil {
		a.add("AdminComment", checkText, *u.AdminComment)
	}
	if u.Name != "" {
		a.add("JobName", checkText, u.Name)
	}
	return nil
}

// job adds which job to update. An array's own ID would stand for all its tasks.
func (a *setting) job(c *Client, id JobID) {
	a.add("JobId", func(string) error { return checkID(id) }, c.name(id))
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

// Merge returns all nodes of a running expander to the base job that it was allocated for, and the
// expander ends (COMPLETED). Check just before that the base job is RUNNING: merging into an ended
// job leaks the nodes. Merge one expander at a time. Read the base job back, and again some seconds
// later, because slurmctld saves its state lazily. Merge fails with ErrNotSupported (no
// permit_job_expansion), ErrHasSteps (PrologFlags=Contain), ErrNodeCount (no expand link: slurmctld
// was restarted), or ErrDBIndex (22.05 without slurmdbd, second resize).
func (c *Client) Merge(ctx context.Context, expander JobID) error {
	a := newSetting("update")
	a.job(c, expander)
	a.raw("NumNodes", "0")
	return c.change(ctx, expander, a)
}

// RegrowAfter is how long nodes taken from a job by [Client.Shrink] may reject the job's steps if
// the job gets them back by [Client.Merge]. It is also how long a requeued job must not be started
// again. slurmd refuses a credential unless it is from a later second than slurmd's order to end
// the job (src/slurmd/slurmd/cred_context.c, cred_revoked: "Job credential revoked"). If slurmd
// refuses a job's script, slurmctld ends the job as FAILED.
const RegrowAfter = time.Second

// Shrink leaves a running job only the nodes to keep, which must include its batch host. Steps on
// the other nodes are killed at once, without SIGTERM. It fails with ErrNodeName if the batch host
// is missing or a node is not the job's.
func (c *Client) Shrink(ctx context.Context, id JobID, keep []string) error {
	if len(keep) == 0 {
		return fmt.Errorf("job %d cannot shrink to no nodes", id)
	}
	a := newSetting("update")
	a.job(c, id)
	a.nodes("NodeList", keep)
	return c.change(ctx, id, a)
}

// Hold keeps a pending job from starting; its priority becomes 0.
func (c *Client) Hold(ctx context.Context, id JobID) error { return c.onJob(ctx, "hold", id) }

// Release undoes Hold.
func (c *Client) Release(ctx context.Context, id JobID) error { return c.onJob(ctx, "release", id) }

// Requeue puts a running batch job back into the queue: its processes get SIGTERM, and after KillWait SIGKILL. Slurm starts it again
// after two minutes at the earliest, unless its StartTime is changed. It fails with ErrNotSupported for a job that may not be requeued
// (sbatch --no-requeue), and with ErrAlreadyDone for one that ends.
func (c *Client) Requeue(ctx context.Context, id JobID) error { return c.onJob(ctx, "requeue", id) }

func (c *Client) onJob(ctx context.Context, verb string, id JobID) error {
	if err := checkID(id); err != nil {
		return err
	}
	_, err := c.output(ctx, "scontrol", verb, c.name(id))
	return err
}

// perCancel bounds the IDs of one scancel.
const perCancel = 500

// cancelTime bounds a scancel that runs as a user, who can stop it.
const cancelTime = 5 * time.Second

// CancelAs does what Cancel does, as a user (nil for this process's). Slurm lets a user end only
// the user's own jobs.
func (c *Client) CancelAs(ctx context.Context, u *User, ids ...JobID) error {
	if u.foreign() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, min(cancelTime, c.timeout()))
		defer cancel()
	}
	return c.cancel(ctx, u, ids)
}

// Cancel ends jobs and ignores jobs that have ended or are unknown. An array's ID cancels all its
// tasks, unless the client has seen it as that of one task; the ID of a heterogeneous job's first component cancels all components.
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
			args = append(args, c.name(id))
		}
		if _, _, err := c.run(ctx, command{name: "scancel", args: args, user: u}); err != nil && !onlyGone(err) {
			return err
		}
	}
	return nil
}

// onlyGone reports whether scancel complained only about jobs that are gone.
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

// SignalOptions selects the processes of a job that get a signal; by default, the tasks of its
// steps.
type SignalOptions struct {
	Batch bool // only the batch script
	Full  bool // the batch script, its children and all steps
}

// Signal sends a signal, e.g. "USR1", to running jobs by one scancel, and ignores jobs that have ended or are unknown. If it
// fails, it returns the jobs that perhaps did not get the signal. Up to 23.11, scancel reads the whole queue first (see
// [SignalsAlone]), and retries for a long time on a pending job, so pass a context with a deadline.
func (c *Client) Signal(ctx context.Context, sig string, o SignalOptions, ids ...JobID) ([]JobID, error) {
	args := []string{"--ctld", "--signal=" + sig}
	if o.Batch {
		args = append(args, "--batch")
	}
	if o.Full {
		args = append(args, "--full")
	}
	err := checkSignal(sig)
	for _, id := range ids {
		err = errors.Join(err, checkID(id))
		args = append(args, c.name(id))
	}
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	_, stderr, err := c.run(ctx, command{name: "scancel", args: args})
	if err == nil && strings.Contains(stderr, "Kill job error") { // from 23.11.6 on, the exit code is 0 even on failure
		err = refused(append([]string{"scancel"}, args...), 0, stderr, "not every job was signalled")
	}
	if err == nil || onlyGone(err) {
		return nil, nil
	}
	var failed []JobID
	for _, id := range ids {
		if strings.Contains(stderr, "job id "+c.name(id)+":") {
			failed = append(failed, id)
		}
	}
	if len(failed) == 0 {
		failed = ids
	}
	return failed, err
}

// BatchScript returns a job's script as submitted, even for a job that has just ended; for its
// owner, root, SlurmUser, and operators. A job without a script (salloc) is an error. O(length of
// the script).
func (c *Client) BatchScript(ctx context.Context, id JobID) (string, error) {
	if err := checkID(id); err != nil {
		return "", err
	}
	args := []string{"write", "batch_script", formatID(id), "-"}
	out, stderr, err := c.run(ctx, command{name: "scontrol", args: args})
	if err != nil {
		return "", err
	}
	// The exit code is 0 even on failure; only the text shows it.
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
