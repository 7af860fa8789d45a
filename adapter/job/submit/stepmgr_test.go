package submit

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestStepManagers checks that a job that will have a step manager is rejected if it would give
// nodes back in part.
func TestStepManagers(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"job.sh": "#!/bin/sh\ntrue\n", "asks.sh": "#!/bin/sh\n#SBATCH --stepmgr\ntrue\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const base, growth = "step 2, of 1 nodes, would have to give back nodes of the 3 with which the job begins", "step 3, of 2 nodes, would have to give back a part of the nodes of a growth"
	for _, c := range []struct{ version, params, words, says string }{
		{"24.11.5", "enable_stepmgr", "--profile=3@5m,1@5m job.sh", base},
		{"26.05.5", "idle_on_node_suspend,enable_stepmgr", "--profile=1@5m,4@5m,2@5m job.sh", growth},
		{"24.11.5", "enable_stepmgr", "--profile=3@5m,1@5m --drive=companion job.sh", base},
		{"24.11.5", "enable_stepmgr", "--profile=3@5m,1@5m --drive=merge job.sh", "--drive=merge cannot work here"},
		{"24.11.5", "enable_stepmgr", "--moldable=3@5m,1@5m job.sh", ""}, // each alternative is of one size
		{"24.11.5", "enable_stepmgr", "--profile=1@5m,3@5m,1@5m job.sh", ""},
		{"24.11.5", "enable_stepmgr", "--profile=3@5m,1@5m --drive=chain job.sh", ""},
		{"24.11.5", "", "--stepmgr --profile=3@5m,1@5m job.sh", base},
		{"24.11.5", "", "--profile=3@5m,1@5m asks.sh", base},
		{"24.11.5", "", "--profile=3@5m,1@5m job.sh", ""},
		{"22.05.8", "enable_stepmgr", "--profile=3@5m,1@5m job.sh", ""},
	} {
		var out, errs bytes.Buffer
		values := map[string]string{"PrologFlags": "Alloc,Contain", "SlurmctldParameters": c.params, "AccountingStorageType": "accounting_storage/slurmdbd"}
		cmd := Command{Args: append([]string{"--dry-run"}, strings.Fields(c.words)...), Stdout: &out, Stderr: &errs, Sbatch: "false", Cluster: still{version: c.version, values: values}}
		if status := cmd.Run(t.Context()); (status == 0) != (c.says == "") || !strings.Contains(errs.String(), c.says) {
			t.Errorf("Slurm %s with %q: %s: %d, %q; want %q", c.version, c.params, c.words, status, &errs, c.says)
		}
	}
}
