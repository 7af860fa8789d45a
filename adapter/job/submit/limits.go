package submit

import (
	"cmp"
	"context"
	"errors"
	"os/user"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// userLimits holds the limits that apply to a user's job.
type userLimits struct {
	*slurmctl.Limits
	subject slurmctl.Subject // whose they are, in any partition
}

// limits returns the limits that apply to the submitting user's job with these options; false if
// the user may not see them: the sidecar sees all.
func (s site) limits(ctx context.Context, l layers) (userLimits, bool) {
	cluster, ok := s.cluster.(rules)
	me, err := user.Current()
	if !ok || err != nil {
		return userLimits{}, false
	}
	cfg, known := s.config(ctx)
	if !known {
		return userLimits{}, false
	}
	limits, err := cluster.Limits(ctx, cfg, me.Username)
	if err != nil {
		return userLimits{}, false
	}
	subject := slurmctl.Subject{User: me.Username, Account: l.value("account"), QOS: l.value("qos")}
	if limits.Enforced && (subject.Account == "" || subject.QOS == "") {
		account, qos, err := cluster.Defaults(ctx, subject.User, subject.Account)
		if err != nil {
			return userLimits{}, false // whose limits count is not known
		}
		subject.Account, subject.QOS = cmp.Or(subject.Account, account), cmp.Or(subject.QOS, qos)
	}
	return userLimits{limits, subject}, true
}

// partitions returns the partitions of the places or, if these are unknown, of the options.
func (u userLimits) partitions(l layers, places []place) (names []string) {
	for _, p := range places {
		names = append(names, p.partition.Name)
	}
	if names != nil {
		return names
	}
	if given := l.value("partition"); given != "" {
		return strings.Split(given, ",")
	}
	return []string{u.DefaultPartition()}
}

// givenMinutes returns the shortest time limit that the partitions give a job without --time, or
// unlimited.
func (u userLimits) givenMinutes(partitions []string) int64 {
	least := int64(unlimited)
	for _, u.subject.Partition = range partitions {
		if given := u.GivenMinutes(u.subject); given >= 0 {
			least = min(least, given)
		}
	}
	return least
}

// allowance is the most that limits allow a job in any of its partitions.
type allowance struct {
	minutes int64
	nodes   int
	against string // the limits on its nodes
}

// allow returns what the limits allow a job, or an error if it is infeasible in all of its
// partitions.
func (u userLimits) allow(r submission, places []place) (allowance, error) {
	need := slurmctl.NeedOf(request.Sizes(r.request.Claimed()), r.takes(), r.request.Drive.Means().StepsAreJobs)
	if time := r.needMinutes(); time != unlimited {
		need.Minutes = time
	}
	need.GRES = r.gres.perNode
	var allowed allowance
	var never, against []string
	fits := false
	for i, name := range u.partitions(r.options, places) {
		u.subject.Partition = name
		if need.CPUs, need.Most = u.NodeCPUs(name), 0; i < len(places) && len(places[i].nodes) > 0 {
			need.CPUs, need.Most = slurmctl.CPUsOf(places[i].nodes)
		}
		need.Memory, need.PerCPU = u.NodeMemory(name, r.options.value("mem"), r.options.value("mem-per-cpu"), need.CPUs)
		if why := u.Never(u.subject, need); len(why) > 0 {
			never = append(never, why...)
			continue
		}
		fits = true
		if most := u.MostMinutes(u.subject); most < 0 {
			allowed.minutes = unlimited
		} else {
			allowed.minutes = max(allowed.minutes, most)
		}
		nodes, limit := u.MostNodes(u.subject, need, r.request.MostNodes())
		if allowed.nodes = max(allowed.nodes, nodes); limit != "" {
			against = append(against, limit)
		}
	}
	if !fits {
		slices.Sort(never)
		return allowance{}, errors.New(strings.Join(slices.Compact(never), "; "))
	}
	allowed.against = strings.Join(against, "; ")
	return allowed, nil
}
