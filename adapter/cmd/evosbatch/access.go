package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// accessPatience is how long the sidecar may take to say whether a job may evolve. While it is away, the
// configuration says so.
const accessPatience = 5 * time.Second

// mayEvolve returns why the site keeps a job of this user from evolving, or nil, and which kinds of names it would
// also compare. The sidecar knows what operators changed at run time.
func mayEvolve(ctx context.Context, site config.Config, client *api.Client, job config.Names) ([]string, error) {
	if client != nil {
		limited, cancel := context.WithTimeout(ctx, accessPatience)
		defer cancel()
		client.Waiting = func(string, error) { cancel() }
		list := func(names []string) string { return strings.Join(names, ",") }
		a, err := client.Access(limited, api.AccessQuery{Account: list(job.Accounts), QOS: list(job.QOS), Partition: list(job.Partitions)})
		if err == nil && !a.Allowed {
			return nil, errors.New(a.Reason)
		}
		if err == nil {
			return a.Unchecked, nil
		}
	}
	slurm := &slurmctl.Client{}
	if me, err := slurm.LookupUser(uint32(os.Getuid())); err == nil {
		job.Users = []string{me.Name}
		if in, err := slurm.InGroups(me, site.AccessGroups()); err == nil {
			job.Groups = append([]string{}, in...)
		}
	}
	return site.Unchecked(job), site.MayEvolve(job)
}
