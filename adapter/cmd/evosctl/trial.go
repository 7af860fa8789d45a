package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/api/reach"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/job/submit"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// trial is a short evolving job that really runs, to see what a site does to it.
type trial struct {
	doctor
	on        bool
	partition string
	account   string
	qos       string
	patience  time.Duration

	client   *api.Client
	progress io.Writer
	id       slurmctl.JobID
	nodes    int // of the first step
}

func (t *trial) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&t.on, "trial", false, "run a ten-second evolving job through a growth and a shrink")
	f.StringVarP(&t.partition, "partition", "p", "", "partition for the trial job")
	f.StringVarP(&t.account, "account", "A", "", "account for the trial job")
	f.StringVarP(&t.qos, "qos", "q", "", "QOS for the trial job")
	f.DurationVar(&t.patience, "timeout", 3*time.Minute, "longest time for the trial")
}

// check rejects flags that need --trial.
func (t *trial) check(f *pflag.FlagSet) error {
	for _, name := range []string{"partition", "account", "qos", "timeout"} {
		if f.Changed(name) && !t.on {
			return fmt.Errorf("--%s goes with --trial", name)
		}
	}
	return nil
}

// run runs the trial and leaves nothing behind, however it ends.
func (t *trial) run(ctx context.Context, flags *pflag.FlagSet) *report {
	if !t.configuration(flags) {
		return &t.report
	}
	t.slurm = &slurmctl.Client{Dir: t.cfg.Slurm.Bin, Timeout: t.cfg.Slurm.Timeout}
	var err error
	if t.client, err = reach.Client(t.cfg); err != nil {
		t.add("sidecar", fail, err.Error(), "set api")
		return &t.report
	}
	look, stop := context.WithTimeout(ctx, checkTimeout)
	status, err := t.client.Status(look)
	stop()
	if err != nil {
		t.add("sidecar", fail, err.Error(), "a trial needs the sidecar: start evoslurmd, or set api to its address")
		return &t.report
	}
	t.add("sidecar", ok, fmt.Sprintf("%s, Slurm %s", status.Version, status.SlurmVersion), "")
	ctx, stop = context.WithTimeout(ctx, t.patience)
	defer stop()
	marker, submitted := t.submit(ctx)
	if t.id != 0 {
		defer t.cleanUp()
	}
	if !submitted || !t.start(ctx) {
		return &t.report
	}
	grown := t.step(ctx, 1, "growth", t.nodes+1)
	if grown {
		t.shares(ctx)
		t.step(ctx, 2, "shrink", t.nodes)
	}
	t.comment(ctx, "comment after updates", marker)
	return &t.report
}

// submit submits the job as evosbatch does, and reports what became of its comment.
func (t *trial) submit(ctx context.Context) (marker string, submitted bool) {
	t.nodes = t.least(ctx)
	profile := fmt.Sprintf("%d@3s,%d@3s,%d@2s", t.nodes, t.nodes+1, t.nodes)
	args := []string{"--parsable", "--profile=" + profile, "--job-name=evo-trial", "--output=/dev/null", "--chdir=/"}
	for name, value := range map[string]string{"partition": t.partition, "account": t.account, "qos": t.qos} {
		if value != "" {
			args = append(args, "--"+name+"="+value)
		}
	}
	args = append(args, "--wrap=exec sleep 600")
	sbatch := "sbatch"
	if t.cfg.Slurm.Bin != "" {
		sbatch = filepath.Join(t.cfg.Slurm.Bin, sbatch)
	}
	var out, errs bytes.Buffer
	c := submit.Command{Args: args, Environ: os.Environ(), Stdin: os.Stdin, Stdout: &out, Stderr: &errs, Sbatch: sbatch, Cluster: t.slurm,
		Defaults: request.Request{ExpandLimit: t.cfg.ExpandLimit}, Partitions: t.cfg.Partitions,
		Exec: func(path string, argv, environ []string, _ *os.File) error {
			cmd := exec.CommandContext(ctx, path, argv[1:]...)
			cmd.Env, cmd.Stdout, cmd.Stderr = environ, &out, &errs
			return cmd.Run()
		}}
	t.tell("submitting %s", profile)
	status := c.Run(ctx)
	if n, err := strconv.ParseUint(strings.TrimSpace(out.String()), 10, 32); err == nil {
		t.id = slurmctl.JobID(n)
	}
	if status != 0 || t.id == 0 {
		said := strings.Join(strings.Fields(strings.ReplaceAll(errs.String(), "evosbatch: error: exit status 1", "")), " ")
		t.add("submission", fail, said, "give what this site wants of a job: --partition, --account, --qos")
		return "", false
	}
	t.add("submission", ok, fmt.Sprintf("job %d, %s", t.id, profile), "")
	p, err := planner.ParseProfile(profile)
	if err == nil {
		marker, _ = request.Request{Profile: p}.Marker()
	}
	return marker, t.comment(ctx, "comment after submission", marker) && t.updates(ctx)
}

// updates reports whether the site lets jobs be changed, by writing the comment into the job
// that it has.
func (t *trial) updates(ctx context.Context) bool {
	jobs, err := t.slurm.Glance(ctx, t.id)
	if err != nil || len(jobs) == 0 {
		return ctx.Err() == nil // reported with the comment
	}
	err = t.slurm.UpdateJob(ctx, t.id, slurmctl.JobUpdate{Comment: &jobs[0].Comment})
	switch {
	case t.slurm.WantsAccount():
		t.add("updates", warn, "those without Account= are refused, and Slurm takes that for pending jobs only: a job that runs grows by companions, gives back only what a growth has brought, and keeps its time limit",
			"let updates of running jobs pass in job_submit (slurm_job_modify), those of root at least")
	case err != nil:
		t.add("updates", fail, err.Error(), "let updates of jobs pass in job_submit (slurm_job_modify), those of root at least")
	default:
		t.add("updates", ok, "taken as they are", "")
	}
	return ctx.Err() == nil
}

// least returns how many nodes a job of the partition has at least.
func (t *trial) least(ctx context.Context) int {
	_, partitions, err := t.slurm.Nodes(ctx)
	if err != nil {
		return 1
	}
	for _, p := range partitions {
		if p.Name == t.partition || t.partition == "" && p.Default {
			return max(p.MinNodes, 1)
		}
	}
	return 1
}

// comment reports what the site has made of the job's comment.
func (t *trial) comment(ctx context.Context, name, marker string) bool {
	jobs, err := t.slurm.Glance(ctx, t.id)
	if err != nil || len(jobs) == 0 {
		t.add(name, warn, fmt.Sprintf("not known: %v", errors.Join(err, ctx.Err())), "")
		return ctx.Err() == nil
	}
	text := jobs[0].Comment
	_, marked, err := request.ParseMarker(text)
	switch {
	case text == marker:
		t.add(name, ok, "as it was written", "")
	case marked && err == nil:
		t.add(name, ok, fmt.Sprintf("the site has added to it, which is harmless: %q", text), "")
	default:
		t.add(name, warn, fmt.Sprintf("the site has overwritten it: %q; the request is read from the job's script", text),
			"leave the part of comments that begins with evo: and ends in ;; as it is, and jobs are known again also after the sidecar's database is lost")
	}
	return true
}

// start waits until the job runs.
func (t *trial) start(ctx context.Context) bool {
	began, told := time.Now(), ""
	for {
		job, err := t.client.Job(ctx, uint32(t.id))
		switch {
		case err == nil && (job.State == "running" || job.State == "waiting"):
			t.add("start", ok, fmt.Sprintf("after %.1f s on %s, drive mode %s", time.Since(began).Seconds(), job.NodeList, job.Drive), "")
			t.Drive, t.Reasons = job.Drive, []string{"as this trial was"}
			return true
		case err == nil && (job.State == "ended" || strings.HasPrefix(job.Reason, "refused")):
			t.add("start", fail, strings.TrimSpace(job.State+" "+job.EndState+" "+job.Reason), "")
			return false
		case errors.Is(err, api.ErrNotFound) && time.Since(began) > 15*time.Second:
			t.add("start", fail, "the sidecar does not take the job for an evolving one", "look into the sidecar's log; is the partition among the configuration's partitions?")
			return false
		case ctx.Err() != nil:
			t.gaveUp(ctx, "start", job.Reason)
			return false
		}
		if job.Reason != "" && job.Reason != told {
			told = job.Reason
			t.tell("job %d: %s", t.id, told)
		}
		sleep(ctx, 200*time.Millisecond)
	}
}

// step lets a step pass, and ends it as the job's script would.
func (t *trial) step(ctx context.Context, from int, name string, want int) bool {
	sleep(ctx, 3*time.Second)
	t.tell("job %d: %s to %d nodes", t.id, name, want)
	began := time.Now()
	over := make(chan struct{})
	defer close(over)
	go func() { // the reason for waiting
		for told := ""; ; {
			select {
			case <-over:
				return
			case <-time.After(time.Second):
			}
			if job, err := t.client.Job(ctx, uint32(t.id)); err == nil && job.Reason != "" && job.Reason != told {
				told = job.Reason
				t.tell("job %d: %s", t.id, told)
			}
		}
	}()
	a, err := t.client.Next(ctx, uint32(t.id), api.NextRequest{From: from})
	took := time.Since(began).Seconds()
	switch {
	case err != nil && ctx.Err() != nil:
		after, stop := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
		defer stop()
		job, _ := t.client.Job(after, uint32(t.id))
		t.gaveUp(ctx, name, job.Reason)
		return false
	case err != nil:
		t.add(name, fail, err.Error(), "")
		return false
	case !a.Ready || a.Nodes != want:
		t.add(name, fail, strings.TrimSpace(fmt.Sprintf("%d nodes instead of %d after %.1f s %s", a.Nodes, want, took, a.Note)), "evosqueue and the sidecar's log say more")
		return false
	}
	var names []string
	for _, p := range a.Parts {
		names = append(names, p.NodeList...)
	}
	t.add(name, ok, fmt.Sprintf("%d nodes (%s) %.1f s after the step's end, drive mode %s", a.Nodes, slurmctl.CompressNodes(names), took, a.Drive), "")
	return true
}

// gaveUp reports why the trial ended early.
func (t *trial) gaveUp(ctx context.Context, name, reason string) {
	if by, ok := errors.AsType[interrupted](context.Cause(ctx)); ok {
		t.add(name, fail, "interrupted ("+by.Error()+")", "")
		return
	}
	t.add(name, fail, strings.TrimSuffix(fmt.Sprintf("not within %v: %s", t.patience, reason), ": "),
		"what it waits for is the reason in evosqueue; on a busy cluster give more time with --timeout")
}

// shares reports what the job has on its nodes, including those from the growth.
func (t *trial) shares(ctx context.Context) {
	a, err := t.client.Allocation(ctx, uint32(t.id))
	if err != nil {
		return
	}
	var ids []slurmctl.JobID
	for _, p := range a.Parts {
		ids = append(ids, slurmctl.JobID(p.Job))
	}
	jobs, err := t.slurm.JobsByID(ctx, ids...)
	if err != nil || len(jobs) == 0 {
		return
	}
	var found []string
	differ := false
	for _, j := range jobs {
		text := fmt.Sprintf("%d CPUs a node", j.NumCPUs/max(j.NumNodes, 1))
		if j.MinMemory > 0 {
			text += fmt.Sprintf(", %d MB a node", j.MinMemory)
		}
		if j.TRESPer != "" {
			text += ", " + j.TRESPer
		}
		found = append(found, text)
		differ = differ || j.MinMemory != jobs[0].MinMemory || j.TRESPer != jobs[0].TRESPer
	}
	unique := slices.Compact(slices.Clone(found))
	if differ {
		t.add("grown nodes", warn, "they have other shares than the first ones: "+strings.Join(unique, "; "), "ask for memory and GRES by name in jobs")
		return
	}
	t.add("grown nodes", ok, strings.Join(unique, "; "), "")
}

// cleanUp cancels the job and checks that nothing of it remains.
func (t *trial) cleanUp() {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	t.tell("cleaning up")
	err := t.slurm.Cancel(ctx, t.id)
	prefix := fmt.Sprintf("evo_%d_", t.id)
	for err == nil {
		var left []string
		if left, err = t.left(ctx, prefix); err == nil && len(left) == 0 {
			t.add("clean-up", ok, "nothing of the job is left", "")
			return
		}
		if ctx.Err() != nil {
			err = fmt.Errorf("left in Slurm: %s", strings.Join(left, ", "))
		}
		sleep(ctx, 200*time.Millisecond)
	}
	t.add("clean-up", fail, err.Error(), fmt.Sprintf("scancel %d; the sidecar removes what belongs to it", t.id))
}

// left lists what there still is of the trial in Slurm.
func (t *trial) left(ctx context.Context, prefix string) ([]string, error) {
	jobs, err := t.slurm.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	reservations, err := t.slurm.Reservations(ctx)
	var left []string
	for _, j := range jobs {
		if j.ID == t.id || strings.HasPrefix(j.Name, prefix) && t.mine(j) {
			left = append(left, fmt.Sprintf("job %d", j.ID))
		}
	}
	for _, r := range reservations {
		if strings.HasPrefix(r.Name, prefix) {
			left = append(left, "reservation "+r.Name)
		}
	}
	return left, err
}

// mine reports whether a job belongs to the caller.
func (t *trial) mine(j slurmctl.Job) bool {
	me, err := user.Current()
	return err == nil && j.User == me.Username
}

func (t *trial) tell(format string, args ...any) { fmt.Fprintf(t.progress, format+"\n", args...) }

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
