package slurmctl

import (
	"slices"
	"strconv"
	"strings"
)

// Preemption is from whom Slurm takes nodes for whom.
type Preemption struct {
	byQOS bool
	qos   map[string]preemptingQOS
	parts map[string]*partitionRules
	mode  string // of the cluster
}

type preemptingQOS struct {
	preempts []string
	mode     string // in which its own jobs are preempted; "": the cluster's
}

// Preemption gives what was read of it; nil where Slurm ends no job for another.
func (l *Limits) Preemption() *Preemption {
	if l == nil {
		return nil
	}
	return l.preemption
}

// readPreemption reads scontrol show config and, for preempt/qos, sacctmgr show qos
// format=Name,Preempt,PreemptMode. Jobs that are exempt for a while count as exempt.
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

// ends reports whether a mode gives the nodes of a preempted job free.
func ends(mode string) bool {
	return slices.ContainsFunc(strings.Split(strings.ToUpper(mode), ","), func(m string) bool { return m == "REQUEUE" || m == "CANCEL" })
}

// suspends reports whether a mode keeps the nodes of a preempted job for it.
func suspends(mode string) bool {
	return strings.Contains(strings.ToUpper(mode), "SUSPEND") && !ends(mode)
}

// Yields reports whether Slurm ends or requeues jobs of this partition and QOS where one
// of the other's needs their nodes. (A job that is suspended keeps its nodes.)
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
