package adopt

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestAdopted checks which Slurm jobs are taken for evolving ones, and which are refused, by the words that evosqueue
// shows. The request of a job has been read, and its user is known.
func TestAdopted(t *testing.T) {
	const marked = "evo:v2;p=1@10m,2@10m;;"
	for name, c := range map[string]struct {
		comment string
		change  func(b *statetest.Bench, r *slurmctl.Job)
		want    string // what it is adopted as, or why it is refused; "": neither
	}{
		"a marked job":                 {marked, nil, "1@10m,2@10m by merge"},
		"a companion by its own wish":  {"evo:v2;p=1@10m,2@10m;d=companion;;", nil, "1@10m,2@10m by companion"},
		"a stock job":                  {"", nil, ""},
		"a comment of its user":        {"my evo job", nil, ""},
		"it runs already":              {marked, func(_ *statetest.Bench, r *slurmctl.Job) { r.State, r.NodeList = slurmctl.Running, []string{"n1"} }, "1@10m,2@10m by merge"},
		"its nodes are coming up":      {marked, func(_ *statetest.Bench, r *slurmctl.Job) { r.State = slurmctl.Configuring }, "1@10m,2@10m by merge"},
		"it is completing":             {marked, func(_ *statetest.Bench, r *slurmctl.Job) { r.State = slurmctl.Completing }, ""},
		"it has ended":                 {marked, func(_ *statetest.Bench, r *slurmctl.Job) { r.State = slurmctl.Completed }, ""},
		"several tasks":                {marked, func(_ *statetest.Bench, r *slurmctl.Job) { r.ArrayTasks = 2 }, ""},
		"a task of an array":           {marked, func(_ *statetest.Bench, r *slurmctl.Job) { r.Display, r.ArrayJobID = "7_1", 7 }, "1@10m,2@10m by merge"},
		"the task with the array's ID": {marked, func(_ *statetest.Bench, r *slurmctl.Job) { r.Display, r.ArrayJobID = fmt.Sprintf("%d_1", r.ID), r.ID }, "1@10m,2@10m by companion"},
		"a task of a limited array": {marked, func(b *statetest.Bench, r *slurmctl.Job) {
			r.Display, r.ArrayJobID = "7_1", 7
			b.Arrays[7] = state.Array{Most: 2}
		}, "1@10m,2@10m by companion"},
		"of a heterogeneous job":        {marked, func(_ *statetest.Bench, r *slurmctl.Job) { r.Heterogenous = true }, "refused: heterogeneous jobs cannot be planned yet: submit each component with evosbatch"},
		"in a reservation":              {marked, in("course", slurmctl.Pending), "1@10m,2@10m by merge in course"},
		"in a reservation and a hold":   {marked, in("evo_9_1_1,course", slurmctl.Pending), "1@10m,2@10m by merge in course"},
		"in one that overlaps":          {marked, in("over", slurmctl.Pending), inCourse("over", "reservation over has the flag OVERLAP: other reservations keep none of its jobs off their nodes")},
		"in one with an unknown flag":   {marked, in("daily", slurmctl.Pending), inCourse("daily", "reservation daily has the flag DAILY, with which its jobs cannot be planned yet")},
		"in one without nodes":          {marked, in("none", slurmctl.Pending), inCourse("none", "reservation none has no nodes")},
		"in one of several users":       {marked, in("shared", slurmctl.Pending), inCourse("shared", "reservation shared is not for user user alone, and while nodes of it are held, Slurm would refuse larger jobs of its other users")},
		"in one that is gone":           {marked, in("gone", slurmctl.Pending), inCourse("gone", "it is not there any more")},
		"in two":                        {marked, in("course,over", slurmctl.Pending), inCourse("course,over", "a job evolves in one reservation only")},
		"a chain in one":                {"evo:v2;p=1@10m;d=chain;i=1;;", in("course", slurmctl.Pending), inCourse("course", "the steps of a chain cannot be planned in a reservation yet")},
		"it runs in one that overlaps":  {marked, in("over", slurmctl.Running), "1@10m,2@10m by merge"},
		"in a hold":                     {marked, in("evo_9_1_1", slurmctl.Pending), "1@10m,2@10m by merge"},
		"in a hold that is deleted":     {marked, in("evo_9_1_2", slurmctl.Pending), "1@10m,2@10m by merge"},
		"a hold by its name only":       {marked, in("evo_9_1_3", slurmctl.Pending), inCourse("evo_9_1_3", "it has the name of a hold")},
		"it runs in a reservation":      {marked, in("course", slurmctl.Running), "1@10m,2@10m by merge in course"},
		"a partition without such jobs": {marked, func(b *statetest.Bench, _ *slurmctl.Job) { b.Config.Partitions = []string{"other"} }, ""},
		"one of its partitions has them": {marked, func(b *statetest.Bench, r *slurmctl.Job) {
			b.Config.Partitions = []string{"main"}
			r.Partition = "other,main"
		}, "1@10m,2@10m by merge"},
		"its user is denied":               {marked, func(b *statetest.Bench, _ *slurmctl.Job) { b.Config.Deny.Users = []string{"user"} }, "refused: this site denies evolving jobs to user user (deny.users): submit it with sbatch, or ask your site's administrators"},
		"its user is denied, and not read": {marked, func(b *statetest.Bench, _ *slurmctl.Job) { b.Config.Deny.Users = []string{"user"}; delete(b.Asked, 9) }, "refused: this site denies evolving jobs to user user (deny.users): submit it with sbatch, or ask your site's administrators"},
		"its user is in an allowed group": {marked, func(b *statetest.Bench, _ *slurmctl.Job) {
			b.Config.Allow.Groups = []string{"a", "b"}
			b.Asked[9].Groups = []string{"b"}
		}, "1@10m,2@10m by merge"},
		"its user is in no allowed group": {marked, func(b *statetest.Bench, _ *slurmctl.Job) { b.Config.Allow.Groups = []string{"a", "b"} }, "refused: this site allows evolving jobs to some users, and user user is not one of them (allow.users, allow.groups): submit it with sbatch, or ask your site's administrators"},
		"one of its partitions is denied": {marked, func(b *statetest.Bench, r *slurmctl.Job) {
			b.Config.Deny.Partitions = []string{"other"}
			r.Partition = "main,other"
		}, "refused: this site denies evolving jobs to partition other (deny.partitions): submit it with sbatch, or ask your site's administrators"},
		"a denied user's stock job": {"", func(b *statetest.Bench, _ *slurmctl.Job) { b.Config.Deny.Users = []string{"user"} }, ""},
		"it ended the sidecar before": {marked, func(b *statetest.Bench, r *slurmctl.Job) {
			b.Aside[9] = msg.Aside{Job: 9, Submitted: r.SubmitTime, Why: "no"}
		}, "refused: set aside: no"},
		"its number did, for another job": {marked, func(b *statetest.Bench, r *slurmctl.Job) {
			b.Aside[9] = msg.Aside{Job: 9, Submitted: r.SubmitTime.Add(-time.Second), Why: "no"}
		}, "1@10m,2@10m by merge"},
		"it was refused before": {marked, func(b *statetest.Bench, _ *slurmctl.Job) {
			b.Refused[9] = state.Refused{Job: api.Job{ID: 9, Reason: "before"}}
		}, "before"},
		"its user is not known":              {marked, func(b *statetest.Bench, _ *slurmctl.Job) { b.Asked[9].UserErr = errors.New("no such user") }, "refused: no such user"},
		"its request is not understood":      {marked, func(b *statetest.Bench, _ *slurmctl.Job) { b.Asked[9].Err = errors.New("garbled") }, "refused: garbled"},
		"its request is not read yet":        {marked, func(b *statetest.Bench, _ *slurmctl.Job) { delete(b.Asked, 9) }, ""},
		"its claim is all nodes":             {"evo:v2;p=1@10m;g=4;;", nil, "1@10m by merge"},
		"its claim is more":                  {"evo:v2;p=1@10m;g=5;;", nil, "refused: its claim (--max-nodes) is 5 nodes, and the cluster has 4: ask for fewer"},
		"a claim below its profile":          {"evo:v2;p=1@10m,3@10m;g=2;;", nil, "refused: "},
		"a marker that is cut off":           {"evo:v2;p=1@10m,2@1", nil, "refused: damaged marker: it has no end"},
		"a marker with a wrong profile":      {"evo:v2;p=0@10m;;", nil, "refused: "},
		"a marker with an unknown field":     {"evo:v2;p=1@10m;!=1;;", nil, "refused: "},
		"a step of more nodes than any":      {"evo:v2;p=2147483648@10m;;", nil, "refused: "},
		"a step that lasts too long":         {"evo:v2;p=1@9223372036854775807;;", nil, "refused: "},
		"merge where it cannot work":         {"evo:v2;p=1@10m,2@10m;d=merge;;", func(b *statetest.Bench, _ *slurmctl.Job) { b.MayUpdate(false) }, "refused: drive mode merge cannot work here: "},
		"it shrinks where that cannot work":  {"evo:v2;p=2@10m,1@10m;;", func(b *statetest.Bench, _ *slurmctl.Job) { b.MayUpdate(false) }, "refused: "},
		"it runs with a companion":           {marked, beside(1000, false), "1@10m,2@10m by companion"},
		"it runs as it is about to merge":    {marked, beside(1000, true), "1@10m,2@10m by merge"},
		"another user's job is named as one": {marked, beside(2000, false), "1@10m,2@10m by merge"},
		"a queued job larger than its step":  {marked, func(_ *statetest.Bench, r *slurmctl.Job) { r.NumNodes, r.StartTime = 2, time.Time{} }, "refused: it asks Slurm for 2 nodes, and the first step of its profile has 1: submit it by evosbatch, or with --nodes=1"},
		"a chain on blocks":                  {"evo:v2;p=1@10m;d=chain;i=1;;", func(b *statetest.Bench, _ *slurmctl.Job) { b.Topology.Blocks = true }, "refused: the steps of a chain cannot be planned on blocks yet (topology/block): submit it without --drive=chain"},
		"a chain of one or two jobs":         {"evo:v2;p=1@10m|1@5m,1@5m;d=chain;i=1;;", nil, "refused: --drive=chain: every step is a Slurm job, so all alternatives need as many steps as the first: 1, not the 2 of alternative 2"},
		"a link without its first job":       {"evo:v2;p=1@10m,2@10m;d=chain;i=1;;", nil, ""}, // evosbatch is still at it
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 4)
			b.Drive, b.DriveReason = "merge", "all is there"
			r := b.Stock(9, 1, 1, time.Hour)
			r.UID, r.User, r.Comment, r.StartTime = 1000, "user", c.comment, b.Now.Add(Parked)
			b.Asked[9] = &state.RequestRead{Known: true, User: &slurmctl.User{Name: "user", UID: 1000}}
			b.Scripts[9] = &state.Script{Known: true} // it asks for nothing
			if c.change != nil {
				c.change(b, r)
			}
			Adopt(b.Core, b.Seen)
			got := b.Refused[9].Reason
			for _, j := range b.Active {
				if got += fmt.Sprintf("%s by %s", j.Profile, j.Drive); j.Reservation != "" {
					got += " in " + j.Reservation
				}
			}
			if got != c.want && (!strings.HasSuffix(c.want, ": ") || !strings.HasPrefix(got, c.want)) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func inCourse(name, why string) string {
	return fmt.Sprintf("refused: it asks for reservation %s: %s; submit it without, or by evosbatch --rigid as an ordinary job", name, why)
}

// in has a job ask for reservations, beside a hold and a reservation that only has such a name.
func in(list string, st slurmctl.JobState) func(b *statetest.Bench, r *slurmctl.Job) {
	return func(b *statetest.Bench, r *slurmctl.Job) {
		r.Reservation, r.State = list, st
		if st == slurmctl.Running {
			r.NodeList = []string{"n1"}
		}
		for name, flags := range map[string][]string{"course": nil, "evo_9_1_1": {"IGNORE_JOBS", "OVERLAP"}, "evo_9_1_3": nil, "over": {"SPEC_NODES", "OVERLAP"},
			"daily": {"DAILY"}, "none": {"PURGE_COMP=00:05:00"}, "shared": nil} {
			one := slurmctl.Reservation{Name: name, Flags: flags, Nodes: []string{"n1", "n2"}, Users: []string{"user"}}
			switch name {
			case "none":
				one.Nodes = nil
			case "shared":
				one.Users = append(one.Users, "other")
			}
			b.Reservations[name], b.Seen.Reservations[name] = one, one
		}
	}
}

// beside has a job run on n1, and a user's expander of it on n2.
func beside(uid uint32, merge bool) func(b *statetest.Bench, r *slurmctl.Job) {
	return func(b *statetest.Bench, r *slurmctl.Job) {
		r.State, r.NodeList = slurmctl.Running, []string{"n1"}
		k := b.StockRuns(10, "n2", time.Hour)
		k.UID, k.Name, k.Comment = uid, "evo_9_2_1", slurm.ExpanderComment(9, 2, merge)
	}
}

// TestLeaves checks what becomes of a refused job after give_up, which is ten minutes here.
func TestLeaves(t *testing.T) {
	const letGo = `update 9 start=now comment=Evoslurm does not drive this job: refused: no`
	for name, c := range map[string]struct {
		policy config.Undriven
		change func(b *statetest.Bench, r *slurmctl.Job)
		after  time.Duration
		want   string
	}{
		"a second too early": {config.UndrivenRelease, nil, 10*time.Minute - time.Second, ""},
		"it is released":     {config.UndrivenRelease, nil, 10 * time.Minute, letGo},
		"it is cancelled":    {config.UndrivenCancel, nil, 10 * time.Minute, "cancel [9]"},
		"it is kept":         {config.UndrivenKeep, nil, 10 * time.Hour, ""},
		"it runs":            {config.UndrivenCancel, func(_ *statetest.Bench, r *slurmctl.Job) { r.State = slurmctl.Running }, 10 * time.Minute, ""},
		"its user holds it":  {config.UndrivenRelease, func(_ *statetest.Bench, r *slurmctl.Job) { r.Priority = 0 }, 10 * time.Minute, letGo},
		"Slurm has lost it":  {config.UndrivenRelease, func(b *statetest.Bench, _ *slurmctl.Job) { delete(b.Seen.ByID, 9) }, 10 * time.Minute, ""},
		"a text that mimics marker": {config.UndrivenRelease, func(b *statetest.Bench, _ *slurmctl.Job) {
			in := b.Refused[9]
			in.Reason = "evo:v2;p=1@1m;;"
			b.Refused[9] = in
		}, 10 * time.Minute, "update 9 start=now comment=Evoslurm does not drive this job: evo v2;p=1@1m;;"},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 4)
			b.Config.Undriven, b.Config.GiveUp = c.policy, 10*time.Minute
			r := b.Stock(9, 1, 1, time.Hour)
			r.Comment, r.StartTime = "evo:v2;p=1@1m;;", b.Now.Add(Parked)
			Refuse(b.Core, r, errors.New("no"))
			b.Tasks()
			if c.change != nil {
				c.change(b, r)
			}
			b.Later(c.after)
			LeaveRefused(b.Core, b.Seen)
			if got := strings.Join(b.Tasks(), "; "); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			b.Later(time.Second)
			if LeaveRefused(b.Core, b.Seen); c.want != "" && len(b.Tasks()) > 0 {
				t.Error("it is tried again at once")
			}
		})
	}
}

// TestRefusalsShareEvents checks that one user's refused markers do not fill the event log or the log, and that another
// user's refusal is written.
func TestRefusalsShareEvents(t *testing.T) {
	b := statetest.New(t, 4)
	refuse := func(id slurmctl.JobID, uid uint32) {
		Refuse(b.Core, &slurmctl.Job{ID: id, UID: uid}, errors.New("junk"))
	}
	for id := range slurmctl.JobID(3000) {
		refuse(10+id, alice)
	}
	refuse(9, bob)
	events, lines := b.Told()
	if want := state.UserEvents + 1; events != want || lines != want || len(b.Refused) != 3001 {
		t.Errorf("%d events and %d lines, want %d each; %d jobs are refused", events, lines, want, len(b.Refused))
	}
	b.Effects = nil
	b.Later(state.UserEvery)
	state.UnmuteAll(b.Core)
	last, _ := b.Effects[0].(msg.AddEvent)
	if left := last.Detail.(map[string]any)["suppressed"]; left != 3000-state.UserEvents-1 || len(b.MutedOf) != 0 {
		t.Errorf("before the last refusal, %v were left out", left)
	}
}

// TestTriesShareWarnings checks that tries that fail for one user's jobs, each with another error, do not fill the log.
func TestTriesShareWarnings(t *testing.T) {
	for name, settle := range map[string]func(c *state.Core, id slurmctl.JobID, o msg.Outcome){
		"reading requests": func(c *state.Core, id slurmctl.JobID, o msg.Outcome) {
			SettleRequest(c, nil, &state.Pending{Task: msg.Task{Command: msg.ReadRequest{Job: id}}, Args: state.Args{UID: alice}}, o)
		},
		"releasing jobs": func(c *state.Core, id slurmctl.JobID, o msg.Outcome) {
			c.Refused[id] = state.Refused{Job: api.Job{ID: uint32(id), UID: alice}}
			SettleLeave(c, nil, &state.Pending{Args: state.Args{Of: id}}, o)
		},
	} {
		b := statetest.New(t, 4)
		for id := range slurmctl.JobID(1000) {
			settle(b.Core, 10+id, msg.Outcome{Err: fmt.Errorf("no %d", id)})
		}
		if n := len(b.Effects); n != state.UserEvents {
			t.Errorf("%s: %d lines, want %d", name, n, state.UserEvents)
		}
	}
}
