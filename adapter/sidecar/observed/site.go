package observed

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// head returns the heading of a new file.
func (w *Watcher) head() Heading {
	return Heading{Format: Format, Evoslurm: w.version, At: w.at.Unix(), Masked: w.names != nil, Site: w.site}
}

// describe records the site if it is another one than before.
func (w *Watcher) describe() {
	if w.begun.IsZero() {
		return
	}
	before, _ := json.Marshal(w.site)
	w.site = w.describeSite()
	if now, _ := json.Marshal(w.site); string(before) != string(now) {
		site := w.site
		w.write(Record{Site: &site})
	}
}

// describeSite returns what is known of the site. O(nodes).
func (w *Watcher) describeSite() Site {
	s := Site{Cluster: w.slurm.ClusterName, Slurm: w.slurm.Version, Settings: settings(w.slurm), Config: w.cfg}
	alike, names := map[string]NodeKind{}, map[string][]string{}
	for _, n := range w.nodes {
		kind := NodeKind{CPUs: n.CPUs, Memory: n.Memory, Features: n.Features, GRES: n.GRES, Weight: n.Weight}
		key := fmt.Sprint(kind)
		alike[key], names[key] = kind, append(names[key], n.Name)
	}
	for key, kind := range alike {
		kind.Nodes = slurmctl.CompressNodes(names[key])
		s.Nodes = append(s.Nodes, kind)
	}
	slices.SortFunc(s.Nodes, func(a, b NodeKind) int { return cmp.Compare(a.Nodes, b.Nodes) })
	for _, p := range w.partitions {
		one := Partition{Name: p.Name, Nodes: slurmctl.CompressNodes(p.Nodes), Default: p.Default, Up: p.Up, MaxTime: seconds(p.MaxTime), DefaultTime: seconds(p.DefaultTime),
			MinNodes: p.MinNodes, MaxNodes: p.MaxNodes, OverSubscribe: p.OverSubscribe}
		if w.limits != nil {
			one.Tier = w.limits.Tier(p.Name)
		}
		s.Partitions = append(s.Partitions, one)
	}
	return s
}

// settings returns the values of slurm.conf that scheduling depends on. None of them is a secret or a path.
func settings(cfg slurmctl.Config) map[string]string {
	all := map[string]string{}
	for name, value := range cfg.Values {
		switch {
		case value == "", strings.HasSuffix(name, "Program"), strings.HasPrefix(name, "SlurmctldPar"):
		case strings.HasPrefix(name, "Priority"), strings.HasPrefix(name, "Scheduler"), strings.HasPrefix(name, "Select"), strings.HasPrefix(name, "Preempt"),
			strings.HasPrefix(name, "Suspend"), strings.HasPrefix(name, "Resume"),
			slices.Contains([]string{"AccountingStorageEnforce", "CompleteWait", "DefMemPerCPU", "DefMemPerNode", "EnforcePartLimits", "KillWait", "MinJobAge", "OverTimeLimit", "BatchStartTimeout", "TaskPlugin"}, name):
			all[name] = value
		}
	}
	return all
}

// nameless returns the configuration without names and paths.
func nameless(c config.Config) config.Config {
	d := config.Default()
	d.Mode, d.Observe.MiB, d.Observe.Mask = c.Mode, c.Observe.MiB, c.Observe.Mask
	d.PollInterval, d.Partitions, d.StockJobs, d.Slurm.Share = c.PollInterval, c.Partitions, c.StockJobs, c.Slurm.Share
	d.Strategy, d.ExpandLimit, d.Drive, d.Margin, d.HoldAhead, d.MaxHolds, d.HoldShares = c.Strategy, c.ExpandLimit, c.Drive, c.Margin, c.HoldAhead, c.MaxHolds, c.HoldShares
	d.MaxDelay, d.GrowDelay, d.GiveUp, d.Undriven, d.Grace, d.Overrun, d.Malleable = c.MaxDelay, c.GrowDelay, c.GiveUp, c.Undriven, c.Grace, c.Overrun, c.Malleable
	d.AllowPrefer, d.PreferWait = c.AllowPrefer, c.PreferWait
	return d
}
