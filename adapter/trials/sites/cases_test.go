package sites

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

func onArcher2(r *trial) {
	// A job has all memory of its nodes; those with much are n7 and n8.
	whole := func(node string) share {
		s := share{Memory: "2560", GRES: "archer2-node:1,compute-node:1"}
		if node == "n7" || node == "n8" {
			s.Memory = "5120"
		}
		return s
	}
	r.run("1→3→1", func(r *trial) { r.evolve(demand{never: []string{"n6"}, drive: "companion", has: whole}) })
	r.run("1→6→1, all nodes that there are but that of the QOS short", func(r *trial) {
		r.evolve(demand{profile: "1@10s,6@14s,1@5s", never: []string{"n6"}, drive: "companion", has: whole})
	})
	r.run("two malleable jobs, and stock jobs that come", func(r *trial) { r.malleable(7) })
	r.run("7 nodes: more than the QOS allows a job", func(r *trial) {
		r.refused(demand{profile: "1@10s,7@10s,1@5s"}, "MaxTRESPerJob", "standard", "6")
	})
	r.run("no QOS", func(r *trial) { r.refused(demand{bare: true, args: []string{"--partition=standard"}}, "QoS") })
	r.run("--mem", func(r *trial) { r.refused(demand{args: []string{"--mem=100"}}, "memory") })
	r.run("--exclude", func(r *trial) { r.refused(demand{args: []string{"--exclude=n1"}}, "exclude") })
	r.run("--nodelist", func(r *trial) { r.refused(demand{args: []string{"--nodelist=n1"}}, "nodelist") })
}

func onStackHPC(r *trial) {
	r.run("1→3→1", func(r *trial) { r.evolve(demand{}) })
	r.run("1→3→1, suspended in its second step", func(r *trial) {
		r.beside(func() {
			j := r.accepted(demand{profile: "1@8s,3@14s,1@5s"})
			r.inStep(j, 2)
			before := r.queued(0, j.id).End
			rival := r.stock(1, 25*time.Second, "--partition=hpc", "--nodes=8", "--time=2")
			r.becomes(j.id, "SUSPENDED")
			begun := time.Now()
			r.eventually("evosqueue tells of the suspension", 30*time.Second, func() error {
				if q := r.queued(0, j.id); !strings.EqualFold(q.State, "suspended") {
					return fmt.Errorf("it is %s: %s", q.State, q.Reason)
				}
				return nil
			})
			for r.inSlurm(j.id).State == "SUSPENDED" {
				q := r.queued(0, j.id)
				if r.inSlurm(j.id).State != "SUSPENDED" {
					break // it went on in between
				}
				if !strings.EqualFold(q.State, "suspended") || strings.Contains(q.Reason, "longer than") || q.Nodes != 3 {
					r.fatalf("suspended for %v, it is %s in step %d on %d nodes: %s", time.Since(begun), q.State, q.Step, q.Nodes, q.Reason)
				}
				if late := time.Since(begun); late > 15*time.Second && q.End.Sub(before) < 5*time.Second {
					r.fatalf("suspended for %v, its end was planned for %v and is for %v", late, before, q.End)
				}
				time.Sleep(500 * time.Millisecond)
			}
			r.becomes(rival, "COMPLETED")
			r.becomes(j.id, "RUNNING")
			r.finish(j)
		})
	})
	r.run("1→3→1, a hpc job comes before its growth", func(r *trial) {
		// An srun called at the very moment at which Slurm suspends the job waits for
		// SlurmctldTimeout after the job resumes, also in a stock job.
		j := r.accepted(demand{profile: "1@20s,3@10s,1@5s", pause: 2})
		r.inStep(j, 1)
		r.becomes(r.stock(1, 10*time.Second, "--partition=hpc", "--nodes=8", "--time=2"), "COMPLETED")
		r.finish(j)
	})
}

func onDeepOps(r *trial) {
	all := func(j seen) string {
		if want := fmt.Sprintf("gres/gpu=%d", 8*len(j.Nodes)); !slices.Contains(strings.Split(j.TRES, ","), want) || strings.Contains(j.TRES, "mem=") {
			return fmt.Sprintf("job %d has %s, want %s and no mem", j.ID, j.TRES, want)
		}
		return ""
	}
	const devices = "0,1,2,3,4,5,6,7"
	r.run("1→3→1", func(r *trial) { r.evolve(demand{has: everywhere("0", "gpu:8"), part: all}) })
	for _, option := range []string{"--gpus-per-node=8", "--gres=gpu:8"} {
		r.run("1→3→1 "+option, func(r *trial) {
			name, _, _ := strings.Cut(option, "=")
			r.evolveOr(demand{args: []string{option}, has: everywhere("0", "gpu:8"), part: all, gpus: devices}, name)
		})
	}
}

func onULHPC(r *trial) {
	enters := func(j seen) string {
		if j.Account != "allusers" || j.QOS != "qos-batch" {
			return fmt.Sprintf("job %d is of account %s and QOS %s", j.ID, j.Account, j.QOS)
		}
		return ""
	}
	r.run("1→3→1", func(r *trial) { r.evolve(demand{drive: "companion", part: enters}) })
	interactive := []string{"--partition=interactive", "--qos=qos-interactive"}
	r.run("1→6→1 with an interactive job on two of seven nodes", func(r *trial) {
		id := r.stock(1, time.Hour, append([]string{"--nodes=2", "--nodelist=n2,n3", "--exclusive"}, interactive...)...)
		r.becomes(id, "RUNNING")
		r.finish(r.accepted(demand{profile: "1@10s,6@12s,1@5s", part: enters}))
		r.cancel(id)
	})
	r.run("an interactive job that batch preempts", func(r *trial) {
		r.becomes(r.stock(1, time.Hour, append([]string{"--nodes=1", "--nodelist=n1", "--exclusive"}, interactive...)...), "RUNNING")
		j := r.accepted(demand{bare: true, profile: "1@8s,2@60s,1@5s", args: interactive})
		r.inStep(j, 2)
		r.becomes(r.stock(1, 5*time.Second, "--partition=batch", "--qos=qos-batch", "--nodes=7", "--time=2"), "COMPLETED")
		r.eventually("evosqueue tells the job's end", patience, func() error {
			q := r.queued(0, j.id)
			if q.State != "ended" || q.EndState != "PREEMPTED" && q.EndState != "CANCELLED" {
				return fmt.Errorf("it is %s (%s) on %d nodes: %s", q.State, q.EndState, q.Nodes, q.Reason)
			}
			r.now.Drive, r.now.Text = q.Drive, strings.TrimSpace("ended "+q.EndState+" "+q.Reason)
			return nil
		})
		r.cancel(r.others[0])
	})
}

func onUGent(r *trial) {
	r.run("1→3→1", func(r *trial) {
		r.evolve(demand{has: everywhere("800", ""), also: "evosrun --ntasks-per-node=1 --mem=700 true"})
	})
	r.run("1→3→1, nobody else's business", func(r *trial) {
		j := r.accepted(demand{profile: "1@6s,2@10s,1@5s"})
		r.inStep(j, 1)
		if q := r.queued(1, j.id); q.ID != 0 {
			r.errorf("evosqueue shows another user %+v", q)
		}
		if q := r.queued(0, j.id); q.State != "running" || q.Nodes != 1 {
			r.errorf("evosqueue shows its user %+v", q)
		}
		r.finish(j)
		if q := r.queued(1, j.id); q.ID != 0 {
			r.errorf("evosqueue --all shows another user %+v", q)
		}
	})
	r.run("two malleable jobs, and stock jobs that come", func(r *trial) { r.malleable(8) })
	r.run("no --mem: a node's default passes MaxMemPerNode", func(r *trial) { r.refused(demand{bare: true}, "MaxMemPerNode", "--mem") })
	r.run("9 nodes", func(r *trial) { r.refused(demand{profile: "1@10s,9@10s,1@5s"}, "9", "8") })
}

func onGCP(r *trial) {
	asleep := func(r *trial) {
		r.t.Helper()
		if _, err := r.Cluster.Run(context.Background(), slurmtest.Root, "scontrol", "update", "NodeName=n[3-8]", "State=POWER_DOWN"); err != nil {
			r.fatalf("%v", err)
		}
		r.eventually("the nodes are switched off", patience, func() error {
			text, err := r.Cluster.Run(context.Background(), slurmtest.Root, "sinfo", "-hN", "-p", "compute", "-o", "%N %T")
			if err == nil && strings.Count(text, "idle~") < 6 {
				err = fmt.Errorf("%s", text)
			}
			return err
		})
	}
	all := everywhere("1500", "")
	r.run("3→5→1", func(r *trial) {
		asleep(r)
		r.evolve(demand{has: all})
	})
	r.run("2→5→2, the growth so far ahead that its nodes fall asleep", func(r *trial) {
		asleep(r)
		j := r.accepted(demand{profile: "2@60s,5@12s,2@5s", has: all})
		r.finish(j)
		said := r.read(j)
		for _, shot := range r.watch.between(said.steps[0].leave, said.steps[1].begin) {
			for _, s := range shot.Jobs {
				if s.State == "CONFIGURING" && !strings.Contains(said.text, "evosctl: ") {
					r.fatalf("the growth's nodes were switched on only when its time had come, without a message")
				}
			}
		}
	})
	r.run("2→4→2, two nodes that do not come up", func(r *trial) {
		asleep(r)
		for _, n := range []string{"n3", "n4"} {
			r.must(broken(r.Cluster, n, true))
		}
		defer func() {
			for _, n := range []string{"n3", "n4"} {
				r.must(broken(r.Cluster, n, false))
				_, err := r.Cluster.Run(context.Background(), slurmtest.Root, "scontrol", "update", "NodeName="+n, "State=RESUME")
				r.must(err)
			}
		}()
		r.finish(r.accepted(demand{profile: "2@12s,4@15s,2@5s", has: all, never: []string{"n3", "n4"}}))
	})
	r.run("1→6→1, nodes switched off by plan", saving)
}

func onSeaWulf(r *trial) {
	all := everywhere("1920", "")
	in := func(partition string) []string { return []string{"--partition=" + partition} }
	// a growth by one node is too small for medium-40core (MinNodes), but not for short-40core,
	// which has the same nodes on the same terms
	const over = "short-40core"
	r.run("3→4→3", func(r *trial) { r.evolve(demand{has: all, over: over}) })
	r.run("2 nodes in a queue of 3 and more", func(r *trial) { r.refused(demand{profile: "3@10s,2@10s"}, "MinNodes", "medium-40core", "3") })
	r.run("7 nodes in a queue of 6 at most", func(r *trial) { r.refused(demand{profile: "3@10s,7@10s"}, "MaxNodes", "medium-40core", "6") })
	r.run("1→3→1 in a queue for one job of a user", func(r *trial) {
		r.evolveOr(demand{profile: "1@10s,3@12s,1@5s", bare: true, args: in("debug-40core"), has: all}, "MaxJobsPerUser", "debug")
	})
	r.run("3→4→3 with another job of the user in the queue", func(r *trial) {
		other := r.stock(0, time.Hour, append(in("medium-40core"), "--nodes=3", "--time=30")...)
		r.becomes(other, "RUNNING")
		j := r.accepted(demand{profile: "3@8s,4@10s,3@5s", has: all, over: over})
		r.until(j, "the end of step 1", func(s told) bool { return len(s.steps) > 0 && !s.steps[0].leave.IsZero() })
		r.eventually("it grows, or evosqueue names the limit", patience, func() error {
			q := r.queued(0, j.id)
			if q.Step < 2 && !strings.Contains(q.Reason, "MaxJobsPerUser") && !strings.Contains(q.Reason, "MaxTRESPerUser") {
				return fmt.Errorf("it is %s in step %d: %s", q.State, q.Step, q.Reason)
			}
			return nil
		})
		r.cancel(other)
		r.finish(j)
	})
	r.run("3→6→3 beside jobs of the shared queue", func(r *trial) {
		id := r.stock(1, time.Hour, append(in("short-40core-shared"), "--nodes=2", "--nodelist=n1,n2", "--ntasks=2", "--time=30")...)
		r.becomes(id, "RUNNING")
		r.finish(r.accepted(demand{profile: "3@10s,6@12s,3@5s", has: all, never: []string{"n1", "n2"}}))
		if s := r.inSlurm(id).State; s != "RUNNING" {
			r.errorf("the job of the shared queue is %s", s)
		}
		r.cancel(id)
	})
}

// onAllPartitions tries a site whose plugin puts a job that names no partition into small, the
// default, and wide. Such a job runs in wide if small lacks the nodes for its growth.
func onAllPartitions(r *trial) {
	inWide := func(j seen) string {
		if j.Partition != "wide" {
			return fmt.Sprintf("job %d runs in partition %s, want wide", j.ID, j.Partition)
		}
		return ""
	}
	r.run(r.site.Profile, func(r *trial) { r.evolve(demand{never: []string{"n1", "n2"}, part: inWide}) })
	r.run("7 nodes: more than either partition has", func(r *trial) {
		r.refused(demand{profile: "1@10s,7@10s,1@5s"}, "partition small has 2", "partition wide has 6", "The job is cancelled")
	})
	r.run("--partition=small", func(r *trial) {
		r.refused(demand{args: []string{"--partition=small"}}, "partition small has 2", "The job is cancelled")
	})
}
