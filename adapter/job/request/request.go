// Package request is a user's request for one job, and the forms in which it travels: the marker in
// the Slurm comment, the #EVO lines of a batch script, and evosbatch's options.
package request

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/planner"
)

// Request is the request for one evolving job.
type Request struct {
	Profile     planner.Profile     // of a moldable job: of the alternative that it has at present
	Components  []Component         // of coupled codes, whose sum is Profile; nil: none
	Frequencies []string            // of the CPUs, by step, as srun --cpu-freq takes them; "": none. nil: no step has one
	Moldable    *Moldable           // nil: it has one profile
	Malleable   *Malleable          // nil if its size is the profile's
	ExpandLimit planner.ExpandLimit // 1: never expanded; planner.Infinite: no bound; 0: not given, the site's default
	Drive       drivemode.Mode      // "": not given, the site's default
	Begin       time.Time           // the user's own --begin; zero: none
	Nodes       string              // the user's --nodelist: all that the job may have; "": any
	Prefer      string              // features that its nodes should have, if that makes the job no later; "": none
	Aim         planner.Aim         // what it wants of its own placement (--prefer-start, and so on)
	MaxNodes    int                 // the claim: as many nodes as it will ever want at once; 0: none
	Tail        int                 // most nodes of the profile's open tail, until SettleTail makes them the claim; 0: none
	Chain       *ChainLink
	Comment     string   // the user's own --comment
	Hooks       Hooks    // of #EVO lines and the command line; a marker has none
	Inputs      []string // files that the job reads, of #EVO lines and the command line; a marker has none

	Updated string   // the last change of the request (evosctl update, grow, shrink); "": none
	Reached *Reached // where the job was then; nil if it had not begun, and Profile is complete
}

// ChainLink says which step of a chain a Slurm job is (drive mode chain).
type ChainLink struct {
	First uint32 // Slurm id of the chain's first job; 0 for that job itself
	Step  int    // 1-based
}
