package observed

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// bench gives polls to a watcher.
type bench struct {
	*testing.T
	*Watcher
	dir string
	now time.Time
}

func newBench(t *testing.T, mask bool) *bench {
	t.Helper()
	cfg := config.Default()
	cfg.Mode, cfg.Observe = config.ModeObserve, config.Observe{Dir: t.TempDir() + "/observed", MiB: 64, Mask: mask}
	cfg.StockJobs, cfg.Operators.Users = 3, []string{"alice"}
	b := &bench{T: t, dir: cfg.Observe.Dir, now: noon}
	b.watch(cfg)
	return b
}

// watch begins a run of the sidecar.
func (b *bench) watch(cfg config.Config) {
	var err error
	if b.Watcher, err = NewWatcher(cfg, "v1", b.now); err != nil {
		b.Fatal(err)
	}
	b.Warn(func(err error) { b.Error(err) })
}

// poll shows jobs, and plans starts.
func (b *bench) poll(after time.Duration, jobs []slurmctl.Job, starts ...msg.PlannedStart) {
	b.now = b.now.Add(after)
	o := msg.Observation{Nodes: []slurmctl.Node{{Name: "n1", State: "idle", CPUs: 4}, {Name: "n2", State: "idle", CPUs: 4}},
		Partitions: []slurmctl.Partition{{Name: "main", Nodes: []string{"n1", "n2"}, Up: true, MaxTime: -1}}, Jobs: jobs}
	for _, j := range jobs {
		if strings.HasPrefix(j.Comment, "evo") {
			o.Marks = append(o.Marks, msg.Mark{Job: j.ID})
		}
	}
	b.See(b.now, time.Second, o)
	b.See(time.Time{}, 0, msg.Planned{Stock: starts})
}

// records closes the watcher, and returns what it has recorded, without sites and load.
func (b *bench) records() (all []Record) {
	b.Helper()
	must.OK(b, b.Close())
	days, err := Days(b.dir)
	must.OK(b, err)
	for _, d := range days {
		for _, name := range d.Files {
			r, err := Open(name)
			must.OK(b, err)
			for {
				one, err := r.Next()
				if err != nil {
					break
				}
				if one.Site == nil && one.Load == nil {
					all = append(all, one)
				}
			}
			r.Close()
		}
	}
	return all
}

// waits is a pending job; Slurm expects it to start then.
func waits(id slurmctl.JobID, expected time.Time) slurmctl.Job {
	return slurmctl.Job{ID: id, ArrayJobID: id, ArrayTasks: 1, Name: "sim", User: "alice", UID: 7, Account: "physics", Partition: "main", State: slurmctl.Pending, Reason: "Priority",
		Priority: 9, NumNodes: 2, TimeLimit: time.Hour, SubmitTime: noon, StartTime: expected}
}

// runs is the same job since it started.
func runs(j slurmctl.Job, start time.Time, nodes ...string) slurmctl.Job {
	j.State, j.StartTime, j.NodeList = slurmctl.Running, start, nodes
	return j
}

func list(jobs ...slurmctl.Job) []slurmctl.Job { return jobs }

// TestWatch follows a job to its end: predictions at their leads, samples at each doubling, sizes, and its record.
func TestWatch(t *testing.T) {
	b := newBench(t, false)
	start := noon.Add(2 * time.Hour)
	for at := noon; at.Before(start); at = at.Add(10 * time.Second) {
		b.poll(10*time.Second, list(waits(7, start.Add(time.Hour))), msg.PlannedStart{Job: 7, Start: start.Unix() + int64(start.Sub(at)/time.Second)/10})
	}
	started := runs(waits(7, noon), start.Add(5*time.Second), "n1", "n2")
	b.poll(10*time.Second, list(started))
	started.NodeList = []string{"n1"}
	b.poll(10*time.Second, list(started))
	started.State, started.EndTime = slurmctl.Completing, b.now.Add(3*time.Second)
	b.poll(10*time.Second, list(started))
	b.poll(10*time.Second, nil)
	all := b.records()
	var samples []int64
	var ended *Job
	var s *Start
	for _, r := range all {
		switch {
		case r.Sample != nil:
			samples = append(samples, r.Sample.Age)
		case r.Job != nil:
			ended = r.Job
		case r.Start != nil:
			s = r.Start
		}
	}
	if want := []int64{0, 60, 120, 240, 480, 960, 1920, 3840}; !slices.Equal(samples, want) {
		t.Errorf("samples at ages %d, want %d", samples, want)
	}
	checkLeads(t, s, start)
	want := &Job{ID: 7, User: "alice", Account: "physics", Partition: "main", Name: "sim", Nodes: 2, NodeList: "n1", Limit: 3600, Priority: 9,
		Submit: noon.Unix(), Eligible: noon.Unix(), Start: start.Unix() + 5, End: started.EndTime.Unix(), State: "COMPLETING", Sizes: []Resize{{b.now.Add(-20 * time.Second).Unix(), 1}}}
	if !reflect.DeepEqual(ended, want) {
		t.Errorf("got  %+v\nwant %+v", ended, want)
	}
}

// checkLeads checks the predictions of a start that was planned a tenth of the time ahead too late.
func checkLeads(t *testing.T, s *Start, start time.Time) {
	if s == nil || len(s.Before) != 3 || s.Start != start.Unix()+5 || s.Nodes != 2 {
		t.Fatalf("%+v", s)
	}
	for _, l := range s.Before {
		made := s.Start - l.At
		if off := made - l.Lead; off < -l.Lead/apart || off > l.Lead/apart || l.Ours-start.Unix() < made/10-3 || l.Ours-start.Unix() > made/10+3 || l.Slurm != start.Add(time.Hour).Unix() {
			t.Errorf("lead %d: %+v, made %d s before", l.Lead, l, made)
		}
	}
}

// TestArrays checks that a task of an array has the predictions of the tasks that waited with it, and that evolving
// jobs have none.
func TestArrays(t *testing.T) {
	b := newBench(t, false)
	rest, evolving := waits(20, noon), waits(30, noon)
	rest.Display, rest.ArrayTasks, evolving.Comment = "20_[1-9]", 9, "evo"
	for range 7 {
		b.poll(10*time.Second, list(rest, evolving), msg.PlannedStart{Job: 20, Start: 5}, msg.PlannedStart{Job: 30, Start: 5})
	}
	task := runs(rest, b.now, "n1")
	task.ID, task.Display, task.ArrayTasks, rest.ArrayTasks = 21, "20_1", 1, 8
	b.poll(time.Second, list(rest, task, runs(evolving, b.now, "n2")))
	var starts []*Start
	for _, r := range b.records() {
		if r.Start != nil {
			starts = append(starts, r.Start)
		}
		if r.Sample != nil && r.Sample.Job == 30 {
			t.Errorf("%+v", r.Sample)
		}
	}
	if len(starts) != 1 || starts[0].Job != 21 || starts[0].Array != 20 || starts[0].Tasks != 9 || len(starts[0].Before) != 1 || starts[0].Before[0].Ours != 5 {
		t.Errorf("%+v", starts)
	}
}

// TestGaps checks what is recorded of times without polls: within a run, between two, and of jobs that ended meanwhile.
func TestGaps(t *testing.T) {
	b := newBench(t, false)
	cfg := b.cfg
	b.poll(0, list(runs(waits(1, noon), noon.Add(-time.Hour), "n1"), waits(2, noon)))
	b.See(time.Time{}, 0, msg.Observation{Err: errors.New("slurmctld is away")})
	b.poll(time.Minute, list(waits(2, noon)))
	b.poll(10*time.Minute, list(waits(2, noon)))
	must.OK(t, b.Close())
	days, _ := Days(b.dir)
	must.OK(t, os.Chtimes(days[0].Files[0], b.now, b.now))
	b.now = b.now.Add(time.Hour)
	b.watch(cfg)
	b.poll(0, nil)
	var gaps, jobs []string
	for _, r := range b.records() {
		if g := r.Gap; g != nil {
			gaps = append(gaps, fmt.Sprint(g.From-noon.Unix(), "-", g.Until-noon.Unix(), " ", g.Why))
		}
		if j := r.Job; j != nil {
			jobs = append(jobs, fmt.Sprint(j.ID, " ", j.End-noon.Unix(), " ", j.Missed, j.Standing))
		}
	}
	if want := []string{"0-60 slurmctld is away", "60-660 there was no poll", "660-4260 the sidecar did not observe"}; !slices.Equal(gaps, want) {
		t.Errorf("gaps %q, want %q", gaps, want)
	}
	if want := []string{"1 60 true false", fmt.Sprint("2 ", -noon.Unix(), " false true")}; !slices.Equal(jobs, want) {
		t.Errorf("jobs %q, want %q", jobs, want)
	}
}

// TestMidnight checks that the next day's file tells again what stands.
func TestMidnight(t *testing.T) {
	b := newBench(t, false)
	show := func(after time.Duration, state string) {
		b.now = b.now.Add(after)
		b.See(b.now, 0, msg.Observation{Nodes: []slurmctl.Node{{Name: "n1", State: state}, {Name: "n2", State: "idle"}},
			Reservations: []slurmctl.Reservation{{Name: "r", Nodes: []string{"n1"}, Users: []string{"alice"}}}, Jobs: list(waits(1, noon))})
	}
	show(11*time.Hour+59*time.Minute, "down")
	show(2*time.Minute, "down")
	show(time.Minute, "idle")
	var got []string
	for _, r := range b.records() {
		switch at := time.Unix(r.At, 0).UTC().Format("02 15:04"); {
		case r.Nodes != nil:
			got = append(got, at+" "+r.Nodes.Nodes+" "+r.Nodes.State)
		case r.Reservation != nil:
			got = append(got, at+" "+r.Reservation.Name)
		case r.Job != nil:
			got = append(got, fmt.Sprint(at, " ", r.Job.Standing))
		}
	}
	if want := []string{"25 23:59 n1 down", "25 23:59 r", "25 23:59 true", "26 00:01 n1 down", "26 00:01 r", "26 00:02 n1 idle", "26 00:02 true"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestMasked checks that no name of a user, account, QOS or job is in the files, and that words stay the same.
func TestMasked(t *testing.T) {
	b := newBench(t, true)
	cfg, first := b.cfg, ""
	cfg.Operators.Users = []string{"alice"}
	for range 2 {
		j := waits(1, noon)
		j.QOS, j.Reservation = "long", "class"
		b.poll(time.Minute, list(j))
		for _, r := range b.records() {
			if r.Job == nil {
				continue
			}
			if first == "" {
				first = r.Job.User
			}
			if text := fmt.Sprintf("%+v", *r.Job); r.Job.User != first || strings.Contains(text, "alice") || strings.Contains(text, "physics") || strings.Contains(text, "sim ") || strings.Contains(text, "long") || strings.Contains(text, "class") {
				t.Error(text)
			}
		}
		b.watch(cfg)
	}
	days, _ := Days(b.dir)
	r, err := Open(days[0].Files[0])
	must.OK(t, err)
	if len(r.Heading.Site.Config.Operators.Users) > 0 || !r.Heading.Masked || r.Heading.Site.Config.StockJobs != 3 {
		t.Errorf("%+v", r.Heading)
	}
}

// TestBusyUser checks that a user with many jobs takes bounded room in memory and in the files.
func TestBusyUser(t *testing.T) {
	b := newBench(t, false)
	var jobs []slurmctl.Job
	var starts []msg.PlannedStart
	for id := range slurmctl.JobID(100_000) {
		jobs = append(jobs, waits(id+1, noon))
		starts = append(starts, msg.PlannedStart{Job: id + 1, Start: noon.Unix()})
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.poll(time.Second, jobs)
	b.See(time.Time{}, 0, msg.Planned{Stock: starts[:200]})
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := len(b.predicted); n > histories*3 {
		t.Errorf("%d histories", n)
	}
	if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > 300*100_000 {
		t.Errorf("%d bytes a job", used/100_000)
	} else {
		t.Logf("%d bytes a job in memory", used/100_000)
	}
	b.poll(time.Second, nil)
	all := b.records()
	if most := quota(64); len(all) > most+2 || len(all) < most {
		t.Errorf("%d records of one user, and at most %d wanted", len(all), most)
	}
	if last := all[len(all)-1]; last.Left == nil || last.Left.Jobs != 100_000+200-quota(64) {
		t.Errorf("%+v", last.Left)
	}
	runtime.KeepAlive(jobs)
}
