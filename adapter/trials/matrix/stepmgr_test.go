package matrix

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// stepMgrOptions describe a site on which every job has a step manager.
var stepMgrOptions = slurmtest.Options{PrologFlags: "Contain", ExtraConf: "SlurmctldParameters=enable_stepmgr"}

// TestMatrixStepMgr runs an evolving job where jobs have step managers, beside another user's exclusive job. A Slurm
// that has none has no such column.
func TestMatrixStepMgr(t *testing.T) {
	version, err := exec.CommandContext(t.Context(), "slurmctld", "-V").Output() // it needs no slurm.conf
	if err != nil {
		t.Fatal(err)
	}
	if has, _ := slurmctl.StepMgr(slurmctl.Config{Version: string(version), Values: map[string]string{"PrologFlags": "Contain"}}); !has {
		return
	}
	cluster := slurmtest.Start(t, stepMgrOptions)
	d := &managed{}
	d.bench = newBench(t, cluster, "stepmgr", "commands")
	d.run(operation{name: "a shrunk job runs nothing on another user's nodes", quirk: true, try: d.trespass})
	d.drive = string(drivemode.Companion)
	d.startSidecar()
	d.run(d.evolving()...)
}

// managed is an evolving job with a step manager, which tries to run steps on every node all the time.
type managed struct {
	driven
	ran    string // the file in which its script notes where steps ran
	had    api.Allocation
	rival  slurmctl.JobID // another user's exclusive job
	rivals []string       // its nodes
}

// trespass shrinks a job by NodeList=, which Evoslurm does not, and tells what comes of it.
func (d *managed) trespass(ctx context.Context) (err error) {
	if d.base, err = d.submit(ctx, "--nodes=3"); err != nil {
		return err
	}
	if err := d.is(ctx, d.base, 3); err != nil {
		return err
	}
	j, err := d.job(ctx, d.base)
	if err != nil {
		return err
	}
	gone := j.NodeList[1:]
	if err := d.slurm.Shrink(ctx, d.base, j.NodeList[:1]); err != nil {
		return err
	}
	if err := d.rivalOn(ctx, "--nodes=2", "--nodelist="+strings.Join(gone, ",")); err != nil {
		return err
	}
	stray := d.stepOn(ctx, d.base, gone[0]) == nil
	if err := d.cancel(ctx, d.base, d.rival); err != nil {
		return err
	}
	if stray {
		return errors.New("its steps run on nodes that a shrink took from it and another user's job has exclusively (docs/slurm-bugs.md, 1)")
	}
	return nil
}

// rivalOn starts another user's exclusive job.
func (d *managed) rivalOn(ctx context.Context, where ...string) error {
	args := append([]string{"--parsable", "--output=/dev/null", "--chdir=/", "--exclusive", "--time=20"}, where...)
	out, err := d.cluster.Run(ctx, d.cluster.Users()[1], "sbatch", append(args, "--wrap=exec sleep 3600")...)
	if err != nil {
		return refusal(lastLine(err))
	}
	if _, err := fmt.Sscan(out, &d.rival); err != nil {
		return err
	}
	return d.on.until(ctx, func() error {
		j, err := d.job(ctx, d.rival)
		if err == nil && (j.State != slurmctl.Running || j.InProlog()) {
			err = fmt.Errorf("the other user's job is %s (%s)", j.State, j.Reason)
		}
		d.rivals = j.NodeList
		return err
	})
}

// stepOn runs a step of a job on a node, as its user and from outside of it.
func (d *managed) stepOn(ctx context.Context, id slurmctl.JobID, node string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	_, err := d.cluster.Run(ctx, d.cluster.Users()[0], "srun", fmt.Sprintf("--jobid=%d", id), "--nodes=1", "--ntasks=1", "--nodelist="+node, "--overlap", "true")
	return err
}

// tries is a batch script that endlessly tries to run a step on every node, with its original
// environment.
const tries = `#!/bin/sh
while :; do
	for n in 1 2 3 4 5 6 7 8; do
		srun -N1 -n1 -w n$n --overlap --input=none sh -c 'echo $SLURMD_NODENAME' >>%[1]s 2>/dev/null
	done
	echo round >>%[1]s
done
`

func (d *managed) evolving() []operation {
	return []operation{
		{name: "nodes of the base job cannot be given back", try: func(ctx context.Context) error {
			return d.refuses(ctx, "2@60s,1@60s", "nodes of the 2 with which the job begins")
		}},
		{name: "a part of a growth cannot be given back", try: func(ctx context.Context) error {
			return d.refuses(ctx, "1@60s,4@60s,2@60s", "a part of the nodes of a growth")
		}},
		{name: "start", try: d.starts},
		{name: "grow", try: d.grows},
		{name: "a step on all nodes, at once", try: d.usesAll},
		{name: "shrink by a whole companion", try: func(ctx context.Context) error { return d.next(ctx, 2, 1) }},
		{name: "another user's exclusive job on its nodes", try: func(ctx context.Context) error { return d.rivalOn(ctx, "--nodes=7") }},
		{name: "no step of it runs there", try: d.keepsOff},
		{name: "cancel leaves nothing", try: func(ctx context.Context) error { return d.cancel(ctx, d.base, d.rival) }},
	}
}

// refuses sees that the sidecar refuses a profile in these words.
func (d *managed) refuses(ctx context.Context, profile, words string) error {
	id, err := d.park(ctx, "", profile, "exec sleep 3600", nil)
	if err != nil {
		return err
	}
	if err := until(ctx, func() error {
		j, err := d.sidecar.Job(ctx, uint32(id))
		if err == nil && (!strings.Contains(j.Reason, words) || !strings.Contains(j.Reason, request.StepMgrWords)) {
			err = fmt.Errorf("the sidecar says %s %q", j.State, j.Reason)
		}
		return err
	}); err != nil {
		return err
	}
	return d.cancel(ctx, id)
}

func (d *managed) starts(ctx context.Context) (err error) {
	f, err := os.CreateTemp("", "ran")
	if err != nil {
		return err
	}
	d.ran = f.Name()
	d.t.Cleanup(func() { os.Remove(d.ran) })
	if err := errors.Join(f.Close(), os.Chmod(d.ran, 0o666)); err != nil {
		return err
	}
	if d.base, err = d.park(ctx, "", "1@60s,3@60s,1@300s", fmt.Sprintf(tries, d.ran), nil); err != nil {
		return err
	}
	return d.inStep(ctx, 1, 1)
}

func (d *managed) grows(ctx context.Context) error {
	if err := d.next(ctx, 1, 3); err != nil {
		return err
	}
	a, err := d.sidecar.Allocation(ctx, uint32(d.base))
	if err == nil && len(a.Parts) != 2 {
		err = fmt.Errorf("it has %d parts, want a companion", len(a.Parts))
	}
	d.had = a
	return err
}

// usesAll runs a step on every part, with no time for its prolog.
func (d *managed) usesAll(ctx context.Context) error {
	for _, p := range d.had.Parts {
		if err := d.stepOn(ctx, slurmctl.JobID(p.Job), p.NodeList[len(p.NodeList)-1]); err != nil {
			return refusal(lastLine(err))
		}
	}
	return nil
}

// keepsOff sees that no step of the job, nor of its companion that has ended, runs where the other user's job is.
func (d *managed) keepsOff(ctx context.Context) error {
	given := d.had.Parts[1]
	if !slices.ContainsFunc(given.NodeList, func(n string) bool { return slices.Contains(d.rivals, n) }) {
		return fmt.Errorf("the other user's job has %v, none of %v", d.rivals, given.NodeList)
	}
	for _, node := range d.rivals {
		for _, id := range []slurmctl.JobID{d.base, slurmctl.JobID(given.Job)} {
			if d.stepOn(ctx, id, node) == nil {
				return fmt.Errorf("a step of job %d runs on %s", id, node)
			}
		}
	}
	before := -1
	return until(ctx, func() error {
		text, err := os.ReadFile(d.ran)
		if err != nil {
			return err
		}
		for _, line := range strings.Fields(string(text)) {
			if slices.Contains(d.rivals, line) { // all nodes but one, which it never had
				d.t.Errorf("a step of the job's script ran on %s", line)
			}
		}
		rounds := strings.Count(string(text), "round")
		if before < 0 {
			before = rounds
		}
		if rounds < before+2 {
			return fmt.Errorf("its script has tried all nodes %d times since, want 2", rounds-before)
		}
		return nil
	})
}
