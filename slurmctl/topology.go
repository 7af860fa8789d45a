package slurmctl

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxSwitches bounds how many switches or blocks Topology reads.
const MaxSwitches = 1 << 14

// Topology holds where the nodes are in the network, in Slurm's order. It has no switches if Slurm knows nothing about
// the network.
type Topology struct {
	Switches []Switch
	Blocks   bool // these are the base blocks of topology/block, by index

	// BlockSize holds the nodes of a base block that count; 0 before Slurm 24.11. Levels holds of how many base blocks each
	// larger kind of block is made, ascending.
	BlockSize int
	Levels    []int
}

// Switch is a switch of topology/tree, or a block of topology/block.
type Switch struct {
	Name  string
	Above int      // index of the switch above it; -1: none
	Nodes []string // if it is a leaf, which nodes hang on, or a block
}

// HasTopology reports whether the site's topology plugin knows switches or blocks.
func (c Config) HasTopology() bool {
	switch c.Values["TopologyPlugin"] {
	case "", "topology/none", "topology/default", "topology/flat":
		return false
	}
	return true
}

// TopologyOptional reports whether Slurm minds the topology only for jobs that ask for it.
func (c Config) TopologyOptional() bool {
	return strings.Contains(strings.ToLower(c.Values["TopologyParam"]), "topooptional")
}

// Fabrics returns the nodes below each topmost switch of topology/tree. Slurm gives a job only nodes of one fabric, and nobody a
// node that is in none. It returns nil for blocks, and without switches. A node on several switches is in the first one's fabric.
func (t Topology) Fabrics() (all [][]string) {
	if t.Blocks || len(t.Switches) == 0 {
		return nil
	}
	seen, at := map[string]bool{}, map[int]int{}
	for top, s := range t.Switches {
		for hops := 0; t.Switches[top].Above >= 0 && hops < len(t.Switches); hops++ {
			top = t.Switches[top].Above
		}
		for _, name := range s.Nodes {
			if seen[name] {
				continue
			}
			seen[name] = true
			if _, known := at[top]; !known {
				at[top], all = len(all), append(all, nil)
			}
			all[at[top]] = append(all[at[top]], name)
		}
	}
	return all
}

// Topology returns what Slurm knows about the network, by one scontrol.
func (c *Client) Topology(ctx context.Context) (Topology, error) {
	out, err := c.output(ctx, "scontrol", "show", "topology")
	if err != nil {
		return Topology{}, err
	}
	return parseTopology(out)
}

// parseTopology reads one switch or block per line. A switch has a higher level than the switches below it, so nothing
// is above itself. Slurm prints base blocks first, and then what is made of them.
func parseTopology(out string) (t Topology, err error) {
	var levels []int
	below := map[int][]string{}
	at := map[string]int{}
	nodes := 0
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "AggregatedBlock=") {
			t.aggregated(line)
			continue
		}
		if !strings.HasPrefix(line, "SwitchName=") && !strings.HasPrefix(line, "BlockName=") {
			continue
		}
		if t.Blocks = t.Blocks || strings.HasPrefix(line, "BlockName="); t.Blocks {
			t.BlockSize = blockSize(line)
		}
		s, level, children, err := parseSwitch(line)
		if _, twice := at[s.Name]; err == nil && twice {
			err = fmt.Errorf("it is there twice")
		}
		if nodes += len(s.Nodes); err == nil && (nodes > MaxNodes || len(t.Switches) == MaxSwitches) {
			err = fmt.Errorf("more than %d switches or %d nodes", MaxSwitches, MaxNodes)
		}
		if err != nil {
			return Topology{}, fmt.Errorf("topology: %s: %w", oneLine(line, 60), err)
		}
		at[s.Name], below[len(t.Switches)] = len(t.Switches), children
		t.Switches, levels = append(t.Switches, s), append(levels, level)
	}
	t.link(below, at, levels)
	return t, nil
}

// link notes which switch is above which.
func (t *Topology) link(below map[int][]string, at map[string]int, levels []int) {
	for above := range t.Switches {
		for _, name := range below[above] {
			if i, ok := at[name]; ok && levels[i] < levels[above] {
				t.Switches[i].Above = above
			}
		}
	}
}

// aggregated notes a kind of block. An aggregated block has a power of two of base blocks.
func (t *Topology) aggregated(line string) {
	if t.BlockSize == 0 {
		return
	}
	of := blockSize(line) / t.BlockSize
	if at, known := slices.BinarySearch(t.Levels, of); of > 1 && of&(of-1) == 0 && !known {
		t.Levels = slices.Insert(t.Levels, at, of)
	}
}

// blockSize returns a block's BlockSize, or 0.
func blockSize(line string) int {
	for _, field := range strings.Fields(line) {
		if value, is := strings.CutPrefix(field, "BlockSize="); is {
			if n, err := strconv.Atoi(value); err == nil && n > 0 && n <= MaxNodes {
				return n
			}
		}
	}
	return 0
}

// parseSwitch reads a line, with the names of the switches below.
func parseSwitch(line string) (s Switch, level int, children []string, err error) {
	s.Above = -1
	var nodes, switches string
	for _, field := range strings.Fields(line) {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "SwitchName", "BlockName":
			s.Name = value
		case "Level":
			level, err = strconv.Atoi(value)
		case "Nodes":
			nodes = value
		case "Switches":
			switches = value
		}
		if err != nil {
			return s, 0, nil, err
		}
	}
	if level == 0 {
		s.Nodes, err = ExpandNodes(nodes)
		return s, 0, nil, err
	}
	children, err = ExpandNodes(switches)
	return s, level, children, err
}
