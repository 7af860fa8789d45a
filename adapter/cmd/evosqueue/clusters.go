package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api/reach"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/show/display"
)

// shown returns what shows the jobs: those of the configured sidecar or, with --clusters, of each cluster's own.
func (o *options) shown(ctx context.Context, site config.Config) (viewer, error) {
	if o.local || !slices.ContainsFunc(o.clusters, func(name string) bool { return name != "" }) {
		client, err := reach.Client(site)
		o.address = site.API
		return o.of(client), err
	}
	clusters, err := reach.Clusters(ctx, site, o.clusters)
	if err != nil {
		return nil, err
	}
	var parts []part
	for _, c := range clusters {
		one := *o
		one.address, one.from = c.Site.API, newQueueOf(c.Slurm)
		parts = append(parts, part{c.Name, one.of(c.API)})
	}
	if len(parts) == 1 && (o.jsonAs != "" || o.yaml_) {
		return parts[0].show, nil
	}
	return o.together(parts), nil
}

// of shows the jobs of one sidecar.
func (o *options) of(from source) viewer {
	return func(ctx context.Context, now time.Time, t display.Terminal) (string, error) {
		return o.view(ctx, from, now, t)
	}
}

// part is one cluster in a view of several.
type part struct {
	cluster string
	show    viewer
}

// together shows several clusters one below the other, as squeue does. All are asked at once. One that does not answer keeps
// no other from being shown, and is named in the error.
func (o *options) together(parts []part) viewer {
	return func(ctx context.Context, now time.Time, t display.Terminal) (string, error) {
		texts, errs := make([]string, len(parts)), make([]error, len(parts))
		done := make(chan int)
		for i, p := range parts {
			go func() {
				texts[i], errs[i] = p.show(ctx, now, t)
				done <- i
			}()
		}
		for range parts {
			<-done
		}
		var b strings.Builder
		for i, p := range parts {
			switch {
			case errs[i] != nil:
				errs[i] = fmt.Errorf("cluster %s: %w", p.cluster, errs[i])
				continue
			case !o.noHeader:
				if b.Len() > 0 {
					b.WriteByte('\n')
				}
				fmt.Fprintf(&b, "CLUSTER: %s\n", p.cluster)
			}
			b.WriteString(texts[i])
		}
		return b.String(), errors.Join(errs...)
	}
}
