package slurmctl

import (
	"slices"
	"strconv"
	"strings"
)

// Preemption describes which jobs lose nodes to which.
type Preemption struct {
	ByQOS bool
	QOS   map[string]preemptingQOS
	Parts map[string]*partitionRules
	Mode  string // of the cluster
}

type preemptingQOS struct {
	Preempts []string
	Mode     string // how its own jobs are preempted; "" for the cluster's mode
}

// Preemption returns what was read about preemption, or nil if Slurm ends no job for another.
func (l *Limits) Preemption() *Preemption {
	if l == nil {
		return nil
	}
	return l.Preempts
}

// readPreemption reads scontrol show config and, for preempt/qos, sacctmgr show qos
// format=Name,Preempt,PreemptMode. It treats temporarily exempt jobs as exempt.
func readPreemption(cfg Config, parts map[string]*partitionRules, qos string) *Preemption {
	p := &Preemption{Parts: parts, Mode: cfg.Values["PreemptMode"], QOS: map[string]preemptingQOS{}}
	if exempt := cfg.Values["PreemptExemptTime"]; !none(exempt) && strings.Trim(exempt, "0:") != "" {
		return nil
	}
	switch cfg.Values["PreemptType"] {
	case "preempt/partition_prio":
	case "preempt/qos":
		p.ByQOS = true
		for line := range strings.Lines(qos) {
			if f := strings.Split(strings.TrimRight(line, "\n"), "|"); len(f) == 3 {
				q := preemptingQOS{Preempts: list(f[1]), Mode: f[2]}
				if strings.EqualFold(q.Mode, "cluster") {
					q.Mode = ""
				}
				p.QOS[f[0]] = q
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
	if p.ByQOS {
		victim := p.QOS[qos]
		mode := victim.Mode
		if mode == "" {
			mode = p.Mode
		}
		return by(mode) && slices.Contains(p.QOS[toQOS].Preempts, qos)
	}
	victim, known := p.Parts[partition]
	if !known || !by(victim.Preempt) {
		return false
	}
	low, err := strconv.Atoi(victim.Tier)
	if err != nil {
		return false
	}
	for _, name := range strings.Split(toPartition, ",") {
		by, known := p.Parts[name]
		if !known {
			return false
		}
		if high, err := strconv.Atoi(by.Tier); err != nil || high <= low {
			return false
		}
	}
	return true
}
