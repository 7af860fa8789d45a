package slurmctl_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// hostileSalloc is a salloc that its user abuses: it is held up, and the user writes into its
// pipes. VICTIM is a job of another user.
const hostileSalloc = `#!/bin/sh
lie() { echo "salloc: $1 job allocation VICTIM" >&2; }
real() { exec /usr/bin/salloc "$@"; }
quietly() { /usr/bin/salloc "$@" 2>/dev/null; }
`

// TestAllocateBelievesNobody checks that a user who tampers with salloc cannot change the jobs of
// others, and that no job remains of a failed allocation.
func TestAllocateBelievesNobody(t *testing.T) {
	f := start(t, slurmtest.Options{Nodes: 4})
	other := f.cluster.Users()[1]
	for name, c := range map[string]struct {
		script  string
		parked  bool
		granted bool
	}{
		"lies and goes on":       {`lie Granted; real "$@"`, false, true},
		"lies about a pending":   {`lie Pending; real "$@"`, false, true},
		"lies instead":           {`lie Granted`, false, false},
		"lies, then waits":       {`lie Pending; lie Granted; kill -STOP $$`, false, false},
		"lies and fails":         {`lie Granted; exit 1`, false, false},
		"lies, parked":           {`lie Pending; real "$@"`, true, true},
		"lies instead, parked":   {`lie Pending; sleep 600`, true, false},
		"stops before":           {`kill -STOP $$; real "$@"`, false, false},
		"stops after":            {`quietly "$@"; kill -STOP $$`, false, true},
		"says nothing":           {`quietly "$@"`, false, true},
		"writes without end":     {`yes "salloc: Pending job allocation VICTIM" >&2`, false, false},
		"fails though granted":   {`quietly "$@"; lie Granted; exit 1`, false, true},
		"asks for several":       {`quietly "$@"; quietly "$@"; lie Granted; sleep 600`, false, false},
		"asks for another thing": {`quietly --no-shell --nodes=1 --job-name=mine; lie Granted`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fixture{t, &slurmctl.Client{Env: f.cluster.Env(), Dir: t.TempDir()}, f.cluster, f.user, f.ctx}
			begin, state, patience := "--begin=now", "RUNNING", 3*time.Second
			if c.parked {
				begin, state = "--begin=now+1day", "PENDING"
			}
			if c.granted {
				patience = 2 * time.Minute
			}
			victim := strings.TrimSpace(f.run(other, "sbatch", "--parsable", "--output=/dev/null", "--chdir=/", begin, "--wrap="+sleeps))
			f.tools("salloc", strings.ReplaceAll(hostileSalloc+c.script+"\n", "VICTIM", victim))
			q := slurmctl.AllocateRequest{User: clientUser(f.user), Nodes: 1, Name: "evo_1_2_3", TimeLimit: time.Minute}
			if c.parked {
				q.Parked, q.Reservation = true, "hold"
				f.must(f.CreateReservation(f.ctx, slurmctl.ReservationRequest{Name: "hold", End: time.Now().Add(time.Hour), NodeCount: 1,
					Users: []string{f.user.Name, other.Name}}))
			}
			before := f.shown(victim, state)
			ctx, cancel := context.WithTimeout(f.ctx, patience)
			defer cancel()
			k, err := f.Allocate(ctx, q)
			switch {
			case c.granted && err != nil:
				t.Errorf("not granted: %v", err)
			case !c.granted && err == nil:
				t.Errorf("granted: %+v", k)
			case err == nil && (k.UID != f.user.UID || k.Name != q.Name):
				t.Errorf("the allocation is %+v", k)
			}
			if after := f.shown(victim, ""); after != before {
				t.Errorf("another user's job was touched:\n%s\nbecame\n%s", before, after)
			}
			f.run(other, "scancel", victim)
			for left := true; left; { // a killed salloc may have requested a job that appears later
				f.must(f.CancelAs(f.ctx, clientUser(f.user), f.live(f.user)...))
				jobs, err := f.Jobs(f.ctx)
				f.must(err)
				left = len(jobs) > 0
				time.Sleep(50 * time.Millisecond)
			}
			if c.parked {
				f.must(f.DeleteReservation(f.ctx, "hold"))
			}
			if err != nil && k.ID != 0 && f.job(k.ID).State != slurmctl.Cancelled {
				t.Errorf("%+v is left", f.job(k.ID))
			}
		})
	}
}

// TestCancelAs checks that it ends only the user's own jobs.
func TestCancelAs(t *testing.T) {
	f := start(t, slurmtest.Options{Nodes: 2})
	other := f.cluster.Users()[1]
	mine := f.submit(sleeps)
	victim := strings.TrimSpace(f.run(other, "sbatch", "--parsable", "--output=/dev/null", "--chdir=/", "--wrap="+sleeps))
	before := f.shown(victim, "RUNNING")
	theirs := f.live(other)
	f.is("another user's", f.CancelAs(f.ctx, clientUser(f.user), theirs...), slurmctl.ErrAccessDenied)
	if after := f.shown(victim, ""); after != before {
		t.Errorf("%s\nbecame\n%s", before, after)
	}
	f.must(f.CancelAs(f.ctx, clientUser(f.user), mine))
	if j := f.ended(mine); j.State != slurmctl.Cancelled {
		t.Errorf("%+v", j)
	}
}

// TestUserTeachesNothing checks that a user who tampers with scontrol cannot teach the client
// anything about the site.
func TestUserTeachesNothing(t *testing.T) {
	f := start(t, slurmtest.Options{Nodes: 1})
	id := f.submit(sleeps, "--begin=now+1day", "--account=some")
	f.Dir = t.TempDir()
	f.tools("scontrol", `#!/bin/sh
case "$(id -u) $*" in
0\ *|*Account=*) exec /usr/bin/scontrol "$@";;
esac
echo "slurm_update error: Unspecified error" >&2
exit 1
`)
	err := f.UpdateJob(f.ctx, id, slurmctl.JobUpdate{NumNodes: 1, As: clientUser(f.user)})
	if f.is("refused by the user", err, slurmctl.ErrUnspecified); f.WantsAccount() {
		t.Error("the site is taken for one that wants accounts")
	}
}

// tools fills the client's folder with Slurm's commands and replaces one with a script.
func (f *fixture) tools(name, script string) {
	f.Helper()
	f.must(os.Chmod(f.Dir, 0o755))
	f.must(os.Chmod(filepath.Dir(f.Dir), 0o755))
	for _, other := range []string{"squeue", "scontrol", "scancel", "salloc"} {
		path, err := exec.LookPath(other)
		f.must(err)
		if other != name {
			f.must(os.Symlink(path, filepath.Join(f.Dir, other)))
		}
	}
	syscall.ForkLock.RLock() // no process started by another test may hold it open for writing: "text file busy"
	err := os.WriteFile(filepath.Join(f.Dir, name), []byte(script), 0o755)
	syscall.ForkLock.RUnlock()
	f.must(err)
}

func (f *fixture) run(u slurmtest.User, name string, args ...string) string {
	f.Helper()
	out, err := f.cluster.Run(f.ctx, u, name, args...)
	f.must(err)
	return out
}

// shown returns what an attacker could change of a job, once the job has reached a state ("" for
// any).
func (f *fixture) shown(id, state string) string {
	f.Helper()
	for f.ctx.Err() == nil {
		out := f.run(slurmtest.Root, "squeue", "--noheader", "--states=all", "--jobs="+id, "--Format=JobID,UserName,State,Reservation,StartTime,TimeLimit")
		if state == "" || strings.Contains(out, " "+state+" ") {
			return out
		}
		time.Sleep(50 * time.Millisecond)
	}
	f.Fatal(f.ctx.Err())
	return ""
}

// live returns a user's jobs that have not ended.
func (f *fixture) live(u slurmtest.User) (ids []slurmctl.JobID) {
	f.Helper()
	jobs, err := f.Jobs(f.ctx)
	f.must(err)
	for _, j := range jobs {
		if j.UID == u.UID && !j.Ended() && j.State != slurmctl.Completing {
			ids = append(ids, j.ID)
		}
	}
	return ids
}
