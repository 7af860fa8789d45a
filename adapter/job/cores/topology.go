package cores

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// topology returns the physical cores with CPUs in may, each with all its hardware threads there.
// Neighbours in the result are on the same NUMA node and socket where possible. Where the system
// (sys is /sys/devices/system) does not tell, each CPU is a core.
func topology(sys string, may set) []set {
	numa := map[int]int{}
	nodes, _ := filepath.Glob(filepath.Join(sys, "node", "node[0-9]*"))
	for _, dir := range nodes {
		node, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "node"))
		if err != nil {
			continue
		}
		for _, cpu := range readSet(filepath.Join(dir, "cpulist")) {
			numa[cpu] = node
		}
	}
	type core struct {
		socket, numa int
		cpus         set
	}
	var cores []core
	var placed set
	for _, cpu := range may {
		if placed.has(cpu) {
			continue
		}
		dir := filepath.Join(sys, fmt.Sprintf("cpu/cpu%d/topology", cpu))
		siblings := readSet(filepath.Join(dir, "thread_siblings_list")).and(may)
		if !siblings.has(cpu) || len(siblings.and(placed)) > 0 {
			siblings = set{cpu}
		}
		text, _ := os.ReadFile(filepath.Join(dir, "physical_package_id"))
		socket, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		cores = append(cores, core{socket, numa[cpu], siblings})
		placed = append(placed, siblings...)
		slices.Sort(placed)
	}
	slices.SortFunc(cores, func(a, b core) int {
		return cmp.Or(a.socket-b.socket, a.numa-b.numa, a.cpus[0]-b.cpus[0])
	})
	var all []set
	for _, c := range cores {
		all = append(all, c.cpus)
	}
	return all
}

// readSet returns the list of CPUs in a file, or none if it cannot be read.
func readSet(file string) set {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	s, err := parseSet(string(text))
	if err != nil {
		return nil
	}
	return s
}
