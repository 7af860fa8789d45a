package release_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/drive"
	"github.com/evoslurm/evoslurm/adapter/sidecar/release"
	"github.com/evoslurm/evoslurm/slurmctl"
)

var now = time.Unix(1790000000, 0)

// TestFind: what is ours is let go, and what only looks like it is not: a reservation without the flags of holds, a job
// with the name of another user's expander, and arrays.
func TestFind(t *testing.T) {
	const marker, mark = "evo:v2;p=2@10m,5@30m;;", request.ExpanderMark
	parked := now.Add(10 * 365 * 24 * time.Hour)
	holds := []slurmctl.Reservation{
		{Name: "evo_1_2_1", Nodes: []string{"n3"}, Flags: []string{"IGNORE_JOBS", "OVERLAP"}},
		{Name: "evo_9_9_9", Nodes: []string{"n4"}, Flags: []string{"MAINT"}}, // an administrator's
		{Name: "maintenance", Nodes: []string{"n5"}},
	}
	pending := func(comment string) slurmctl.Job {
		return slurmctl.Job{ID: 7, UID: 1000, User: "ann", State: slurmctl.Pending, NumNodes: 2, Priority: 5, Comment: comment, StartTime: parked}
	}
	with := func(j slurmctl.Job, change func(*slurmctl.Job)) slurmctl.Job { change(&j); return j }
	running := slurmctl.Job{ID: 1, UID: 1000, User: "ann", State: slurmctl.Running, NodeList: []string{"n1"}, Comment: marker, StartTime: now.Add(-time.Hour), EndTime: now.Add(time.Hour)}
	companion := slurmctl.Job{ID: 2, UID: 1000, User: "ann", Name: "evo_1_2_1", Comment: mark, State: slurmctl.Running, NodeList: []string{"n2"}, EndTime: now.Add(time.Hour)}
	gone := []string{"hold evo_1_2_1 on n3: given up: give up evo_1_2_1"}
	const letGo = "comment=Evoslurm let this job go: it is an ordinary job now"
	for _, c := range []struct {
		name  string
		jobs  []slurmctl.Job
		drain config.Drain
		want  []string
	}{
		{"nothing else", nil, "release", nil},
		{"a stock job", []slurmctl.Job{pending("my own")}, "release queued=cancel", nil},
		{"parked", []slurmctl.Job{pending(marker)}, "release", []string{"queued 7: let go with the nodes of its first step: update 7 start=now " + letGo}},
		{"parked, at its peak", []slurmctl.Job{pending(marker)}, "release as=peak", []string{"queued 7: let go with the 5 nodes of its largest step: update 7 start=now nodes=5 " + letGo + " as uid 1000"}},
		{"a link of a chain, at its peak", []slurmctl.Job{pending("evo:v2;p=2@10m,5@30m;d=chain;i=2;f=6;;")}, "release as=peak", []string{"queued 7: let go with the nodes of its first step: update 7 start=now " + letGo}},
		{"parked, held", []slurmctl.Job{pending(marker)}, "release queued=hold", []string{"queued 7: held (scontrol release starts it): update 7 start=now hold"}},
		{"held before", []slurmctl.Job{with(pending(marker), func(j *slurmctl.Job) { j.Priority, j.StartTime = 0, now })}, "release queued=hold", nil},
		{"parked, cancelled", []slurmctl.Job{pending(marker)}, "release queued=cancel", []string{"queued 7: cancelled: cancel [7]"}},
		{"let go before", []slurmctl.Job{with(pending(request.LetGo(marker)), func(j *slurmctl.Job) { j.StartTime = now })}, "release queued=cancel", nil},
		{"let go before, and parked again", []slurmctl.Job{pending(request.LetGo(marker))}, "release", []string{"queued 7: let go with the nodes of its first step: update 7 start=now"}},
		{"a damaged marker", []slurmctl.Job{pending("evo:v2;p=;;")}, "release", []string{"queued 7: let go with the nodes of its first step: update 7 start=now comment=evo v2;p=; Evoslurm let this job go: it is an ordinary job now"}},
		{"an array", []slurmctl.Job{with(pending(marker), func(j *slurmctl.Job) { j.ArrayTasks = 3 })}, "release",
			[]string{"queued 7: let go with the nodes of its first step: update 7 start=now comment=Evoslurm let this job go: it is an ordinary job now"}},
		{"an intruder in a hold", []slurmctl.Job{with(pending(""), func(j *slurmctl.Job) { j.Reservation = "evo_1_2_1,maintenance" })}, "release",
			[]string{"queued 7: taken out of a hold that is not for it: update 7 reservation=maintenance", "+hold"}},
		{"in an administrator's reservation", []slurmctl.Job{with(pending(""), func(j *slurmctl.Job) { j.Reservation = "evo_9_9_9" })}, "release", nil},
		{"running with a companion", []slurmctl.Job{running, companion}, "release", []string{"running 1 on n1: keeps its nodes, as an ordinary job: update 1 " + letGo, "companion 2 evo_1_2_1 on n2: stays"}},
		{"a companion that may last longer", []slurmctl.Job{running, with(companion, func(j *slurmctl.Job) { j.EndTime = now.Add(2 * time.Hour) })}, "release",
			[]string{"running 1 on n1: keeps its nodes, as an ordinary job: update 1 " + letGo, "companion 2 evo_1_2_1 on n2: stays: update 2 "}},
		{"a companion without its job", []slurmctl.Job{companion}, "release", []string{"companion 2 evo_1_2_1 on n2: ended: its job has ended: cancel [2]"}},
		{"an expander that waits", []slurmctl.Job{running, with(companion, func(j *slurmctl.Job) { j.State, j.NodeList = slurmctl.Pending, nil })}, "release",
			[]string{"running 1 on n1: keeps its nodes, as an ordinary job: update 1 " + letGo, "companion 2 evo_1_2_1: cancelled: cancel [2]"}},
		{"another user's name", []slurmctl.Job{running, with(companion, func(j *slurmctl.Job) { j.UID, j.User = 1001, "bob" })}, "release",
			[]string{"running 1 on n1: keeps its nodes, as an ordinary job: update 1 " + letGo}},
		{"a name without the mark", []slurmctl.Job{with(companion, func(j *slurmctl.Job) { j.Comment = "" })}, "release", nil},
	} {
		d, err := c.drain.Parse()
		if err != nil {
			t.Fatal(err)
		}
		var got, want []string
		for _, f := range release.Find(release.Site{Jobs: c.jobs, Reservations: holds, Self: "root", Root: true, Now: now}, d) {
			got = append(got, f.Text())
		}
		for _, w := range c.want {
			if w == "+hold" {
				want = append(want, "hold evo_1_2_1 on n3: given up: give up evo_1_2_1, without job 7")
			} else {
				want = append(want, w)
			}
		}
		if len(want) == 0 || want[len(want)-1] != "hold evo_1_2_1 on n3: given up: give up evo_1_2_1, without job 7" {
			want = append(want, gone...)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// stopped is a Slurm in which user 1000 stops what runs in the user's name.
type stopped struct {
	drive.Slurm
	tries int
}

func (s *stopped) UpdateJob(_ context.Context, _ slurmctl.JobID, u slurmctl.JobUpdate) error {
	if u.As != nil && u.As.UID == 1000 {
		s.tries++
		return context.DeadlineExceeded
	}
	return nil
}

func (s *stopped) LookupUser(uid uint32) (*slurmctl.User, error) {
	return &slurmctl.User{UID: uid}, nil
}

// TestDoOfStopped: a user who stops the commands that run in the user's name delays others only once.
func TestDoOfStopped(t *testing.T) {
	site := release.Site{Self: "root", Root: true, Now: now}
	for i := range 5 {
		site.Jobs = append(site.Jobs, slurmctl.Job{ID: slurmctl.JobID(i + 1), UID: 1000 + uint32(i/4), State: slurmctl.Pending, NumNodes: 2, Priority: 5, Comment: "evo:v2;p=2@10m,5@30m;;", StartTime: now.Add(time.Hour)})
	}
	d, _ := config.Drain("release as=peak").Parse()
	slurm, first := &stopped{}, 0
	release.Do(t.Context(), drive.New(slurm, time.Now), release.Find(site, d), func(t release.Thing) {
		if t.Error == "" && strings.Contains(t.Does, "first step") {
			first++
		}
	})
	if slurm.tries != 1 || first != 4 {
		t.Errorf("%d commands in the name of the user, %d jobs with the nodes of their first steps", slurm.tries, first)
	}
}
