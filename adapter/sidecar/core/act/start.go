package act

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/pace"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// start releases a parked job into the hold on its first step's nodes once all its growths are held as well,
// no other job has slipped in before it, and the nodes are free.
func start(c *state.Core, s *state.Snapshot, j *state.Job) {
	c.Moves = true // whatever keeps it
	now := c.Now.Unix()
	if why := slurm.LicensesInUse(c, s, &j.Record); why != "" {
		j.WaitsFor(state.Saying(state.WhyLicensesAwaited, why))
		return
	}
	held, ok := hold.HoldFor(c, j, 1)
	if !ok || !c.ReachedSecond(now, held.Start.Unix()) || !hold.Confirmed(c, s, j, now) {
		if j.WaitsFor(state.Because(state.WhyHeldSoon)); j.Unheld != nil {
			j.GoesOn() // Why says what is not held
		}
		awaitNodes(c, j.Plan[0].Start, false)
		if late := now - j.Plan[0].Start; late > 0 && late < int64(pace.FastFor/time.Second) {
			c.Pace.Urgent = true // polling the nodes was not enough
		}
		return
	}
	if !slurm.FreeFor(c, s, j.Plan[0].Nodes, &j.Record) {
		j.WaitsFor(state.Saying(state.WhyNodesAwaited, hold.Awaited(s, j.Plan[0].Nodes, "waits for nodes that are about to be free")))
		awaitNodes(c, j.Plan[0].Start, false)
		return
	}
	if !answered(c, s, j, j.Plan[0].Nodes) {
		return
	}
	if !plan.SafeWith(c, s, j, now, j.Plan[0].Nodes) {
		j.WaitsFor(state.Because(state.WhyClaimsConflict))
		c.NextCycle = c.Now
		return
	}
	if other := promisedSince(c, j); other != nil {
		j.WaitsFor(state.Reason{Kind: state.WhyPromisedAway, Job: other.SlurmID})
		c.NextCycle = c.Now
		return
	}
	if !reshape(c, j, &j.Record, 1) {
		return
	}
	letGo(c, j, j.Record.ID, held.Name, row.Starting)
}

// reshape gives a Slurm job of j what the chosen alternative needs, and reports whether the job has it
// already.
func reshape(c *state.Core, j *state.Job, r *slurmctl.Job, step int) bool {
	u, lacks := plan.Shape(c, j, r, step)
	if !lacks {
		return true
	}
	if !c.Work.RoomFor(j.UID) {
		j.WaitsFor(state.Because(state.WhyUserBusy))
		return false
	}
	j.WaitsFor(state.Because(state.WhyReshaped))
	c.Do(j, "choose", j.Profile.String(), state.KindShape, u, state.Args{Seen: c.SeenIn(j, r)})
	return false
}

// SettleShape is called when a due job was given its nodes, or when that failed.
func SettleShape(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	plan.Shaped(c, j, p, o)
	follow.MayLeave(c, j, o.Err)
}

// promisedSince returns a job that was promised nodes of a queued job after that job was planned: a running
// job whose rest was replanned in the meantime.
func promisedSince(c *state.Core, j *state.Job) *state.Job {
	for _, other := range c.Active {
		if other == j || !isPromised(other) {
			continue
		}
		for i := other.Step; i < len(other.Plan); i++ {
			for _, step := range j.Plan {
				if j.BestEffort() { // it gives them back before that
					step.End = c.Now.Add(refit.Recall(c, j)).Unix()
				}
				if max(step.Start, other.Plan[i].Start) < min(step.End, other.Plan[i].End) && len(msg.Common(step.Nodes, other.Plan[i].Nodes)) > 0 {
					return other
				}
			}
		}
	}
	return nil
}

// isPromised reports whether nothing keeps a job that runs or starts from its coming steps.
func isPromised(j *state.Job) bool { return j.Kept == nil && (j.Runs() || j.State == row.Starting) }

// awaitNodes asks for polls of the nodes, for a job that should have had some since a time. If `growing`, that
// job is running.
func awaitNodes(c *state.Core, since int64, growing bool) {
	if slurm.CountsStand(c) {
		c.Pace.Urgent = true // the jobs show it
		return
	}
	late := max(c.Now.Sub(time.Unix(since, 0)), 0)
	c.Pace.Growing = c.Pace.Growing || growing
	if c.Pace.Waiting < 0 || late < c.Pace.Waiting {
		c.Pace.Waiting = late
	}
}

// letGo starts a pending Slurm job of j inside a hold now: a StartTime in the future would wait for one of
// Slurm's cycles after it.
func letGo(c *state.Core, j *state.Job, id slurmctl.JobID, hold string, st row.State) {
	partition := slurm.PartitionFor(c, c.Snapshot, j)
	if r := c.Snapshot.ByID[id]; r != nil && r.Partition == partition {
		partition = ""
	}
	before, inside := j.State, j.Reservation
	if slurmctl.SortsReservations(c.SlurmConfig) {
		inside = "" // Slurm would try it before the hold, and start the job on any of its nodes
	}
	c.Do(j, "start", hold, state.KindStart, msg.Start{Job: id, Hold: hold, Inside: inside, Partition: partition, Switches: plan.SwitchesOf(j), Gently: c.Pace.Gated,
		OpenRow: j.Unopened && !j.Mode.StepsAreJobs && slurmctl.ForgetsRequeued(c.SlurmConfig)}, state.Args{State: st})
	j.Launch(id, st)
	j.WaitsFor(state.Because(state.WhyReleased))
	if st != before {
		c.Save(j)
	}
}

// SettleStart is called when a job was released, or when that failed.
func SettleStart(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	if partition := state.CommandOf[msg.Start](p).Partition; o.Err != nil && partition != "" && !state.Transient(o.Err) { // try the next partition
		if j.RefusedIn == nil {
			j.RefusedIn = map[string]state.Refusal{}
		}
		j.RefusedIn[partition] = state.Refusal{o.Err.Error(), c.Now.Add(slurm.RefusedFor)}
	}
	begun, _ := o.Result.(*slurmctl.Job)
	switch {
	case o.Err != nil && p.Args.State == row.Starting:
		j.NotLaunched()
		c.Save(j)
		follow.MayLeave(c, j, o.Err)
	case begun != nil:
		startSeen(c, j, begun)
	}
}

// startSeen is called when a released job was seen running, which a poll of all jobs would show only later.
func startSeen(c *state.Core, j *state.Job, r *slurmctl.Job) {
	adopt.See(j, r)
	j.RankAsInSlurm()
	if j.Mode.StepsAreJobs {
		follow.LinkRuns(c, c.Snapshot, j, r)
	} else if !j.Runs() {
		follow.SetHeld(c, j, []msg.Part{{ID: j.BaseID(), Step: 1, Nodes: r.NodeList}})
		follow.Began(c, c.Snapshot, j, r)
	}
}
