package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
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
	if _, err := l.cluster.Run(ctx, slurmtest.Root, "sdiag", "--reset"); err != nil {
		return err
	}
	begun := time.Now()
	before := l.cpu()
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
	stats, err := l.cluster.Run(ctx, slurmtest.Root, "sdiag")
	if err != nil {
		return err
	}
	cpu := l.cpu() - before
	cycles, begunSteps, failures, err := l.readLog(begun)
	if err != nil {
		return err
	}
	if len(cycles) == 0 {
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
	slices.Sort(cycles)
	at := func(q float64) time.Duration { return cycles[int(q*float64(len(cycles)-1))] }
	left, err := l.cluster.Run(ctx, slurmtest.Root, "squeue", "-h", "-r", "-o", "%T")
	if err != nil {
		return err
	}
	states := map[string]int{}
	for state := range strings.FieldsSeq(left) {
		states[state]++
	}
	fmt.Printf("| measured over %v on Slurm %s, %d nodes, %d jobs | |\n|---|---|\n", elapsed.Round(time.Second), l.cluster.Version(), l.nodes, l.submitted.Load())
	row := func(name, format string, args ...any) {
		fmt.Printf("| %s | %s |\n", name, fmt.Sprintf(format, args...))
	}
	row("jobs at the end", "%d pending, %d running", states["PENDING"], states["RUNNING"])
	row("cycles", "%d", len(cycles))
	row("cycle, median", "%d ms", at(0.5).Milliseconds())
	row("cycle, 99 of 100", "%d ms", at(0.99).Milliseconds())
	row("cycle, longest", "%d ms", at(1).Milliseconds())
	row("resident memory, peak", "%d MiB", peak>>20)
	row("CPU of the sidecar with the commands it ran", "%.1f %% of one core", 100*cpu.Seconds()/elapsed.Seconds())
	row("slurmctld's time on requests", "%.1f s, %.1f %% of the time", all, 100*all/elapsed.Seconds())
	row("of that for the sidecar", "%.1f s: %.1f %% of the requests' time, %.1f %% of the time", own, 100*own/all, 100*own/elapsed.Seconds())
	row("steps begun by evolving jobs", "%d", begunSteps)
	row("actions that failed and were tried again", "%d", failures)
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
		if text, err := os.ReadFile(l.logFile()); err == nil {
			_ = os.WriteFile(l.keep+"/evoslurmd.log", text, 0o644)
		}
	}
	var wrong []error
	if at(1) > maxCycle {
		wrong = append(wrong, fmt.Errorf("a cycle took %v, more than %v", at(1), maxCycle))
	}
	if own > maxShare*elapsed.Seconds() {
		wrong = append(wrong, fmt.Errorf("slurmctld spends %.1f %% of its time on the sidecar's requests, more than %.0f %%", 100*own/elapsed.Seconds(), 100*maxShare))
	}
	if peak > maxMemory {
		wrong = append(wrong, fmt.Errorf("the sidecar takes %d MiB, more than %d", peak>>20, maxMemory>>20))
	}
	return errors.Join(wrong...)
}

// sidecarRequests are those that here nobody but the sidecar makes.
var sidecarRequests = map[string]bool{"REQUEST_JOB_INFO": true, "REQUEST_JOB_INFO_SINGLE": true, "REQUEST_JOB_USER_INFO": true,
	"REQUEST_NODE_INFO": true, "REQUEST_PARTITION_INFO": true, "REQUEST_RESERVATION_INFO": true, "REQUEST_BUILD_INFO": true,
	"REQUEST_UPDATE_JOB": true, "REQUEST_CREATE_RESERVATION": true, "REQUEST_UPDATE_RESERVATION": true,
	"REQUEST_DELETE_RESERVATION": true, "REQUEST_RESOURCE_ALLOCATION": true, "REQUEST_KILL_JOB": true, "REQUEST_CANCEL_JOB_STEP": true,
	"REQUEST_BATCH_SCRIPT": true, "REQUEST_PING": true, "REQUEST_JOB_ALLOCATION_INFO": true, "REQUEST_JOB_READY": true}

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

// readLog reads the sidecar's log from then on.
func (l *load) readLog(since time.Time) (cycles []time.Duration, steps, failures int, err error) {
	text, err := os.ReadFile(l.logFile())
	if err != nil {
		return nil, 0, 0, err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry struct {
			Msg     string    `json:"msg"`
			Time    time.Time `json:"time"`
			Seconds float64   `json:"seconds"`
		}
		if json.Unmarshal(lines.Bytes(), &entry) != nil || entry.Time.Before(since) {
			continue
		}
		switch {
		case entry.Msg == "cycle":
			cycles = append(cycles, time.Duration(entry.Seconds*float64(time.Second)))
		case entry.Msg == "step begun", entry.Msg == "started":
			steps++
		case strings.HasPrefix(entry.Msg, "an action failed"):
			failures++
		}
	}
	return cycles, steps, failures, lines.Err()
}

// memory is what the sidecar has resident, in bytes.
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

// cpu is the processor time of the sidecar and of the commands that it has run.
func (l *load) cpu() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", l.daemon.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := int64(0)
	for _, f := range fields[11:15] { // utime, stime, cutime, cstime
		n, _ := strconv.ParseInt(f, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
