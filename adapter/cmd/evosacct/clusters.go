package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/api/reach"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// show writes what was asked for: from the configured sidecar or, with --clusters, from each cluster's own, one below the other.
// A cluster that does not answer is named in the error, and the others are shown.
func (o *options) show(ctx context.Context, site config.Config, out, warn io.Writer) error {
	if len(o.clusters) == 0 {
		client, err := reach.Client(site)
		if err != nil {
			return err
		}
		return o.showOne(ctx, reach.Cluster{Own: true, Site: site, API: client, Slurm: &slurmctl.Client{Dir: site.Slurm.Bin}}, out, warn)
	}
	clusters, err := reach.Clusters(ctx, site, o.clusters)
	if err != nil {
		return err
	}
	if len(clusters) > 1 && o.json {
		return errors.New("--json goes with one cluster: name one at a time with --clusters")
	}
	var failed []error
	for _, c := range clusters {
		var text strings.Builder
		if err := o.showOne(ctx, c, &text, warn); err != nil {
			failed = append(failed, fmt.Errorf("cluster %s: %w", c.Name, err))
			continue
		}
		if !o.json && !o.noHeader {
			_, _ = fmt.Fprintf(out, "CLUSTER: %s\n", c.Name)
		}
		if _, err := io.WriteString(out, text.String()); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// showOne writes what was asked for, of one cluster.
func (o *options) showOne(ctx context.Context, c reach.Cluster, out, warn io.Writer) error {
	jobs, err := o.read(ctx, c.API)
	if err != nil {
		return fmt.Errorf("%w; sacct has what Slurm knows", err)
	}
	meter := &meter{power: c.Site.Power, cluster: c.Name}
	if o.wantsEnergy() {
		jobs = o.chosen(jobs)
		meter.ask(ctx, &slurmctl.Client{Dir: c.Slurm.Dir, Timeout: patience, Remote: c.Slurm.Remote}, jobs, warn)
	}
	return o.write(out, jobs, time.Now(), meter, func(id uint32) ([]api.Event, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		events, err := c.API.Events(ctx, api.EventQuery{Job: id})
		if err != nil {
			return nil, fmt.Errorf("what the sidecar at %s has recorded of job %d, for column %s: %w", c.Site.API, id, strings.Join(told, " or "), err)
		}
		return events, nil
	})
}
