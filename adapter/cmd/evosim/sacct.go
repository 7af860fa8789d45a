package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// sacct is the output of `sacct -P` as a trace format. Sizes are nodes if printed, otherwise CPUs.
// Users, groups, and partitions are numbered in order of appearance.
var sacct = accounting(false)

// accounting returns this format, for all jobs, or only for injected jobs with their numbers in the
// trace.
func accounting(own bool) trace.Format {
	return trace.Format{Name: "sacct", Is: slurmctl.IsAccounting, InNodes: slurmctl.AccountsNodes, Open: func(in io.Reader) func() (trace.Job, string, error) { return readAccounting(in, own) }}
}

func readAccounting(in io.Reader, own bool) func() (trace.Job, string, error) {
	lines := slurmctl.NewAccountingReader(in)
	numbers := [3]map[string]int64{{}, {}, {}}
	number := func(kind int, name string) int64 {
		if name == "" {
			return -1
		}
		n, ok := numbers[kind][name]
		if !ok {
			n = int64(len(numbers[kind])) + 1
			numbers[kind][name] = n
		}
		return n
	}
	return func() (trace.Job, string, error) {
		a, err := lines.Next()
		for own && err == nil && !strings.HasPrefix(a.Name, injected) {
			a, err = lines.Next()
		}
		at := fmt.Sprintf("line %d", lines.Line())
		if wrong := (*slurmctl.AccountingError)(nil); errors.As(err, &wrong) {
			return trace.Job{}, at, &trace.Fault{At: at, Field: wrong.Column, Err: wrong.Err}
		} else if err != nil {
			return trace.Job{}, at, err
		}
		if own {
			if a.ID, err = strconv.ParseInt(strings.TrimPrefix(a.Name, injected), 10, 64); err != nil {
				return trace.Job{}, at, &trace.Fault{At: at, Field: "JobName", Err: fmt.Errorf("%q: no number of a job in a trace", a.Name)}
			}
		}
		j := trace.Unknown
		j.Number, j.Submit = a.ID, float64(a.Submit.Unix())
		if !a.Start.IsZero() {
			if j.Wait = a.Start.Sub(a.Submit).Seconds(); j.Wait < 0 {
				return j, at, &trace.Fault{At: at, Field: "Start", Err: fmt.Errorf("%.0f seconds before Submit", -j.Wait)}
			}
		}
		if a.Elapsed >= 0 {
			j.Run = a.Elapsed.Seconds()
		} else if !a.Start.IsZero() && a.End.After(a.Start) {
			j.Run = a.End.Sub(a.Start).Seconds()
		}
		if a.Limit >= 0 {
			j.Limit = a.Limit.Seconds()
		}
		j.Processors, j.Wanted = a.Nodes, a.WantedNodes
		if a.Nodes < 0 {
			j.Processors, j.Wanted = a.CPUs, a.WantedCPUs
		}
		if j.Processors == 0 || j.Run <= 0 { // it never ran: NNodes holds its request
			j.Wanted = max(j.Wanted, j.Processors)
			j.Processors = -1
		}
		j.User, j.Group, j.Partition = number(0, a.User), number(1, a.Group), number(2, a.Partition)
		switch a.State {
		case "COMPLETED":
			j.Status = 1
		case "CANCELLED":
			j.Status = 5
		case "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "PREEMPTED":
			j.Status = 0
		}
		return j, at, nil
	}
}
