package slurmctl

import (
	"slices"
	"strconv"
	"strings"
)

// Preemption describes which jobs lose nodes to which.
type Preemption struct {
	byQOS bool
	qos   map[string]preemptingQOS
	parts map[string]*partitionRules
	mode  string // of the cluster
}

type preemptingQOS struct {
	preempts []string
	mode     string // how its own jobs are preempted; "" for the cluster's mode
}

// Preemption returns what was read about preemption, or nil if Slurm ends no job for another.
func (l *Limits) Preemption() *Preemption {
	if l == nil {
		return nil
	}
	return l.preemption
}

// readPreemption reads scontrol show config and, for preempt/qos, sacctmgr show qos
// format=Name,Preempt,PreemptMode. It treats temporarily exempt jobs as exempt.
func readPreemption(cfg Config, parts map[string]*partitionRules, qos string) *Preemption {
	p := &Preemption{parts: parts, mode: cfg.Values["PreemptMode"], qos: map[string]preemptingQOS{}}
	if exempt := cfg.Values["PreemptExemptTime"]; !none(exempt) && strings.Trim(exempt, "0:") != "" {
		return nil
	}
	switch cfg.Values["PreemptType"] {
	case "preempt/partition_prio":
	case "preempt/qos":
		p.byQOS = true
		for line := range strings.Lines(qos) {
			if f := strings.Split(strings.TrimRight(line, "\n"), "|"); len(f) == 3 {
				q := preemptingQOS{preempts: list(f[1]), mode: f[2]}
				if strings.EqualFold(q.mode, "cluster") {
					q.mode = ""
				}
				p.qos[f[0]] = q
			}
		}
	default:
		return nil
	}
	return p
}

// ends reports whether a mode releases the nodes of a preempted job.
func ends(mode string) bool {
	return slices.ContainsFunc(strings.Split(strings.ToUpper(mode), ","), func(m string) bool { return m == "REQUEUE" || m == "CANCEL" })
}

// suspends reports whether a preempted job keeps its nodes in this mode.
func suspends(mode string) bool {
	return strings.Contains(strings.ToUpper(mode), "SUSPEND") && !ends(mode)
}

// Yields reports whether Slurm ends or requeues jobs of this partition and QOS if a job of the
// other partition and QOS needs their nodes. (A suspended job keeps its nodes.)
func (p *Preemption) Yields(partition, qos, toPartition, toQOS string) bool {
	return p.preempted(ends, partition, qos, toPartition, toQOS)
}

// Suspends reports whether Slurm suspends such jobs instead.
func (p *Preemption) Suspends(partition, qos, toPartition, toQOS string) bool {
	return p.preempted(suspends, partition, qos, toPartition, toQOS)
}

func (p *Preemption) preempted(by func(mode string) bool, partition, qos, toPartition, toQOS string) bool {
	if p == nil {
		return false
	}
	if p.byQOS {
		victim := p.qos[qos]
		mode := victim.mode
		if mode == "" {
			mode = p.mode
		}
		return by(mode) && slices.Contains(p.qos[toQOS].preempts, qos)
	}
	victim, known := p.parts[partition]
	if !known || !by(victim.preempt) {
		return false
	}
	low, err := strconv.Atoi(victim.tier)
	if err != nil {
		return false
	}
	for _, name := range strings.Split(toPartition, ",") {
		by, known := p.parts[name]
		if !known {
			return false
		}
		if high, err := strconv.Atoi(by.tier); err != nil || high <= low {
			return false
		}
	}
	return true
}
