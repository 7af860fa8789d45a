package core

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/talk"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// rows holds what every drive mode means for every combination of site facts.
const rows = `
merge: scriptSpansSteps mergesGrowths carriesNodes bringsNodes resizes raisesLimits shrinksInPart resizesInPart resizesBesidePlan works
merge+account: scriptSpansSteps mergesGrowths carriesNodes bringsNodes resizes staysInHold
merge+once: scriptSpansSteps mergesGrowths carriesNodes bringsNodes resizes raisesLimits shrinksInPart works
merge+account+once: scriptSpansSteps mergesGrowths carriesNodes bringsNodes resizes staysInHold
merge+stepmgr: scriptSpansSteps mergesGrowths carriesNodes bringsNodes resizes raisesLimits waitsForPrologs
merge+account+stepmgr: scriptSpansSteps mergesGrowths carriesNodes bringsNodes resizes staysInHold waitsForPrologs
merge+once+stepmgr: scriptSpansSteps mergesGrowths carriesNodes bringsNodes resizes raisesLimits waitsForPrologs
merge+account+once+stepmgr: scriptSpansSteps mergesGrowths carriesNodes bringsNodes resizes staysInHold waitsForPrologs
companion: scriptSpansSteps growthsStayJobs carriesNodes bringsNodes resizes raisesLimits shrinksInPart resizesInPart resizesBesidePlan works
companion+account: scriptSpansSteps growthsStayJobs carriesNodes bringsNodes resizes staysInHold resizesBesidePlan works
companion+once: scriptSpansSteps growthsStayJobs carriesNodes bringsNodes resizes raisesLimits shrinksInPart resizesBesidePlan works
companion+account+once: scriptSpansSteps growthsStayJobs carriesNodes bringsNodes resizes staysInHold resizesBesidePlan works
companion+stepmgr: scriptSpansSteps growthsStayJobs carriesNodes bringsNodes resizes raisesLimits waitsForPrologs resizesBesidePlan works
companion+account+stepmgr: scriptSpansSteps growthsStayJobs carriesNodes bringsNodes resizes staysInHold waitsForPrologs resizesBesidePlan works
companion+once+stepmgr: scriptSpansSteps growthsStayJobs carriesNodes bringsNodes resizes raisesLimits waitsForPrologs resizesBesidePlan works
companion+account+once+stepmgr: scriptSpansSteps growthsStayJobs carriesNodes bringsNodes resizes staysInHold waitsForPrologs resizesBesidePlan works
chain: stepsAreJobs readiesLinks works
chain+account: stepsAreJobs staysInHold works
chain+once: stepsAreJobs readiesLinks works
chain+account+once: stepsAreJobs staysInHold works
chain+stepmgr: stepsAreJobs readiesLinks waitsForPrologs works
chain+account+stepmgr: stepsAreJobs staysInHold waitsForPrologs works
chain+once+stepmgr: stepsAreJobs readiesLinks waitsForPrologs works
chain+account+once+stepmgr: stepsAreJobs staysInHold waitsForPrologs works
`

// words returns the names of a behaviour's columns that hold.
func words(b state.Behaviour) string {
	var names []string
	v := reflect.ValueOf(b)
	for i := range v.NumField() {
		if v.Field(i).Bool() {
			names = append(names, strings.ToLower(v.Type().Field(i).Name[:1])+v.Type().Field(i).Name[1:])
		}
	}
	return strings.Join(names, " ")
}

// TestDriveTable checks every mode with every combination of site facts against the expected row.
func TestDriveTable(t *testing.T) {
	var got strings.Builder
	for _, mode := range []drivemode.Mode{drivemode.Merge, drivemode.Companion, drivemode.Chain} {
		for i := range 8 {
			on := state.SiteFacts{UpdatesNeedAccount: i&1 != 0, ResizesOnce: i&2 != 0, StepManagers: i&4 != 0}
			name := string(mode)
			for k, fact := range []string{"+account", "+once", "+stepmgr"} {
				if i&(1<<k) != 0 {
					name += fact
				}
			}
			fmt.Fprintf(&got, "%s: %s\n", name, words(state.BehaviourOf(mode, on)))
		}
	}
	want := strings.Split(strings.TrimSpace(rows), "\n")
	for i, line := range strings.Split(strings.TrimSpace(got.String()), "\n") {
		if i >= len(want) || line != want[i] {
			t.Errorf("row %d is\n%s", i, line)
		}
	}
}

// TestDriveRowIsCurrent checks that a job gets its row when it is adopted, when its mode or the site changes, and when
// its request has been read.
func TestDriveRowIsCurrent(t *testing.T) {
	c := statetest.NewCore(config.Default(), time.Now())
	j := &state.Job{Job: &row.Job{SlurmID: 7, Drive: string(drivemode.Merge), Profile: planner.Profile{{Duration: 60, Nodes: 1}}}}
	check := func(when string, mode drivemode.Mode, on state.SiteFacts) {
		t.Helper()
		if want := state.BehaviourOf(mode, on); j.Mode != want {
			t.Errorf("%s: %s, want %s", when, words(j.Mode), words(want))
		}
	}
	adopt.Add(c, j)
	check("adopted", drivemode.Merge, state.SiteFacts{})
	state.SetFacts(c, state.SiteFacts{ResizesOnce: true, StepManagers: true})
	check("it may have a step manager", drivemode.Merge, state.SiteFacts{ResizesOnce: true, StepManagers: true})
	c.MayUpdate(false)
	check("Slurm rejects updates", drivemode.Merge, state.SiteFacts{UpdatesNeedAccount: true, ResizesOnce: true, StepManagers: true})
	c.Snapshot = &state.Snapshot{ByID: map[slurmctl.JobID]*slurmctl.Job{7: {ID: 7}}}
	c.Asked[7] = &state.RequestRead{Known: true}
	adopt.LearnAll(c, c.Snapshot)
	check("it has no step manager", drivemode.Merge, state.SiteFacts{UpdatesNeedAccount: true, ResizesOnce: true})
	c.MayUpdate(true)
	c.Turn(j, errors.New("no merging"))
	check("turned", drivemode.Companion, state.SiteFacts{ResizesOnce: true})
	if err := talk.CheckJobs(c); err != nil {
		t.Error(err)
	}
	if j.Mode = state.Modes[drivemode.Chain]; talk.CheckJobs(c) == nil {
		t.Error("a job with another mode's row passes the check")
	}
}
