//go:build examples

package sites

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestExamplesGPU: contrib/examples/gpu on a site of GPU nodes: through four resizes every
// instance sees all GPUs of its node; where a job has them unasked, what a stock srun sees. They are by companions: Slurm merges no job that has GRES.
func TestExamplesGPU(t *testing.T) {
	r := boot(t, deepops(), "")
	r.must(os.CopyFS(r.Dir+"/out", os.DirFS("../../../contrib/examples/gpu")))
	for _, asks := range []string{"--exclusive", "--gpus-per-node=8"} {
		stock, errs, err := r.As(1, "srun", "--nodes=1", "--exclusive", asks, "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
		if err != nil {
			t.Fatalf("srun %s: %v\n%s", asks, err, errs)
		}
		if asks != "--exclusive" && stock != "0,1,2,3,4,5,6,7\n" {
			t.Errorf("stock: %q", stock)
		}
		args := slices.Concat([]string{"--parsable", "--output=out-%j", "--profile=1@8s,3@8s,2@8s,4@8s,1@8s", "--export=ALL,DRAIN=3s"}, r.site.Job, []string{asks, "job.sh"})
		id, errs, err := r.As(0, "evosbatch", args...)
		if err != nil {
			t.Fatalf("evosbatch %q: %v\n%s", args, err, errs)
		}
		if left := r.left(patience); left != "" {
			t.Fatal(left)
		}
		text, err := os.ReadFile(r.Dir + "/out/out-" + strings.TrimSpace(id))
		r.must(err)
		nodes, instances := map[string]bool{}, 0
		for line := range strings.Lines(string(text)) {
			if m := regexp.MustCompile(`^(n\d): GPUs (.*)\n`).FindStringSubmatch(line); m != nil {
				nodes[m[1]] = true
				instances++
				if m[2] != strings.TrimSpace(stock) {
					t.Errorf("%s: the instance on %s sees GPUs %q, a stock srun %q", asks, m[1], m[2], stock)
				}
			}
		}
		jobs, err := r.Jobs(0)
		r.must(err)
		if len(nodes) < 4 || instances < 5 || jobs[len(jobs)-1].Step != 5 {
			t.Errorf("%s: %d instances on %d nodes:\n%s\n%v", asks, instances, len(nodes), text, fmt.Sprint(jobs))
		}
		t.Logf("%s: %d instances, each with GPUs %q", asks, instances, strings.TrimSpace(stock))
	}
}
