package sites

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

func onStepMgr(r *trial) {
	r.run(r.site.Profile, func(r *trial) {
		r.evolve(demand{drive: "companion"})
		r.neverResized()
	})
	r.run("1→3→1, another user's exclusive job on the nodes given back", (*trial).exclusive)
	r.run("a malleable job gives back a whole companion to a stock job that lacks one node", func(r *trial) {
		ids := []int{r.startMalleable(5)}
		r.haveSizes(ids, []int{5})
		r.becomes(r.stock(1, time.Hour, "--nodes=4", "--time=30"), "RUNNING")
		r.haveSizes(ids, []int{4}) // it is lent the other three again
		r.neverResized()
		r.now.Drive = r.queued(0, ids[0]).Drive
		r.cancel(append(ids, r.others...)...)
	})
	r.run("3→1, nodes of the base job", func(r *trial) {
		r.refused(demand{profile: "3@10s,1@10s"}, "nodes of the 3 with which the job begins", "has a step manager", "--drive=chain")
	})
	r.run("1→4→2, a part of a growth", func(r *trial) {
		r.refused(demand{profile: "1@10s,4@10s,2@10s"}, "a part of the nodes of a growth", "has a step manager", "--drive=chain")
	})
	r.run("evosctl doctor", func(r *trial) {
		text, errs, _ := r.As(0, "evosctl", "doctor") // its status also says what else there is
		for line := range strings.Lines(text) {
			if strings.Contains(line, "every job has a step manager (SlurmctldParameters=enable_stepmgr)") {
				r.now.Text = oneLine(line)
				return
			}
		}
		r.errorf("evosctl doctor does not name the step managers: %s%s", text, errs)
	})
}

// neverResized sees that every Slurm job of the case's user kept all its nodes to its end.
func (r *trial) neverResized() {
	r.t.Helper()
	r.watch.mu.Lock()
	defer r.watch.mu.Unlock()
	had := map[int][]string{}
	for _, shot := range r.watch.shots {
		for _, s := range shot.Jobs {
			if s.User != r.Cluster.Users()[0].Name || len(s.Nodes) == 0 {
				continue
			}
			if before := had[s.ID]; before != nil && !slices.Equal(before, s.nodes()) {
				r.errorf("job %d had %v and then %v", s.ID, before, s.nodes())
			}
			had[s.ID] = s.nodes()
		}
	}
}

// exclusive: another user's exclusive job gets the nodes that a job has given back, and no step of that job runs there.
func (r *trial) exclusive() {
	const tries = `[ $step -lt 3 ] || for n in 1 2 3 4 5 6 7 8; do
		[ n$n = $SLURMD_NODENAME ] || ! srun -N1 -n1 -w n$n --overlap --input=none true || { echo ran on n$n; exit 1; }
	done`
	j := r.accepted(demand{profile: "1@25s,3@25s,1@60s", pause: 15, drive: "companion", also: tries})
	r.inStep(j, 2)
	parts := r.read(j).steps[1].allocation.Parts
	rival := r.stock(1, time.Hour, "--nodes=7", "--exclusive", "--time=30")
	r.becomes(rival, "RUNNING")
	began, nodes := time.Now(), r.inSlurm(rival).nodes()
	if len(parts) != 2 || !slices.ContainsFunc(parts[1].NodeList, func(n string) bool { return slices.Contains(nodes, n) }) {
		r.fatalf("the job had %+v, the other user's job has %v", parts, nodes)
	}
	for _, p := range parts {
		for _, node := range nodes {
			if _, _, err := r.As(0, "srun", fmt.Sprintf("--jobid=%d", p.Job), "-N1", "-n1", "-w", node, "--overlap", "true"); err == nil {
				r.errorf("a step of job %d ran on %s, which another user's job has exclusively", p.Job, node)
			}
		}
	}
	r.until(j, "its own tries", func(s told) bool { return len(s.steps) == 3 && !s.steps[2].settled.IsZero() })
	if tried := r.read(j).steps[2].settled; tried.Before(began) {
		r.errorf("the job tried at %v, the other user's job began at %v", tried, began)
	}
	if now := r.inSlurm(rival); now.State != "RUNNING" {
		r.errorf("the other user's job is %s", now.State)
	}
	r.finish(j)
	r.neverResized()
	r.cancel(rival)
}
