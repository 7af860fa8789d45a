package slurmtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// site holds what a configuration needs to know about the machine and the cluster's place on it.
type site struct {
	dir       string
	shared    string // folder of the cluster whose munged and slurmdbd are used: dir, or another's
	dbPort    int    // of slurmdbd
	host      string // short host name
	bind      bool   // the daemons can listen only on loopback
	port      int    // slurmctld; port+1 is its own slurmdbd, port+1+i is slurmd of node i
	slurmUser string
	version   string
}

const loopback = "127.0.0.1" // the address of all daemons

func (s site) mungeSocket() string { return s.shared + "/munge/socket" }
func (s site) conf() string        { return s.dir + "/slurm.conf" }

// placed returns a text of Options with the cluster's folder filled in.
func (s site) placed(text string) string { return strings.ReplaceAll(text, "@DIR@", s.dir) }

// parameters is an ordered list of slurm.conf lines, one per parameter.
type parameters struct {
	names  []string
	values map[string]string // by lower-case name: "Name=value"
}

// set adds a parameter or replaces it.
func (p *parameters) set(name, value string) {
	key := strings.ToLower(name)
	if _, known := p.values[key]; !known {
		p.names = append(p.names, key)
	}
	if p.values == nil {
		p.values = map[string]string{}
	}
	p.values[key] = name + "=" + value
}

// slurmConf writes the cluster's slurm.conf.
func slurmConf(o Options, s site) (string, error) {
	var p parameters
	set := func(pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			p.set(pairs[i], pairs[i+1])
		}
	}
	set(
		"ClusterName", o.Name,
		"SlurmctldHost", fmt.Sprintf("%s(%s)", s.host, loopback),
		"SlurmctldPort", fmt.Sprint(s.port),
		"SlurmUser", s.slurmUser,
		"StateSaveLocation", s.dir+"/state",
		"SlurmctldPidFile", s.dir+"/state/slurmctld.pid",
		"SlurmctldLogFile", s.dir+"/log/slurmctld.log",
		"SlurmctldDebug", "verbose",
		"SlurmdDebug", "verbose",
		"SlurmdSpoolDir", s.dir+"/spool/%n",
		"SlurmdPidFile", s.dir+"/spool/%n/slurmd.pid",
		"SlurmdLogFile", s.dir+"/log/slurmd.%n.log",
		// Settings that need neither root, cgroups, nor real hardware.
		"ProctrackType", "proctrack/linuxproc",
		"TaskPlugin", "task/none",
		"JobAcctGatherType", "jobacct_gather/none",
		"MpiDefault", "none",
		"SwitchType", "switch/none",
		"SlurmdParameters", "config_overrides", // more CPUs than the machine has
		"MailProg", "/bin/true",
		"ReturnToService", "2",
		"SlurmdTimeout", "60",
		"InactiveLimit", "0",
		"KillWait", "2",
		"MinJobAge", "300",
		"MaxJobCount", "200000",
		"MaxArraySize", "200001",
		"SchedulerType", "sched/backfill",
		"SelectType", "select/"+o.SelectType,
	)
	if o.AuthSlurm {
		set("AuthType", "auth/slurm", "CredType", "cred/slurm")
	} else {
		set("AuthType", "auth/munge", "CredType", "cred/munge", "AuthInfo", "socket="+s.mungeSocket())
	}
	if s.slurmUser != "slurm" { // without root
		set("SlurmdUser", s.slurmUser)
	}
	if s.bind {
		set("CommunicationParameters", "NoInAddrAny,NoCtldInAddrAny")
	}
	if o.Backup {
		set("SlurmctldHost", fmt.Sprintf("%s(%s)\nSlurmctldHost=%s(%s)", s.host, loopback, backupHost, backupAddress), "SlurmctldTimeout", "5")
		if !s.bind {
			set("CommunicationParameters", "NoCtldInAddrAny") // two listen on one port
		}
	}
	if o.SelectType != "linear" {
		set("SelectTypeParameters", "CR_Core")
	}
	if o.PriorityType != "" {
		set("PriorityType", "priority/"+o.PriorityType)
	}
	if o.PrologFlags != "" {
		set("PrologFlags", o.PrologFlags)
	}
	if o.Accounting {
		set(
			"AccountingStorageType", "accounting_storage/slurmdbd",
			"AccountingStorageHost", loopback,
			"AccountingStoragePort", fmt.Sprint(s.dbPort),
			"AccountingStoragePass", s.mungeSocket(),
		)
	} else {
		set("AccountingStorageType", "accounting_storage/none")
	}
	if params := schedulerParameters(o); params != "" {
		set("SchedulerParameters", params)
	}
	var raw []string // parameters of ExtraConf that may occur more than once
	for line := range strings.Lines(o.ExtraConf) {
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, "=")
		switch key := strings.ToLower(name); {
		case line == "":
		case !ok, strings.ContainsAny(name, " \t#"), key == "nodename", key == "partitionname", key == "nodeset", key == "downnodes", key == "switchname":
			raw = append(raw, line)
		default:
			set(name, value)
		}
	}
	var b strings.Builder
	for _, name := range p.names {
		fmt.Fprintln(&b, p.values[name])
	}
	for _, line := range raw {
		fmt.Fprintln(&b, line)
	}
	if err := writeNodes(&b, o, s); err != nil {
		return "", err
	}
	if err := writePartitions(&b, o); err != nil {
		return "", err
	}
	return b.String(), nil
}

// shortIntervals let a batch job start within about a second. Slurm's defaults take three seconds,
// and look at later jobs every 30.
const shortIntervals = "batch_sched_delay=1,bf_interval=1,sched_interval=1,sched_min_interval=100000"

// schedulerParameters joins what the options ask for; of equal names, Slurm uses the first.
func schedulerParameters(o Options) string {
	var list []string
	given := map[string]bool{}
	add := func(params string) {
		for param := range strings.SplitSeq(params, ",") {
			name, _, _ := strings.Cut(strings.TrimSpace(param), "=")
			if name != "" && !given[name] {
				given[name] = true
				list = append(list, strings.TrimSpace(param))
			}
		}
	}
	add(o.SchedulerParameters)
	if o.PermitJobExpansion {
		add("permit_job_expansion")
	}
	if !o.SlurmIntervals {
		add(shortIntervals)
	}
	return strings.Join(list, ",")
}

// writeNodes writes one NodeName line for every run of nodes with the same
// parameters.
func writeNodes(b *strings.Builder, o Options, s site) error {
	extra := make([]map[string]string, o.Nodes+1)
	for _, list := range slices.Sorted(maps.Keys(o.NodeExtra)) {
		numbers, err := expandNodes(list, o.Nodes)
		if err != nil {
			return err
		}
		for param := range strings.FieldsSeq(o.NodeExtra[list]) {
			name, value, ok := strings.Cut(param, "=")
			if !ok {
				return fmt.Errorf("slurmtest: NodeExtra of %s: %q is not Name=value", list, param)
			}
			for _, i := range numbers {
				if extra[i] == nil {
					extra[i] = map[string]string{}
				}
				if _, twice := extra[i][name]; twice {
					return fmt.Errorf("slurmtest: NodeExtra gives %s of n%d twice", name, i)
				}
				extra[i][name] = value
			}
		}
	}
	for first := 1; first <= o.Nodes; {
		last := first
		for last < o.Nodes && maps.Equal(extra[last+1], extra[first]) {
			last++
		}
		params := map[string]string{"CPUs": fmt.Sprint(o.CPUs), "RealMemory": fmt.Sprint(o.MemoryMB), "State": "UNKNOWN"}
		maps.Copy(params, extra[first])
		fmt.Fprintf(b, "NodeName=n[%d-%d] NodeHostname=%s NodeAddr=%s Port=[%d-%d]",
			first, last, s.host, loopback, s.nodePort(first), s.nodePort(last))
		for _, name := range slices.Sorted(maps.Keys(params)) {
			fmt.Fprintf(b, " %s=%s", name, params[name])
		}
		fmt.Fprintln(b)
		first = last + 1
	}
	return nil
}

func (s site) nodePort(node int) int { return s.port + 1 + node }

func writePartitions(b *strings.Builder, o Options) error {
	hasDefault := slices.ContainsFunc(o.Partitions, func(p Partition) bool { return p.Default })
	for i, p := range o.Partitions {
		nodes, isDefault, maxTime := p.Nodes, "NO", p.MaxTime
		if nodes == "" {
			nodes = "ALL"
		}
		if _, err := expandNodes(nodes, o.Nodes); err != nil {
			return err
		}
		if p.Default || !hasDefault && i == 0 {
			isDefault = "YES"
		}
		if maxTime == "" {
			maxTime = "INFINITE"
		}
		line := fmt.Sprintf("PartitionName=%s Nodes=%s Default=%s MaxTime=%s", p.Name, nodes, isDefault, maxTime)
		if !strings.Contains(strings.ToLower(p.Extra), "state=") {
			line += " State=UP"
		}
		if p.Extra != "" {
			line += " " + p.Extra
		}
		fmt.Fprintln(b, line)
	}
	return nil
}
