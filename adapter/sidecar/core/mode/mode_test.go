package mode_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/mode"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
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
func words(b drivemode.Behaviour) string {
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
	for _, m := range []drivemode.Mode{drivemode.Merge, drivemode.Companion, drivemode.Chain} {
		for i := range 8 {
			on := mode.Facts{UpdatesNeedAccount: i&1 != 0, ResizesOnce: i&2 != 0, StepManagers: i&4 != 0}
			name := string(m)
			for k, fact := range []string{"+account", "+once", "+stepmgr"} {
				if i&(1<<k) != 0 {
					name += fact
				}
			}
			b := mode.Of(m, on)
			fmt.Fprintf(&got, "%s: %s\n", name, words(b))
			on.AsksJobs, b.AsksJob = true, m != drivemode.Chain // beside that, nothing changes where the sidecar may not submit for users
			if asks := mode.Of(m, on); asks != b {
				t.Errorf("%s, if jobs are asked: %s", name, words(asks))
			}
		}
	}
	want := strings.Split(strings.TrimSpace(rows), "\n")
	for i, line := range strings.Split(strings.TrimSpace(got.String()), "\n") {
		if i >= len(want) || line != want[i] {
			t.Errorf("row %d is\n%s", i, line)
		}
	}
}

var byName = regexp.MustCompile(`(==|!=|case) *(string\()?(drivemode\.(Merge|Companion|Chain)\b|"(merge|companion|chain)")`)

// TestModesAreRows: the core and the commands ask a mode's row, not its name, except where a mode is chosen.
func TestModesAreRows(t *testing.T) {
	read := 0
	for _, root := range []string{"..", "../../../job"} {
		must.OK(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || path == "../slurm/drive.go" {
				return err
			}
			read++
			text, err := os.ReadFile(path)
			if found := byName.Find(text); found != nil {
				t.Errorf("%s: %q tests a mode by its name: ask its row", path, found)
			}
			return err
		}))
	}
	if read < 200 {
		t.Errorf("only %d files were read", read)
	}
}
