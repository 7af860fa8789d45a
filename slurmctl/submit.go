package slurmctl

import (
	"context"
	"fmt"
	"io"
	"strconv"
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
	Name      string        // unique to this request: the job is found by it
	Comment   string        // free text
	TimeLimit time.Duration // 0: the partition's default
	Exclusive bool
	WorkDir   string // "": /
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
	add("--job-name", checkName, q.Name)
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
