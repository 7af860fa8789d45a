package observed

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/adapter/sidecar/observed"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// cluster returns the model of a site, and the settings that it does not have.
func cluster(site *observed.Site) (o slurmsim.Options, unknown []string, err error) {
	var conf strings.Builder
	for _, name := range slices.Sorted(maps.Keys(site.Settings)) {
		if value := site.Settings[name]; !strings.ContainsAny(name+value, "#\\\n\"' ") && value != "" && value != "(null)" {
			fmt.Fprintf(&conf, "%s=%s\n", name, value)
		}
	}
	conf.WriteString("NodeName=x\nPartitionName=x Nodes=x\n") // ReadConf wants some
	if _, err := slurmsim.ReadConf(strings.NewReader(conf.String())); err != nil {
		var not *slurmsim.NotModelled
		if !errors.As(err, &not) {
			return o, nil, fmt.Errorf("settings: %w", err)
		}
		unknown = not.Parameters
	}
	if o, err = slurmsim.ReadConf(strings.NewReader(conf.String()), "all"); err != nil {
		return o, nil, err
	}
	if err := equip(&o, site); err != nil {
		return o, nil, err
	}
	// What the sidecar needs to resize jobs: the model's sizes are then the jobs' own.
	o.Accounting, o.PermitJobExpansion, o.DisableShrink = true, true, false
	return o, unknown, nil
}

// equip gives the model the site's nodes and partitions.
func equip(o *slurmsim.Options, site *observed.Site) error {
	o.NodeList, o.Partitions, o.Nodes = nil, nil, 0
	has := map[string]bool{}
	for _, kind := range site.Nodes {
		names, err := slurmctl.ExpandNodes(kind.Nodes)
		if err != nil {
			return err
		}
		for _, name := range names {
			if has[name] = true; len(has) > len(o.NodeList) {
				o.NodeList = append(o.NodeList, slurmctl.Node{Name: name, CPUs: max(kind.CPUs, 1), Memory: max(kind.Memory, 1), Features: kind.Features, Weight: max(kind.Weight, 1)})
			}
		}
	}
	for _, p := range site.Partitions {
		names, err := slurmctl.ExpandNodes(p.Nodes)
		if err != nil {
			return err
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !has[name] })
		o.Partitions = append(o.Partitions, slurmsim.Partition{Tier: max(p.Tier, 1), Partition: slurmctl.Partition{Name: p.Name, Nodes: names, Default: p.Default, Up: p.Up,
			MaxTime: limit(p.MaxTime), DefaultTime: limit(p.DefaultTime), MinNodes: p.MinNodes, MaxNodes: p.MaxNodes, OverSubscribe: p.OverSubscribe}})
	}
	switch {
	case len(o.NodeList) == 0 || len(o.Partitions) == 0:
		return errors.New("the record names no nodes or no partitions")
	case len(o.NodeList) > simulate.MostNodes:
		return fmt.Errorf("%d nodes: at most %d can be played", len(o.NodeList), simulate.MostNodes)
	}
	return nil
}

// limit returns a recorded time limit.
func limit(seconds int64) time.Duration {
	if seconds < 0 || seconds > planner.MaxDuration {
		return slurmctl.Unlimited
	}
	return time.Duration(seconds) * time.Second
}
