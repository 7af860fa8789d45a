// Package drivemode is the table of drive modes, the ways in which jobs grow on Slurm: the name of each and what it means.
package drivemode

import (
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

// Mode says how a job grows. The zero value means that the user has not chosen one.
type Mode string

// The drive modes. With Auto the sidecar chooses: merge where it works, otherwise companion.
const (
	Auto      Mode = "auto"
	Merge     Mode = "merge"
	Companion Mode = "companion"
	Chain     Mode = "chain"
)

// Parse returns the drive mode of that name.
func Parse(name string) (Mode, error) {
	switch m := Mode(name); m {
	case Auto, Merge, Companion, Chain:
		return m, nil
	}
	return "", fmt.Errorf("invalid drive mode %q: want auto, merge, companion, or chain", legible.Brief(name))
}

// Means returns what a drive mode means on a site that lets the sidecar do everything: nothing if the mode is not chosen yet.
func (m Mode) Means() Behaviour { return table[m] }

// Behaviour holds what a drive mode means for a job. Every column answers a question that some code asks. No column names
// the mode.
type Behaviour struct {
	// Which parts of a job are one Slurm job, and which are several.
	StepsAreJobs     bool // every step is a Slurm job with a script, a time limit, and nodes of its own
	ScriptSpansSteps bool // one batch script runs through all steps and calls next between them
	MergesGrowths    bool // the nodes of an expander become nodes of the base job
	GrowthsStayJobs  bool // an expander stays beside the base job, as its companion

	// What becomes of nodes and time limits from one step to the next.
	CarriesNodes    bool // a job keeps its nodes when a step ends, and the next step goes on with them
	BringsNodes     bool // an expander brings the nodes of a growth, which takes BringSeconds
	AsksJob         bool // a process of the job submits expanders
	Resizes         bool // a job that runs gets more nodes or fewer, by its plan, by a change, or as it is offered
	RaisesLimits    bool // the time limit of a running job can be raised
	ReadiesLinks    bool // the next step's Slurm job is released before the current step ends
	StaysInHold     bool // a job that begins in a hold cannot be moved out of it, and the hold lasts as long as the job
	WaitsForPrologs bool // an expander can be used only once its prologs have ended: until then it rejects steps

	// How finely a running job's size changes.
	ShrinksInPart     bool // a Slurm job can be made smaller; otherwise it keeps its nodes until its end
	ResizesInPart     bool // any nodes can come and go; otherwise whole companions only
	ResizesBesidePlan bool // the size can change at other times than the plan says

	Works bool // the site lets jobs grow in this mode
}

// table holds what every drive mode means on a site that lets the sidecar do everything.
var table = map[Mode]Behaviour{
	Merge: {
		ScriptSpansSteps: true, MergesGrowths: true, CarriesNodes: true, BringsNodes: true, Resizes: true, RaisesLimits: true,
		ShrinksInPart: true, ResizesInPart: true, ResizesBesidePlan: true, Works: true,
	},
	Companion: {
		ScriptSpansSteps: true, GrowthsStayJobs: true, CarriesNodes: true, BringsNodes: true, Resizes: true, RaisesLimits: true,
		ShrinksInPart: true, ResizesInPart: true, ResizesBesidePlan: true, Works: true,
	},
	Chain: {StepsAreJobs: true, ReadiesLinks: true, Works: true},
}
