package slurmctl

import (
	"context"
	"fmt"
	"strings"
)

// Step is a job step as squeue shows it: what one srun started.
type Step struct {
	ID    string // JOB.STEP; JOB of an array task is ARRAY_TASK
	Name  string // up to its first blank
	Nodes []string
}

var stepPattern = pattern(`^[0-9]{1,10}(_[0-9]{1,10})?\.[0-9]{1,10}$`)

// Steps lists the running steps that srun started in jobs, without batch scripts and extern steps.
// O(steps of these jobs).
func (c *Client) Steps(ctx context.Context, jobs ...JobID) ([]Step, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	ids := make([]string, len(jobs))
	for i, id := range jobs {
		if err := checkID(id); err != nil {
			return nil, err
		}
		ids[i] = c.name(id)
	}
	out, err := c.output(ctx, "squeue", "--noheader", "--steps", "--jobs="+strings.Join(ids, ","), "--format=%i %N %j")
	if err != nil {
		return nil, err
	}
	return parseSteps(out), nil
}

// ScriptNode returns the node on which a job's batch script runs, according to slurmctld's batch
// step, or "" if there is none. BatchHost is not reliable: after a start or reconfiguration of
// slurmctld, it shows the first of the job's nodes.
func (c *Client) ScriptNode(ctx context.Context, job JobID) (string, error) {
	if err := checkID(job); err != nil {
		return "", err
	}
	out, err := c.output(ctx, "squeue", "--noheader", "--steps", "--jobs="+c.name(job), "--format=%i %N")
	if err != nil {
		return "", err
	}
	return parseScriptNode(out, c.name(job)), nil
}

// parseScriptNode finds the line "JOB.batch NODE".
func parseScriptNode(out, job string) string {
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) != 2 || f[0] != job+".batch" {
			continue
		}
		if nodes, err := ExpandNodes(f[1]); err == nil && len(nodes) == 1 {
			return nodes[0]
		}
	}
	return ""
}

// parseSteps reads lines of "JOB.STEP NODES NAME" and skips others.
func parseSteps(out string) []Step {
	var steps []Step
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 2 || !stepPattern().MatchString(f[0]) {
			continue
		}
		nodes, err := ExpandNodes(f[1])
		if err != nil {
			continue
		}
		s := Step{ID: f[0], Nodes: nodes}
		if len(f) > 2 {
			s.Name = f[2]
		}
		steps = append(steps, s)
	}
	return steps
}

// SignalSteps sends a signal, e.g. "TERM", to all processes of steps (Step.ID). It ignores steps
// that have ended.
func (c *Client) SignalSteps(ctx context.Context, sig string, ids ...string) error {
	if err := checkSignal(sig); err != nil {
		return err
	}
	for _, id := range ids {
		if !stepPattern().MatchString(id) {
			return fmt.Errorf("invalid step ID %q", oneLine(id, 80))
		}
	}
	for len(ids) > 0 {
		some := ids[:min(perCancel, len(ids))]
		ids = ids[len(some):]
		if _, err := c.output(ctx, "scancel", append([]string{"--quiet", "--signal=" + sig}, some...)...); err != nil && !onlyGone(err) {
			return err
		}
	}
	return nil
}
