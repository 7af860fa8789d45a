package slurmsim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// ruleScript is a site's job_submit.lua. It overwrites all comments, rejects node names in
// partition other, and accepts changes of jobs called strict only with Account=.
const ruleScript = `
function slurm_job_submit(job, parts, uid)
	if job.partition == "other" and job.req_nodes ~= nil then return slurm.ERROR end
	job.comment = "site"
	return slurm.SUCCESS
end
function slurm_job_modify(job, record, parts, uid)
	if record.name == "strict" and job.account == nil then return slurm.ERROR end
	job.comment = "changed"
	return slurm.SUCCESS
end
return slurm.SUCCESS
`

// ruleModel models the same plugin, on two partitions of four nodes each.
var ruleModel = slurmsim.Options{Accounting: true, PermitJobExpansion: true,
	Partitions: []slurmsim.Partition{
		{Partition: slurmctl.Partition{Name: "main", Default: true, Up: true, MaxTime: slurmctl.Unlimited, DefaultTime: 10 * time.Minute, Nodes: []string{"n1", "n2", "n3", "n4"}}},
		{Partition: slurmctl.Partition{Name: "other", Up: true, MaxTime: slurmctl.Unlimited, DefaultTime: 10 * time.Minute, Nodes: []string{"n5", "n6", "n7", "n8"}}},
	},
	Plugin: slurmsim.Plugin{
		Submit: func(j *slurmsim.Job) error {
			if j.Partition == "other" && len(j.NodeList) > 0 {
				return slurmsim.Refusal("Unspecified error")
			}
			j.Comment = "site"
			return nil
		},
		Update: func(j slurmctl.Job, u *slurmsim.Update) error {
			if j.Name == "strict" && u.Account == "" {
				return slurmsim.Refusal("Unspecified error")
			}
			comment := "changed"
			u.Comment = &comment
			return nil
		},
	}}

func ruleCluster(t *testing.T) *slurmtest.Cluster {
	return slurmtest.Start(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true, ExtraConf: "JobSubmitPlugins=lua",
		Partitions: []slurmtest.Partition{{Name: "main", Nodes: "n[1-4]", Default: true, Extra: "DefaultTime=10"}, {Name: "other", Nodes: "n[5-8]", Extra: "DefaultTime=10"}},
		Files:      map[string]string{"job_submit.lua": ruleScript}})
}

var ruleFeatures = []feature{
	{"a plugin overwrites comments", func(w *world) {
		id := w.start(slurmsim.Job{Nodes: 1, Comment: "mine"})
		if j := w.until(id, slurmctl.Running); j.Comment != "site" {
			w.Errorf("comment %q at submission", j.Comment)
		}
		w.must(w.UpdateJob(w.ctx, id, slurmctl.JobUpdate{TimeLimit: 30 * time.Minute}))
		if j := w.job(id); j.Comment != "changed" || j.TimeLimit != 30*time.Minute {
			w.Errorf("comment %q, limit %v after an update", j.Comment, j.TimeLimit)
		}
	}},
	{"a plugin refuses what names nodes", func(w *world) {
		_, err := w.submit(slurmsim.Job{Nodes: 1, Partition: "other", NodeList: []string{"n5"}, TimeLimit: time.Minute})
		w.is("sbatch", err, slurmctl.ErrUnspecified)
		_, err = w.allocate(slurmctl.AllocateRequest{Nodes: 1, Partition: "other", NodeList: []string{"n5"}})
		w.is("salloc", err, slurmctl.ErrUnspecified)
		w.hold("evo_1_1_1", 0, "n6", "n7")
		k, err := w.allocate(slurmctl.AllocateRequest{Nodes: 2, Partition: "other", Reservation: "evo_1_1_1", NodeList: []string{"n6", "n7"}, Parked: true})
		w.must(err)
		w.on(w.until(k.ID, slurmctl.Running), "n6", "n7")
	}},
	{"updates want Account=", func(w *world) {
		id := w.start(slurmsim.Job{Name: "strict", Nodes: 1, Begin: w.now().Add(time.Hour)})
		w.must(w.UpdateJob(w.ctx, id, slurmctl.JobUpdate{StartTime: w.now().Add(2 * time.Hour)}))
		if !w.WantsAccount() {
			w.Error("the client does not know it")
		}
		w.must(w.UpdateJob(w.ctx, id, slurmctl.JobUpdate{StartNow: true}))
		w.until(id, slurmctl.Running)
		w.is("an update of a running job", w.UpdateJob(w.ctx, id, slurmctl.JobUpdate{TimeLimit: 30 * time.Minute}), slurmctl.ErrWantsAccount)
	}},
	{"a job of several partitions", func(w *world) {
		if _, err := w.submit(slurmsim.Job{Nodes: 1, Partition: "main,nowhere"}); err == nil {
			w.Error("a partition that there is not is taken")
		}
		full := w.start(slurmsim.Job{Nodes: 4})
		w.until(full, slurmctl.Running)
		id := w.start(slurmsim.Job{Nodes: 3, Partition: "main,other"})
		if j := w.until(id, slurmctl.Running); j.Partition != "other" {
			w.Errorf("it runs in %q", j.Partition)
		}
		late := w.start(slurmsim.Job{Nodes: 2, Partition: "main,other", Begin: w.now().Add(time.Hour)})
		if j := w.job(late); j.Partition != "main,other" {
			w.Errorf("it is pending in %q", j.Partition)
		}
		w.must(w.UpdateJob(w.ctx, late, slurmctl.JobUpdate{StartNow: true, Partition: "main"}))
		if j := w.until(late, slurmctl.Pending, "Resources"); j.Partition != "main" {
			w.Errorf("moved, it is in %q", j.Partition)
		}
		w.must(w.Cancel(w.ctx, full))
		w.until(late, slurmctl.Running)
		if _, err := w.submit(slurmsim.Job{Nodes: 5, Partition: "main,other"}); err == nil || !strings.Contains(err.Error(), "Requested node configuration is not available") {
			w.Errorf("more nodes than a partition has: %v", err)
		}
	}},
}
