package slurmtest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Options describes a cluster. The zero value is 8 nodes with 4 CPUs each in one partition "main",
// without accounting.
type Options struct {
	// Name is the cluster's name, in lower case; default "slurmtest".
	Name string
	// Beside is a cluster with Accounting whose slurmdbd and munged this one shares, as clusters of one site do: sbatch -M
	// NAME reaches each from each. This one ends first.
	Beside *Cluster

	Nodes    int // default 8
	CPUs     int // per node, default 4; may exceed the machine's
	MemoryMB int // per node, default 1000

	// Accounting runs slurmdbd on a private MariaDB. Slurm 22.05 needs it to resize a job more than
	// once. There, the unprivileged users belong to the account "proj".
	Accounting bool

	// PermitJobExpansion adds permit_job_expansion to SchedulerParameters.
	PermitJobExpansion bool

	PrologFlags  string // e.g. "Contain"
	SelectType   string // "cons_tres" (default) or "linear"
	PriorityType string // "" (Slurm's default), "basic" or "multifactor"

	// SchedulerParameters extends the short intervals that tests need. A parameter given here, e.g.
	// "bf_interval=30", overrides the package's.
	SchedulerParameters string
	// SlurmIntervals keeps Slurm's default scheduling intervals, as a site has them.
	SlurmIntervals bool

	// Partitions defaults to one partition, "main", with all nodes and a default time of 10
	// minutes. If none is marked Default, the first is the default.
	Partitions []Partition

	// NodeExtra holds further slurm.conf parameters for nodes: the key is a node list such as
	// "n[1-3,7]", the value e.g. "Feature=big RealMemory=4000". A node in several lists gets the
	// parameters of all; a duplicate parameter is an error.
	NodeExtra map[string]string

	// ExtraConf holds raw lines of slurm.conf. A line replaces the package's line with the same
	// parameter, if there is one. Here and in Files, @DIR@ stands for the cluster's folder.
	ExtraConf string

	// Files holds further files beside slurm.conf, by name: files that plugins read, and programs
	// that slurm.conf names (those that begin with "#!").
	Files map[string]string

	// Secrets holds further files beside slurm.conf, by name, that SlurmUser alone may read.
	Secrets map[string]string

	// AuthSlurm takes auth/slurm, of Slurm 23.11 and newer, in MUNGE's place. Clients look for it in /run, so there can be
	// only one such cluster in a root, and it needs root.
	AuthSlurm bool

	// Links holds symbolic links beside slurm.conf, by name: devices for gres.conf, e.g. "gpu0" to
	// "/dev/zero".
	Links map[string]string

	// OwnClock gives the cluster its own clock, which StepClock sets. It needs Linux on x86-64 and
	// gcc, and works for dynamically linked programs started with Env. MariaDB keeps the machine's
	// clock.
	OwnClock bool

	// Backup adds a second slurmctld, on 127.0.0.2 and with a host name of its own, which waits until
	// the first one is away for SlurmctldTimeout (5 s). It needs root.
	Backup bool

	// Dir is the cluster's folder, missing or empty; Stop keeps it. The default is a temporary
	// folder, which Stop removes. Unprivileged users must be able to reach it, and its path must be
	// short because it holds Unix sockets.
	Dir string
}

// Partition describes a partition of the cluster.
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
	if o.Name == "" {
		o.Name = "slurmtest"
	}
	if o.Beside != nil {
		if !o.Beside.options.Accounting || o.AuthSlurm || o.OwnClock || o.Name == o.Beside.options.Name {
			return o, fmt.Errorf("slurmtest: %q beside %q: the other needs accounting, and this one MUNGE, the machine's clock, and a name of its own", o.Name, o.Beside.options.Name)
		}
		o.Accounting = true
	}
	if o.SelectType == "" {
		o.SelectType = "cons_tres"
	}
	if len(o.Partitions) == 0 {
		o.Partitions = []Partition{{Name: "main", Default: true, Extra: "DefaultTime=10"}}
	}
	return o, nil
}

// expandNodes returns the numbers of the nodes in a list such as "n[1-3,7],n9" for a cluster of the
// given size.
func expandNodes(list string, nodes int) ([]int, error) {
	if list == "ALL" || list == "" {
		list = fmt.Sprintf("n[1-%d]", nodes)
	}
	names, err := slurmctl.ExpandNodes(list)
	if err != nil {
		return nil, fmt.Errorf("slurmtest: %w", err)
	}
	numbers := make([]int, len(names))
	for i, name := range names {
		n, err := strconv.Atoi(strings.TrimPrefix(name, "n"))
		if err != nil || name != nodeName(n) || n < 1 || n > nodes {
			return nil, fmt.Errorf("slurmtest: node list %q: %s is not within n[1-%d]", list, name, nodes)
		}
		numbers[i] = n
	}
	return numbers, nil
}
