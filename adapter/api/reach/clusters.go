package reach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// AllClusters stands for all clusters of the site, as in sbatch -M.
const AllClusters = "all"

// Cluster is one of the site's clusters, with a sidecar of its own.
type Cluster struct {
	Name  string
	Own   bool // the machine belongs to it
	Site  config.Config
	Slurm *slurmctl.Client // its Slurm's commands
	API   *api.Client
}

// Clusters returns the clusters that a command's -M names, each once, in that order: the machine's own, and those in the site's
// folder of clusters. "all" names the own one first, and then the others. A name in capitals means the same cluster: Slurm has
// them in lower case.
func Clusters(ctx context.Context, site config.Config, names []string) ([]Cluster, error) {
	here := &slurmctl.Client{Dir: site.Slurm.Bin, Timeout: site.Slurm.Timeout}
	own, err := here.ClusterName(ctx, os.Getenv)
	if err != nil {
		return nil, fmt.Errorf("the name of this cluster: %w", err)
	}
	own = strings.ToLower(own)
	others, err := site.Clusters.Names()
	if err != nil {
		return nil, err
	}
	known := append([]string{own}, slices.DeleteFunc(others, func(name string) bool { return name == own })...)
	var all []Cluster
	for _, name := range chosen(names, known) {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("--clusters=%s: no cluster %q is known here: there are %s (clusters.dir: %s)", strings.Join(names, ","), name, strings.Join(known, ", "), site.Clusters.Dir)
		}
		one := Cluster{Name: name, Own: name == own, Site: site, Slurm: here}
		if !one.Own {
			if one.Site, err = site.Clusters.Other(name); err != nil {
				return nil, err
			}
			one.Slurm = &slurmctl.Client{Dir: one.Site.Slurm.Bin, Timeout: one.Site.Slurm.Timeout, Remote: name}
		}
		k := &knowledge{account: one.Site.SidecarUser, slurm: one.Slurm, name: name}
		if one.API, err = k.client(one.Site); err != nil {
			return nil, fmt.Errorf("cluster %s: %w", name, err)
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, errors.New("--clusters: no cluster is named")
	}
	return all, nil
}

// chosen returns the clusters that are named, each once.
func chosen(names, known []string) (all []string) {
	for _, name := range names {
		more := []string{strings.ToLower(strings.TrimSpace(name))}
		if more[0] == AllClusters {
			more = known
		}
		for _, one := range more {
			if one != "" && !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	return all
}
