package slurmctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

// Submit runs sbatch with args as they are, as u (nil: as this process), and
// gives what it printed. Give the user's whole environment as Client.Env, since
// the job inherits it: neither locale, time zone nor SLURM_ and SBATCH_
// variables are touched. The folder stays the present one.
func (c *Client) Submit(ctx context.Context, u *User, args []string, stdin io.Reader) (string, error) {
	stdout, _, err := c.run(ctx, command{name: "sbatch", args: args, user: u, stdin: stdin, ofUser: true})
	return stdout, err
}

// AllocateRequest is an allocation without a shell: an expander or a companion.
type AllocateRequest struct {
	User        *User    // whose job it is; nil: this process's
	Nodes       int      // how many
	NodeList    []string // --nodelist: these among them
	Exclude     []string // --exclude
	Partition   string
	Account     string
	QOS         string
	Reservation string
	Constraint  string
	WCKey       string
	Network     string

	TmpDisk        int64  // MiB on each node
	MemoryPerNode  *int64 // MiB; 0: all of the node
	MemoryPerCPU   int64  // MiB
	MemoryPerGPU   int64  // MiB
	CPUsPerTask    int
	CPUsPerGPU     int
	TasksPerNode   int
	TasksPerSocket int
	TasksPerCore   int
	ThreadsPerCore int
	SocketsPerNode int
	CoresPerSocket int
	CoreSpec       *int
	ThreadSpec     *int
	GRES           []GRES // on each node

	// Parked has the job submitted with neither NodeList nor Reservation, to begin in a
	// year, and then put into the reservation and started by an update: for sites whose
	// plugins let nobody submit with these. Only root and SlurmUser can.
	Parked bool

	ExpandJob JobID         // the base job that it is to be merged into; 0: none
	Name      string        // free text; a tag unique to this request makes a lost one findable
	Comment   string        // free text
	TimeLimit time.Duration // 0: the partition's default
	Exclusive bool
	WorkDir   string // "": /
}

// Allocate runs salloc --no-shell and waits until the allocation is granted.
// Without a deadline of the context it waits as long as any command may. When
// the context ends first, the job, pending or granted, is cancelled before
// Allocate returns. It gives the job as it was seen once granted, or with an error no
// more than its id, where that is known. Only where slurmctld does not answer at all (ErrUnreachable or no id) may there be a
// job whose id is not known: search for its Name.
//
// Once the job is granted salloc is ended: it would look for the nodes to be ready
// at growing intervals, which takes 3 s where a prolog runs (PrologFlags=Contain),
// though srun could use them after 0.1 s (measured on 22.05). The job may be
// CONFIGURING when Allocate returns.
//
// A salloc that gets SIGTERM before slurmctld's answer dies and leaves the job
// behind, so none is told to stop before it has printed the id.
//
// Where it is not granted in time the error is a *PendingError, which tells why the job
// was pending; one that a limit keeps back ([Limited]) is given up after a second or
// two. It fails with ErrLimit, ErrDependency (no such running base job), ErrNotSupported, ….
func (c *Client) Allocate(ctx context.Context, q AllocateRequest) (Job, error) {
	args, err := q.args()
	if err != nil {
		return Job{}, err
	}
	seen := firstID{found: make(chan struct{}), grant: make(chan struct{})}
	own, stop := context.WithCancel(ctx)
	defer stop()
	watch := c.watchPending(ctx, &seen, stop)
	letGo := make(chan error, 1)
	go func() {
		var err error
		select {
		case <-seen.found:
			if id, _ := seen.get(); q.Parked {
				err = c.UpdateJob(own, id, JobUpdate{StartNow: true, Reservation: &q.Reservation})
			}
		case <-own.Done():
		}
		letGo <- err
		if err != nil {
			stop()
		}
	}()
	_, _, err = c.run(own, command{name: "salloc", args: args, user: q.User,
		watch: seen.look, ready: seen.known, enough: seen.grant, open: true, grace: allocateGrace})
	reason := watch.end()
	stop()
	notLetGo := <-letGo
	id, granted := seen.get()
	switch {
	case err == nil:
	case notLetGo != nil:
		err = notLetGo
	case id != 0 && !granted:
		err = &PendingError{Job: id, Reason: reason, Err: err}
	}
	if err == nil && !granted {
		err = refused(append([]string{"salloc"}, args...), 0, "", "no allocation was granted")
	}
	if err == nil {
		var j Job
		if j, err = c.own(ctx, id, q); err == nil {
			return j, nil
		}
	}
	if id != 0 {
		// salloc cancels its job when told to stop; be sure of it.
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout())
		defer cancel()
		err = errors.Join(err, c.Cancel(after, id))
	}
	return Job{ID: id}, err
}

// allocateGrace is how long a salloc that was told to stop may take to cancel its job.
const allocateGrace = 5 * time.Second

// own sees that a job is the one asked for, by its user and name: what salloc
// prints holds messages of other people too (scontrol notify).
func (c *Client) own(ctx context.Context, id JobID, q AllocateRequest) (Job, error) {
	jobs, err := c.Glance(ctx, id)
	switch {
	case err != nil:
		return Job{}, err
	case len(jobs) == 0:
		return Job{}, fmt.Errorf("job %d: %w: gone as soon as granted", id, ErrUnknownJob)
	case q.User != nil && jobs[0].UID != q.User.UID, q.Name != "" && jobs[0].Name != q.Name:
		return Job{}, fmt.Errorf("job %d is not the one allocated", id)
	case jobs[0].Ended():
		return Job{}, fmt.Errorf("job %d: %w (%s) as soon as granted", id, ErrAlreadyDone, jobs[0].State)
	}
	return jobs[0], nil
}

// args checks the request and writes it as options.
func (q AllocateRequest) args() ([]string, error) {
	args := []string{"--no-shell"}
	var problem error
	add := func(option string, check func(string) error, value string) {
		if value == "" {
			return
		}
		if err := check(value); err != nil && problem == nil {
			problem = fmt.Errorf("salloc %s: %w", option, err)
		}
		args = append(args, option+"="+value)
	}
	nodes := func(option string, names []string) {
		expr, err := checkNodes(names)
		if err != nil && problem == nil {
			problem = fmt.Errorf("salloc %s: %w", option, err)
		}
		add(option, func(string) error { return nil }, expr)
	}
	if q.Nodes < 1 {
		return nil, fmt.Errorf("salloc --nodes: %d nodes", q.Nodes)
	}
	count := func(option string, n int64, least int64, unit string) {
		if n < least && problem == nil {
			problem = fmt.Errorf("salloc %s: %d", option, n)
		}
		args = append(args, option+"="+strconv.FormatInt(n, 10)+unit)
	}
	some := func(option string, n int64, unit string) {
		if n != 0 {
			count(option, n, 1, unit)
		}
	}
	args = append(args, "--nodes="+strconv.Itoa(q.Nodes))
	if q.Parked {
		args = append(args, "--begin=now+365days")
	} else {
		nodes("--nodelist", q.NodeList)
		add("--reservation", checkName, q.Reservation)
	}
	nodes("--exclude", q.Exclude)
	add("--partition", checkPartitions, q.Partition)
	add("--account", checkWord, q.Account)
	add("--qos", checkWord, q.QOS)
	add("--constraint", checkFeatures, q.Constraint)
	add("--wckey", checkText, q.WCKey)
	add("--network", checkText, q.Network)
	if q.MemoryPerNode != nil {
		count("--mem", *q.MemoryPerNode, 0, "M")
	}
	some("--tmp", q.TmpDisk, "M")
	some("--mem-per-cpu", q.MemoryPerCPU, "M")
	some("--mem-per-gpu", q.MemoryPerGPU, "M")
	some("--cpus-per-task", int64(q.CPUsPerTask), "")
	some("--cpus-per-gpu", int64(q.CPUsPerGPU), "")
	some("--ntasks-per-node", int64(q.TasksPerNode), "")
	some("--ntasks-per-socket", int64(q.TasksPerSocket), "")
	some("--ntasks-per-core", int64(q.TasksPerCore), "")
	some("--threads-per-core", int64(q.ThreadsPerCore), "")
	some("--sockets-per-node", int64(q.SocketsPerNode), "")
	some("--cores-per-socket", int64(q.CoresPerSocket), "")
	if q.CoreSpec != nil {
		count("--core-spec", int64(*q.CoreSpec), 0, "")
	}
	if q.ThreadSpec != nil {
		count("--thread-spec", int64(*q.ThreadSpec), 0, "")
	}
	add("--gres", checkGRES, JoinGRES(q.GRES))
	if q.ExpandJob != 0 {
		args = append(args, "--dependency=expand:"+formatID(q.ExpandJob))
	}
	add("--job-name", checkText, q.Name)
	add("--comment", checkText, q.Comment)
	if q.TimeLimit != 0 {
		add("--time", checkLimit(q.TimeLimit), formatDuration(q.TimeLimit))
	}
	if q.Exclusive {
		args = append(args, "--exclusive")
	}
	workDir := q.WorkDir
	if workDir == "" {
		workDir = "/"
	}
	add("--chdir", checkText, workDir)
	return args, problem
}

var allocationPattern = pattern(`(?m)^salloc: (Pending|Granted) job allocation (\d+)$`)

// firstID finds a job's id in what salloc prints, as it comes. The first id
// counts: what others may have printed there comes later.
type firstID struct {
	mu      sync.Mutex
	id      JobID
	granted bool
	found   chan struct{} // closed when it is known
	grant   chan struct{} // closed when it is granted
}

func (f *firstID) look(stderr []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	whole := stderr[:bytes.LastIndexByte(stderr, '\n')+1]
	for _, m := range allocationPattern().FindAllSubmatch(whole, -1) {
		n, err := strconv.ParseUint(string(m[2]), 10, 32)
		if err != nil || n == 0 || f.id != 0 && f.id != JobID(n) {
			continue
		}
		if f.id == 0 {
			f.id = JobID(n)
			close(f.found)
		}
		if string(m[1]) == "Granted" && !f.granted {
			f.granted = true
			close(f.grant)
		}
	}
}

func (f *firstID) known() bool {
	id, _ := f.get()
	return id != 0
}

func (f *firstID) get() (JobID, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.id, f.granted
}
