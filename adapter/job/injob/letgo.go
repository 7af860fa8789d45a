package injob

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A job may be let go (evosctl release-all), and the sidecar then be stopped for good. Its script must not wait for the
// sidecar forever. So while the sidecar is away, calls look into Slurm now and then whether the comment of their own job
// says so. They look seldom, each job at another time: slurmctld has thousands of jobs.

const (
	firstLook = 5 * time.Second // and up to twice as long
	nextLooks = time.Minute
)

// errLetGo is the answer to calls for a job that was let go.
var errLetGo = errors.New("Evoslurm let this job go: it keeps what it has, and nothing more comes")

// queue is the part of Slurm that tells whether a job was let go.
type queue interface {
	JobsByID(ctx context.Context, ids ...slurmctl.JobID) ([]slurmctl.Job, error)
	Jobs(ctx context.Context) ([]slurmctl.Job, error)
	Nodes(ctx context.Context) ([]slurmctl.Node, []slurmctl.Partition, error)
}

var slurm queue = &slurmctl.Client{Timeout: 30 * time.Second}

// EndIfLetGo makes a client's calls for a job fail with an error once the sidecar is away and had let the job go.
func EndIfLetGo(client *api.Client, job uint32) {
	if client.Away != nil {
		return
	}
	var look time.Time
	client.Away = func(ctx context.Context) (time.Time, error) {
		if look.IsZero() {
			look = time.Now().Add(firstLook + rand.N(firstLook))
		}
		if time.Now().Before(look) {
			return look, nil
		}
		look = time.Now().Add(nextLooks)
		if r, err := own(ctx, job); err == nil && request.IsLetGo(r.Comment) {
			return look, errLetGo
		}
		return look, nil
	}
}

// own returns Slurm's record of a job of this user.
func own(ctx context.Context, job uint32) (slurmctl.Job, error) {
	jobs, err := slurm.JobsByID(ctx, slurmctl.JobID(job))
	for _, r := range jobs {
		if r.ID == slurmctl.JobID(job) && int(r.UID) == os.Geteuid() {
			return r, nil
		}
	}
	return slurmctl.Job{}, errors.Join(err, fmt.Errorf("job %d is not in Slurm", job))
}

// OrLetGo returns the answer to a call or, if the job was let go and the sidecar is away, what Slurm says that it has:
// step was the last.
func OrLetGo(ctx context.Context, job uint32, step int, a api.Allocation, err error) (api.Allocation, error) {
	if !errors.Is(err, errLetGo) {
		return a, err
	}
	base, err := own(ctx, job)
	if err != nil {
		return a, err
	}
	jobs, err1 := slurm.Jobs(ctx)
	nodes, _, err2 := slurm.Nodes(ctx)
	if err := errors.Join(err1, err2); err != nil {
		return a, err
	}
	cpus := map[string]int{}
	for _, n := range nodes {
		cpus[n.Name] = n.CPUs
	}
	step = max(step, PresentStep(job, os.Getenv), 1)
	a = api.Allocation{Ready: true, Done: true, Note: errLetGo.Error(), Job: job, Step: step, Steps: step, Drive: os.Getenv(VarDrive), Parts: []api.Part{}}
	add := func(r slurmctl.Job) {
		p := api.Part{Job: uint32(r.ID), NodeList: r.NodeList}
		for _, name := range r.NodeList {
			p.CPUs = append(p.CPUs, cpus[name])
		}
		a.Parts, a.Nodes = append(a.Parts, p), a.Nodes+len(p.NodeList)
	}
	add(base)
	for _, r := range jobs {
		if strings.HasPrefix(r.Name, fmt.Sprintf("evo_%d_", job)) && strings.Contains(r.Comment, request.ExpanderMark) && r.UID == base.UID && r.State == slurmctl.Running {
			add(r)
		}
	}
	return a, nil
}
