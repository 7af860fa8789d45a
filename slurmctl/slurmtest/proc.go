package slurmtest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// processes returns the parent of every process on the machine.
func processes() map[int]int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	parents := make(map[int]int, len(entries))
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if _, parent, ok := stat(pid); ok {
			parents[pid] = parent
		}
	}
	return parents
}

// stat returns the state letter and the parent of a process.
func stat(pid int) (state byte, parent int, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, false
	}
	// The name, in parentheses, may hold anything: search after the last parenthesis.
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return 0, 0, false
	}
	f := bytes.Fields(b[i+1:])
	if len(f) < 2 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(string(f[1]))
	return f[0][0], parent, err == nil
}

func isZombie(pid int) bool {
	state, _, ok := stat(pid)
	return !ok || state == 'Z' || state == 'X'
}

// descendants returns all processes below root, children before grandchildren.
func descendants(parents map[int]int, root int) []int {
	children := map[int][]int{}
	for pid, parent := range parents {
		children[parent] = append(children[parent], pid)
	}
	found := append([]int(nil), children[root]...)
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}
