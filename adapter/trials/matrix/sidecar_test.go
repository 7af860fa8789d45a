package matrix

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/controller"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// driven is a Slurm with a sidecar beside it, and one evolving job.
type driven struct {
	manual
	sidecar *controller.Controller
	chain   []slurmctl.JobID
	blocker slurmctl.JobID
	log     strings.Builder
}

// startSidecar starts a sidecar; the test's end stops it.
func (d *driven) startSidecar() {
	t := d.t
	cfg := config.Default()
	cfg.Database = filepath.Join(t.TempDir(), "evoslurm.db")
	cfg.PollInterval = 500 * time.Millisecond
	st, err := store.Open(t.Context(), cfg.Database)
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(&d.log)
	log.SetLevel(logrus.DebugLevel)
	if d.sidecar, err = controller.New(cfg, d.slurm, st, log, "matrix"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.sidecar.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		st.Close()
		if t.Failed() {
			t.Logf("the sidecar's log:\n%s", &d.log)
		}
	})
}

// park submits an evolving job as evosbatch does.
func (d *driven) park(ctx context.Context, drive drivemode.Mode, profile, wrap string, link *request.ChainLink, more ...string) (slurmctl.JobID, error) {
	p, err := planner.ParseProfile(profile)
	if err != nil {
		return 0, err
	}
	step := 1
	if link != nil {
		step = link.Step
	}
	marker, ok := request.Request{Profile: p, Drive: drive, Chain: link}.Marker()
	if !ok {
		return 0, fmt.Errorf("no marker for %s", profile)
	}
	return d.submit(ctx, append([]string{"--begin=now+3650days", "--comment=" + marker, fmt.Sprintf("--nodes=%d", p[step-1].Nodes),
		"--wrap=" + wrap}, more...)...)
}

// recorded is how long slurmctld may take until slurmdbd has recorded a job (it looks for
// unrecorded jobs every five seconds). If it is stopped in the middle of that, up to 23.11, it
// refuses the job's updates forever: "the DB index is being set".
const recorded = 6 * time.Second

// byMerging returns the operations of a sidecar that grows a job by merge or companion.
func (d *driven) byMerging(drive drivemode.Mode) []operation {
	next := func(step, nodes int) func(context.Context) error {
		return func(ctx context.Context) error { return d.next(ctx, step, nodes) }
	}
	return []operation{
		{name: "plan in Slurm: start and hold", try: func(ctx context.Context) (err error) {
			if err = d.block(ctx); err != nil {
				return err
			}
			if d.base, err = d.park(ctx, drive, "2@60s,5@60s,3@60s,1@60s,4@60s,2@60s,3@60s", "exec sleep 3600", nil); err != nil {
				return err
			}
			return d.mirrored(ctx, d.base)
		}},
		{name: "start in its hold", try: func(ctx context.Context) error {
			if err := d.slurm.Cancel(ctx, d.blocker); err != nil {
				return err
			}
			return d.inStep(ctx, 1, 2)
		}},
		{name: "nobody starts on held nodes", try: d.keepsOut},
		{name: "grow", try: next(1, 5)},
		{name: "shrink", try: next(2, 3)},
		{name: "shrink again", try: next(3, 1)},
		{name: "grow again", try: next(4, 4)},
		{name: "shrink after a restart of slurmctld", try: func(ctx context.Context) error {
			time.Sleep(recorded)
			if err := d.cluster.RestartController(ctx); err != nil {
				return err
			}
			return d.next(ctx, 5, 2)
		}},
		{name: "grow after a crash of slurmctld", try: func(ctx context.Context) error {
			if err := d.cluster.KillController(ctx); err != nil {
				return err
			}
			if err := d.cluster.StartController(ctx); err != nil {
				return err
			}
			return d.next(ctx, 6, 3)
		}},
		{name: "cancel leaves nothing", try: func(ctx context.Context) error { return d.cancel(ctx, d.base) }},
	}
}

// byChaining returns the operations of a sidecar with a job of several Slurm jobs.
func (d *driven) byChaining() []operation {
	submit := func(ctx context.Context, wraps ...string) error {
		d.chain = nil
		for i, wrap := range wraps {
			link := &request.ChainLink{Step: i + 1}
			var more []string
			if i > 0 {
				link.First = uint32(d.chain[0])
				more = []string{fmt.Sprintf("--dependency=afterok:%d", d.chain[i-1]), "--kill-on-invalid-dep=yes"}
			}
			id, err := d.park(ctx, drivemode.Chain, "1@30s,4@30s,2@30s", wrap, link, more...)
			if err != nil {
				return err
			}
			d.chain = append(d.chain, id)
		}
		d.base = d.chain[0]
		return nil
	}
	return []operation{
		{name: "plan in Slurm: start and hold", try: func(ctx context.Context) error {
			if err := d.block(ctx); err != nil {
				return err
			}
			if err := submit(ctx, "sleep 4", "sleep 4", "exec sleep 3600"); err != nil {
				return err
			}
			return d.mirrored(ctx, d.base)
		}},
		{name: "start in its hold", try: func(ctx context.Context) error {
			if err := d.slurm.Cancel(ctx, d.blocker); err != nil {
				return err
			}
			return d.inStep(ctx, 1, 1)
		}},
		{name: "grow", try: func(ctx context.Context) error { return d.inStep(ctx, 2, 4) }},
		{name: "shrink", try: func(ctx context.Context) error { return d.inStep(ctx, 3, 2) }},
		{name: "cancel leaves nothing", try: func(ctx context.Context) error { return d.cancel(ctx, d.chain[2]) }},
		{name: "a failed step leaves nothing", try: func(ctx context.Context) error {
			if err := submit(ctx, "sleep 1", "exit 1", "sleep 1"); err != nil {
				return err
			}
			if err := until(ctx, func() error {
				j, err := d.sidecar.Job(ctx, uint32(d.base))
				if err == nil && (j.State != "ended" || j.EndState != "FAILED") {
					err = fmt.Errorf("it is %s (%s)", j.State, j.EndState)
				}
				return err
			}); err != nil {
				return err
			}
			return d.clean(ctx)
		}},
	}
}

// block fills the cluster by a stock job, so that what follows has to wait.
func (d *driven) block(ctx context.Context) (err error) {
	if d.blocker, err = d.submit(ctx, "--nodes=8", "--time=3"); err != nil {
		return err
	}
	return d.is(ctx, d.blocker, 8)
}

// mirrored waits until Slurm itself knows of the job's planned start and hold.
func (d *driven) mirrored(ctx context.Context, id slurmctl.JobID) error {
	return until(ctx, func() error {
		planned, err := d.sidecar.Job(ctx, uint32(id))
		if err != nil {
			return err
		}
		j, err := d.job(ctx, id)
		if err != nil {
			return err
		}
		if off := j.StartTime.Sub(planned.Start); off < 0 || off > 20*time.Second || j.Reservation == "" {
			return d.told(id, fmt.Errorf("planned for %v (%s), Slurm has StartTime %v and the reservation %q",
				planned.Start, planned.Reason, j.StartTime, j.Reservation))
		}
		r, err := d.reservation(ctx, j.Reservation)
		if err == nil && r.Start.After(planned.Start) {
			err = fmt.Errorf("the hold begins at %v, after the planned start %v", r.Start, planned.Start)
		}
		return err
	})
}

// told turns the sidecar's words about the job into an error: if one of its actions failed, they name
// what Slurm refused.
func (d *driven) told(id slurmctl.JobID, err error) error {
	j, _ := d.sidecar.Job(context.Background(), uint32(id))
	if strings.Contains(j.Reason, " failed: ") {
		return refusal(j.Reason)
	}
	return err
}

// inStep waits until the job is in a step, with that many nodes in Slurm.
func (d *driven) inStep(ctx context.Context, step, nodes int) error {
	if err := until(ctx, func() error {
		j, err := d.sidecar.Job(ctx, uint32(d.base))
		if err == nil && (j.State != "running" || j.Step != step) {
			err = fmt.Errorf("it is %s in step %d: %s", j.State, j.Step, j.Reason)
		}
		return err
	}); err != nil {
		return d.told(d.base, err)
	}
	if d.chain != nil {
		return d.is(ctx, d.chain[step-1], nodes)
	}
	a, err := d.sidecar.Allocation(ctx, uint32(d.base))
	if err != nil {
		return err
	}
	return d.has(ctx, a, nodes)
}

// next ends a step as the application does, and checks what comes of it.
func (d *driven) next(ctx context.Context, from, nodes int) error {
	a, err := d.sidecar.Next(ctx, uint32(d.base), api.NextRequest{From: from})
	if err != nil {
		return err
	}
	if !a.Ready {
		return d.told(d.base, fmt.Errorf("step %d's nodes never came: %s", from+1, a.Note))
	}
	return d.has(ctx, a, nodes)
}

// has compares an allocation with what Slurm says.
func (d *driven) has(ctx context.Context, a api.Allocation, nodes int) error {
	total := 0
	for _, p := range a.Parts {
		j, err := d.job(ctx, slurmctl.JobID(p.Job))
		if err != nil {
			return err
		}
		if j.State != slurmctl.Running || len(j.NodeList) != len(p.NodeList) {
			return fmt.Errorf("job %d is %s with %v, the sidecar says %v", p.Job, j.State, j.NodeList, p.NodeList)
		}
		total += len(j.NodeList)
	}
	if total != nodes {
		return fmt.Errorf("it has %d nodes, want %d", total, nodes)
	}
	return nil
}

// keepsOut sees that a stock job does not start on nodes held for the growth.
func (d *driven) keepsOut(ctx context.Context) error {
	out, err := d.cluster.Run(ctx, d.cluster.Users()[1], "sbatch", "--parsable", "--output=/dev/null", "--chdir=/", "--exclusive",
		"--nodes=4", "--time=10", "--wrap=exec sleep 3600")
	if err != nil {
		return refusal(lastLine(err))
	}
	var id slurmctl.JobID
	if _, err := fmt.Sscan(out, &id); err != nil {
		return err
	}
	time.Sleep(3 * time.Second) // several of Slurm's cycles
	j, err := d.job(ctx, id)
	if err == nil && j.State != slurmctl.Pending {
		err = fmt.Errorf("a stock job is %s on %v", j.State, j.NodeList)
	}
	if gone := d.slurm.Cancel(ctx, id); err == nil {
		err = gone
	}
	return err
}
