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
func (b behaviour) words() string {
	var names []string
	v := reflect.ValueOf(b)
	for i := range v.NumField() {
		if v.Field(i).Bool() {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	return strings.Join(names, " ")
}

// TestDriveTable checks every mode with every combination of site facts against the expected row.
func TestDriveTable(t *testing.T) {
	var got strings.Builder
	for _, mode := range []drivemode.Mode{drivemode.Merge, drivemode.Companion, drivemode.Chain} {
		for i := range 8 {
			on := siteFacts{updatesNeedAccount: i&1 != 0, resizesOnce: i&2 != 0, stepManagers: i&4 != 0}
			name := string(mode)
			for k, fact := range []string{"+account", "+once", "+stepmgr"} {
				if i&(1<<k) != 0 {
					name += fact
				}
			}
			fmt.Fprintf(&got, "%s: %s\n", name, behaviourOf(mode, on).words())
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
	c := newCore(config.Default(), time.Now())
	j := &job{Job: &row.Job{SlurmID: 7, Drive: string(drivemode.Merge), Profile: planner.Profile{{Duration: 60, Nodes: 1}}}}
	check := func(when string, mode drivemode.Mode, on siteFacts) {
		t.Helper()
		if want := behaviourOf(mode, on); j.mode != want {
			t.Errorf("%s: %s, want %s", when, j.mode.words(), want.words())
		}
	}
	c.add(j)
	check("adopted", drivemode.Merge, siteFacts{})
	c.setFacts(siteFacts{resizesOnce: true, stepManagers: true})
	check("it may have a step manager", drivemode.Merge, siteFacts{resizesOnce: true, stepManagers: true})
	c.mayUpdate(false)
	check("Slurm rejects updates", drivemode.Merge, siteFacts{updatesNeedAccount: true, resizesOnce: true, stepManagers: true})
	c.snapshot = &snapshot{byID: map[slurmctl.JobID]*slurmctl.Job{7: {ID: 7}}}
	c.asked[7] = &asked{known: true}
	c.learnAll(c.snapshot)
	check("it has no step manager", drivemode.Merge, siteFacts{updatesNeedAccount: true, resizesOnce: true})
	c.mayUpdate(true)
	c.turn(j, errors.New("no merging"))
	check("turned", drivemode.Companion, siteFacts{resizesOnce: true})
	if err := c.checkJobs(); err != nil {
		t.Error(err)
	}
	if j.mode = modes[drivemode.Chain]; c.checkJobs() == nil {
		t.Error("a job with another mode's row passes the check")
	}
}
