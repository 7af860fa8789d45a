package adopt

import (
	"fmt"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/slurmctl"
)

const alice, bob = 1001, 1002

// submitted returns a core that sees 500 new jobs of bob, and then one each of seven other users, alice first. The poll
// has taken some time.
func submitted(poll time.Duration, comment string) (*state.Core, *state.Snapshot) {
	c := statetest.NewCore(config.Default(), statetest.Start)
	c.Pace.Begun, c.Pace.Ended = c.Now.Add(-poll), c.Now
	s := &state.Snapshot{Taken: c.Now, Nodes: []slurmctl.Node{{Name: "n1"}, {Name: "n2"}}, ByID: map[slurmctl.JobID]*slurmctl.Job{}}
	for i := range 507 {
		uid := bob
		if i >= 500 {
			uid = alice + 10*(i-500)
		}
		s.Jobs = append(s.Jobs, slurmctl.Job{ID: slurmctl.JobID(i + 1), Display: fmt.Sprint(i + 1), ArrayTasks: 1, UID: uint32(uid), State: slurmctl.Pending,
			StartTime: c.Now.Add(Parked), SubmitTime: c.Now, Comment: comment})
	}
	return c, s
}

// TestReadsAreShared checks that a user with many new jobs leaves slots for all others while slurmctld is slow.
func TestReadsAreShared(t *testing.T) {
	c, s := submitted(20*time.Second, "evo:v2;p=2@1m,1@1m;;")
	Adopt(c, s)
	of := map[uint32]int{}
	for _, r := range c.Work.Reads {
		of[r.UID]++
	}
	if of[bob] != 2 || of[alice] != 1 || len(c.Work.Reads) != 8 {
		t.Errorf("requests are read at once: %v", of)
	}
	if !c.Work.Room() {
		t.Error("there is no room for a shrink")
	}
}

// end ends all tasks without an answer.
func end(c *state.Core) {
	for id, p := range c.Work.Pending {
		c.Work.TakeBack(id)
		delete(c.Work.Pending, id)
		c.Finish(nil, p, nil)
	}
}

// TestReadsInTurns checks that a user whose job has no room goes first in the next cycle.
func TestReadsInTurns(t *testing.T) {
	c, s := submitted(20*time.Second, "evo:v2;p=2@1m,1@1m;;")
	Adopt(c, s)
	end(c)
	last := s.Jobs[len(s.Jobs)-1]
	if c.Asked[last.ID] != nil {
		t.Fatal("the last user's job had room at once")
	}
	Adopt(c, s)
	if c.Asked[last.ID] == nil {
		t.Error("the last user's job is not read in the second turn")
	}
}

// TestPromptReads checks that reads leave room for others even if they have begun before slurmctld became slow.
func TestPromptReads(t *testing.T) {
	c, s := submitted(10*time.Millisecond, "evo:v2;p=2@1m,1@1m;;")
	Adopt(c, s)
	if n := len(c.Work.Reads); n != 16 {
		t.Errorf("%d requests are read at once, want all slots used", n)
	}
	if !c.Work.Room() {
		t.Error("there is no room for a shrink")
	}
	if c.RoomToRead(alice) {
		t.Error("there is room for one more read")
	}
}

// TestTwoScripts checks that two scripts are read at once, however fast slurmctld is.
func TestTwoScripts(t *testing.T) {
	for _, poll := range []time.Duration{0, 20 * time.Second} {
		c, s := submitted(poll, "evo:v2;script;;")
		Adopt(c, s)
		if n := len(c.Work.Reads); n != 2 {
			t.Errorf("polls take %v: %d scripts are read at once, want 2", poll, n)
		}
		end(c)
		Adopt(c, s)
		if c.Scripts[501] == nil {
			t.Errorf("polls take %v: alice's script is not read in the second turn", poll)
		}
	}
}
