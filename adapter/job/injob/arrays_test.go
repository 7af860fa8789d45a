package injob

import (
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl"
)

func TestSeeOwnTask(t *testing.T) {
	for _, c := range [][4]string{{"12", "", "", "12"}, {"12", "10", "0", "10_0"}, {"10", "10", "7", "10_7"}, {"12", "x", "7", "12"}, {"12", "10", "4294967296", "12"}, {"", "10", "7", ""}} {
		env := map[string]string{"SLURM_JOB_ID": c[0], "SLURM_ARRAY_JOB_ID": c[1], "SLURM_ARRAY_TASK_ID": c[2]}
		if got := SeeOwnTask(&slurmctl.Client{}, func(name string) string { return env[name] }); got != c[3] {
			t.Errorf("%q is %s", c, got)
		}
	}
}
