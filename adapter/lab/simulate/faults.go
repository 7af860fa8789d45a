package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// faults returns what befalls commands.
func (h *history) faults(q slurmsim.Command) slurmsim.Fault {
	h.checks.mayChange(q)
	return h.hosts.befalls(q, h.anyhow(q))
}

// anyhow returns what befalls commands on any host.
func (h *history) anyhow(q slurmsim.Command) slurmsim.Fault {
	if q.User.Name != h.s.account().Name {
		return slurmsim.Fault{}
	}
	if q.Name == "Allocate" && h.stopped[h.growsFor(q)] {
		return slurmsim.Fault{Before: time.Hour, Drop: true}
	}
	for _, name := range []string{q.Name, ""} {
		if coming := h.fault[name]; len(coming) > 0 && (name != "" || q.Changes()) {
			h.fault[name] = coming[1:]
			h.calmFrom = max(h.calmFrom, h.s.Cluster.Elapsed()+time.Minute) // it may come long after the storm
			return coming[0]
		}
	}
	return h.slows(q)
}

// growsFor returns the user for whose job an allocation is.
func (h *history) growsFor(q slurmsim.Command) string {
	var base slurmctl.JobID
	if _, err := fmt.Sscanf(q.About, "evo_%d_", &base); err != nil {
		return ""
	}
	j, _ := h.s.Cluster.Record(base)
	return j.User
}

// fault drop | lost | late=DURATION | slow=DURATION: the next change never reaches
// slurmctld, works without an answer, is answered late, or reaches it late.
func (h *history) faulty(words []string) error {
	if len(words) == 0 {
		return errors.New("which fault?")
	}
	key, value, _ := strings.Cut(words[0], "=")
	var f slurmsim.Fault
	var err error
	switch key {
	case "drop":
		f.Drop = true
	case "lost":
		f.Err = slurmsim.Refusal("Socket timed out on send/recv operation")
	case "late":
		f.After, err = time.ParseDuration(value)
	case "slow":
		f.Before, err = time.ParseDuration(value)
	default:
		err = fmt.Errorf("fault: %q", words[0])
	}
	h.fault[""] = append(h.fault[""], f)
	return err
}

// fails counts the nodes that applications lose with a failed node: a companion on it ends as a
// whole, and a base job on it ends without any message.
func (h *history) fails(node string) {
	for _, r := range h.s.Cluster.Queue() {
		if r.State != slurmctl.Running || !slices.Contains(r.NodeList, node) || h.tricks(r) {
			continue
		}
		for name, a := range h.apps {
			if strings.HasPrefix(r.Name, fmt.Sprintf("evo_%d_", h.jobs[name])) {
				a.Failed += len(r.NodeList)
			}
		}
	}
}

// failing COMMAND TEXT: the next command of that name fails with that text.
func (h *history) failing(words []string) error {
	if len(words) == 0 {
		return errors.New("which command fails?")
	}
	h.fault[words[0]] = append(h.fault[words[0]], slurmsim.Fault{Drop: true, Err: slurmsim.Refusal(strings.Join(words[1:], " "))})
	return nil
}
