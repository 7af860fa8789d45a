package submit

import (
	"context"
	"fmt"
	"os/user"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// rules is a cluster that reports its users' limits; *slurmctl.Client implements it.
type rules interface {
	Limits(ctx context.Context, cfg slurmctl.Config, users ...string) (*slurmctl.Limits, error)
	Defaults(ctx context.Context, user, account string) (defaultAccount, defaultQOS string, err error)
}

// limits returns the limits that apply to the submitting user, and whose they are; false if the
// user may not see them: the sidecar sees all.
func (c *Command) limits(ctx context.Context, r *submission) (*slurmctl.Limits, slurmctl.Subject, bool) {
	none := func() (*slurmctl.Limits, slurmctl.Subject, bool) { return nil, slurmctl.Subject{}, false }
	cluster, ok := c.Cluster.(rules)
	me, err := user.Current()
	if !ok || err != nil {
		return none()
	}
	cfg, err := c.Cluster.Config(ctx)
	if err != nil {
		return none()
	}
	limits, err := cluster.Limits(ctx, cfg, me.Username)
	if err != nil {
		return none()
	}
	s := slurmctl.Subject{User: me.Username, Account: r.options.value("account"), QOS: r.options.value("qos")}
	if limits.Enforced && (s.Account == "" || s.QOS == "") {
		account, qos, err := cluster.Defaults(ctx, s.User, s.Account)
		if err != nil {
			return none() // whose limits count is not known
		}
		if s.Account == "" {
			s.Account = account
		}
		if s.QOS == "" {
			s.QOS = qos
		}
	}
	return limits, s, true
}

// checkLimits rejects a profile that limits of the user's account, QOS, and partition make
// infeasible, and keeps the computed time limit within the longest that they allow.
func (c *Command) checkLimits(ctx context.Context, r *submission, places []place) error {
	limits, s, known := c.limits(ctx, r)
	if !known {
		return nil
	}
	names := c.partitionNames(r, places, limits)
	need := slurmctl.NeedOf(request.Sizes(r.request.Claimed()), minutes(r.request.Profile.Duration()), r.request.Drive == drivemode.Chain)
	if r.userTime > 0 && r.userTime != unlimited {
		need.Minutes = r.userTime
	}
	var first []string
	longest, fits := int64(0), false
	most, tooMuch := 0, []string{}
	need.GRES = r.gres.perNode
	for i, name := range names {
		s.Partition = name
		if need.CPUs, need.Most = limits.NodeCPUs(name), 0; i < len(places) && len(places[i].nodes) > 0 {
			need.CPUs, need.Most = slurmctl.CPUsOf(places[i].nodes)
		}
		need.Memory, need.PerCPU = limits.NodeMemory(name, r.options.value("mem"), r.options.value("mem-per-cpu"), need.CPUs)
		if never := limits.Never(s, need); len(never) > 0 {
			first = append(first, never...)
			continue
		}
		fits = true
		if most := limits.MostMinutes(s); most < 0 {
			longest = unlimited
		} else {
			longest = max(longest, most)
		}
		nodes, against := limits.MostNodes(s, need, r.request.MostNodes())
		if most = max(most, nodes); against != "" {
			tooMuch = append(tooMuch, against)
		}
	}
	if !fits && len(first) > 0 {
		slices.Sort(first)
		return fmt.Errorf("%s", strings.Join(slices.Compact(first), "; "))
	}
	if fits {
		c.cutMost(r, most, strings.Join(tooMuch, "; "))
		r.maxTime = min(r.maxTime, longest)
	}
	return nil
}

// partitionNames returns the partitions of the places or, if these are unknown, of the options.
func (c *Command) partitionNames(r *submission, places []place, limits *slurmctl.Limits) (names []string) {
	for _, p := range places {
		names = append(names, p.partition.Name)
	}
	if given := r.options.value("partition"); names == nil && given != "" {
		return strings.Split(given, ",")
	} else if names == nil {
		return []string{limits.DefaultPartition()}
	}
	return names
}

// value returns what an option has on the command line, in the environment or in the script.
func (l layers) value(name string) string {
	o, _ := l.last(name)
	return o.Value
}
