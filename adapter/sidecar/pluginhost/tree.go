package pluginhost

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// descendants returns the processes that a process has started, directly or not.
func descendants(pid int) []int {
	var all []int
	for next := []int{pid}; len(next) > 0; {
		var below []int
		for _, p := range next {
			below = append(below, children(p)...)
		}
		all = append(all, below...)
		next = below
	}
	return all
}

// children returns a process's own.
func children(pid int) []int {
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*")
	if err != nil {
		return nil
	}
	var all []int
	for _, task := range tasks {
		text, err := os.ReadFile(task + "/children")
		if errors.Is(err, fs.ErrNotExist) && exists(task) { // a kernel without CONFIG_PROC_CHILDREN
			return childrenByParent(pid)
		}
		for _, field := range bytes.Fields(text) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// childrenByParent looks through all processes.
func childrenByParent(pid int) []int {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	var all []int
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // state, parent, …
		if len(fields) < 2 || string(fields[1]) != strconv.Itoa(pid) {
			continue
		}
		if child, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			all = append(all, child)
		}
	}
	return all
}

// memory returns how much memory of a process is not shared with a file, in bytes.
func memory(pid int) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text) // size, resident, shared, …
	if len(fields) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	shared, _ := strconv.ParseInt(string(fields[2]), 10, 64)
	return max(resident-shared, 0) * int64(os.Getpagesize())
}

// tasksOf counts a user's threads, which RLIMIT_NPROC limits.
func tasksOf(uid uint32) int {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0
	}
	count := 0
	for _, dir := range processes {
		if st, err := os.Stat(dir); err != nil || st.Sys().(*syscall.Stat_t).Uid != uid {
			continue
		}
		if tasks, err := os.ReadDir(dir + "/task"); err == nil {
			count += len(tasks)
		}
	}
	return count
}
