package sites

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

//go:embed malleable.sh
var malleableScript string

// malleable: two malleable jobs have all of so many nodes, and give way to stock jobs of two nodes by FPSMA, that which
// started last, and by EGS, both; what they accept in time costs them nothing else.
func (r *trial) malleable(nodes int) {
	r.t.Helper()
	most := []int{nodes - 3, 3}
	var ids []int
	for _, m := range most {
		ids = append(ids, r.startMalleable(m))
	}
	var said []string
	for _, policy := range []struct {
		name  string
		gives []int // of each job, to one stock job
	}{{"fpsma", []int{0, 2}}, {"egs", []int{1, 1}}} {
		_, err := r.Cluster.Run(context.Background(), slurmtest.Root, "env", append(r.Env(), r.Bin+"/evosctl", "strategy", "use-policy", policy.name)...)
		r.must(err)
		r.haveSizes(ids, most)
		began := time.Now()
		stock := r.stock(1, time.Hour, append([]string{"--nodes=2", "--time=30"}, r.site.stock()...)...)
		r.becomes(stock, "RUNNING")
		took := time.Since(began)
		r.haveSizes(ids, []int{most[0] - policy.gives[0], most[1] - policy.gives[1]})
		said = append(said, fmt.Sprintf("%s: %d and %d nodes, and %d and %d once a stock job of 2 has come, which began after %.1f s",
			strings.ToUpper(policy.name), most[0], most[1], most[0]-policy.gives[0], most[1]-policy.gives[1], took.Seconds()))
		r.cancel(stock)
		r.becomes(stock, "CANCELLED")
	}
	r.haveSizes(ids, most)
	for _, id := range ids {
		q := r.queued(0, id)
		r.now.Drive = q.Drive
		for _, o := range q.Offers {
			if o.Enforced {
				r.errorf("job %d: offer %d was enforced: %s", id, o.ID, o.Note)
			}
		}
		text, err := os.ReadFile(fmt.Sprintf("%s/out/out-%d", r.Dir, id))
		r.must(err)
		if strings.Contains(string(text), "wrong") || !strings.Contains(string(text), "accepted shrink") {
			r.errorf("job %d says\n%s", id, text)
		}
	}
	r.cancel(ids...)
	r.now.Text = strings.Join(said, "; ")
}

// haveSizes waits until jobs have so many nodes, by the sidecar's word and by Slurm's.
func (r *trial) haveSizes(ids, sizes []int) {
	r.t.Helper()
	user := r.Cluster.Users()[0].Name
	r.eventually(fmt.Sprintf("jobs %v have %v nodes", ids, sizes), patience, func() error {
		all := 0
		for i, id := range ids {
			if q := r.queued(0, id); q.State != "running" || q.Nodes != sizes[i] {
				return fmt.Errorf("job %d is %s on %d nodes: %s", id, q.State, q.Nodes, q.Reason)
			}
			all += sizes[i]
		}
		for _, j := range look(r.Cluster) {
			if j.User == user && !slices.Contains(r.others, j.ID) {
				all -= len(j.Nodes)
			}
		}
		if all != 0 {
			return fmt.Errorf("Slurm has %d nodes less for them", all)
		}
		return nil
	})
}

// startMalleable starts a malleable job of up to so many nodes.
func (r *trial) startMalleable(most int) int {
	r.t.Helper()
	script := r.Dir + "/malleable.sh"
	r.must(os.WriteFile(script, []byte(malleableScript), 0o755))
	args := slices.Concat([]string{"--parsable", "--output=out-%j", fmt.Sprintf("--malleable=1-%d", most), "--time=60"}, r.site.Job, []string{script})
	text, errs, err := r.As(0, "evosbatch", args...)
	if err != nil {
		r.fatalf("evosbatch %q: %s", args, oneLine(errs))
	}
	id, err := strconv.Atoi(strings.TrimSpace(text))
	r.must(err)
	r.eventually("it runs", patience, func() error {
		if q := r.queued(0, id); q.State != "running" {
			return fmt.Errorf("it is %s: %s", q.State, q.Reason)
		}
		return nil
	})
	return id
}
