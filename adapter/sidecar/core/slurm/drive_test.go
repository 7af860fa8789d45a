package slurm

import (
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestBareSite: the drive mode, and what is refused, where every update of a running job is.
func TestBareSite(t *testing.T) {
	c := statetest.NewCore(config.Default(), statetest.Start)
	c.Drive, c.DriveReason = drivemode.Merge, "all is there"
	r := &slurmctl.Job{User: "user", Partition: "main"}
	down, _ := planner.ParseProfile("3@1m,1@1m")
	up, _ := planner.ParseProfile("1@1m,3@1m,1@1m")
	for _, bare := range []bool{false, true} {
		for _, s := range []struct {
			ask   request.Request
			drive drivemode.Mode // where it is bare; "": refused
			words string
		}{
			{request.Request{Profile: up}, drivemode.Companion, "without Account="},
			{request.Request{Profile: up, Drive: drivemode.Merge}, "", "drive mode merge cannot work here: the site's job_submit plugin refuses"},
			{request.Request{Profile: down}, "", "step 2, of 1 nodes, would have to give back nodes of the 3"},
			{request.Request{Profile: down, Drive: drivemode.Companion}, "", "--drive=chain"},
		} {
			c.MayUpdate(!bare)
			drive, why, err := DriveOf(c, r, s.ask, false)
			if !bare {
				if err != nil {
					t.Errorf("%+v: %v", s.ask, err)
				}
				continue
			}
			if err != nil {
				why = err.Error()
			}
			if drive != s.drive || (err == nil) != (s.drive != "") || !strings.Contains(why, s.words) {
				t.Errorf("%+v: %q, %q, %v", s.ask, drive, why, err)
			}
		}
	}
	if drive, why := SiteDrive(c, c.Facts); drive != drivemode.Companion || !strings.Contains(why, "Account=") {
		t.Errorf("the site's is %s: %s", drive, why)
	}
}
