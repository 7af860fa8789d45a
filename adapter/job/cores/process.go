package cores

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// maxEnviron bounds what is read of a process's environment.
const maxEnviron = 4 << 20

// process is a process of this node; its start tells it from a later one with its ID.
type process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// lives reports whether the process still runs.
func (p process) lives(proc string) bool {
	s, err := readStat(proc, p.PID)
	return err == nil && s.start == p.Start && s.state != 'Z' && s.state != 'X'
}

type stat struct {
	state  byte
	parent int
	start  uint64
}

// readStat reads /proc/PID/stat.
func readStat(proc string, pid int) (s stat, err error) {
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return s, err
	}
	words := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // the name before it may be anything
	if len(words) < 20 {
		return s, fmt.Errorf("process %d: cannot read its state", pid)
	}
	s.state = words[0][0]
	if s.parent, err = strconv.Atoi(words[1]); err != nil {
		return s, err
	}
	s.start, err = strconv.ParseUint(words[19], 10, 64)
	return s, err
}

// table finds the processes of a step: those that have its variables, and their children.
type table struct {
	proc  string
	place Place
	ours  map[int]uint64 // their starts, by ID
}

// alive reports whether a process of the last look still runs.
func (t *table) alive() bool {
	for pid, start := range t.ours {
		if (process{pid, start}).lives(t.proc) {
			return true
		}
	}
	return false
}

// look finds the step's processes.
func (t *table) look() error {
	entries, err := os.ReadDir(t.proc)
	if err != nil {
		return err
	}
	type found struct {
		pid int
		stat
	}
	var all []found
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if s, err := readStat(t.proc, pid); err == nil && s.state != 'Z' && s.state != 'X' {
			all = append(all, found{pid, s})
		}
	}
	slices.SortFunc(all, func(a, b found) int { return int(int64(a.start) - int64(b.start)) }) // parents first
	ours := map[int]uint64{}
	for _, p := range all {
		start, known := t.ours[p.pid]
		_, child := ours[p.parent]
		if known && start == p.start || t.own(p.pid) && (child || t.marked(p.pid)) {
			ours[p.pid] = p.start
		}
	}
	t.ours = ours
	return nil
}

// own reports whether the process belongs to this user.
func (t *table) own(pid int) bool {
	info, err := os.Stat(filepath.Join(t.proc, strconv.Itoa(pid)))
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}

// marked reports whether the process has the variables of the step.
func (t *table) marked(pid int) bool {
	f, err := os.Open(filepath.Join(t.proc, strconv.Itoa(pid), "environ"))
	if err != nil {
		return false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxEnviron))
	if err != nil {
		return false
	}
	variables := strings.Split(string(text), "\x00")
	for _, v := range []string{"SLURM_JOB_ID=" + t.place.Job, "SLURM_STEP_ID=" + t.place.Step, "SLURMD_NODENAME=" + t.place.Node} {
		if !slices.Contains(variables, v) {
			return false
		}
	}
	return true
}

// move has all threads of the step's processes use the wanted CPUs, and no others. A thread that the
// program itself has put on some of them stays there.
func (t *table) move(want set, before []set) {
	for pid, start := range t.ours {
		if (process{pid, start}).lives(t.proc) {
			moveProcess(t.proc, pid, want, before)
		}
	}
}

// moveProcess moves the threads of a process. A thread that begins meanwhile has its parent's CPUs,
// so it looks again until nothing changes, three times at most.
func moveProcess(proc string, pid int, want set, before []set) {
	for range 3 {
		moved := false
		tasks, _ := os.ReadDir(filepath.Join(proc, strconv.Itoa(pid), "task")) // none: it has ended
		for _, e := range tasks {
			tid, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			if now, err := affinity(tid); err == nil && mustMove(now, want, before) && setAffinity(tid, want) == nil {
				moved = true
			}
		}
		if !moved {
			return
		}
	}
}

// mustMove reports whether a thread with the CPUs now has to be moved: before holds what was wanted
// earlier.
func mustMove(now, want set, before []set) bool {
	switch {
	case slices.Equal(now, want):
		return false
	case slices.ContainsFunc(before, func(s set) bool { return slices.Equal(s, now) }):
		return true
	}
	return len(now.and(want)) < len(now)
}
