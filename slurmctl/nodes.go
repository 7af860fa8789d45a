package slurmctl

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sinfoLetters are the letters of sinfo's format, in the order in which parseNodes reads them.
// Features are the active ones, which a job can have now.
var sinfoLetters = []string{"N", "R", "P", "a", "l", "L", "s", "h", "T", "C", "m", "b", "G", "w", "z"}

// sinfoNames are the same fields by their names for -O, and last the state with all its flags: only that tells the nodes
// of other systems (State=EXTERNAL, 25.05 and later), which Slurm gives to no job except external ones.
var sinfoNames = []string{"NodeList", "PartitionName", "Partition", "Available", "Time", "DefaultTime", "Size", "OverSubscribe",
	"StateLong", "CPUsState", "Memory", "features_act", "Gres", "Weight", "SocketCoreThread", "StateComplete"}

// externalNodes is the first version with nodes of other systems.
const externalNodes = 2505

// external is the state of a node of another system.
const external = "external"

// Nodes returns all nodes and all partitions, including hidden ones, by one sinfo. The nodes of a
// partition are in sinfo's order. O(nodes × partitions they are in).
func (c *Client) Nodes(ctx context.Context) ([]Node, []Partition, error) {
	version, err := c.release(ctx)
	if err != nil {
		return nil, nil, err
	}
	t := newTable(len(sinfoLetters))
	format := "--format=" + t.short(sinfoLetters...)
	if version >= externalNodes {
		t = newTable(len(sinfoNames))
		format = "--Format=" + t.long(slices.Clone(sinfoNames)...)
	}
	// sinfo --Node ignores SINFO_FORMAT; users cannot write any of the fields printed here.
	out, err := c.output(ctx, "sinfo", "--noheader", "--all", "--local", "--Node", "--noconvert", format)
	if err != nil {
		return nil, nil, err
	}
	return parseNodes(t, out)
}

// parseNodes reads one record per node and partition.
func parseNodes(t table, out string) ([]Node, []Partition, error) {
	records, err := t.split(out)
	if err != nil {
		return nil, nil, fmt.Errorf("sinfo: %w", err)
	}
	var nodes []Node
	var parts []Partition
	nodeAt, partAt := map[string]int{}, map[string]int{}
	for _, r := range records {
		name, part := r[0], text(r[1])
		n, known := nodeAt[name]
		if !known && name != "" {
			node, err := parseNode(r)
			if err != nil {
				return nil, nil, fmt.Errorf("sinfo: node %s: %w", oneLine(name, 40), err)
			}
			n = len(nodes)
			nodeAt[name] = n
			nodes = append(nodes, node)
		}
		if part == "" {
			continue // a node without a partition
		}
		p, known := partAt[part]
		if !known {
			partition, err := parsePartition(r)
			if err != nil {
				return nil, nil, fmt.Errorf("sinfo: partition %s: %w", oneLine(part, 40), err)
			}
			p = len(parts)
			partAt[part] = p
			parts = append(parts, partition)
		}
		if name != "" {
			nodes[n].Partitions = append(nodes[n].Partitions, part)
			parts[p].Nodes = append(parts[p].Nodes, name)
		}
	}
	return nodes, parts, nil
}

func parseNode(r []string) (Node, error) {
	n := Node{Name: r[0], Features: list(r[11])}
	n.State, n.Flags = splitState(r[8])
	if len(r) > len(sinfoLetters) && slices.Contains(strings.Split(strings.ToLower(r[len(sinfoLetters)]), "+"), external) {
		n.State, n.Flags = external, ""
	}
	if !none(r[12]) {
		n.GRES = r[12]
	}
	cpus := strings.Split(r[9], "/") // allocated/idle/other/total
	if len(cpus) != 4 {
		return n, fmt.Errorf("CPUs %q are not understood", r[9])
	}
	var err error
	if n.CPUsAlloc, err = parseCount(cpus[0]); err != nil {
		return n, err
	}
	if n.CPUs, err = parseCount(cpus[3]); err != nil {
		return n, err
	}
	if n.Memory, err = parseMemory(r[10]); err != nil {
		return n, err
	}
	if n.Weight, err = strconv.Atoi(strings.TrimSuffix(r[13], "+")); err != nil {
		return n, fmt.Errorf("weight %q is not understood", r[13])
	}
	n.Layout, err = readLayout([]byte(r[14]))
	return n, err
}

func parsePartition(r []string) (Partition, error) {
	p := Partition{Name: r[1], Default: r[2] == r[1]+"*", Up: r[3] == "up", OverSubscribe: r[7]}
	var err error
	if p.MaxTime, err = parseLimit(r[4]); err != nil {
		return p, err
	}
	if p.DefaultTime, err = parseLimit(r[5]); err != nil {
		return p, err
	}
	low, high, isRange := strings.Cut(r[6], "-")
	if p.MinNodes, err = parseCount(low); err != nil {
		return p, err
	}
	switch {
	case !isRange:
		p.MaxNodes = p.MinNodes
	case high != "infinite":
		if p.MaxNodes, err = parseCount(high); err != nil {
			return p, err
		}
	}
	return p, nil
}

// parseLimit reads a partition's time limit; an absent limit is Unlimited.
func parseLimit(s string) (d time.Duration, err error) {
	if none(s) {
		return Unlimited, nil
	}
	return parseDuration(s)
}

// stateFlags are the marks that sinfo appends to a state.
const stateFlags = "*~#!%$@^+-"

// splitState splits a state from its marks. sinfo shows a planned node without a job as "planned",
// not "idle-"; such a node is idle.
func splitState(s string) (state, flags string) {
	state = strings.TrimRight(s, stateFlags)
	state, flags = strings.ToLower(state), s[len(state):]
	if state == "planned" {
		state = "idle"
		if !strings.Contains(flags, "-") {
			flags += "-"
		}
	}
	return state, flags
}

// Usable reports whether the node can run jobs now or after its current jobs: it is up, answers,
// and is not drained, failing, or rebooting. A node powered down to save power is usable, and so is an
// [Node.Unheard] one: see Awake. A node in maintenance ("maint", "$") is reserved; its reservation says until when.
func (n Node) Usable() bool { return n.Unusable() == "" }

// unheard is the state of an idle node in a slurmctld that was restarted, until the node has registered some seconds
// later. slurmctld then marks it "*" if it does not answer (22.05).
const unheard = "unknown"

// Unheard reports whether slurmctld was restarted, and waits for the node to register before it starts jobs there.
func (n Node) Unheard() bool { return n.State == unheard }

// Failed reports whether the node has failed: it is down, marked as failing, or does not answer. A drained node has not, even if it
// is down as well: sinfo shows both as drained.
func (n Node) Failed() bool {
	return slices.Contains([]string{"down", "fail", "failing", "error"}, n.State) || strings.Contains(n.Flags, "*")
}

// Unusable returns in a word or two why the node is not [Node.Usable], or "".
func (n Node) Unusable() string {
	switch n.State {
	case "idle", "mixed", "allocated", "completing", "reserved", "maint", unheard:
		switch {
		case strings.Contains(n.Flags, "*"):
			return "not responding"
		case strings.ContainsAny(n.Flags, "@^"):
			return "to be rebooted"
		}
		return ""
	}
	return n.State
}
