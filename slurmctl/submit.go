package slurmctl

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Submit runs sbatch with args unchanged, as u (nil for this process's user), and returns what it
// printed. The job inherits Client.Env, so set it to the user's whole environment. Locale, time
// zone, and SLURM_ and SBATCH_ variables stay as they are. The working directory stays the same.
func (c *Client) Submit(ctx context.Context, u *User, args []string, stdin io.Reader) (string, error) {
	stdout, _, err := c.run(ctx, command{name: "sbatch", args: args, user: u, stdin: stdin, ofUser: true})
	return stdout, err
}

// AllocateRequest describes an allocation without a shell: an expander or a companion.
type AllocateRequest struct {
	User        *User    `json:"-"`                   // whose job it is; nil for this process's user
	Nodes       int      `json:"nodes"`               // number of nodes
	NodeList    []string `json:"node_list,omitempty"` // --nodelist: nodes that it must include
	Exclude     []string `json:"exclude,omitempty"`   // --exclude
	Partition   string   `json:"partition,omitempty"`
	Account     string   `json:"account,omitempty"`
	QOS         string   `json:"qos,omitempty"`
	Reservation string   `json:"reservation,omitempty"`
	Constraint  string   `json:"constraint,omitempty"`
	WCKey       string   `json:"wckey,omitempty"`
	Network     string   `json:"network,omitempty"`

	TmpDisk        int64  `json:"tmp_disk,omitempty"`        // MiB on each node
	MemoryPerNode  *int64 `json:"memory_per_node,omitempty"` // MiB; 0 for all of the node
	MemoryPerCPU   int64  `json:"memory_per_cpu,omitempty"`  // MiB
	MemoryPerGPU   int64  `json:"memory_per_gpu,omitempty"`  // MiB
	CPUsPerTask    int    `json:"cpus_per_task,omitempty"`
	CPUsPerGPU     int    `json:"cpus_per_gpu,omitempty"`
	TasksPerNode   int    `json:"tasks_per_node,omitempty"`
	TasksPerSocket int    `json:"tasks_per_socket,omitempty"`
	TasksPerCore   int    `json:"tasks_per_core,omitempty"`
	ThreadsPerCore int    `json:"threads_per_core,omitempty"`
	SocketsPerNode int    `json:"sockets_per_node,omitempty"`
	CoresPerSocket int    `json:"cores_per_socket,omitempty"`
	CoreSpec       *int   `json:"core_spec,omitempty"`
	ThreadSpec     *int   `json:"thread_spec,omitempty"`
	GRES           []GRES `json:"gres,omitempty"` // on each node

	// Parked submits the job without NodeList and Reservation, to begin in a year. An update then
	// puts it into the reservation and starts it. Some sites' plugins forbid submitting with these
	// options. Only root and SlurmUser can do this.
	Parked bool `json:"-"`

	ExpandJob JobID         `json:"expand_job,omitempty"` // base job to merge into; 0 for none
	Name      string        `json:"name,omitempty"`       // unique name to find the job by
	Comment   string        `json:"comment,omitempty"`    // free text
	TimeLimit time.Duration `json:"time_limit,omitempty"` // 0 for the partition's default
	Exclusive bool          `json:"exclusive,omitempty"`
	WorkDir   string        `json:"-"` // "" for /
}

// args checks the request and returns it as options.
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
		add("--reservation", checkNames, q.Reservation)
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
