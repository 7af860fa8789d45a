package adopt

import (
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// CurrentLink returns the position in the chain of the Slurm job that runs or will run next.
func CurrentLink(c *state.Core, j *state.Job) int {
	if j.State == row.Waiting {
		return j.Step
	}
	return max(j.Step, 1) - 1
}

// PresentJob returns the Slurm job in which the job runs, or will run next.
func PresentJob(c *state.Core, j *state.Job) slurmctl.JobID {
	if j.Mode.StepsAreJobs {
		return j.Chain[CurrentLink(c, j)]
	}
	return j.BaseID()
}

// CancelBeside cancels Slurm jobs that no longer belong to any job.
func CancelBeside(c *state.Core, what string, ids ...slurmctl.JobID) bool {
	return endBeside(c, what, msg.Cancel{Jobs: ids})
}

// CompleteBeside ends running companions that no longer belong to any job.
func CompleteBeside(c *state.Core, what string, ids ...slurmctl.JobID) bool {
	return endBeside(c, what, msg.Cancel{Jobs: ids, Done: true})
}

func endBeside(c *state.Core, what string, how msg.Cancel) bool {
	return c.Ask(nil, fmt.Sprint("cancel ", how.Jobs), state.KindCancelBeside, msg.Task{Command: how}, state.Args{What: what})
}

// MayBring reports whether a Slurm job with the name of an expander of j may really be an expander. Any
// user can use such a name. An unknown one in a hold, or from one that was open to the user, must be as the sidecar asks for it.
func MayBring(c *state.Core, r *slurmctl.Job, j *state.Job) bool {
	if r.UID != j.UID || slurm.IsSelf(c, r) {
		return slurm.IsSelf(c, r)
	}
	_, _, held := state.HoldIn(r.Reservation)
	if !held && c.OpenedFor(j.BaseID()) == nil || !j.Mode.AsksJob || c.Owner(r.ID) == j || r.State == slurmctl.Pending {
		return true
	}
	q := slurmctl.AllocateRequest{Partition: slurm.PartitionOf(j), Account: j.Account, QOS: j.QOS}
	if end := j.Record.EndTime; j.Mode.GrowthsStayJobs && j.Record.TimeLimit != slurmctl.Unlimited && !end.IsZero() {
		q.TimeLimit = max(end.Sub(r.StartTime), 0) + longerBy
	}
	return msg.Unlike(r, &q, PluginMoves(c)) == ""
}

// longerBy is how much later than its base job a companion may end: its limit is at least a minute, and it starts later
// than it was asked for.
const longerBy = 3 * time.Minute

// PluginMoves reports whether a plugin of the site may put a job into another partition and QOS than it asks for.
func PluginMoves(c *state.Core) bool { return c.SlurmConfig.Values["JobSubmitPlugins"] != "" }

// suspendedFor returns how long a job was suspended at least that began at `started` and had run for `used`, or 0 if
// that is not known. Slurm was asked at `asked`; the answer may have taken long.
func suspendedFor(asked, started time.Time, used time.Duration) time.Duration {
	suspended := asked.Sub(started) - used
	if used <= 0 || started.IsZero() || suspended < state.ClockSlack {
		return 0
	}
	return suspended.Round(time.Second)
}
