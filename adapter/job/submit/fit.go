package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// fit rejects what is infeasible in all partitions, and cuts a malleable job to the sizes that it
// can have. If Slurm does not answer, sbatch reports it.
func (s site) fit(ctx context.Context, r submission) (submission, error) {
	if s.cluster == nil {
		return r, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	nodes, partitions, err := s.cluster.Nodes(ctx)
	if err != nil {
		if _, ok := errors.AsType[*slurmctl.CommandError](err); !ok {
			fmt.Fprintf(s.stderr, "evosbatch: warning: the profile's size is not checked: %v\n", err)
		}
		r, err = s.checkLimits(ctx, r, nil)
		return s.orDoubt(ctx, r, err)
	}
	places, err := r.options.places(nodes, partitions, r.gres)
	if err != nil {
		return r, err
	}
	if cfg, known := s.config(ctx); known {
		if err := cmp.Or(refuseMerge(r.request.Drive, cfg), r.checkResizes(cfg)); err != nil {
			return r, err
		}
		s.checkFabrics(ctx, cfg, r.options, places)
	}
	if err := s.checkLicenses(ctx, r.options); err != nil {
		return r, err
	}
	r, err = s.checkPlaces(ctx, r, places, nodes)
	return s.orDoubt(ctx, r, err)
}

// checkLicenses rejects licences that the cluster does not have, or not as many. Of those, sbatch says only that they are invalid.
func (s site) checkLicenses(ctx context.Context, l layers) error {
	o, _ := l.last("licenses")
	asked, err := slurmctl.ParseLicenses(o.Value)
	if err != nil || len(asked) == 0 {
		return err
	}
	if stock, err := s.cluster.Licenses(ctx); err == nil { // else sbatch reports it
		if why := slurmctl.LacksLicense(asked, stock); why != "" {
			return fmt.Errorf("%s: %s", o, why)
		}
	}
	return nil
}

// checkFabrics leaves each place as many nodes as Slurm gives a job together. An unknown topology is left to Slurm.
func (s site) checkFabrics(ctx context.Context, cfg slurmctl.Config, l layers, places []place) {
	if !cfg.HasTopology() || cfg.TopologyOptional() {
		return
	}
	t, err := s.cluster.Topology(ctx)
	constraint, _ := l.constraint() // which was read before
	if fabrics := t.Fabrics(); err == nil && len(fabrics) > 0 {
		for i := range places {
			places[i].onFabrics(fabrics, constraint.Alternatives())
		}
	}
}

// orDoubt makes a refusal a doubt if plugins may still move the job to where it is feasible.
func (s site) orDoubt(ctx context.Context, r submission, refusal error) (submission, error) {
	if refusal != nil && !s.placed && s.movesJobs(ctx) {
		r.doubt, refusal = refusal, nil
	}
	return r, refusal
}

// checkPlaces rejects what is infeasible in all requested partitions, or by the limits of the
// account and QOS.
func (s site) checkPlaces(ctx context.Context, r submission, places []place, shown []slurmctl.Node) (submission, error) {
	places, out, err := driven(places, s.partitions)
	if err != nil {
		return r, err
	}
	if len(out) > 0 {
		fmt.Fprintf(s.stderr, "evosbatch: warning: partition %s has no evolving jobs here: the job gets none of its nodes\n", strings.Join(out, ","))
	}
	fitting, longest, err := checkFit(r, places)
	if err != nil {
		if r.request.MaxNodes > r.request.Profile.Peak() {
			err = fmt.Errorf("--max-nodes=%d: with its claim %w", r.request.MaxNodes, err)
		}
		return r, s.unshown(ctx, places, shown, err)
	}
	r.maxTime = longest
	return s.checkLimits(ctx, s.cutToPlaces(ctx, r, fitting), fitting)
}

// unshown adds to a refusal which nodes of the partitions Slurm does not show.
func (s site) unshown(ctx context.Context, places []place, shown []slurmctl.Node, refusal error) error {
	cluster, ok := s.cluster.(rules)
	cfg, known := s.config(ctx)
	if !ok || !known || !cfg.HidesCloud() {
		return refusal
	}
	limits, err := cluster.Limits(ctx, cfg)
	if err != nil {
		return refusal
	}
	for _, p := range places {
		if nodes := limits.Unshown(p.partition.Name, shown); len(nodes) > 0 {
			refusal = fmt.Errorf("%w; Slurm does not show %s of partition %s, which are off, to anybody: PrivateData=cloud in slurm.conf would", refusal, slurmctl.CompressNodes(nodes), p.partition.Name)
		}
	}
	return refusal
}

// cutToPlaces bounds a malleable job by the nodes of the partitions, and of --nodelist.
func (s site) cutToPlaces(ctx context.Context, r submission, places []place) submission {
	if r.request.Malleable == nil {
		return r
	}
	if names, err := r.options.nodeNames("nodelist"); err == nil && len(names) > 0 {
		o, _ := r.options.last("nodelist")
		r = s.cut(ctx, r, len(names), fmt.Sprintf("%s names %s", o, plural(len(names), "node")))
	}
	most, why := 0, []string{}
	for _, p := range places {
		most = max(most, p.usable)
		why = append(why, p.why())
	}
	if len(places) > 0 {
		r = s.cut(ctx, r, most, strings.Join(why, ", "))
	}
	return r
}

// checkLimits rejects a profile that limits of the user's account, QOS, and partition make
// infeasible, and keeps the computed time limit within the longest that they allow.
func (s site) checkLimits(ctx context.Context, r submission, places []place) (submission, error) {
	u, known := s.limits(ctx, r.options)
	if !known {
		return r, nil
	}
	allowed, err := u.allow(r, places)
	if err != nil {
		return r, err
	}
	r = s.cut(ctx, r, allowed.nodes, allowed.against)
	r.maxTime = min(r.maxTime, allowed.minutes)
	return r, nil
}

// cut limits a malleable job's larger sizes to what can ever be. Where plugins may still move the
// job, it only warns, once they have: the sidecar cuts the job to what it has become.
func (s site) cut(ctx context.Context, r submission, most int, why string) submission {
	if !s.placed && s.movesJobs(ctx) {
		return r
	}
	before := r.request.MostNodes()
	if most >= before || !r.request.CutMax(most) {
		return r
	}
	now := "it runs on " + plural(r.request.MostNodes(), "node")
	if r.request.Malleable != nil {
		now = "it is malleable up to " + strconv.Itoa(r.request.MostNodes())
	}
	fmt.Fprintf(cmp.Or(s.cuts, s.stderr), "evosbatch: warning: %s, not %d: %s\n", now, before, why)
	return r
}
