package slurmctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MeasuredStep holds a step that srun started, with what its nodes drew while it ran, as slurmdbd has it.
type MeasuredStep struct {
	Start, End time.Time // End is zero while it runs, and where slurmdbd has no end of it
	Joules     int64     // -1 if unknown; 0 also where nothing was measured
	Nodes      string
}

// GathersEnergy reports whether the nodes measure what they draw.
func (c Config) GathersEnergy() bool {
	kind := strings.TrimPrefix(c.Values["AcctGatherEnergyType"], "acct_gather_energy/")
	return kind != "" && kind != "none" // 22.05 prints a default, 24.11 (null)
}

// mostSteps bounds, in bytes, what MeasuredSteps reads: 200,000 steps.
const mostSteps = 16 << 20

// mostWatts is more than any node draws. A counter that started again or ran over shows more.
const mostWatts = 1_000_000

// MeasuredSteps lists the srun steps of a user's jobs that existed in a period. slurmdbd pays for it as for the
// user's own sacct. An answer of more than 16 MiB is an error.
func (c *Client) MeasuredSteps(ctx context.Context, uid uint32, from, until time.Time) ([]MeasuredStep, error) {
	const layout = "2006-01-02T15:04:05"
	out, where := &bounded{most: mostSteps}, "--local"
	if c.Remote != "" {
		where = "--clusters=" + c.Remote
	}
	_, _, err := c.run(ctx, command{name: "sacct", into: out, args: []string{"--noheader", "--parsable2", where, "--duplicates",
		"--user=" + strconv.FormatUint(uint64(uid), 10), "--starttime=" + from.UTC().Format(layout), "--endtime=" + until.UTC().Format(layout),
		"--format=JobIDRaw,Start,End,ConsumedEnergyRaw,NodeList"}})
	if out.over {
		return nil, fmt.Errorf("sacct prints more than %d bytes", mostSteps)
	}
	if err != nil {
		return nil, err
	}
	return parseMeasuredSteps(out.text.String()), nil
}

// bounded keeps what is written to it, and fails beyond a number of bytes.
type bounded struct {
	text bytes.Buffer
	most int
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.over = b.over || b.text.Len()+len(p) > b.most; b.over {
		return 0, errors.New("too long")
	}
	return b.text.Write(p)
}

// parseMeasuredSteps skips jobs, batch scripts, extern steps, and what it cannot read.
func parseMeasuredSteps(out string) (all []MeasuredStep) {
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimRight(line, "\n"), "|")
		if len(f) != 5 || !stepPattern().MatchString(f[0]) {
			continue
		}
		start, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil || start <= 0 {
			continue
		}
		s := MeasuredStep{Start: time.Unix(start, 0), Joules: -1, Nodes: f[4]}
		end, err := strconv.ParseInt(f[2], 10, 64)
		if err == nil && end >= start && end < 1<<40 {
			s.End = time.Unix(end, 0)
			s.Joules = joules(f[3], f[4], end-start)
		}
		all = append(all, s)
	}
	return all
}

// joules reads ConsumedEnergyRaw of nodes that a step had for some seconds. sacct prints nothing for NO_VAL64, which
// stands for unknown. Sums in which it was counted, and counters that ran over, are more than these nodes can draw.
func joules(text, nodes string, seconds int64) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	count, bad := CountNodes(nodes)
	if err != nil || bad != nil || n < 0 || n/mostWatts > (seconds+1)*int64(count) {
		return -1
	}
	return n
}
