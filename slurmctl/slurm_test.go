package slurmctl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// fixture is a cluster with a client and a user for jobs.
type fixture struct {
	*testing.T
	*slurmctl.Client
	cluster *slurmtest.Cluster
	user    slurmtest.User
	ctx     context.Context
}

func start(t *testing.T, o slurmtest.Options) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	c := slurmtest.Start(t, o)
	return &fixture{t, &slurmctl.Client{Env: c.Env()}, c, c.Users()[0], ctx}
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// clientUser converts a user to the client's type.
func clientUser(u slurmtest.User) *slurmctl.User {
	return &slurmctl.User{UID: u.UID, GID: u.GID, Groups: u.Groups, Name: u.Name, Home: u.Home}
}

// submit submits a job that sleeps, or that runs script.
func (f *fixture) submit(script string, options ...string) slurmctl.JobID {
	f.Helper()
	args := append([]string{"--parsable", "--output=/dev/null", "--chdir=/"}, options...)
	out, err := f.Submit(f.ctx, clientUser(f.user), args, strings.NewReader("#!/bin/sh\n"+script+"\n"))
	f.must(err)
	id, err := strconv.ParseUint(strings.TrimSpace(out), 10, 32)
	f.must(err)
	return slurmctl.JobID(id)
}

const sleeps = "exec sleep 600"

// job reads one job back.
func (f *fixture) job(id slurmctl.JobID) slurmctl.Job {
	f.Helper()
	jobs, err := f.JobsByID(f.ctx, id)
	f.must(err)
	if len(jobs) != 1 {
		f.Fatalf("job %d is %d jobs", id, len(jobs))
	}
	return jobs[0]
}

// wait waits until a condition holds of a job.
func (f *fixture) wait(id slurmctl.JobID, what string, ok func(slurmctl.Job) bool) slurmctl.Job {
	f.Helper()
	for {
		j := f.job(id)
		if ok(j) {
			return j
		}
		select {
		case <-f.ctx.Done():
			f.Fatalf("job %d is never %s: %+v", id, what, j)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (f *fixture) running(id slurmctl.JobID) slurmctl.Job {
	f.Helper()
	return f.wait(id, "running", func(j slurmctl.Job) bool { return j.State == slurmctl.Running })
}

func (f *fixture) ended(id slurmctl.JobID) slurmctl.Job {
	f.Helper()
	return f.wait(id, "ended", slurmctl.Job.Ended)
}

// is checks that an error matches one of the package's errors.
func (f *fixture) is(what string, err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Errorf("%s: %v, which is not %q", what, err, want)
	}
}

// evolving holds the options that growing and shrinking need on 22.05.
var evolving = slurmtest.Options{Accounting: true, PermitJobExpansion: true}

// TestOddNames checks that names and comments come back unchanged and that none of them fakes a
// field or a job.
func TestOddNames(t *testing.T) {
	f := start(t, slurmtest.Options{Nodes: 1})
	names := []string{"plain", "two words", "a|b|c", "tab\there", "new\nline", "\nleading", "trailing\n", "ümlaut 日本語 🚀", `"quoted" 'too'`,
		"%i %A %j", "1|RUNNING|root|0", "back\\slash\\n", "=,;&$(id)`id`", "--uid=0", "(null)x", strings.Repeat("long ", 200),
		"<0123456789abcdef0123456789abcdef>", "JobId=1 JobState=FAILED\nJobId=2", "\x1b[31mred", "latin \xe9"}
	want := map[slurmctl.JobID]string{}
	for _, name := range names {
		want[f.submit(sleeps, "--hold", "--job-name="+name, "--comment=c:"+name)] = name
	}
	jobs, err := f.Jobs(f.ctx)
	f.must(err)
	got := map[slurmctl.JobID]string{}
	for _, j := range jobs {
		got[j.ID] = j.Name
		if j.Comment != "c:"+j.Name {
			t.Errorf("job %d has the name %q and the comment %q", j.ID, j.Name, j.Comment)
		}
		if j.State != slurmctl.Pending || !j.Held() || j.UID != f.user.UID || j.User != f.user.Name {
			t.Errorf("%+v", j)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// Comments set later, including those of administrators.
	id := slices.Max(slices.Collect(maps.Keys(want)))
	for _, text := range append(names, "") {
		f.must(f.UpdateJob(f.ctx, id, slurmctl.JobUpdate{Comment: &text, AdminComment: &text}))
		if j := f.job(id); j.Comment != text || j.AdminComment != text {
			t.Errorf("%q was set, comment is %q, admin comment is %q", text, j.Comment, j.AdminComment)
		}
	}
	long := strings.Repeat("x", 1025)
	if err := f.UpdateJob(f.ctx, id, slurmctl.JobUpdate{Comment: &long}); err == nil {
		t.Error("a comment of 1,025 characters was taken")
	}
	big := strings.Repeat("0123456789", 12_000)
	f.must(f.UpdateJob(f.ctx, id, slurmctl.JobUpdate{AdminComment: &big}))
	if j := f.job(id); j.AdminComment != big {
		t.Errorf("an admin comment of %d bytes is %d bytes", len(big), len(j.AdminComment))
	}
}

// TestKindsOfJobs checks that the client reads what jobs requested.
func TestKindsOfJobs(t *testing.T) {
	f := start(t, slurmtest.Options{Nodes: 4, Partitions: []slurmtest.Partition{{Name: "main", Default: true, Extra: "DefaultTime=10"},
		{Name: "whole", Nodes: "n[1-2]", MaxTime: "2:00:00", Extra: "OverSubscribe=EXCLUSIVE MinNodes=1 MaxNodes=2 DefaultTime=30"},
		{Name: "closed", Nodes: "n4", Extra: "State=DOWN Hidden=YES"}},
		NodeExtra: map[string]string{"n[1-2]": "Feature=big,fast Weight=7", "n4": "Gres=fpga:2"}, ExtraConf: "GresTypes=fpga"})

	array := f.submit(sleeps, "--hold", "--array=1,3,5-20:3%2", "--time=1-2")
	if j := f.job(array); j.ArrayTasks != 8 || j.ArrayJobID != array || j.TimeLimit != 26*time.Hour {
		t.Errorf("array: %+v", j)
	}
	long := make([]string, 0, 300)
	for i := range 300 {
		long = append(long, strconv.Itoa(3*i))
	}
	if j := f.job(f.submit(sleeps, "--hold", "--array="+strings.Join(long, ","))); j.ArrayTasks != 300 {
		t.Errorf("array of 300 tasks has %d", j.ArrayTasks)
	}

	held := f.job(f.submit(sleeps, "--hold", "--nodes=2", "--nodelist=n1,n3", "--exclude=n2", "--constraint=", "--mem-per-cpu=10",
		"--cpus-per-task=3", "--exclusive", "--time=UNLIMITED", "--nice=5"))
	if diff := cmp.Diff([]any{[]string{"n1", "n3"}, []string{"n2"}, int64(30), true, slurmctl.Unlimited, 5, 2, "main"},
		[]any{held.ReqNodes, held.ExcNodes, held.MinMemory, held.Exclusive, held.TimeLimit, held.Nice, held.NumNodes, held.Partition}); diff != "" {
		t.Error("held job:", diff)
	}
	memory := f.job(f.submit(sleeps, "--hold", "--mem=500", "--constraint=big&fast", "--partition=main,whole"))
	if memory.MinMemory != 500 || memory.Features != "big&fast" || memory.Partition != "main,whole" || memory.Exclusive {
		t.Errorf("%+v", memory)
	}
	for _, option := range []string{"--gres=fpga:2", "--gpus-per-node=0"} {
		j := f.job(f.submit(sleeps, "--hold", "--nodes=1", option))
		if strings.Contains(j.TRESPer, "fpga") != strings.Contains(option, "fpga") {
			t.Errorf("%s: %q", option, j.TRESPer)
		}
	}
	if j := f.job(f.submit(sleeps, "--hold", "--time=99999999")); j.TimeLimit != slurmctl.Unlimited {
		t.Errorf("a limit of 190 years is %v", j.TimeLimit)
	}
	begin := time.Now().Add(7 * time.Hour).Truncate(time.Second)
	later := f.job(f.submit(sleeps, "--begin=now+1day", "--time=10"))
	if d := time.Until(later.StartTime); d < 23*time.Hour || d > 25*time.Hour {
		t.Errorf("a job for tomorrow starts in %v", d)
	}
	f.must(f.UpdateJob(f.ctx, later.ID, slurmctl.JobUpdate{StartTime: begin, TimeLimit: 90 * time.Minute, NumNodes: 3, Partition: "main"}))
	if j := f.job(later.ID); !j.StartTime.Equal(begin) || j.TimeLimit != 90*time.Minute || j.NumNodes != 3 {
		t.Errorf("updated to %v: %+v", begin, j)
	}
	f.must(f.Hold(f.ctx, later.ID))
	if !f.job(later.ID).Held() {
		t.Error("held, and not held")
	}
	f.must(f.Release(f.ctx, later.ID))
	if f.job(later.ID).Held() {
		t.Error("released, and held")
	}
	after := f.job(f.submit(sleeps, fmt.Sprintf("--dependency=afterok:%d", later.ID)))
	if after.Dependency != fmt.Sprintf("afterok:%d(unfulfilled)", later.ID) || after.Reason != "Dependency" {
		t.Errorf("%+v", after)
	}

	failed, killed, done := f.submit("exit 3"), f.submit("kill -9 $$"), f.submit("true", "--nodes=2", "--exclusive")
	if j := f.ended(failed); j.State != slurmctl.Failed || j.ExitCode != 3 || j.ExitSignal != 0 {
		t.Errorf("%+v", j)
	}
	if j := f.ended(killed); j.State != slurmctl.Failed || j.ExitCode != 0 || j.ExitSignal != 9 {
		t.Errorf("%+v", j)
	}
	if j := f.ended(done); j.State != slurmctl.Completed || j.ExitCode != 0 || len(j.NodeList) != 2 || j.EndTime.Before(j.StartTime) {
		t.Errorf("%+v", j)
	}

	nodes, parts, err := f.Nodes(f.ctx)
	f.must(err)
	if len(nodes) != 4 || len(parts) != 3 {
		t.Fatalf("%d nodes, %d partitions", len(nodes), len(parts))
	}
	for _, n := range nodes {
		want := slurmctl.Node{Name: n.Name, State: "idle", CPUs: 4, Memory: 1000, Layout: slurmctl.Layout{Sockets: 4, Cores: 1, Threads: 1}, Weight: 1, Partitions: []string{"main"}}
		switch n.Name {
		case "n1", "n2":
			want.Weight, want.Features, want.Partitions = 7, []string{"big", "fast"}, []string{"main", "whole"}
		case "n4":
			want.GRES, want.Partitions = "fpga:2", []string{"closed", "main"}
		}
		slices.Sort(n.Partitions)
		if n.Flags == "-" {
			n.Flags = ""
		}
		if n.State == "completing" {
			n.State = "idle"
		}
		if diff := cmp.Diff(want, n); diff != "" {
			t.Error(diff)
		}
	}
	for _, p := range parts {
		want := map[string]slurmctl.Partition{
			"main": {Name: "main", Default: true, Up: true, MaxTime: slurmctl.Unlimited, DefaultTime: 10 * time.Minute, MinNodes: 1,
				OverSubscribe: "NO", Nodes: []string{"n1", "n2", "n3", "n4"}},
			"whole": {Name: "whole", Up: true, MaxTime: 2 * time.Hour, DefaultTime: 30 * time.Minute, MinNodes: 1, MaxNodes: 2,
				OverSubscribe: "EXCLUSIVE", Nodes: []string{"n1", "n2"}},
			"closed": {Name: "closed", MaxTime: slurmctl.Unlimited, DefaultTime: p.DefaultTime, MinNodes: 1, OverSubscribe: "NO", Nodes: []string{"n4"}},
		}[p.Name]
		slurmctl.SortNodes(p.Nodes)
		if diff := cmp.Diff(want, p); diff != "" {
			t.Error(diff)
		}
	}

	// A query of all jobs is one command; the version is already known.
	before := f.Calls()
	if _, err := f.Jobs(f.ctx); err != nil || f.Calls() != before+1 {
		t.Errorf("%d commands: %v", f.Calls()-before, err)
	}
}

// TestHeterogeneousAndArrayIDs checks that JobsByID returns what was requested and no more.
func TestHeterogeneousAndArrayIDs(t *testing.T) {
	f := start(t, slurmtest.Options{Nodes: 2})
	het := f.submit(sleeps, "--hold", "--nodes=1", ":", "--nodes=1")
	array := f.submit(sleeps, "--array=0-9%2")
	f.wait(array, "in part begun", func(j slurmctl.Job) bool { return j.ArrayTasks == 8 })
	jobs, err := f.JobsByID(f.ctx, het, 99999, het+1, array, array, het)
	f.must(err)
	var ids []slurmctl.JobID
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	if diff := cmp.Diff([]slurmctl.JobID{het, het + 1, array}, ids); diff != "" {
		t.Fatal(diff)
	}
	if d := fmt.Sprintf("%d+1", het); jobs[1].Display != d || !jobs[1].Heterogenous || jobs[2].Heterogenous {
		t.Errorf("%+v", jobs[1])
	}
	if jobs, err := f.JobsByID(f.ctx, 99999); err != nil || len(jobs) != 0 {
		t.Error(jobs, err)
	}
	all, err := f.Jobs(f.ctx)
	f.must(err)
	tasks := 0
	for _, j := range all {
		if j.ArrayJobID == array {
			tasks += j.ArrayTasks
		}
	}
	if tasks != 10 {
		t.Errorf("the array has %d tasks", tasks)
	}
	f.must(f.Cancel(f.ctx, het, array))
}

// TestGlance queries single jobs and checks what that costs.
func TestGlance(t *testing.T) {
	// the backfill scheduler rests in the middle of its work for as long as it can
	f := start(t, slurmtest.Options{Nodes: 2, SchedulerParameters: "bf_interval=1,bf_yield_interval=1,bf_yield_sleep=10000000"})
	first, second := f.submit(sleeps, "--nodes=2", "--exclusive"), f.submit("exit 3", "--begin=now+1day", "--comment=x")
	f.running(first)
	var meter slurmctl.Meter
	jobs, err := f.Glance(slurmctl.WithMeter(f.ctx, &meter), second, 99999, first)
	f.must(err)
	if len(jobs) != 2 || jobs[0].ID != second || jobs[0].Comment != "x" || jobs[1].ID != first || len(jobs[1].NodeList) != 2 {
		t.Errorf("%+v", jobs)
	}
	if meter.Commands() != 3 || meter.CPU() <= 0 || meter.CPU() > 3*time.Second {
		t.Errorf("%d commands took %v of processor time", meter.Commands(), meter.CPU())
	}
	f.must(f.Cancel(f.ctx, second))
	if jobs, err := f.Glance(f.ctx, second); err != nil || len(jobs) != 1 || jobs[0].State != slurmctl.Cancelled {
		t.Errorf("an ended job: %+v (%v)", jobs, err)
	}
	backfilling := func(want bool) {
		t.Helper()
		for {
			busy, ended, err := f.Backfill(f.ctx)
			f.must(err)
			if busy == want {
				if since := time.Since(ended); !want && (since < 0 || since > time.Minute) {
					t.Errorf("its last cycle ended %v ago", since)
				}
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	var queue []slurmctl.JobID
	for range 50 {
		queue = append(queue, f.submit(sleeps, "--nodes=1"))
	}
	backfilling(true)
	f.must(f.Cancel(f.ctx, append(queue, first)...))
	backfilling(false)
}

// TestMeterClock checks that reading the reservations shows slurmctld's time, with and without any.
func TestMeterClock(t *testing.T) {
	f := start(t, slurmtest.Options{Nodes: 1, OwnClock: true})
	for _, by := range []time.Duration{0, time.Hour, -2 * time.Hour} {
		f.must(f.cluster.StepClock(by))
		var meter slurmctl.Meter
		_, err := f.Reservations(slurmctl.WithMeter(f.ctx, &meter))
		if off := f.cluster.Now().Sub(meter.Clock()); err != nil || off < 0 || off > time.Minute {
			t.Errorf("set by %v, slurmctld's clock is read %v too early: %v", by, off, err)
		}
		if by == 0 {
			f.must(f.CreateReservation(f.ctx, slurmctl.ReservationRequest{Name: "any", End: time.Now().Add(24 * time.Hour), NodeCount: 1, Users: []string{f.user.Name}}))
		}
	}
}

// TestTimes checks that times denote the same instants in all time zones, even in hours that a
// clock change skips or repeats.
func TestTimes(t *testing.T) {
	t.Setenv("TZ", "Europe/Berlin")
	f := start(t, slurmtest.Options{Nodes: 2})
	id := f.submit(sleeps, "--begin=now+1day")
	for _, zone := range []string{"", "America/New_York", "Asia/Kolkata"} {
		f.Env = append(f.cluster.Env(), "TZ="+zone, "SLURM_TIME_FORMAT=relative")
		for _, at := range []string{"2027-03-14T06:59:59Z", "2027-03-14T07:30:00Z", "2027-11-07T05:30:00Z", "2027-11-07T06:30:00Z",
			"2027-03-28T01:30:00Z", "2027-10-31T00:30:00Z", "2027-10-31T01:30:00Z"} {
			want, err := time.Parse(time.RFC3339, at)
			f.must(err)
			f.must(f.UpdateJob(f.ctx, id, slurmctl.JobUpdate{StartTime: want}))
			if got := f.job(id).StartTime; !got.Equal(want) {
				t.Errorf("%s: start %v, set %v", zone, got, want)
			}
			name := "r" + strconv.FormatInt(want.Unix(), 10)
			f.must(f.CreateReservation(f.ctx, slurmctl.ReservationRequest{Name: name, Start: want, End: want.Add(61 * time.Second),
				NodeCount: 1, Users: []string{f.user.Name}}))
			all, err := f.Reservations(f.ctx)
			f.must(err)
			if len(all) != 1 || all[0].Name != name || !all[0].Start.Equal(want) || !all[0].End.Equal(want.Add(61*time.Second)) {
				t.Errorf("%s: %+v, set %v", zone, all, want)
			}
			f.must(f.DeleteReservation(f.ctx, name))
		}
	}
	running := f.submit(sleeps, "--time=20")
	f.running(running)
	end := time.Now().Add(777 * time.Second).Truncate(time.Second)
	f.must(f.UpdateJob(f.ctx, running, slurmctl.JobUpdate{EndTime: end}))
	if got := f.job(running).EndTime; !got.Equal(end) {
		t.Errorf("end %v, set %v", got, end)
	}
	f.must(f.UpdateJob(f.ctx, id, slurmctl.JobUpdate{StartNow: true}))
	f.running(id)
}

// TestReservations covers a reservation's life, including what Slurm refuses.
func TestReservations(t *testing.T) {
	f := start(t, slurmtest.Options{Nodes: 4, Accounting: true})
	if all, err := f.Reservations(f.ctx); err != nil || len(all) != 0 {
		t.Fatal(all, err)
	}
	now := time.Now().Truncate(time.Second)
	q := slurmctl.ReservationRequest{Name: "evo_1-2.x", Start: now.Add(time.Hour), End: now.Add(time.Hour + 75*time.Second),
		Nodes: []string{"n2", "n3"}, Users: []string{f.user.Name, "root"}, Partition: "main", Flags: []string{"FLEX", "PURGE_COMP=00:01:00"}}
	f.must(f.CreateReservation(f.ctx, q))
	read := func() slurmctl.Reservation {
		t.Helper()
		all, err := f.Reservations(f.ctx)
		f.must(err)
		if len(all) != 1 {
			t.Fatalf("%d reservations", len(all))
		}
		slices.Sort(all[0].Flags)
		slices.Sort(all[0].Users)
		return all[0]
	}
	users := []string{f.user.Name, "root"}
	slices.Sort(users)
	want := slurmctl.Reservation{Name: q.Name, Start: q.Start.UTC(), End: q.End.UTC(), Nodes: q.Nodes, Users: users, Partition: "main",
		Flags: []string{"FLEX", "PURGE_COMP=00:01:00", "SPEC_NODES"}}
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Error(diff)
	}
	other := q
	other.Nodes = []string{"n1"}
	f.is("made twice", f.CreateReservation(f.ctx, other), slurmctl.ErrReservationExists)
	other.Name, other.Nodes = "other", []string{"n3"}
	f.is("overlapping", f.CreateReservation(f.ctx, other), slurmctl.ErrReservationOverlap)
	f.must(f.UpdateReservation(f.ctx, q.Name, slurmctl.ReservationUpdate{End: now.Add(2 * time.Hour), Nodes: []string{"n1", "n4"}, Users: []string{"root"}}))
	want.End, want.Nodes, want.Users = now.Add(2*time.Hour).UTC(), []string{"n1", "n4"}, []string{"root"}
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Error(diff)
	}
	f.must(f.UpdateReservation(f.ctx, q.Name, slurmctl.ReservationUpdate{NodeCount: 3}))
	if r := read(); len(r.Nodes) != 3 {
		t.Errorf("%+v", r)
	}
	f.is("unknown one updated", f.UpdateReservation(f.ctx, "none", slurmctl.ReservationUpdate{NodeCount: 1}), slurmctl.ErrUnknownReservation)
	f.is("unknown one deleted", f.DeleteReservation(f.ctx, "none"), slurmctl.ErrUnknownReservation)
	f.must(f.DeleteReservation(f.ctx, q.Name))

	// A reservation in use, then detached from its job.
	f.must(f.CreateReservation(f.ctx, slurmctl.ReservationRequest{Name: "now", End: now.Add(time.Hour), NodeCount: 2, Users: []string{f.user.Name}}))
	if r := read(); !r.Active || len(r.Nodes) != 2 {
		t.Errorf("%+v", r)
	}
	job := f.submit(sleeps, "--nodes=2", "--reservation=now")
	if j := f.running(job); j.Reservation != "now" {
		t.Errorf("%+v", j)
	}
	f.is("in use", f.DeleteReservation(f.ctx, "now"), slurmctl.ErrReservationInUse)
	none := ""
	f.must(f.UpdateJob(f.ctx, job, slurmctl.JobUpdate{Reservation: &none}))
	if j := f.job(job); j.Reservation != "" {
		t.Errorf("%+v", j)
	}
	f.must(f.DeleteReservation(f.ctx, "now"))

	busy := slurmctl.ReservationRequest{Name: "busy", Start: now.Add(time.Minute), End: now.Add(10 * time.Minute), Nodes: f.job(job).NodeList,
		Users: []string{f.user.Name}}
	f.is("nodes of a running job", f.CreateReservation(f.ctx, busy), slurmctl.ErrNodesBusy)
	busy.Flags = []string{"IGNORE_JOBS"}
	f.must(f.CreateReservation(f.ctx, busy))

	// Other jobs must stay out of it.
	f.must(f.DeleteReservation(f.ctx, "busy"))
	f.must(f.CreateReservation(f.ctx, slurmctl.ReservationRequest{Name: "mine", End: now.Add(time.Hour), NodeCount: 1, Users: []string{"root"}}))
	_, err := f.Allocate(f.ctx, slurmctl.AllocateRequest{User: clientUser(f.user), Nodes: 1, Name: "x", Reservation: "mine"})
	f.is("a user who may not use it", err, slurmctl.ErrAccessDenied)
}

// TestEvolve grows a job, and shrinks it twice, as the job's user.
func TestEvolve(t *testing.T) {
	f := start(t, evolving)
	script := "#!/bin/sh\n# " + strings.Repeat("ü|", 1000) + "\n" + sleeps + "\n\n"
	out, err := f.Submit(f.ctx, clientUser(f.user), []string{"--parsable", "-N2", "--exclusive", "-o/dev/null", "-D/"}, strings.NewReader(script))
	f.must(err)
	n, err := strconv.Atoi(strings.TrimSpace(out))
	f.must(err)
	base := slurmctl.JobID(n)
	j := f.running(base)
	if !j.Exclusive || j.BatchHost != j.NodeList[0] {
		t.Errorf("%+v", j)
	}
	if got, err := f.BatchScript(f.ctx, base); err != nil || got != script {
		t.Errorf("script is %q, %v", got, err)
	}

	name := "expander_of." + strings.TrimSpace(out)
	k, err := f.Allocate(f.ctx, slurmctl.AllocateRequest{User: clientUser(f.user), Nodes: 3, Exclude: j.NodeList, Exclusive: true, ExpandJob: base,
		Name: name, Comment: "two words, a|bar\nand a line", TimeLimit: 5 * time.Minute, Partition: "main"})
	f.must(err)
	x := f.job(k.ID)
	if diff := cmp.Diff(k.NodeList, x.NodeList); diff != "" {
		t.Error("what Allocate gives differs from what is there:", diff)
	}
	if x.UID != f.user.UID || x.Name != name || x.Comment != "two words, a|bar\nand a line" || len(x.NodeList) != 3 || x.State != slurmctl.Running {
		t.Errorf("%+v", x)
	}
	if _, err := f.BatchScript(f.ctx, k.ID); err == nil || !strings.Contains(err.Error(), "script") {
		t.Errorf("the script of an allocation: %v", err)
	}
	f.must(f.Merge(f.ctx, k.ID))
	want := append(slices.Clone(j.NodeList), x.NodeList...)
	slurmctl.SortNodes(want)
	if diff := cmp.Diff(want, f.job(base).NodeList); diff != "" {
		t.Error(diff)
	}
	if x := f.ended(k.ID); x.State != slurmctl.Completed {
		t.Errorf("%+v", x)
	}

	f.is("batch host dropped", f.Shrink(f.ctx, base, want[1:]), slurmctl.ErrNodeName)
	for _, keep := range [][]string{{want[0], want[2], want[4]}, {want[0]}} {
		f.must(f.Shrink(f.ctx, base, keep))
		if diff := cmp.Diff(keep, f.job(base).NodeList); diff != "" {
			t.Error(diff)
		}
	}
	f.must(f.Cancel(f.ctx, base))
	if j := f.ended(base); j.State != slurmctl.Cancelled {
		t.Errorf("%+v", j)
	}
	f.must(f.Cancel(f.ctx, base, k.ID, 99999)) // ended, merged, unknown
	nice := 1
	f.is("ended job updated", f.UpdateJob(f.ctx, base, slurmctl.JobUpdate{Nice: &nice}), slurmctl.ErrAlreadyDone)
	f.is("unknown job updated", f.UpdateJob(f.ctx, 99999, slurmctl.JobUpdate{Nice: &nice}), slurmctl.ErrUnknownJob)
	f.is("unknown job merged", f.Merge(f.ctx, 99999), slurmctl.ErrUnknownJob)
	_, err = f.Allocate(f.ctx, slurmctl.AllocateRequest{User: clientUser(f.user), Nodes: 1, Name: "x", ExpandJob: 99999})
	f.is("no base job", err, slurmctl.ErrDependency)
	f.must(f.cluster.WaitIdle(f.ctx))
	f.clean()
}

// clean checks that nothing remains in Slurm.
func (f *fixture) clean() {
	f.Helper()
	for {
		left, err := f.cluster.Leftovers(f.ctx)
		if err != nil || f.ctx.Err() != nil {
			f.Fatal(left, err)
		}
		if left.None() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestAllocateCancelled checks that an allocation leaves no job, whenever it is given up.
func TestAllocateCancelled(t *testing.T) {
	f := start(t, slurmtest.Options{Nodes: 2})
	full := f.submit(sleeps, "--nodes=2", "--exclusive")
	f.running(full)
	q := slurmctl.AllocateRequest{User: clientUser(f.user), Nodes: 1, Name: "given_up"}
	ctx, cancel := context.WithTimeout(f.ctx, time.Second)
	k, err := f.Allocate(ctx, q) // pending at the deadline
	cancel()
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, slurmctl.ErrUnreachable) || k.ID == 0 {
		t.Fatal(k, err)
	}
	if j := f.ended(k.ID); j.State != slurmctl.Cancelled {
		t.Errorf("%+v", j)
	}
	f.must(f.Cancel(f.ctx, full))
	f.must(f.cluster.WaitIdle(f.ctx))

	// Free nodes: the call is cut off at moments throughout its run.
	granted := 0
	for i := range 40 {
		ctx, cancel := context.WithTimeout(f.ctx, time.Duration(i)*time.Millisecond)
		k, err := f.Allocate(ctx, q)
		cancel()
		if err == nil {
			granted++
			f.must(f.Cancel(f.ctx, k.ID))
		}
	}
	f.clean()
	t.Logf("%d of 40 were granted in time", granted)
}

func TestSignal(t *testing.T) {
	f := start(t, slurmtest.Options{Nodes: 1})
	dir, err := os.MkdirTemp("", "signal")
	f.must(err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	f.must(os.Chmod(dir, 0o777))
	ready := filepath.Join(dir, "ready")
	id := f.submit("trap 'exit 7' USR1; : > " + ready + "; while :; do sleep 0.05; done")
	f.wait(id, "running, with its trap set", func(j slurmctl.Job) bool { // before that Slurm has no script to signal, and the launch fails
		_, err := os.Stat(ready)
		return err == nil && j.State == slurmctl.Running
	})
	for f.job(id).State == slurmctl.Running {
		_, err := f.Signal(f.ctx, "USR1", slurmctl.SignalOptions{Batch: true}, id, 99999) // which is no job
		f.must(err)
		time.Sleep(200 * time.Millisecond)
	}
	if j := f.ended(id); j.ExitCode != 7 {
		t.Errorf("%+v", j)
	}
	_, err = f.Signal(f.ctx, "USR1", slurmctl.SignalOptions{Full: true}, 99999, id)
	f.must(err) // no such job, and one that has ended
}

// TestActiveFeatures checks that a node has the features that are active, not those that it could have after a reboot.
func TestActiveFeatures(t *testing.T) {
	f := start(t, slurmtest.Options{Nodes: 1, NodeExtra: map[string]string{"n1": "Feature=flat,cache"}})
	_, err := f.cluster.Run(f.ctx, slurmtest.Root, "scontrol", "update", "NodeName=n1", "ActiveFeatures=flat")
	f.must(err)
	nodes, _, err := f.Nodes(f.ctx)
	f.must(err)
	if len(nodes) != 1 || !slices.Equal(nodes[0].Features, []string{"flat"}) {
		t.Errorf("%+v", nodes)
	}
}

// TestConfig checks the settings that decide how jobs can grow.
func TestConfig(t *testing.T) {
	f := start(t, slurmtest.Options{Nodes: 1, PrologFlags: "Contain", PermitJobExpansion: true})
	cfg, err := f.Config(f.ctx)
	f.must(err)
	version, err := f.Version(f.ctx)
	f.must(err)
	if !cfg.Has("permit_job_expansion") || cfg.Has("permit") || !cfg.HasPrologFlag("Contain") || cfg.SelectType() != "cons_tres" ||
		cfg.AccountingStorageType() != "none" || cfg.MungeSocket() != f.cluster.MungeSocket() || cfg.Version != version ||
		cfg.KillWait() != 2*time.Second || cfg.BackfillInterval() != time.Second || cfg.MinJobAge() != 300*time.Second || cfg.ClusterName == "" {
		t.Errorf("%+v", cfg)
	}
	if name, uid, err := cfg.SlurmUser(); err != nil || name == "" || os.Geteuid() == 0 && uid == 0 {
		t.Error(name, uid, err)
	}
	up, err := f.Ping(f.ctx)
	if err != nil || len(up) != 1 || !up[0].Up || up[0].Role != "primary" {
		t.Error(up, err)
	}

	// Contain's step prevents the merge.
	base := f.submit(sleeps)
	f.running(base)
	k, err := f.Allocate(f.ctx, slurmctl.AllocateRequest{User: clientUser(f.user), Nodes: 1, Name: "x", ExpandJob: base})
	f.must(err)
	for err = f.Merge(f.ctx, k.ID); err == nil && f.ctx.Err() == nil; err = f.Merge(f.ctx, k.ID) {
		time.Sleep(50 * time.Millisecond)
	}
	f.is("merge with a step", err, slurmctl.ErrHasSteps)
}

// TestNoExpansion covers a cluster on which no job can grow and, on 22.05, a job can shrink only
// once.
func TestNoExpansion(t *testing.T) {
	f := start(t, slurmtest.Options{Nodes: 4})
	base := f.submit(sleeps, "--nodes=3")
	nodes := f.running(base).NodeList
	_, err := f.Allocate(f.ctx, slurmctl.AllocateRequest{User: clientUser(f.user), Nodes: 1, Name: "x", ExpandJob: base})
	f.is("no permit_job_expansion", err, slurmctl.ErrNotSupported)
	f.is("a running job's nodes", f.UpdateJob(f.ctx, base, slurmctl.JobUpdate{StartTime: time.Now().Add(time.Hour)}), slurmctl.ErrNotPending)
	f.must(f.Shrink(f.ctx, base, nodes[:2]))
	if err := f.Shrink(f.ctx, base, nodes[:1]); strings.HasPrefix(f.cluster.Version(), "22.05") {
		f.is("a second resize", err, slurmctl.ErrDBIndex)
	}
}

// TestUnreachable covers a cluster without a controller.
func TestUnreachable(t *testing.T) {
	f := start(t, slurmtest.Options{Nodes: 1})
	_, err := f.Version(f.ctx)
	f.must(err)
	f.must(f.cluster.KillController(f.ctx))
	f.Timeout = 3 * time.Second
	_, err = f.Jobs(f.ctx)
	f.is("Jobs", err, slurmctl.ErrUnreachable)
	_, _, err = f.Nodes(f.ctx)
	f.is("Nodes", err, slurmctl.ErrUnreachable)
	f.is("Merge", f.Merge(f.ctx, 1), slurmctl.ErrUnreachable)
	if up, err := f.Ping(f.ctx); err != nil || len(up) != 1 || up[0].Up {
		t.Error(up, err)
	}
	f.Timeout = 0
	f.must(f.cluster.StartController(f.ctx))
	if jobs, err := f.Jobs(f.ctx); err != nil || len(jobs) != 0 {
		t.Error(jobs, err)
	}
}

// TestSubmitAsGiven checks that sbatch gets its arguments and the user's environment unchanged, and
// that its output and errors come back.
func TestSubmitAsGiven(t *testing.T) {
	f := start(t, slurmtest.Options{Nodes: 1})
	f.Env = append(f.cluster.Env(), "TZ=Asia/Tokyo", "LC_ALL=C", "WORD=a b\nc")
	out := filepath.Join(f.user.Home, "out")
	id := f.submit("printf '%s|' \"$TZ\" \"$LC_ALL\" \"$WORD\" \"$SLURM_TIME_FORMAT\" \"$USER\"", "--output="+out)
	f.ended(id)
	text, err := os.ReadFile(out)
	f.must(err)
	if want := "Asia/Tokyo|C|a b\nc||" + f.user.Name + "|"; string(bytes.TrimSpace(text)) != want {
		t.Errorf("the job sees %q, want %q", text, want)
	}
	_, err = f.Submit(f.ctx, clientUser(f.user), []string{"--partition=--uid=0", "--wrap=true"}, nil)
	var ce *slurmctl.CommandError
	if !errors.As(err, &ce) || ce.ExitCode != 1 || !strings.Contains(ce.Stderr, "invalid partition") {
		t.Error(err)
	}
}
