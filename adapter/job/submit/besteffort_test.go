package submit

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
)

// TestBestEffort checks what sbatch is called with for a best-effort job, and what is refused with its remedy.
func TestBestEffort(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"job.sh": "#!/bin/sh\ntrue\n", "asks.sh": "#!/bin/sh\n#EVO --best-effort --grace=20s\n#SBATCH --nodes=2-6\n#SBATCH --no-requeue\ntrue\n",
		"steps.sh": "#!/bin/sh\n#EVO --profile=2@10m,4@10m\ntrue\n", "both.sh": "#!/bin/sh\n#EVO --best-effort --max-nodes=4\ntrue\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	on := config.BestEffort{Enabled: true}
	charged := config.BestEffort{Enabled: true, QOS: "idle", Account: "spare"}
	for _, c := range []struct {
		site  config.BestEffort
		words string
		says  string // of standard output, or of standard error if it begins with !
	}{
		{on, "--best-effort --nodes=1-64 --grace=30s job.sh", "--requeue --nodes=1 --exclusive '--comment=evo:v2;p=1-64@10m;t=30;y=requeue;;'"},
		{on, "--best-effort -N4 job.sh", "--nodes=4 --exclusive '--comment=evo:v2;p=4@10m;y=requeue;;'"},
		{on, "--best-effort job.sh", "'--comment=evo:v2;p=1@10m;y=requeue;;'"},
		{on, "--best-effort --no-requeue -N 1-2 job.sh", "--no-requeue --nodes=1 --exclusive '--comment=evo:v2;p=1-2@10m;y=cancel;;'"},
		{on, "asks.sh", "--nodes=2 --exclusive '--comment=evo:v2;p=2-6@10m;t=20;y=cancel;;'"},
		{on, "--best-effort -N 1-2 steps.sh", "p=1-2@10m;y=requeue;;"},
		{charged, "--best-effort -N 1-2 job.sh", "--qos=idle --account=spare --requeue"},
		{charged, "--best-effort -q idle -N 1-2 job.sh", "--account=spare --requeue"},
		{charged, "--best-effort -q gold -N 1-2 job.sh", "!--qos=gold: this site runs best-effort jobs with --qos=idle: leave the option out"},
		{config.BestEffort{}, "--best-effort -N 1-2 job.sh", "!this site runs no best-effort jobs (best_effort.enabled)"},
		{on, "--best-effort -N x job.sh", "!--nodes=x: "},
		{on, "--best-effort -N 4-2 job.sh", "!--nodes=4-2: "},
		{on, "--best-effort --profile=2@10m job.sh", "!--best-effort and --profile exclude each other: nothing is promised to a best-effort job; give --nodes=MIN-MAX and --time"},
		{on, "--best-effort --moldable=2@10m,4@5m job.sh", "!--best-effort and --moldable exclude each other"},
		{on, "--best-effort --malleable=2-4 job.sh", "!--best-effort and --malleable exclude each other"},
		{on, "--best-effort --component=a --profile=2@10m job.sh", "!--best-effort and --profile exclude each other"},
		{on, "both.sh", "!both.sh, line 2: --best-effort and --max-nodes exclude each other"},
		{on, "--best-effort --array=1-3 job.sh", "!--array=1-3: a best-effort job cannot be an array"},
		{on, "--best-effort -L foo job.sh", "!--licenses=foo: a best-effort job cannot ask for licences"},
		{on, "--best-effort --drive=chain job.sh", "!--best-effort and --drive=chain exclude each other"},
		{on, "--best-effort --prefer-near job.sh", "!--best-effort and --prefer-near exclude each other"},
		{on, "--best-effort --rigid job.sh", "!--rigid does not go with --best-effort"},
	} {
		var out, errs bytes.Buffer
		cmd := Command{Args: append([]string{"--dry-run", "--time=10"}, strings.Fields(c.words)...), Stdout: &out, Stderr: &errs, Sbatch: "false", BestEffort: c.site}
		status := cmd.Run(t.Context())
		want, refused := strings.CutPrefix(c.says, "!")
		if got := out.String() + errs.String(); (status != 0) != refused || !strings.Contains(got, want) {
			t.Errorf("%s: %d, %q; want %q", c.words, status, got, want)
		}
	}
}
