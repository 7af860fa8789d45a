package slurmctl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// JobRequest holds what a job requested, as far as requests for further nodes must repeat it.
// Values not given are zero.
type JobRequest struct {
	ID        JobID
	UID       uint32
	Account   string
	QOS       string
	Partition string // the first of several
	WCKey     string
	Features  string // --constraint
	Network   string
	Licenses  string // of the whole job

	TmpDisk       int64 // MiB on each node
	MemoryPerNode int64 // MiB
	MemoryPerCPU  int64 // MiB
	MemoryPerGPU  int64 // MiB
	// DefaultMemory holds the memory per node or per CPU that the partition, or otherwise the cluster,
	// gives to jobs that request none.
	DefaultMemoryPerNode int64
	DefaultMemoryPerCPU  int64

	CPUsPerTask    int
	CPUsPerGPU     int
	TasksPerNode   int
	TasksPerSocket int
	TasksPerCore   int
	ThreadsPerCore int
	SocketsPerNode int
	CoresPerSocket int
	CoreSpec       *int // cores kept for the system; 0 means none
	ThreadSpec     *int

	TRESPerJob    string // "gres:gpu:4": of the job as submitted
	TRESPerNode   string
	TRESPerSocket string
	TRESPerTask   string

	TimeLimit  time.Duration
	AccrueTime time.Time // since when the job's age counts; zero if it does not yet
	Comment    string
	Command    string

	// Switches is --switches: the most leaf switches to start on; 0 for any number. The job waits for that for SwitchWait,
	// which Slurm has bounded by max_switch_wait.
	Switches   int
	SwitchWait time.Duration

	// StepMgr means that the job has a step manager of its own; see StepMgr.
	StepMgr bool
}

// requestColumns are names of squeue -O, the same from 20.11 to 26.05.
var requestColumns = []struct {
	name string
	set  func(*JobRequest, string) error
}{
	{"JobID", func(r *JobRequest, s string) (err error) { r.ID, err = parseID(s); return }},
	{"UserID", func(r *JobRequest, s string) error {
		n, err := strconv.ParseUint(s, 10, 32)
		r.UID = uint32(n)
		return err
	}},
	{"Account", func(r *JobRequest, s string) error { r.Account = text(s); return nil }},
	{"QOS", func(r *JobRequest, s string) error { r.QOS = text(s); return nil }},
	{"Partition", func(r *JobRequest, s string) error { r.Partition, _, _ = strings.Cut(text(s), ","); return nil }},
	{"WCKey", func(r *JobRequest, s string) error { r.WCKey = text(s); return nil }},
	{"Feature", func(r *JobRequest, s string) error { r.Features = text(s); return nil }},
	{"Network", func(r *JobRequest, s string) error { r.Network = text(s); return nil }},
	{"Licenses", func(r *JobRequest, s string) error { r.Licenses = text(s); return nil }},
	{"MinMemory", func(r *JobRequest, s string) (err error) { r.MemoryPerNode, err = parseMemory(s); return }},
	{"MinTmpDisk", func(r *JobRequest, s string) (err error) { r.TmpDisk, err = parseMemory(s); return }},
	{"mem-per-tres", func(r *JobRequest, s string) error { r.MemoryPerGPU = perGPU(s); return nil }},
	{"cpus-per-tres", func(r *JobRequest, s string) error { r.CPUsPerGPU = int(perGPU(s)); return nil }},
	{"cpus-per-task", func(r *JobRequest, s string) error { r.CPUsPerTask = perhaps(s); return nil }},
	{"NTPerNode", func(r *JobRequest, s string) error { r.TasksPerNode = perhaps(s); return nil }},
	{"NTPerSocket", func(r *JobRequest, s string) error { r.TasksPerSocket = perhaps(s); return nil }},
	{"NTPerCore", func(r *JobRequest, s string) error { r.TasksPerCore = perhaps(s); return nil }},
	{"Threads", func(r *JobRequest, s string) error { r.ThreadsPerCore = perhaps(s); return nil }},
	{"Sockets", func(r *JobRequest, s string) error { r.SocketsPerNode = perhaps(s); return nil }},
	{"Cores", func(r *JobRequest, s string) error { r.CoresPerSocket = perhaps(s); return nil }},
	{"CoreSpec", setCoreSpec},
	{"tres-per-job", func(r *JobRequest, s string) error { r.TRESPerJob = r.tres(s); return nil }},
	{"tres-per-node", func(r *JobRequest, s string) error { r.TRESPerNode = r.tres(s); return nil }},
	{"tres-per-socket", func(r *JobRequest, s string) error { r.TRESPerSocket = r.tres(s); return nil }},
	{"tres-per-task", func(r *JobRequest, s string) error { r.TRESPerTask = r.tres(s); return nil }},
	{"TimeLimit", func(r *JobRequest, s string) (err error) { r.TimeLimit, err = parseDuration(s); return }},
	{"AccrueTime", func(r *JobRequest, s string) (err error) { r.AccrueTime, err = parseTime(s); return }},
	{"Comment", func(r *JobRequest, s string) error { r.Comment = text(s); return nil }},
	{"Command", func(r *JobRequest, s string) error { r.Command = text(s); return nil }},
}

// perhaps reads a small number, or returns 0 if there is none ("*", "N/A", "65535").
func perhaps(s string) int {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n >= 0xfffe {
		return 0
	}
	return int(n)
}

// perGPU returns the amount in "gres:gpu:100".
func perGPU(s string) int64 {
	all, err := ParseGRES(s)
	if err != nil {
		return 0
	}
	for _, g := range all {
		if g.Name == "gpu" {
			return g.Count
		}
	}
	return 0
}

func setCoreSpec(r *JobRequest, s string) error {
	number, threads := strings.CutSuffix(s, " Threads")
	value := perhaps(number)
	if value == 0 && number != "0" {
		return nil // "N/A"
	}
	if threads {
		r.ThreadSpec = &value
	} else {
		r.CoreSpec = &value
	}
	return nil
}

// tres returns a list of resources without the CPUs, which newer versions include ("cpu=2" for
// --cpus-per-task).
func (r *JobRequest) tres(s string) string {
	var kept []string
	for _, t := range list(s) {
		if n, ok := strings.CutPrefix(strings.Replace(t, ":", "=", 1), "cpu="); ok {
			if r.CPUsPerTask == 0 {
				r.CPUsPerTask = perhaps(n)
			}
			continue
		}
		kept = append(kept, t)
	}
	return strings.Join(kept, ",")
}

// Request returns what a job requested. It takes three commands, so call it once per job. Only
// scontrol shows whether memory is per CPU, and a partition's default. It fails with ErrUnknownJob.
// If it cannot parse an output, it retries a few times: one truncated output must not decide about
// the job.
func (c *Client) Request(ctx context.Context, id JobID, cfg Config) (r JobRequest, err error) {
	if err := checkID(id); err != nil {
		return r, err
	}
	for range requestTries {
		var failed *CommandError
		if r, err = c.askRequest(ctx, id, cfg); err == nil || errors.As(err, &failed) {
			break
		}
	}
	return r, err
}

// requestTries is how often Request queries before it gives up on unparsable output.
const requestTries = 3

// askRequest makes one try for Request.
func (c *Client) askRequest(ctx context.Context, id JobID, cfg Config) (JobRequest, error) {
	names := []string{"Name"}
	for _, col := range requestColumns {
		names = append(names, col.name)
	}
	t := newTable(len(names))
	out, _, err := c.run(ctx, command{name: "squeue", env: []string{"SQUEUE_FORMAT2=" + t.long(names...)},
		args: []string{"--noheader", "--all", "--local", "--noconvert", "--states=all", "--jobs=" + formatID(id)}})
	if err != nil {
		return JobRequest{}, err
	}
	r, name, err := parseRequest(t, out, id)
	if err != nil {
		return r, err
	}
	shown, err := c.output(ctx, "scontrol", "--oneliner", "show", "job", c.name(id))
	if err != nil {
		return r, err
	}
	perCPU, err := memoryPerCPU(shown, name, r.WCKey)
	if err != nil {
		return r, fmt.Errorf("scontrol show job %d: %w", id, err)
	}
	r.StepMgr = hasStepMgr(shown)
	r.Switches, r.SwitchWait = fewSwitches(shown)
	if perCPU {
		r.MemoryPerCPU, r.MemoryPerNode = r.MemoryPerNode, 0
	}
	if err := checkPartitions(r.Partition); err != nil {
		return r, err
	}
	if shown, err = c.output(ctx, "scontrol", "--oneliner", "show", "partition", r.Partition); err != nil {
		return r, err
	}
	r.DefaultMemoryPerNode, r.DefaultMemoryPerCPU = defaultMemory(shown, cfg)
	return r, nil
}

func parseRequest(t table, out string, id JobID) (r JobRequest, name string, err error) {
	records, err := t.split(out)
	if err != nil {
		return r, "", fmt.Errorf("squeue: %w", err)
	}
	for _, record := range records {
		r = JobRequest{}
		for k, col := range requestColumns {
			if err := col.set(&r, record[k+1]); err != nil {
				return r, "", fmt.Errorf("squeue: job %d: %s: %w", id, col.name, err)
			}
		}
		if r.ID == id {
			return r, record[0], nil
		}
	}
	return r, "", fmt.Errorf("job %d: %w", id, ErrUnknownJob)
}

var minMemoryPattern = pattern(` MinMemory(Node|CPU)=`)

// memoryPerCPU reports whether a job's memory is per CPU. Of the text before that field, a user can
// write only the name and WCKey, which it cuts out first.
func memoryPerCPU(shown, name, wckey string) (bool, error) {
	_, rest, ok := strings.Cut(shown, " JobName="+name+" ")
	if !ok {
		return false, errors.New("the job's name is another than squeue's")
	}
	if wckey != "" {
		rest = strings.Replace(rest, " WCKey="+wckey+" ", " ", 1)
	}
	m := minMemoryPattern().FindStringSubmatch(rest)
	if m == nil {
		return false, errors.New("no MinMemory in its output")
	}
	return m[1] == "CPU", nil
}

var switchesPattern = pattern(` Switches=([0-9]+)@([-:0-9]+)( |$)`)

// fewSwitches returns what a job asked for with --switches. Of the text, a user can write something like it, which is
// then the user's request.
func fewSwitches(shown string) (most int, wait time.Duration) {
	m := switchesPattern().FindStringSubmatch(strings.TrimSpace(shown))
	if m == nil {
		return 0, 0
	}
	most, err := strconv.Atoi(m[1])
	if wait, failed := parseDuration(m[2]); err == nil && failed == nil && wait >= 0 {
		return most, wait
	}
	return 0, 0
}

var defMemPattern = pattern(`\bDefMemPer(Node|CPU)=([0-9]+)\b`)

func defaultMemory(partition string, cfg Config) (perNode, perCPU int64) {
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 {
			return 0 // "UNLIMITED"
		}
		return n
	}
	if m := defMemPattern().FindStringSubmatch(partition); m != nil {
		if m[1] == "CPU" {
			return 0, number(m[2])
		}
		return number(m[2]), 0
	}
	return number(cfg.Values["DefMemPerNode"]), number(cfg.Values["DefMemPerCPU"])
}

// GRESPerNode returns what the job requested on each node, given its node count at submission. The
// error says which request does not divide evenly.
func (r JobRequest) GRESPerNode(nodes int) ([]GRES, error) {
	all, err := r.gresPerNode(nodes)
	if err == nil {
		err = CheckWhole(all)
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}

func (r JobRequest) gresPerNode(nodes int) ([]GRES, error) {
	if r.TRESPerSocket != "" {
		return nil, fmt.Errorf("resources per socket (%s) cannot be planned: ask for them with --gpus-per-node or --gres", oneLine(r.TRESPerSocket, 60))
	}
	all, err := ParseGRES(r.TRESPerNode)
	if err != nil || len(all) > 0 {
		return all, err
	}
	if r.TRESPerTask != "" {
		if r.TasksPerNode == 0 {
			return nil, fmt.Errorf("resources per task (%s) need --ntasks-per-node beside them", oneLine(r.TRESPerTask, 60))
		}
		if all, err = ParseGRES(r.TRESPerTask); err != nil {
			return nil, err
		}
		for i := range all {
			all[i].Count *= int64(r.TasksPerNode)
		}
		return all, nil
	}
	if all, err = ParseGRES(r.TRESPerJob); err != nil {
		return nil, err
	}
	for i := range all {
		if nodes < 1 || all[i].Count%int64(nodes) != 0 {
			return nil, fmt.Errorf("%s does not divide by the %d nodes of the first step: ask for --gpus-per-node", all[i], nodes)
		}
		all[i].Count /= int64(nodes)
	}
	return all, nil
}

// More returns a request for further nodes that asks for the same on each node as the job did. It
// leaves out licences: the base job has them for all.
func (r JobRequest) More(nodes int, perNode []GRES) AllocateRequest {
	q := AllocateRequest{Nodes: nodes, Account: r.Account, QOS: r.QOS, Partition: r.Partition, WCKey: strings.TrimPrefix(r.WCKey, "*"),
		Constraint: r.Features, Network: r.Network, TasksPerNode: r.TasksPerNode, TasksPerSocket: r.TasksPerSocket, TasksPerCore: r.TasksPerCore,
		ThreadsPerCore: r.ThreadsPerCore, SocketsPerNode: r.SocketsPerNode, CoresPerSocket: r.CoresPerSocket,
		TmpDisk: r.TmpDisk, CoreSpec: r.CoreSpec, ThreadSpec: r.ThreadSpec, GRES: perNode, CPUsPerGPU: r.CPUsPerGPU}
	if r.CPUsPerTask > 1 {
		q.CPUsPerTask = r.CPUsPerTask
	}
	none := int64(0)
	switch {
	case r.MemoryPerGPU > 0:
		q.MemoryPerGPU = r.MemoryPerGPU
	case r.MemoryPerCPU == r.DefaultMemoryPerCPU && r.MemoryPerNode == r.DefaultMemoryPerNode:
		// Slurm gives the same by default, and some sites refuse --mem
	case r.MemoryPerCPU > 0:
		q.MemoryPerCPU = r.MemoryPerCPU
	case r.MemoryPerNode > 0:
		q.MemoryPerNode = &r.MemoryPerNode
	default:
		q.MemoryPerNode = &none // all
	}
	return q
}
