package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// What a sidecar may cost.
const (
	maxCycle  = time.Second
	maxShare  = 0.05 // of the time that slurmctld spends on requests
	maxMemory = 200 << 20
)

// measure lets jobs arrive at six times an hour's pace and looks at what is spent.
func (l *load) measure(ctx context.Context) error {
	if _, err := l.Cluster.Run(ctx, slurmtest.Root, "sdiag", "--reset"); err != nil {
		return err
	}
	begun := time.Now()
	aloneBefore, before := l.cpu()
	peak := int64(0)
	random := rand.New(rand.NewPCG(2, 3))
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for second := 0; time.Since(begun) < l.window; second++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		for _, evolving := range []bool{false, true} {
			if evolving && second%10 > 0 {
				continue
			}
			if err := l.submit(ctx, random, evolving); err != nil {
				return err
			}
		}
		rss, err := l.memory()
		if err != nil {
			return fmt.Errorf("the sidecar has ended: %w", err)
		}
		peak = max(peak, rss)
	}
	elapsed := time.Since(begun)
	stats, err := l.Cluster.Run(ctx, slurmtest.Root, "sdiag")
	if err != nil {
		return err
	}
	alone, cpu := l.cpu()
	alone, cpu = alone-aloneBefore, cpu-before
	seen, err := l.readLog(begun)
	if err != nil {
		return err
	}
	if len(seen.cycles) == 0 {
		return errors.New("the sidecar made no cycle")
	}
	requests := parseRequests(stats)
	own, all := 0.0, 0.0
	for _, r := range requests {
		all += r.seconds
		if sidecarRequests[r.name] {
			own += r.seconds
		}
	}
	resizes, err := l.resizes(begun)
	if err != nil {
		return err
	}
	left, err := l.Cluster.Run(ctx, slurmtest.Root, "squeue", "-h", "-r", "-o", "%T")
	if err != nil {
		return err
	}
	states := map[string]int{}
	for state := range strings.FieldsSeq(left) {
		states[state]++
	}
	byHand, err := l.byHand(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("| measured over %v on Slurm %s, %d nodes, %d jobs | |\n|---|---|\n", elapsed.Round(time.Second), l.Cluster.Version(), l.nodes, l.submitted.Load())
	row := func(name, format string, args ...any) {
		fmt.Printf("| %s | %s |\n", name, fmt.Sprintf(format, args...))
	}
	row("the loopback acknowledges at once", "%v", l.quickACK)
	row("jobs at the end", "%d pending, %d running", states["PENDING"], states["RUNNING"])
	row("cycles", "%d", len(seen.cycles))
	row("cycle", "%v", seen.cycles)
	for _, part := range slices.Sorted(maps.Keys(seen.parts)) {
		row("of that, "+part, "%v", seen.parts[part])
	}
	row("from one look to the next", "%v", seen.intervals)
	row("one squeue by hand under the same load", "%v", byHand)
	row("resident memory, peak", "%d MiB", peak>>20)
	row("CPU of the sidecar with the commands it ran", "%.1f %% of one core", 100*cpu.Seconds()/elapsed.Seconds())
	row("of that, the sidecar alone", "%.2f s, %d ms a cycle (recorder: %v)", alone.Seconds(), alone.Milliseconds()/int64(len(seen.cycles)), l.recorder)
	row("slurmctld's time on requests", "%.1f s, %.1f %% of the time", all, 100*all/elapsed.Seconds())
	row("of that for the sidecar", "%.2f s: %.1f %% of the requests' time, %.2f %% of the time", own, 100*own/all, 100*own/elapsed.Seconds())
	resizing := resizes.sum().Seconds()
	row("of that, the resizes themselves", "%.2f s for %d merges and shrinks, longest %d ms", resizing, len(resizes), resizes.at(1).Milliseconds())
	row("all else for the sidecar", "%.2f s: %.1f %% of the requests' time, %.2f %% of the time", own-resizing, 100*(own-resizing)/all, 100*(own-resizing)/elapsed.Seconds())
	row("starts and steps of evolving jobs", "%d", seen.steps)
	row("nodes of a step given, after they were due", "%v", seen.late)
	row("actions that failed and were tried again", "%d", seen.failures)
	fmt.Println("\nslurmctld's requests (sdiag):")
	fmt.Println("\n| request | count | s | sidecar |\n|---|---|---|---|")
	for _, r := range requests {
		mark := ""
		if sidecarRequests[r.name] {
			mark = "yes"
		}
		fmt.Printf("| %s | %d | %.2f | %s |\n", r.name, r.count, r.seconds, mark)
	}
	if l.keep != "" {
		_ = os.WriteFile(l.keep+"/sdiag", []byte(stats), 0o644)
		if text, err := os.ReadFile(l.LogFile()); err == nil {
			_ = os.WriteFile(l.keep+"/evoslurmd.log", text, 0o644)
		}
	}
	var wrong []error
	if longest := seen.cycles.at(1); longest > maxCycle {
		wrong = append(wrong, fmt.Errorf("a cycle took %v, more than %v", longest, maxCycle))
	}
	if own > maxShare*all {
		wrong = append(wrong, fmt.Errorf("slurmctld spends %.1f %% of its requests' time on the sidecar's, more than %.0f %%", 100*own/all, 100*maxShare))
	}
	if peak > maxMemory {
		wrong = append(wrong, fmt.Errorf("the sidecar takes %d MiB, more than %d", peak>>20, maxMemory>>20))
	}
	return errors.Join(wrong...)
}

// sidecarRequests lists the requests that only the sidecar makes here.
var sidecarRequests = map[string]bool{"REQUEST_JOB_INFO": true, "REQUEST_JOB_INFO_SINGLE": true, "REQUEST_JOB_USER_INFO": true,
	"REQUEST_NODE_INFO": true, "REQUEST_PARTITION_INFO": true, "REQUEST_RESERVATION_INFO": true, "REQUEST_BUILD_INFO": true,
	"REQUEST_UPDATE_JOB": true, "REQUEST_CREATE_RESERVATION": true, "REQUEST_UPDATE_RESERVATION": true,
	"REQUEST_DELETE_RESERVATION": true, "REQUEST_RESOURCE_ALLOCATION": true, "REQUEST_KILL_JOB": true, "REQUEST_CANCEL_JOB_STEP": true,
	"REQUEST_BATCH_SCRIPT": true, "REQUEST_STATS_INFO": true, "REQUEST_PING": true, "REQUEST_JOB_ALLOCATION_INFO": true, "REQUEST_JOB_READY": true}

// rpc is one line of sdiag's statistics by message type.
type rpc struct {
	name    string
	count   int
	seconds float64
}

var requestPattern = regexp.MustCompile(`(?m)^\s+([A-Z_]+)\s*\(\s*\d+\) count:(\d+)\s+ave_time:\d+\s+total_time:(\d+)$`)

// parseRequests reads what slurmctld spent on which request, most first.
func parseRequests(sdiag string) []rpc {
	var all []rpc
	for _, m := range requestPattern.FindAllStringSubmatch(sdiag, -1) {
		count, _ := strconv.Atoi(m[2])
		micros, _ := strconv.ParseFloat(m[3], 64)
		all = append(all, rpc{m[1], count, micros / 1e6})
	}
	slices.SortFunc(all, func(a, b rpc) int { return cmp.Compare(b.seconds, a.seconds) })
	return all
}

// times are durations, which print as their median, 95th percentile and longest.
type times []time.Duration

func (t times) at(q float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	slices.Sort(t)
	return t[int(q*float64(len(t)-1))]
}

func (t times) String() string {
	return fmt.Sprintf("median %d ms, 95 of 100 within %d ms, longest %d ms", t.at(0.5).Milliseconds(), t.at(0.95).Milliseconds(), t.at(1).Milliseconds())
}

// byHand returns how long the largest of the sidecar's requests takes anybody who makes it.
func (l *load) byHand(ctx context.Context) (all times, err error) {
	for range 15 {
		begun := time.Now()
		if _, err := l.Cluster.Run(ctx, slurmtest.Root, "squeue", "--noheader", "--all", "--local", "--format=%i"); err != nil {
			return nil, err
		}
		all = append(all, time.Since(begun))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
	return all, nil
}

func (t times) sum() (all time.Duration) {
	for _, d := range t {
		all += d
	}
	return all
}

var (
	resizePattern = regexp.MustCompile(`_update_job: (?:setting nodes to \S+ for|killing) JobId=(\d+)`)
	updatePattern = regexp.MustCompile(`_slurm_rpc_update_job: complete JobId=(\d+) uid=\d+ usec=(\d+)`)
)

// resizes returns how long slurmctld took, by its own log, for each merge and shrink: for each, it
// waits for slurmdbd, whatever program requests it (up to 23.11).
func (l *load) resizes(since time.Time) (all times, err error) {
	text, err := os.ReadFile(filepath.Join(l.Cluster.Dir(), "log", "slurmctld.log"))
	if err != nil {
		return nil, err
	}
	resized := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		stamp, _, _ := strings.Cut(strings.TrimPrefix(line, "["), "]")
		if at, err := time.ParseInLocation("2006-01-02T15:04:05.000", stamp, time.Local); err != nil || at.Before(since) {
			continue
		}
		if m := resizePattern.FindStringSubmatch(line); m != nil {
			resized[m[1]] = true
		} else if m := updatePattern.FindStringSubmatch(line); m != nil && resized[m[1]] {
			delete(resized, m[1])
			micros, _ := strconv.ParseInt(m[2], 10, 64)
			all = append(all, time.Duration(micros)*time.Microsecond)
		}
	}
	return all, nil
}

// seen holds what the sidecar's log says.
type seen struct {
	cycles, intervals, late times
	parts                   map[string]times
	steps, failures         int
}

// readLog reads the sidecar's log from then on.
func (l *load) readLog(since time.Time) (seen, error) {
	s := seen{parts: map[string]times{}}
	text, err := os.ReadFile(l.LogFile())
	if err != nil {
		return s, err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry map[string]any
		if json.Unmarshal(lines.Bytes(), &entry) != nil {
			continue
		}
		msg, _ := entry["msg"].(string)
		at, _ := entry["time"].(string)
		if t, err := time.Parse(time.RFC3339, at); err != nil || t.Before(since) {
			continue
		}
		seconds := func(key string) time.Duration {
			n, _ := entry[key].(float64)
			return time.Duration(n * float64(time.Second))
		}
		switch {
		case msg == "cycle":
			s.cycles = append(s.cycles, seconds("seconds"))
			s.intervals = append(s.intervals, seconds("interval"))
			for _, part := range []string{"observe", "step", "plan", "save", "publish"} {
				s.parts[part] = append(s.parts[part], seconds(part))
			}
		case msg == "step begun":
			s.steps++
			s.late = append(s.late, seconds("late"))
		case msg == "started":
			s.steps++
		case strings.HasPrefix(msg, "an action failed"):
			s.failures++
		}
	}
	return s, lines.Err()
}

// memory returns what the sidecar has resident, in bytes.
func (l *load) memory() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.daemon.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(text), "VmRSS:")
	if !ok {
		return 0, errors.New("no VmRSS")
	}
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	return kib << 10, err
}

// cpu returns the processor time of the sidecar, without and with the commands that it has run.
func (l *load) cpu() (alone, all time.Duration) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", l.daemon.Process.Pid))
	if err != nil {
		return 0, 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	for i, f := range fields[11:15] { // utime, stime, cutime, cstime
		n, _ := strconv.ParseInt(f, 10, 64)
		if all += time.Duration(n) * 10 * time.Millisecond; i == 1 {
			alone = all
		}
	}
	return alone, all
}
