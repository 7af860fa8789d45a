package submit

import (
	"context"
	"io"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Cluster is the part of Slurm that a submission queries; *slurmctl.Client implements it.
type Cluster interface {
	Nodes(ctx context.Context) ([]slurmctl.Node, []slurmctl.Partition, error)
	Config(ctx context.Context) (slurmctl.Config, error)
	Licenses(ctx context.Context) ([]slurmctl.LicenseStock, error)
	Topology(ctx context.Context) (slurmctl.Topology, error)
	Cancel(ctx context.Context, ids ...slurmctl.JobID) error
	Glance(ctx context.Context, ids ...slurmctl.JobID) ([]slurmctl.Job, error)
	BatchScript(ctx context.Context, id slurmctl.JobID) (string, error)
}

// rules is a cluster that reports its users' limits; *slurmctl.Client implements it.
type rules interface {
	Limits(ctx context.Context, cfg slurmctl.Config, users ...string) (*slurmctl.Limits, error)
	Defaults(ctx context.Context, user, account string) (defaultAccount, defaultQOS string, err error)
}

// lookTime bounds the queries before a submission. If Slurm does not answer, sbatch reports it.
const lookTime = 10 * time.Second

// site knows what its cluster and its Evoslurm allow a job.
type site struct {
	cluster    Cluster       // nil: nothing is checked
	partitions []string      // that Evoslurm drives; empty: all
	maxGrace   time.Duration // for which a malleable job may ask; 0: any
	bestEffort config.BestEffort
	mayPrefer  func(planner.Aim) error
	mayEvolve  func(ctx context.Context, job config.Names) (unchecked []string, err error)
	stderr     io.Writer // for warnings
	cuts       io.Writer // for warnings about sizes that are cut; nil: stderr
	placed     bool      // Slurm has the job already: no plugin moves it any more
}

// config returns Slurm's configuration, or false if it does not answer.
func (s site) config(ctx context.Context) (slurmctl.Config, bool) {
	if s.cluster == nil {
		return slurmctl.Config{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	cfg, err := s.cluster.Config(ctx)
	return cfg, err == nil
}

// name returns the name of the cluster that is used if none is named, or "" if it does not answer.
func (s site) name(ctx context.Context) string {
	cfg, _ := s.config(ctx)
	return cfg.ClusterName
}

// seesSubmissions reports whether the cluster has plugins that see submissions. A Slurm that does
// not answer is left to sbatch.
func (s site) seesSubmissions(ctx context.Context) bool {
	cfg, _ := s.config(ctx)
	return cfg.Values["JobSubmitPlugins"]+cfg.Values["CliFilterPlugins"] != ""
}

// movesJobs reports whether slurmctld has plugins that may move a job into another partition,
// account, or QOS, whose limits then apply. With them, a violated limit is only a doubt: the job is
// submitted, and checked again as what it has become.
func (s site) movesJobs(ctx context.Context) bool {
	cfg, _ := s.config(ctx)
	return cfg.Values["JobSubmitPlugins"] != ""
}
