package slurmsim_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

var features = []feature{
	{"a job starts, ends by itself and is remembered", func(w *world) {
		id := w.start(slurmsim.Job{Nodes: 2, Lasts: 2 * time.Second})
		j := w.until(id, slurmctl.Running)
		w.on(j, "n1", "n2")
		if j.BatchHost != "n1" || !j.Exclusive || !j.EndTime.Equal(j.StartTime.Add(20*time.Minute)) {
			w.Errorf("%+v", j)
		}
		w.until(id, slurmctl.Completed)
		failed := w.start(slurmsim.Job{Nodes: 1, Lasts: time.Second, ExitCode: 3})
		if j := w.until(failed, slurmctl.Failed); j.ExitCode != 3 {
			w.Errorf("exit code %d", j.ExitCode)
		}
	}},
	{"whole nodes are shared with nobody, others are", func(w *world) {
		whole := w.start(slurmsim.Job{Nodes: 7})
		w.on(w.until(whole, slurmctl.Running), "n1", "n2", "n3", "n4", "n5", "n6", "n7")
		a, b := w.start(slurmsim.Job{Nodes: 1, CPUs: 2}), w.start(slurmsim.Job{Nodes: 1, CPUs: 2})
		w.on(w.until(a, slurmctl.Running), "n8")
		w.on(w.until(b, slurmctl.Running), "n8")
		c := w.start(slurmsim.Job{Nodes: 1, CPUs: 1})
		w.until(c, slurmctl.Pending, "Resources")
		d := w.start(slurmsim.Job{Nodes: 1})
		w.until(d, slurmctl.Pending, "Priority")
		w.must(w.Cancel(w.ctx, whole))
		w.until(whole, slurmctl.Cancelled)
		w.until(d, slurmctl.Running)
	}},
	{"a smaller job is filled in, where it delays nobody", func(w *world) {
		w.until(w.start(slurmsim.Job{Nodes: 6, TimeLimit: 5 * time.Minute}), slurmctl.Running)
		wide := w.start(slurmsim.Job{Nodes: 8, TimeLimit: 5 * time.Minute})
		w.until(wide, slurmctl.Pending, "Resources")
		long := w.start(slurmsim.Job{Nodes: 2, TimeLimit: 30 * time.Minute})
		short := w.start(slurmsim.Job{Nodes: 2, TimeLimit: 2 * time.Minute})
		w.until(short, slurmctl.Running)
		w.stays(long, slurmctl.Pending)
	}},
	{"begin times and holds", func(w *world) {
		parked := w.start(slurmsim.Job{Nodes: 1, Begin: w.now().Add(24 * time.Hour)})
		held := w.start(slurmsim.Job{Nodes: 1, Held: true})
		w.until(parked, slurmctl.Pending, "BeginTime")
		if j := w.job(held); !j.Held() || j.Reason != "JobHeldUser" {
			w.Errorf("held: %+v", j)
		}
		start := w.now().Add(333 * time.Second).Truncate(time.Second)
		w.must(w.UpdateJob(w.ctx, parked, slurmctl.JobUpdate{StartTime: start}))
		if j := w.job(parked); !j.StartTime.Equal(start) || j.Held() {
			w.Errorf("asked for %v: %+v", start, j)
		}
		w.must(w.UpdateJob(w.ctx, parked, slurmctl.JobUpdate{StartNow: true}))
		w.must(w.Release(w.ctx, held))
		w.until(parked, slurmctl.Running)
		w.until(held, slurmctl.Running)
		w.is("a start time of a running job", w.UpdateJob(w.ctx, parked, slurmctl.JobUpdate{StartNow: true}), slurmctl.ErrNotPending)
	}},
	{"dependencies", func(w *world) {
		first := w.start(slurmsim.Job{Nodes: 1, Lasts: 3 * time.Second})
		then := w.start(slurmsim.Job{Nodes: 1, After: []slurmsim.Dependency{{Kind: "afterok", Job: first}}})
		never := w.start(slurmsim.Job{Nodes: 1, After: []slurmsim.Dependency{{Kind: "afternotok", Job: first}}})
		w.until(then, slurmctl.Pending, "Dependency")
		w.until(then, slurmctl.Running)
		w.until(never, slurmctl.Pending, "DependencyNeverSatisfied")
		ends := w.start(slurmsim.Job{Nodes: 1, After: []slurmsim.Dependency{{Kind: "afternotok", Job: first}}, KillOnInvalidDep: true, Begin: w.now().Add(time.Hour)})
		w.until(ends, slurmctl.Cancelled)
	}},
	{"an array is one record until its tasks start", func(w *world) {
		id := w.start(slurmsim.Job{Nodes: 1, Array: 3, Begin: w.now().Add(time.Hour)})
		if j := w.job(id); j.ArrayTasks != 3 {
			w.Errorf("%+v", j)
		}
		w.must(w.UpdateJob(w.ctx, id, slurmctl.JobUpdate{StartNow: true}))
		w.eventually("three tasks", func() error { return w.count(3, slurmctl.Running) })
	}},
	{"chosen and excluded nodes", func(w *world) {
		w.on(w.until(w.start(slurmsim.Job{Nodes: 2, NodeList: []string{"n7"}}), slurmctl.Running), "n7", "n8")
		w.on(w.until(w.start(slurmsim.Job{Nodes: 2, Exclude: []string{"n2", "n3"}}), slurmctl.Running), "n4", "n5")
		w.on(w.until(w.start(slurmsim.Job{Nodes: 3}), slurmctl.Running), "n1", "n2", "n3")
		if _, err := w.submit(slurmsim.Job{Nodes: 1, NodeList: []string{"nowhere"}}); err == nil {
			w.Error("a node that there is not is taken")
		}
	}},
	{"nobody starts on nodes that are reserved before the job's limit", func(w *world) {
		w.must(w.CreateReservation(w.ctx, slurmctl.ReservationRequest{Name: "site", Start: w.now().Add(5 * time.Minute), End: w.now().Add(time.Hour),
			Nodes: []string{"n1", "n2", "n3", "n4"}, Users: []string{"root"}}))
		w.on(w.until(w.start(slurmsim.Job{Nodes: 2, TimeLimit: 10 * time.Minute}), slurmctl.Running), "n5", "n6")
		w.on(w.until(w.start(slurmsim.Job{Nodes: 2, TimeLimit: 2 * time.Minute}), slurmctl.Running), "n7", "n8")
		wide := w.start(slurmsim.Job{Nodes: 3, TimeLimit: 10 * time.Minute})
		w.stays(wide, slurmctl.Pending)
	}},
	{"a requeued job is started again a second later", func(w *world) {
		id := w.start(slurmsim.Job{Nodes: 1, Lasts: 10 * time.Minute})
		w.until(id, slurmctl.Running)
		w.must(w.requeue(id))
		w.until(id, slurmctl.Pending)
		w.sleep(slurmctl.RegrowAfter)
		w.must(w.UpdateJob(w.ctx, id, slurmctl.JobUpdate{StartNow: true}))
		w.until(id, slurmctl.Running)
		w.sleep(2 * time.Second)
		if j := w.job(id); j.State != slurmctl.Running {
			w.Errorf("it is %s", j.State)
		}
	}},
	{"a reservation that has begun", func(w *world) {
		w.hold("evo_1_1_1", 0, "n6", "n7")
		users := []string{w.user.Name}
		w.must(w.UpdateReservation(w.ctx, "evo_1_1_1", slurmctl.ReservationUpdate{StartNow: true}))
		w.must(w.UpdateReservation(w.ctx, "evo_1_1_1", slurmctl.ReservationUpdate{StartNow: true, Users: users}))
		w.is("another start", w.UpdateReservation(w.ctx, "evo_1_1_1", slurmctl.ReservationUpdate{Start: w.now().Add(time.Hour)}), slurmctl.ErrReservationBegun)
		all, err := w.Reservations(w.ctx)
		w.must(err)
		for _, r := range all {
			if r.Name == "evo_1_1_1" && (!slices.Equal(r.Users, users) || r.Start.After(w.now())) {
				w.Errorf("it is %+v", r)
			}
		}
	}},
	{"reservations and those in their way", func(w *world) {
		busy := w.start(slurmsim.Job{Nodes: 2})
		w.on(w.until(busy, slurmctl.Running), "n1", "n2")
		q := slurmctl.ReservationRequest{Name: "site", Start: w.now().Add(time.Minute), End: w.now().Add(time.Hour), Nodes: []string{"n2", "n3"}, Users: []string{"root"}}
		w.is("nodes of a job", w.CreateReservation(w.ctx, q), slurmctl.ErrNodesBusy)
		q.Flags = []string{"IGNORE_JOBS"}
		w.must(w.CreateReservation(w.ctx, q))
		w.is("over another", w.CreateReservation(w.ctx, q), slurmctl.ErrReservationOverlap)
		q.Flags = append(q.Flags, "OVERLAP")
		w.is("twice", w.CreateReservation(w.ctx, q), slurmctl.ErrReservationExists)
		q.Name = "other"
		w.must(w.CreateReservation(w.ctx, q))
		w.is("unknown", w.DeleteReservation(w.ctx, "nowhere"), slurmctl.ErrUnknownReservation)
		w.must(w.DeleteReservation(w.ctx, "other"))
	}},
	{"a hold is changed: start, end, nodes", func(w *world) {
		w.hold("hold", 100*time.Second, "n1", "n2", "n5")
		end := w.now().Add(421 * time.Second).Truncate(time.Second)
		for _, u := range []slurmctl.ReservationUpdate{{Nodes: []string{"n1", "n2"}}, {End: end}, {StartNow: true}} {
			w.must(w.UpdateReservation(w.ctx, "hold", u))
		}
		all, err := w.Reservations(w.ctx)
		w.must(err)
		if r := all[0]; r.Start.After(w.now()) || !r.End.Equal(end) || !slices.Equal(r.Nodes, []string{"n1", "n2"}) || !r.Active {
			w.Errorf("%+v", r)
		}
	}},
	{"a parked job is let go in its hold and detached", func(w *world) {
		w.hold("hold", 0, "n4", "n6")
		id := w.start(slurmsim.Job{Nodes: 2, Begin: w.now().Add(24 * time.Hour)})
		hold, none := "hold", ""
		w.must(w.UpdateJob(w.ctx, id, slurmctl.JobUpdate{StartNow: true, Reservation: &hold}))
		w.on(w.until(id, slurmctl.Running), "n4", "n6")
		w.is("a hold in use", w.DeleteReservation(w.ctx, "hold"), slurmctl.ErrReservationInUse)
		w.must(w.UpdateJob(w.ctx, id, slurmctl.JobUpdate{Reservation: &none}))
		w.must(w.DeleteReservation(w.ctx, "hold"))
		w.on(w.job(id), "n4", "n6")
	}},
	{"jobs start in holds within their user's reservation, which keep its other jobs off", func(w *world) {
		w.must(w.CreateReservation(w.ctx, slurmctl.ReservationRequest{Name: "course", End: w.now().Add(time.Hour), Nodes: []string{"n1", "n2", "n3", "n4"}, Users: []string{w.user.Name}}))
		w.hold("hold", 0, "n3", "n4")
		id := w.start(slurmsim.Job{Nodes: 2, Begin: w.now().Add(24 * time.Hour), Reservation: "course"})
		both, back := "hold,course", "course"
		w.must(w.UpdateJob(w.ctx, id, slurmctl.JobUpdate{StartNow: true, Reservation: &both}))
		w.on(w.until(id, slurmctl.Running), "n3", "n4")
		w.must(w.UpdateJob(w.ctx, id, slurmctl.JobUpdate{Reservation: &back}))
		w.must(w.DeleteReservation(w.ctx, "hold"))
		w.hold("growth", 0, "n1")
		w.on(w.until(w.start(slurmsim.Job{Nodes: 1, Reservation: "course"}), slurmctl.Running), "n2")
		k, err := w.allocate(slurmctl.AllocateRequest{Nodes: 1, NodeList: []string{"n1"}, Reservation: "growth,course"})
		w.must(err)
		w.on(k, "n1")
		w.must(w.UpdateJob(w.ctx, k.ID, slurmctl.JobUpdate{Reservation: &back}))
		w.must(w.DeleteReservation(w.ctx, "growth"))
		if in := w.job(k.ID).Reservation; in != "course" {
			w.Errorf("it is in %q", in)
		}
	}},
	{"holds share nodes: a job starts in its own in spite of others' later ones", func(w *world) {
		w.hold("later", 3*time.Minute, "n1", "n2", "n3")
		w.hold("mine", 0, "n1", "n2")
		id := w.start(slurmsim.Job{Nodes: 2, Reservation: "mine"})
		w.on(w.until(id, slurmctl.Running), "n1", "n2")
	}},
	{"a job that others' holds keep out queues for nodes", func(w *world) {
		w.hold("others", 0, "n1", "n2", "n3", "n4", "n5", "n6")
		wide := w.start(slurmsim.Job{Nodes: 4})
		w.until(wide, slurmctl.Pending, "ReqNodeNotAvail, May be reserved for other job")
		w.on(w.until(w.start(slurmsim.Job{Nodes: 1}), slurmctl.Running), "n7")
		w.until(wide, slurmctl.Pending, "Resources")
	}},
	{"grow by merge, shrink, grow again", func(w *world) {
		base := w.start(slurmsim.Job{Nodes: 2})
		w.until(base, slurmctl.Running)
		w.hold("growth", 0, "n4", "n5", "n8")
		k, err := w.allocate(slurmctl.AllocateRequest{Nodes: 3, Reservation: "growth", ExpandJob: base})
		w.must(err)
		w.on(k, "n4", "n5", "n8")
		w.must(w.Merge(w.ctx, k.ID))
		w.on(w.job(base), "n1", "n2", "n4", "n5", "n8")
		w.until(k.ID, slurmctl.Completed)
		w.must(w.DeleteReservation(w.ctx, "growth"))
		w.is("the batch host", w.Shrink(w.ctx, base, []string{"n2", "n4"}), slurmctl.ErrNodeName)
		w.is("somebody else's node", w.Shrink(w.ctx, base, []string{"n1", "n3"}), slurmctl.ErrNodeName)
		w.must(w.Shrink(w.ctx, base, []string{"n1", "n8"}))
		w.on(w.job(base), "n1", "n8")
		k, err = w.allocate(slurmctl.AllocateRequest{Nodes: 1, NodeList: []string{"n3"}, ExpandJob: base})
		w.must(err)
		w.must(w.Merge(w.ctx, k.ID))
		w.on(w.job(base), "n1", "n3", "n8")
	}},
	{"no step starts on nodes that were taken from the job in the same second", func(w *world) {
		base := w.start(slurmsim.Job{Nodes: 2})
		w.until(base, slurmctl.Running)
		refused := func(err error) bool { return err != nil && strings.Contains(err.Error(), "Job credential revoked") }
		var err error
		for range 60 { // shrinking, growing, and starting the step may take longer
			w.sleep(time.Second - time.Duration(w.now().Nanosecond()))
			w.must(w.Shrink(w.ctx, base, []string{"n1"}))
			k, granted := w.allocate(slurmctl.AllocateRequest{Nodes: 1, NodeList: []string{"n2"}, ExpandJob: base})
			w.must(granted)
			w.must(w.Merge(w.ctx, k.ID))
			if err = w.step(base, "n2"); refused(err) {
				break
			}
		}
		if !refused(err) {
			w.Errorf("a step at once: %v", err)
		}
		w.sleep(time.Second)
		w.eventually("a step a second later", func() error { return w.step(base, "n2") })
	}},
	{"what cannot be expanded", func(w *world) {
		_, err := w.allocate(slurmctl.AllocateRequest{Nodes: 1, ExpandJob: 999999})
		w.is("no such job", err, slurmctl.ErrDependency)
		pending := w.start(slurmsim.Job{Nodes: 1, Begin: w.now().Add(time.Hour)})
		_, err = w.allocate(slurmctl.AllocateRequest{Nodes: 1, ExpandJob: pending})
		w.is("a pending job", err, slurmctl.ErrDependency)
		base := w.start(slurmsim.Job{Nodes: 1})
		w.until(base, slurmctl.Running)
		w.is("a job that expands none", w.Merge(w.ctx, base), slurmctl.ErrNodeCount)
		w.is("an unknown job", w.Merge(w.ctx, 999999), slurmctl.ErrUnknownJob)
	}},
	{"an expander that does not get its nodes is gone", func(w *world) {
		base := w.start(slurmsim.Job{Nodes: 6})
		w.until(base, slurmctl.Running)
		k, err := w.allocate(slurmctl.AllocateRequest{Nodes: 3, ExpandJob: base})
		if err == nil {
			w.Fatalf("3 of 2 nodes: %+v", k)
		}
		if k.ID == 0 {
			w.Fatal("its id is not known")
		}
		w.until(k.ID, slurmctl.Cancelled)
	}},
	{"a companion outlives a shrink of its own and is cancelled", func(w *world) {
		k, err := w.allocate(slurmctl.AllocateRequest{Nodes: 3, Name: "named"})
		w.must(err)
		for uid, want := range map[uint32]int{w.user.UID: 1, w.user.UID + 7: 0} {
			if found, err := w.Named(w.ctx, uid, k.Name); err != nil || len(found) != want || want > 0 && (found[0].ID != k.ID || found[0].State != slurmctl.Running) {
				w.Errorf("of uid %d: %+v, %v", uid, found, err)
			}
		}
		w.must(w.Shrink(w.ctx, k.ID, k.NodeList[1:])) // the batch host is missing
		w.on(w.job(k.ID), k.NodeList[1:]...)
		w.must(w.Cancel(w.ctx, k.ID))
		w.until(k.ID, slurmctl.Cancelled)
		w.must(w.Cancel(w.ctx, k.ID, 999999)) // a job that is gone is no error
		w.is("an ended job's update", w.UpdateJob(w.ctx, k.ID, slurmctl.JobUpdate{TimeLimit: time.Hour}), slurmctl.ErrAlreadyDone)
	}},
	{"a companion whose work is done is completed, and needs no step for that", func(w *world) {
		k, err := w.allocate(slurmctl.AllocateRequest{Nodes: 3})
		w.must(err)
		w.must(w.Complete(w.ctx, k.ID))
		w.until(k.ID, slurmctl.Completed)
		w.must(w.Complete(w.ctx, k.ID, 999999)) // a job that is gone is no error
	}},
	{"an expander lasts as long as its job", func(w *world) {
		base := w.start(slurmsim.Job{Nodes: 1, TimeLimit: 7 * time.Minute})
		j := w.until(base, slurmctl.Running)
		k, err := w.allocate(slurmctl.AllocateRequest{Nodes: 1, ExpandJob: base, TimeLimit: time.Hour})
		w.must(err)
		// whole minutes, rounded down
		if d := j.EndTime.Sub(k.EndTime); d < -5*time.Second || d > time.Minute+5*time.Second || k.TimeLimit%time.Minute != 0 {
			w.Errorf("the job ends at %v, its expander at %v", j.EndTime, k.EndTime)
		}
	}},
	{"time limits up; ends to the second", func(w *world) {
		id := w.start(slurmsim.Job{Nodes: 1})
		w.until(id, slurmctl.Running)
		w.must(w.UpdateJob(w.ctx, id, slurmctl.JobUpdate{TimeLimit: 46*time.Minute + time.Second}))
		if j := w.job(id); j.TimeLimit != 47*time.Minute {
			w.Errorf("time limit %v", j.TimeLimit)
		}
		end := w.now().Add(777 * time.Second).Truncate(time.Second)
		w.must(w.UpdateJob(w.ctx, id, slurmctl.JobUpdate{EndTime: end}))
		if j := w.job(id); !j.EndTime.Equal(end) {
			w.Errorf("end %v, want %v", j.EndTime, end)
		}
	}},
	{"a restart of slurmctld loses expand links", func(w *world) {
		base := w.start(slurmsim.Job{Nodes: 1})
		w.until(base, slurmctl.Running)
		k, err := w.allocate(slurmctl.AllocateRequest{Nodes: 1, ExpandJob: base})
		w.must(err)
		w.sleep(6 * time.Second) // by then slurmdbd has recorded both
		w.must(w.restart())
		w.is("a merge", w.Merge(w.ctx, k.ID), slurmctl.ErrNodeCount)
		w.until(base, slurmctl.Running)
		w.until(k.ID, slurmctl.Running)
	}},
	{"a suspended job ends later", func(w *world) {
		id := w.start(slurmsim.Job{Nodes: 1})
		before := w.until(id, slurmctl.Running)
		w.must(w.suspend(id))
		w.until(id, slurmctl.Suspended)
		w.sleep(3 * time.Second)
		w.must(w.resume(id))
		j := w.until(id, slurmctl.Running)
		if d := j.EndTime.Sub(before.EndTime); d < 2*time.Second || d > time.Minute {
			w.Errorf("suspended for 3 s it ends %v later", d)
		}
	}},
	{"what users may not do, and scripts", func(w *world) {
		id := w.start(slurmsim.Job{Nodes: 1})
		text, err := w.BatchScript(w.ctx, id)
		w.must(err)
		if len(text) < 9 || text[:2] != "#!" {
			w.Errorf("script %q", text)
		}
		k, err := w.allocate(slurmctl.AllocateRequest{Nodes: 1})
		w.must(err)
		if _, err := w.BatchScript(w.ctx, k.ID); err == nil {
			w.Error("an allocation has a script")
		}
	}},
}

// count checks that this many jobs are in a state.
func (w *world) count(want int, state slurmctl.JobState) error {
	jobs, err := w.Jobs(w.ctx)
	if err != nil {
		return err
	}
	n := 0
	for _, j := range jobs {
		if j.State == state {
			n++
		}
	}
	if n != want {
		return errCount{n, want, state}
	}
	return nil
}

// TestEqualRuns checks that the model is deterministic.
func TestEqualRuns(t *testing.T) {
	run := func() []slurmctl.Job {
		w := model(t)
		for i := range 40 {
			w.start(slurmsim.Job{Nodes: 1 + i*7%5, TimeLimit: time.Duration(1+i%9) * time.Minute, Lasts: time.Duration(5+i*13%50) * time.Second})
			w.sleep(time.Duration(i%4) * time.Second)
		}
		w.sleep(3 * time.Minute)
		var ids []slurmctl.JobID
		for i := range 40 {
			ids = append(ids, slurmctl.JobID(i+1))
		}
		jobs, err := w.JobsByID(w.ctx, ids...)
		w.must(err)
		return jobs
	}
	a, b := run(), run()
	for i := range a {
		if !a[i].StartTime.Equal(b[i].StartTime) || !slices.Equal(a[i].NodeList, b[i].NodeList) {
			t.Fatalf("%+v\n%+v", a[i], b[i])
		}
	}
}

// TestUnseenPlans checks that jobs run the same whether or not plans are watched.
func TestUnseenPlans(t *testing.T) {
	for seed := range uint64(20) {
		run := func(watched bool) (events []slurmsim.Event) {
			c := slurmsim.New(slurmsim.Options{Nodes: 64, CPUs: 1, Events: func(e slurmsim.Event) { events = append(events, e) }})
			if watched {
				c.Client(slurmsim.Root)
			}
			r := rand.New(rand.NewPCG(seed, 5))
			at := time.Duration(0)
			for range 200 {
				lasts := time.Duration(1+r.IntN(5000)) * time.Second
				q := slurmsim.Job{Script: "#!", Nodes: 1 + min(r.IntN(64), r.IntN(64), r.IntN(64)), Lasts: lasts, TimeLimit: lasts + time.Duration(r.IntN(3600))*time.Second}
				c.After(at, func() {
					if _, err := c.Submit(q); err != nil {
						t.Error(err)
					}
				})
				at += time.Duration(r.IntN(600)) * time.Second
			}
			for c.Step() {
			}
			return events
		}
		a, b := run(true), run(false)
		if len(a) != 400 {
			t.Fatalf("%d events", len(a))
		}
		for i := range a {
			if a[i] != b[i] {
				t.Fatalf("seed %d, event %d: %+v, with nobody looking %+v", seed, i, a[i], b[i])
			}
		}
	}
}
