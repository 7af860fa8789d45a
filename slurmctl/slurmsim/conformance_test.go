package slurmsim_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// commands are the methods of slurmctl.Client that the suite uses; the model's client has them,
// too.
type commands interface {
	Jobs(context.Context) ([]slurmctl.Job, error)
	Glance(context.Context, ...slurmctl.JobID) ([]slurmctl.Job, error)
	Named(context.Context, uint32, string) ([]slurmctl.Job, error)
	JobsByID(context.Context, ...slurmctl.JobID) ([]slurmctl.Job, error)
	Nodes(context.Context) ([]slurmctl.Node, []slurmctl.Partition, error)
	Reservations(context.Context) ([]slurmctl.Reservation, error)
	Config(context.Context) (slurmctl.Config, error)
	Topology(context.Context) (slurmctl.Topology, error)
	Licenses(context.Context) ([]slurmctl.LicenseStock, error)
	Backfill(context.Context) (bool, time.Time, error)
	Slurmdbd(context.Context) error
	UpdateJob(context.Context, slurmctl.JobID, slurmctl.JobUpdate) error
	UpdateTasks(context.Context, slurmctl.JobID, string, slurmctl.JobUpdate) error
	Merge(context.Context, slurmctl.JobID) error
	Shrink(context.Context, slurmctl.JobID, []string) error
	Cancel(context.Context, ...slurmctl.JobID) error
	Complete(context.Context, ...slurmctl.JobID) error
	CancelAs(context.Context, *slurmctl.User, ...slurmctl.JobID) error
	Signal(context.Context, string, slurmctl.SignalOptions, ...slurmctl.JobID) ([]slurmctl.JobID, error)
	Hold(context.Context, slurmctl.JobID) error
	Release(context.Context, slurmctl.JobID) error
	BatchScript(context.Context, slurmctl.JobID) (string, error)
	Reconfigure(context.Context) error
	Allocate(context.Context, slurmctl.AllocateRequest) (slurmctl.Job, error)
	CreateReservation(context.Context, slurmctl.ReservationRequest) error
	UpdateReservation(context.Context, string, slurmctl.ReservationUpdate) error
	DeleteReservation(context.Context, string) error
	AccrueTimes(context.Context) (map[slurmctl.JobID]time.Time, error)
	TimeUsed(context.Context, slurmctl.JobID) (time.Duration, error)
	Request(context.Context, slurmctl.JobID, slurmctl.Config) (slurmctl.JobRequest, error)
	Limits(context.Context, slurmctl.Config, ...string) (*slurmctl.Limits, error)
	PowerUp(context.Context, []string) error
	KeepUp(context.Context, []string) error
	PowerDown(context.Context, []string) error
	Contact(context.Context, []string) error
	Version(context.Context) (string, error)
	Ping(context.Context) ([]slurmctl.Controller, error)
	Clock(context.Context) (time.Time, error)
	AdminLevel(context.Context, string) (string, error)
	TryUpdate(context.Context, slurmctl.JobID, time.Time) error
	MayAllocate(context.Context, slurmctl.AllocateRequest) error
	Calls() uint64
	WantsAccount() bool
}

var (
	_ commands = (*slurmctl.Client)(nil)
	_ commands = (*slurmsim.Client)(nil)
)

// world is a Slurm, either real or the model.
type world struct {
	*testing.T
	commands
	ctx     context.Context
	user    slurmctl.User
	now     func() time.Time
	sleep   func(time.Duration)
	submit  func(slurmsim.Job) (slurmctl.JobID, error)
	restart func() error
	suspend func(slurmctl.JobID) error
	requeue func(slurmctl.JobID) error
	resume  func(slurmctl.JobID) error

	relicense func(slurmctl.JobID, string) error         // changes a job's licences
	step      func(id slurmctl.JobID, node string) error // runs a step of a job on that node
	bound     func(slurmsim.Bound)                       // sets a limit that replaces all earlier ones

	allocations int // so far
}

// feature is a behaviour that the sidecar relies on, tried on both worlds.
type feature struct {
	name string
	try  func(*world)
}

// site is a cluster on which features are tried, as a model and for real.
type site struct {
	name     string
	features []feature
	model    slurmsim.Options
	real     func(*testing.T) *slurmtest.Cluster
	needs    string // release of the real Slurm; "" for any
}

var sites = []site{
	{"plain", slices.Concat(features, arrayFeatures), slurmsim.Options{Accounting: true, PermitJobExpansion: true}, func(t *testing.T) *slurmtest.Cluster {
		return slurmtest.Start(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true})
	}, ""},
	{"resources", resourceFeatures, resourceModel, resourceCluster, ""},
	{"power", powerFeatures, powerModel, powerCluster, ""},
	{"rules", ruleFeatures, ruleModel, ruleCluster, ""},
	{"few pings", pingFeatures, slurmsim.Options{}, func(t *testing.T) *slurmtest.Cluster {
		return slurmtest.Start(t, slurmtest.Options{ExtraConf: "SlurmdTimeout=3000"})
	}, ""},
	{"racks", constraintFeatures, rackModel, rackCluster, ""},
	{"tree", treeFeatures, treeModel, treeCluster, ""},
	{"fabrics", fabricFeatures, fabricModel, fabricCluster, ""},
	{"blocks", blockFeatures(2), blockModel(2), blockCluster("4,8"), "24.11"},
	{"blocks of four", blockFeatures(4), blockModel(4), blockCluster("4,16"), "24.11"},
	{"licences", licenseFeatures, licenseModel, licenseCluster, ""},
	{"stepmgr", stepMgrFeatures, stepMgrModel, stepMgrCluster, ""},
}

// TestConformance tries every feature on the model and on the real Slurm.
func TestConformance(t *testing.T) {
	t.Run("model", func(t *testing.T) {
		for _, s := range sites {
			for _, f := range s.features {
				t.Run(f.name, func(t *testing.T) { f.try(modelOf(t, s.model)) })
				if o := s.model; o.Topology.Switches != nil { // 26.05 places jobs in another way
					o.Version = "26.05.5"
					t.Run("26.05 "+f.name, func(t *testing.T) { f.try(modelOf(t, o)) })
				}
			}
		}
	})
	t.Run("real", func(t *testing.T) {
		for _, s := range sites {
			t.Run(s.name, func(t *testing.T) {
				if s.needs != "" && !slurmtest.Needs(t, s.needs) {
					return
				}
				t.Parallel()
				cluster := s.real(t)
				for _, f := range s.features {
					t.Run(f.name, func(t *testing.T) {
						w := real(t, cluster)
						f.try(w)
						w.clean(cluster)
					})
				}
			})
		}
	})
}

func model(t *testing.T) *world {
	return modelOf(t, slurmsim.Options{Accounting: true, PermitJobExpansion: true})
}

// modelOf returns a model with the intervals of slurmtest's clusters.
func modelOf(t *testing.T, o slurmsim.Options) *world {
	o.SchedInterval, o.SchedDelay, o.SchedMinInterval = time.Second, time.Second, 100*time.Millisecond
	o.BackfillInterval, o.KillWait = time.Second, 2*time.Second
	c := slurmsim.New(o)
	t.Cleanup(c.Close)
	alice := slurmsim.User{Name: "alice", UID: 1001, Account: "proj"}
	k := c.Client(slurmsim.Root)
	return &world{T: t, commands: k, ctx: t.Context(), user: slurmctl.User{Name: alice.Name, UID: alice.UID}, now: c.Now, sleep: c.Sleep,
		submit: func(j slurmsim.Job) (slurmctl.JobID, error) {
			j.User = alice
			return k.Submit(t.Context(), j)
		},
		restart: func() error { c.Restart(); return nil },
		requeue: func(id slurmctl.JobID) error { return k.Requeue(t.Context(), id) },
		suspend: func(id slurmctl.JobID) error { return k.Suspend(t.Context(), id) },
		resume:  func(id slurmctl.JobID) error { return k.Resume(t.Context(), id) },

		relicense: func(id slurmctl.JobID, text string) error { return k.SetJobLicenses(t.Context(), id, text) },
		step: func(id slurmctl.JobID, node string) error {
			if slices.Contains(c.Revoked(id), node) {
				return errors.New("Job credential revoked")
			}
			if j, ok := c.Record(id); !ok || j.State != slurmctl.Running || !slices.Contains(append(c.Stray(id), j.NodeList...), node) {
				return errors.New("Requested node configuration is not available")
			}
			return nil
		},
		bound: func(b slurmsim.Bound) { c.SetBounds(b) },
	}
}

func real(t *testing.T, cluster *slurmtest.Cluster) *world {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	client := cluster.Client()
	scontrol := func(verb string) func(slurmctl.JobID) error {
		return func(id slurmctl.JobID) error {
			_, err := cluster.Run(ctx, slurmtest.Root, "scontrol", verb, fmt.Sprint(id))
			return err
		}
	}
	u := cluster.Users()[0].ClientUser()
	return &world{T: t, commands: client, ctx: ctx, user: *u, now: time.Now, sleep: time.Sleep,
		submit: func(j slurmsim.Job) (slurmctl.JobID, error) {
			out, err := client.Submit(ctx, u, arguments(j), nil)
			if err != nil {
				return 0, err
			}
			id, err := strconv.ParseUint(strings.TrimSpace(out), 10, 32)
			return slurmctl.JobID(id), err
		},
		restart: func() error { return cluster.RestartController(ctx) }, requeue: scontrol("requeue"), suspend: scontrol("suspend"), resume: scontrol("resume"),
		relicense: func(id slurmctl.JobID, text string) error {
			_, err := cluster.Run(ctx, slurmtest.Root, "scontrol", "update", fmt.Sprintf("JobId=%d", id), "Licenses="+text)
			return err
		},
		step: func(id slurmctl.JobID, node string) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			_, err := cluster.Run(ctx, cluster.Users()[0], "srun", fmt.Sprintf("--jobid=%d", id), "--nodes=1", "--ntasks=1", "--nodelist="+node, "--overlap", "true")
			return err
		},
		bound: func(b slurmsim.Bound) {
			args := []string{"-i", "modify", "user", "name=" + u.Name, "set"}
			add := func(name string, n int) {
				if n == 0 {
					n = -1
				}
				args = append(args, fmt.Sprint(name, n))
			}
			add("MaxJobs=", b.MaxJobs)
			add("MaxSubmitJobs=", b.MaxSubmit)
			add("GrpTRES=node=", b.GrpNodes)
			add("MaxTRESPerJob=node=", b.MaxNodes)
			if _, err := cluster.Run(ctx, slurmtest.Root, "sacctmgr", args...); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // slurmctld learns of it
		},
	}
}

// arguments returns sbatch's arguments for a job of the model.
func arguments(j slurmsim.Job) []string {
	args := []string{"--parsable", "--output=/dev/null", "--chdir=/", fmt.Sprintf("--nodes=%d", j.Nodes)}
	add := func(format string, value ...any) { args = append(args, fmt.Sprintf(format, value...)) }
	if j.CPUs == 0 {
		add("--exclusive")
	} else {
		add("--ntasks-per-node=%d", j.CPUs)
	}
	if j.Name != "" {
		add("--job-name=%s", j.Name)
	}
	if j.Comment != "" {
		add("--comment=%s", j.Comment)
	}
	if j.Partition != "" {
		add("--partition=%s", j.Partition)
	}
	if j.MemoryPerNode != nil {
		add("--mem=%d", *j.MemoryPerNode)
	}
	if len(j.GRES) > 0 {
		add("--gres=%s", slurmctl.JoinGRES(j.GRES))
	}
	if j.Switches > 0 {
		add("--switches=%d@%d:%02d", j.Switches, int(j.SwitchWait.Minutes()), int(j.SwitchWait.Seconds())%60)
	}
	if j.Licenses != "" {
		add("--licenses=%s", j.Licenses)
	}
	if j.TimeLimit > 0 {
		add("--time=%d", int(j.TimeLimit.Minutes()))
	}
	if !j.Begin.IsZero() {
		add("--begin=%s", j.Begin.Local().Format("2006-01-02T15:04:05"))
	}
	if j.Held {
		add("--hold")
	}
	for _, d := range j.After {
		add("--dependency=%s:%d", d.Kind, d.Job)
	}
	if j.KillOnInvalidDep {
		add("--kill-on-invalid-dep=yes")
	}
	if len(j.NodeList) > 0 {
		add("--nodelist=%s", strings.Join(j.NodeList, ","))
	}
	if j.Constraint != "" {
		add("--constraint=%s", j.Constraint)
	}
	if len(j.Exclude) > 0 {
		add("--exclude=%s", strings.Join(j.Exclude, ","))
	}
	if j.Reservation != "" {
		add("--reservation=%s", j.Reservation)
	}
	if j.Array > 0 {
		tasks := fmt.Sprintf("1-%d", j.Array)
		if j.ArrayLimit > 0 {
			tasks += fmt.Sprintf("%%%d", j.ArrayLimit)
		}
		add("--array=%s", tasks)
	}
	script := "exec sleep 3600"
	if j.Lasts > 0 {
		script = fmt.Sprintf("sleep %d; exit %d", int(j.Lasts.Seconds()), j.ExitCode)
	}
	return append(args, "--wrap="+script)
}

// clean waits until the real cluster is in its initial state.
func (w *world) clean(cluster *slurmtest.Cluster) {
	w.Helper()
	jobs, err := w.Jobs(w.ctx)
	w.must(err)
	var ids []slurmctl.JobID
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	w.must(w.Cancel(w.ctx, ids...))
	w.eventually("an empty queue", func() error {
		if jobs, err := w.Jobs(w.ctx); err != nil || len(jobs) > 0 {
			return errors.Join(err, fmt.Errorf("%d jobs", len(jobs)))
		}
		return nil
	})
	all, err := w.Reservations(w.ctx)
	w.must(err)
	for _, r := range all {
		w.must(w.DeleteReservation(w.ctx, r.Name))
	}
	w.eventually("a clean cluster", func() error {
		left, err := cluster.Leftovers(w.ctx)
		if err == nil && !left.None() {
			err = fmt.Errorf("left: %s", left)
		}
		return err
	})
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// is checks the meaning of a refusal.
func (w *world) is(what string, err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Errorf("%s: %v, want %v", what, err, want)
	}
}

func (w *world) eventually(what string, check func() error) {
	w.Helper()
	for end := w.now().Add(3 * time.Minute); ; w.sleep(50 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if w.now().After(end) {
			w.Fatalf("%s: %v", what, err)
		}
	}
}

// start submits a job.
func (w *world) start(j slurmsim.Job) slurmctl.JobID {
	w.Helper()
	if j.TimeLimit == 0 {
		j.TimeLimit = 20 * time.Minute
	}
	id, err := w.submit(j)
	w.must(err)
	return id
}

func (w *world) job(id slurmctl.JobID) slurmctl.Job {
	w.Helper()
	jobs, err := w.JobsByID(w.ctx, id)
	w.must(err)
	if len(jobs) != 1 {
		w.Fatalf("job %d: %d records", id, len(jobs))
	}
	return jobs[0]
}

// until waits for a job to reach a state and, if pending, a reason.
func (w *world) until(id slurmctl.JobID, state slurmctl.JobState, reason ...string) slurmctl.Job {
	w.Helper()
	var j slurmctl.Job
	w.eventually(fmt.Sprintf("job %d %s %v", id, state, reason), func() error {
		j = w.job(id)
		if j.State != state || len(reason) > 0 && !strings.HasPrefix(j.Reason, reason[0]) {
			return fmt.Errorf("it is %s (%s) on %v", j.State, j.Reason, j.NodeList)
		}
		return nil
	})
	return j
}

// stays checks that a job stays in a state for some seconds.
func (w *world) stays(id slurmctl.JobID, state slurmctl.JobState) {
	w.Helper()
	w.sleep(4 * time.Second)
	if j := w.job(id); j.State != state {
		w.Errorf("job %d is %s on %v, want it to stay %s", id, j.State, j.NodeList, state)
	}
}

func (w *world) on(j slurmctl.Job, nodes ...string) {
	w.Helper()
	if !slices.Equal(j.NodeList, nodes) {
		w.Errorf("job %d is on %v, want %v", j.ID, j.NodeList, nodes)
	}
}

// hold creates a reservation as the sidecar does.
func (w *world) hold(name string, after time.Duration, nodes ...string) {
	w.Helper()
	q := slurmctl.ReservationRequest{Name: name, End: w.now().Add(10 * time.Minute), Nodes: nodes, Users: []string{w.user.Name},
		Flags: []string{"IGNORE_JOBS", "OVERLAP", "NO_HOLD_JOBS_AFTER_END"}}
	if after > 0 {
		q.Start = w.now().Add(after).Truncate(time.Second)
	}
	w.must(w.CreateReservation(w.ctx, q))
}

func (w *world) allocate(q slurmctl.AllocateRequest) (slurmctl.Job, error) {
	w.allocations++
	q.User, q.Name, q.Exclusive = &w.user, cmp.Or(q.Name, fmt.Sprint("allocation_", w.allocations)), true
	ctx, cancel := context.WithTimeout(w.ctx, 4*time.Second)
	defer cancel()
	return w.Allocate(ctx, q)
}

type errCount struct {
	got, want int
	state     slurmctl.JobState
}

func (e errCount) Error() string {
	return fmt.Sprintf("%d jobs are %s, want %d", e.got, e.state, e.want)
}
