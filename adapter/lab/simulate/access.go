package simulate

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// lists has an operator change who may have evolving jobs. It returns what becomes of refused jobs.
func lists(seed uint64) (*storming, string) {
	g := &storming{Rand: rand.New(rand.NewPCG(seed, 32))}
	for range 1 + g.IntN(4) {
		g.at(g.when(storm), "set %s", g.pick("deny.users=alice", "deny.users=bob", "deny.users=alice,bob", "deny.users=", "allow.users=alice,mallory", "allow.users=bob", "allow.users="))
	}
	return g, " undriven=" + g.pick("release", "release", "cancel", "keep")
}

// denied is a user whom the site's lists keep from evolving jobs.
type denied struct {
	life  int           // of the sidecar
	since time.Duration // of the cluster
	polls int           // since then
}

// deniedWithin is how long the sidecar may take to see that a list keeps a job out, and how many polls.
const (
	deniedWithin = time.Minute
	deniedPolls  = 3
)

// noteDenied records which users are denied, and how many polls the sidecar has had since.
func (h *history) noteDenied(inputs []msg.Input) {
	polls := 0
	for _, in := range inputs {
		if o, ok := in.(msg.Observation); ok && o.Err == nil {
			polls++
		}
	}
	for _, user := range []string{Alice.Name, Bob.Name} {
		d := h.denied[user]
		switch err := h.s.Config.MayEvolve(config.Names{Users: []string{user}}); {
		case err == nil:
			delete(h.denied, user)
		case d == nil || d.life != h.s.Life:
			h.denied[user] = &denied{life: h.s.Life, since: h.s.Cluster.Elapsed()}
		default:
			d.polls += polls
		}
	}
}

// checkAccess checks that no job of a denied user starts by the sidecar's will, or is granted more nodes.
func (h *history) checkAccess(inputs []msg.Input, effects []msg.Effect) {
	if h.noteDenied(inputs); len(h.denied) == 0 {
		return
	}
	for _, e := range effects {
		switch e := e.(type) {
		case msg.Task:
			if start, ok := e.Command.(msg.Start); ok {
				if j, known := h.s.Job(start.Job); known && j.Step == 0 && h.isDenied(j.User) {
					h.blame(fmt.Errorf("job %d of %s starts, whom a list keeps out", start.Job, j.User))
				}
			}
		case msg.AddEvent:
			asked, _ := e.Detail.(map[string]any)["asked"].(string)
			if j := h.s.Database.Jobs[e.Job].Job; e.Kind == "changed" && !strings.HasPrefix(asked, "shrink") && h.isDenied(j.User) {
				h.blame(fmt.Errorf("job %d of %s, whom a list keeps out, is granted %s", j.SlurmID, j.User, asked))
			}
		}
	}
}

// isDenied reports whether the sidecar has had time to see that a list keeps a user out.
func (h *history) isDenied(user string) bool {
	d := h.denied[user]
	return d != nil && d.polls >= deniedPolls && h.s.Cluster.Elapsed()-d.since > deniedWithin
}

// checkDenied checks in the calm after a storm that no queued job of a denied user is still driven, and that the site's
// policy was applied to those that were refused.
func (h *checks) checkDenied(r *slurmctl.Job) {
	err := h.s.Config.MayEvolve(config.Names{Users: []string{r.User}})
	if err == nil || r.Ended() || !h.evolving[r.ArrayJobID] || !h.s.Running() {
		return
	}
	why := h.why(r.ID)
	switch j, driven := h.s.Job(r.ID); {
	case driven && j.State == string(row.Queued) && !h.refused(r.ID):
		h.blame(fmt.Errorf("job %d of %s is still driven: %s", r.ID, r.User, why))
	case r.State == slurmctl.Pending && h.s.Config.Undriven != config.UndrivenKeep && r.StartTime.Sub(h.s.Cluster.Now()) > parkedFor/2:
		h.blame(fmt.Errorf("job %d of %s is refused, and stays parked: %s", r.ID, r.User, why))
	}
}
