package matrix

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// rights is a sidecar that runs as some account, beside a cluster.
type rights struct {
	manual
	*rig.Rig
	account rig.Account
	lacks   []lack
}

// lack says what an account cannot do, why, and what comes of it.
type lack struct {
	what, why, so string
	modes         []drivemode.Mode // in which Evoslurm would do it
}

var (
	everyMode = []drivemode.Mode{drivemode.Merge, drivemode.Companion, drivemode.Chain}
	resizing  = everyMode[:2]
)

// TestRights has jobs grow and shrink in every drive mode, beside a sidecar as root, as SlurmUser, and as an operator, and tries
// what each account cannot do. Only `make matrix` runs it, since it needs the commands beside this program.
func TestRights(t *testing.T) {
	if os.Getenv(fileVariable) == "" {
		return
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 9, Accounting: true, PermitJobExpansion: true})
	for _, name := range rig.Accounts {
		t.Run(name, func(t *testing.T) {
			s := &rights{}
			s.bench = newBench(t, cluster, "cons_tres", "")
			s.startAs(name)
			ctx, cancel := context.WithTimeout(t.Context(), operationTime)
			defer cancel()
			outcomes := make([]error, len(everyMode))
			var all sync.WaitGroup
			for i, mode := range everyMode {
				all.Go(func() { outcomes[i] = s.evolves(ctx, mode, 1) })
			}
			all.Wait()
			if err := s.clean(ctx); err != nil {
				t.Error(err)
			}
			s.tryAll(ctx)
			if err := s.clean(ctx); err != nil {
				t.Error(err)
			}
			for i, mode := range everyMode {
				r := Result{Slurm: s.on.version(), Select: s.plugin, Drive: string(mode), Operation: name, Outcome: Yes, Text: s.note(mode)}
				if err := outcomes[i]; err != nil {
					r.Outcome, r.Text = No, plain(err.Error())
					t.Errorf("%s: %v", mode, err)
				}
				if err := write(r); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// startAs starts a sidecar that runs as the account; the test's end stops it.
func (s *rights) startAs(name string) {
	must := func(err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	var err error
	s.account, err = rig.FindAccount(name)
	must(err)
	s.Rig, err = rig.New(s.cluster, filepath.Dir(os.Args[0]), "poll_interval: 500ms\n"+s.account.Configuration())
	must(err)
	must(s.account.Promote(s.cluster))
	must(s.account.Own(s.Dir+"/db", s.Dir+"/run"))
	log, err := os.Create(s.Dir + "/evoslurmd.log")
	must(err)
	daemon := exec.Command(s.Bin+"/evoslurmd", "--config", s.Dir+"/evoslurm.yaml")
	daemon.Env, daemon.Stderr = append(os.Environ(), s.Env()...), log
	s.account.Become(daemon)
	must(daemon.Start())
	s.t.Cleanup(func() {
		_ = daemon.Process.Signal(syscall.SIGTERM)
		_ = daemon.Wait()
		if s.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			s.t.Logf("the sidecar's log:\n%s", text)
		}
		os.RemoveAll(s.Dir)
	})
}

// counts is a job that notes in every step on how many nodes its tasks run. Its arguments are a file, the drive mode, and how many
// seconds a step lasts.
const counts = `#!/bin/sh
run=evosrun; [ $2 = chain ] && run=srun
while [ -z "$EVO_DONE" ]; do
  $run --ntasks-per-node=1 sh -c 'echo $SLURMD_NODENAME' | sort -u | wc -l >>$1
  sleep $3
  [ $2 = chain ] && exit
  eval "$(evosctl next)"
done
`

// evolves has a job grow and shrink in a drive mode, by steps of some seconds.
func (s *rights) evolves(ctx context.Context, mode drivemode.Mode, seconds int) error {
	script := s.Dir + "/" + string(mode) + ".sh"
	if err := os.WriteFile(script, []byte(counts), 0o755); err != nil {
		return err
	}
	out, errs, err := s.As(0, "evosbatch", "--parsable", "--output=/dev/null", "--drive="+string(mode), fmt.Sprintf("--profile=1@%[1]ds,3@%[1]ds,2@%[1]ds", seconds+2),
		script, string(mode), string(mode), strconv.Itoa(seconds))
	if err != nil {
		return fmt.Errorf("evosbatch: %w: %s", err, errs)
	}
	if err := until(ctx, func() error {
		if text, _ := os.ReadFile(s.Dir + "/out/" + string(mode)); string(text) != "1\n3\n2\n" {
			return fmt.Errorf("its steps had %q nodes", strings.Fields(string(text)))
		}
		return nil
	}); err != nil || mode != drivemode.Companion {
		return err
	}
	return s.companionEnds(ctx, strings.TrimSpace(out))
}

// companionEnds looks how accounting has the companion of a job.
func (s *rights) companionEnds(ctx context.Context, job string) error {
	return until(ctx, func() error {
		out, err := s.cluster.Run(ctx, s.root(), "sacct", "-a", "-X", "-n", "-P", "-o", "JobName,State")
		for line := range strings.Lines(out) {
			name, state, _ := strings.Cut(strings.TrimSpace(line), "|")
			switch {
			case !strings.HasPrefix(name, "evo_"+job+"_2_"):
			case state == "COMPLETED":
				return nil
			case strings.HasPrefix(state, "CANCELLED"):
				s.lacks = append(s.lacks, lack{"end a companion as COMPLETED", "`sacct` has CANCELLED", "it is cancelled", everyMode[1:2]})
				return nil
			}
		}
		return fmt.Errorf("accounting has no end of job %s's companion: %v: %s", job, err, out)
	})
}

// tryAll finds out what the account cannot do.
func (s *rights) tryAll(ctx context.Context) {
	id, err := s.submit(ctx, "--nodes=1")
	if err == nil {
		err = s.is(ctx, id, 1)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.moldable(ctx); err != nil {
		s.lacks = append(s.lacks, lack{"choose a moldable job's nodes", err.Error(), "such jobs are refused", everyMode})
	}
	user := s.on.user().Name
	for _, l := range []struct {
		lack
		command []string
	}{
		{lack{what: "submit in a user's name", so: "the job's own process submits what brings its nodes", modes: resizing},
			[]string{"sbatch", "--uid=" + user, "--begin=now+1day", "--output=/dev/null", "--chdir=/", "--wrap=true"}},
		{lack{what: "change a node", so: "a node that a job gave back may get no job until it answers Slurm again", modes: resizing},
			[]string{"scontrol", "update", "NodeName=n9", "State=UNDRAIN"}},
		{lack{what: "write AdminComment", so: "Evoslurm needs none", modes: everyMode},
			[]string{"scontrol", "update", fmt.Sprintf("JobId=%d", id), "AdminComment=matrix"}},
		{lack{what: "reconfigure", so: "nodes that Slurm leaks are reported, not healed", modes: resizing}, []string{"scontrol", "reconfigure"}},
	} {
		as := slurmtest.Root
		if u := s.account.User; u != nil {
			as = slurmtest.User{Name: u.Name, UID: u.UID, GID: u.GID, Groups: u.Groups, Home: "/"}
		}
		cmd := s.cluster.Command(ctx, as, l.command[0], l.command[1:]...)
		if out, err := cmd.CombinedOutput(); err != nil {
			l.why = "`" + l.command[0] + "`: " + strings.TrimPrefix(lastOf(string(out)), l.command[0]+": ")
			s.lacks = append(s.lacks, l.lack)
		}
	}
	s.sweep(s.t)
}

// moldable returns why the sidecar refuses a moldable job.
func (s *rights) moldable(ctx context.Context) (refused error) {
	_, errs, err := s.As(0, "evosbatch", "--job-name=moldable", "--output=/dev/null", "--moldable=1@20s,2@10s", "--wrap=true")
	if err != nil {
		return fmt.Errorf("evosbatch: %w: %s", err, errs)
	}
	if err := until(ctx, func() error {
		all, err := s.Jobs(0)
		for _, j := range all {
			if words, is := strings.CutPrefix(j.Reason, "refused: "); j.Name == "moldable" && is {
				refused = refusal(words)
				return nil
			} else if j.Name == "moldable" && j.State == "ended" {
				return nil
			}
		}
		return fmt.Errorf("the moldable job neither ran nor was refused: %+v: %v", all, err)
	}); err != nil {
		s.t.Error(err)
	}
	return refused
}

// note returns what the account cannot do in a drive mode.
func (s *rights) note(mode drivemode.Mode) string {
	var all []string
	for _, l := range s.lacks {
		if slices.Contains(l.modes, mode) {
			all = append(all, fmt.Sprintf("cannot %s (%s): %s", l.what, plain(l.why), l.so))
		}
	}
	return strings.Join(all, "; ")
}
