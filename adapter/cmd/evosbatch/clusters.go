package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/api/reach"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/job/bag"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/job/submit"
	"github.com/evoslurm/evoslurm/adapter/show/display"
)

// progress returns what draws a campaign's progress on a terminal, or nil for other files.
func progress(out *os.File) func(bag.Summary) {
	if display.Look(out, os.Getenv).Width == 0 {
		return nil
	}
	return func(s bag.Summary) {
		if s.Tasks == 0 {
			fmt.Fprintln(out)
			return
		}
		text := fmt.Sprintf("\r%s %v", s.Bar(), s)
		for _, c := range s.Clusters {
			text += fmt.Sprintf(" · %s %d", legible.Printable(c.Name, false), c.Running)
		}
		fmt.Fprint(out, text+"\x1b[K")
	}
}

// sites returns the clusters that --clusters names, for a submission to the best of them.
func sites(ctx context.Context, own config.Config, names []string) ([]submit.Site, error) {
	clusters, err := reach.Clusters(ctx, own, names)
	if err != nil {
		return nil, err
	}
	var all []submit.Site
	for _, c := range clusters {
		c.API.Waiting = nil
		status := word(ctx, c.API)
		all = append(all, submit.Site{
			Name:       c.Name,
			Own:        c.Own,
			Cluster:    c.Slurm,
			Defaults:   request.Request{ExpandLimit: c.Site.ExpandLimit, Drive: c.Site.Drive},
			Partitions: c.Site.Partitions,
			MaxGrace:   c.Site.Malleable.MaxGrace,
			BestEffort: c.Site.BestEffort,
			MayPrefer:  c.Site.MayPrefer,
			MayEvolve: func(ctx context.Context, job config.Names) ([]string, error) {
				return mayEvolve(ctx, c.Site, c.API, job)
			},
			Refuses: func(context.Context) error { return observing(c.Site, status()) },
			Note:    func(ctx context.Context) string { return cmp.Or(reach.RefusedToken(ctx, c.Slurm), drained(status())) },
			Place:   func(ctx context.Context, q api.PlacementQuery) (api.Placement, error) { return c.API.Place(ctx, q) },
			Wait:    own.Clusters.Wait,
			Mounts:  c.Site.Clusters.Mounts,
			StageIn: c.Site.Clusters.StageIn,
		})
	}
	return all, nil
}
