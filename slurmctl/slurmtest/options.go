package slurmtest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Options describe a cluster. The zero value is 8 nodes of 4 CPUs in one
// partition "main", without accounting.
type Options struct {
	Nodes    int // default 8
	CPUs     int // of every node, default 4; may exceed the machine's
	MemoryMB int // of every node, default 1000

	// Accounting runs slurmdbd on a private MariaDB. Slurm 22.05 needs it to
	// resize a job more than once. The unprivileged users belong to the account
	// "proj" there.
	Accounting bool

	// PermitJobExpansion adds permit_job_expansion to SchedulerParameters.
	PermitJobExpansion bool

	PrologFlags  string // e.g. "Contain"
	SelectType   string // "cons_tres" (default) or "linear"
	PriorityType string // "" (Slurm's default), "basic" or "multifactor"

	// SchedulerParameters are added to the short intervals that tests like; one
	// given here, e.g. "bf_interval=30", replaces that of the package.
	SchedulerParameters string
	// SlurmIntervals leaves the scheduling intervals at Slurm's defaults, as a
	// site has them.
	SlurmIntervals bool

	// Partitions default to one, "main", with all nodes and a default time of 10
	// minutes. Without a Default the
	// first is the default.
	Partitions []Partition

	// NodeExtra has further slurm.conf parameters for nodes: the key is a node
	// list such as "n[1-3,7]", the value e.g. "Feature=big RealMemory=4000".
	// A node in several lists has the parameters of all, the same parameter twice
	// is an error.
	NodeExtra map[string]string

	// ExtraConf are raw lines of slurm.conf. A line replaces the package's line
	// of the same parameter, if there is one. Here and in Files @DIR@ stands for the
	// cluster's folder.
	ExtraConf string

	// Files are further files beside slurm.conf, by name: what plugins read, and
	// programs that slurm.conf names (those that begin with "#!").
	Files map[string]string

	// Links are symbolic links beside slurm.conf, by name: what gres.conf takes for
	// devices, e.g. "gpu0" to "/dev/zero".
	Links map[string]string

	// OwnClock gives the cluster a clock of its own, which StepClock steps. It is for
	// Linux on x86-64, needs gcc, and serves what is started with Env and is linked
	// dynamically. MariaDB stays with the machine's.
	OwnClock bool

	// Dir is the cluster's folder, missing or empty; it is kept by Stop. Default:
	// a temporary one, removed by Stop. Unprivileged users must be able to reach
	// it, and as Unix sockets lie in it its path must be short.
	Dir string
}

// Partition is one partition of the cluster.
type Partition struct {
	Name    string
	Nodes   string // a node list; "" means all
	Default bool
	MaxTime string // as in slurm.conf; "" means INFINITE
	Extra   string // further parameters, e.g. "OverSubscribe=EXCLUSIVE"
}

// withDefaults fills in the defaults and checks what can be checked.
func (o Options) withDefaults() (Options, error) {
	for _, d := range []struct {
		value *int
		def   int
		name  string
	}{{&o.Nodes, 8, "Nodes"}, {&o.CPUs, 4, "CPUs"}, {&o.MemoryMB, 1000, "MemoryMB"}} {
		if *d.value == 0 {
			*d.value = d.def
		}
		if *d.value < 0 {
			return o, fmt.Errorf("slurmtest: Options.%s is %d", d.name, *d.value)
		}
	}
	if o.SelectType == "" {
		o.SelectType = "cons_tres"
	}
	if len(o.Partitions) == 0 {
		o.Partitions = []Partition{{Name: "main", Default: true, Extra: "DefaultTime=10"}}
	}
	return o, nil
}

// expandNodes gives the numbers of the nodes in a list such as "n[1-3,7],n9" of a
// cluster of the given size.
func expandNodes(list string, nodes int) ([]int, error) {
	var numbers []int
	bad := func(why string) ([]int, error) {
		return nil, fmt.Errorf("slurmtest: node list %q: %s", list, why)
	}
	if list == "ALL" || list == "" {
		list = fmt.Sprintf("n[1-%d]", nodes)
	}
	for rest := list; rest != ""; {
		if !strings.HasPrefix(rest, "n") {
			return bad("want n1, n[2-4], …")
		}
		rest = rest[1:]
		var ranges string
		if strings.HasPrefix(rest, "[") {
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return bad("missing ]")
			}
			ranges, rest = rest[1:end], rest[end+1:]
			if rest != "" && rest[0] != ',' {
				return bad("want a comma after ]")
			}
			rest = strings.TrimPrefix(rest, ",")
		} else {
			ranges, rest, _ = strings.Cut(rest, ",")
		}
		for r := range strings.SplitSeq(ranges, ",") {
			low, high, isRange := strings.Cut(r, "-")
			if !isRange {
				high = low
			}
			a, err1 := strconv.Atoi(low)
			b, err2 := strconv.Atoi(high)
			if errors.Join(err1, err2) != nil || a < 1 || b < a || b > nodes {
				return bad(fmt.Sprintf("%q is no range within 1-%d", r, nodes))
			}
			for i := a; i <= b; i++ {
				numbers = append(numbers, i)
			}
		}
	}
	return numbers, nil
}
