package state

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Hold describes a reservation for the nodes that a job gets at the start of a step.
type Hold struct {
	Job   *Job
	Step  int // 1-based
	Nodes []string
	From  []int64  // last time the job has each node before this step, Unix seconds; 0 if never
	Users []string // users that may use the hold
	Start int64    // Unix seconds
	End   int64
}

// ToStartIn reports whether a Slurm job begins in the hold. In other holds, running jobs grow.
func (h Hold) ToStartIn() bool { return h.Step == 1 || h.Job.Mode.StepsAreJobs }

func (h Hold) Flags() []string {
	if h.ToStartIn() {
		return msg.StartFlags
	}
	return msg.HoldFlags
}

// Names of holds and expanders contain job, step and attempt (evo_4711_2_1), so that the sidecar finds
// them after a crash. Users can also choose such names. The numbers are limited so that the name
// with the next number remains valid.
const mostDigits, mostIDDigits = 9, 10

type OwnName struct {
	Job     slurmctl.JobID
	Step    int
	Attempt int
}

func (n OwnName) String() string { return fmt.Sprintf("evo_%d_%d_%d", n.Job, n.Step, n.Attempt) }

func ParseHoldName(name string) (OwnName, bool) {
	text, ours := strings.CutPrefix(name, "evo_")
	if !ours {
		return OwnName{}, false // most names
	}
	job, text, _ := strings.Cut(text, "_")
	of, try, _ := strings.Cut(text, "_")
	if !digits(job, mostIDDigits) || !digits(of, mostDigits) || !digits(try, mostDigits) {
		return OwnName{}, false
	}
	id, err1 := strconv.ParseUint(job, 10, 32)
	step, err2 := strconv.Atoi(of)
	attempt, err3 := strconv.Atoi(try)
	if errors.Join(err1, err2, err3) != nil {
		return OwnName{}, false
	}
	return OwnName{slurmctl.JobID(id), step, attempt}, true
}

// digits reports whether a text is a number with at most a given number of digits.
func digits(text string, most int) bool {
	return text != "" && len(text) <= most && strings.Trim(text, "0123456789") == ""
}

// ParseHold returns whose hold a reservation is. A reservation of the site that only has such a
// name lacks the flags.
func ParseHold(r slurmctl.Reservation) (OwnName, bool) {
	own, ours := ParseHoldName(r.Name)
	return own, ours && slices.Contains(r.Flags, "IGNORE_JOBS") && slices.Contains(r.Flags, "OVERLAP")
}

// HoldIn returns the first name of a hold in a list of reservations, and whose hold it is.
func HoldIn(list string) (name string, own OwnName, is bool) {
	for name := range strings.SplitSeq(list, ",") {
		if own, ours := ParseHoldName(name); ours {
			return name, own, true
		}
	}
	return "", OwnName{}, false
}

// OwnReservation returns a list of reservations without those with the name of a hold.
func OwnReservation(list string) string {
	if !strings.Contains(list, "evo_") {
		return list
	}
	var rest []string
	for name := range strings.SplitSeq(list, ",") {
		if _, ours := ParseHoldName(name); !ours {
			rest = append(rest, name)
		}
	}
	return strings.Join(rest, ",")
}

// Awaited reports whether the job already waits for the hold's nodes.
func (h Hold) Awaited() bool { return h.Job.State == row.Waiting && h.Step == h.Job.Step+1 }

// Gain holds the nodes that a plan brings a job at a step.
type Gain struct {
	Step  int // 1-based
	Nodes []string
	End   int64   // Unix second at which the first of these nodes is planned to be released
	From  []int64 // last time the job has each node before this step, Unix seconds; 0 if never
}

// Gains caches the result of gained for a plan, a step and the held parts.
type Gains struct {
	All  []Gain
	Plan []msg.PlannedStep
	Step int
	Held []msg.Part
}

// HoldKey identifies a hold: a job has one hold for each step that brings it nodes.
type HoldKey struct {
	Job  slurmctl.JobID
	Step int
}

// Far reports whether the hold's job neither runs nor starts within a minute.
func (h Hold) Far(c *Core, now int64) bool {
	return h.Job.State == row.Queued && len(h.Job.Plan) > 0 && !c.ReachedSecond(now, h.Job.Plan[0].Start-60)
}
