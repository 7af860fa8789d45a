package controller_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/job/submit"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// sitePlugin is a job_submit.lua that behaves like those of sites; the file "site" beside it
// selects the behaviour.
const sitePlugin = `
local dir = debug.getinfo(1, "S").source:match("^@(.*/)")
local function site(what)
	local f = io.open(dir .. "site")
	if f == nil then return false end
	local text = f:read("*a")
	f:close()
	return text:find(what, 1, true) ~= nil
end
function slurm_job_submit(job, parts, uid)
	if site("append") then job.comment = (job.comment or "") .. ",stdout=/home/u/x;y.out" end
	if site("wrap") then job.comment = '{"user":"' .. (job.comment or "") .. '","uid":' .. uid .. "}" end
	if site("overwrite") then job.comment = "uid=" .. uid end
	return slurm.SUCCESS
end
function slurm_job_modify(job, record, parts, uid)
	if site("update") then job.comment = "updated by uid " .. uid end
	if site("account") and job.account == nil then return slurm.ERROR end
	if site("never") then return slurm.ERROR end
	return slurm.SUCCESS
end
return slurm.SUCCESS
`

// TestSubmitPlugins: what sites' job_submit plugins do to comments, and to updates, keeps
// no job from running as its profile says.
func TestSubmitPlugins(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true, ExtraConf: "JobSubmitPlugins=lua",
		Files: map[string]string{"job_submit.lua": sitePlugin}})
	site := func(l *lab, what string) {
		l.t.Helper()
		l.must(os.WriteFile(filepath.Join(l.cluster.Dir(), "site"), []byte(what), 0o644))
	}
	profile, err := planner.ParseProfile("1@60s,3@60s,1@60s")
	l.must(err)
	through := func(l *lab, id uint32) {
		l.t.Helper()
		if job := l.running(id, 1); job.Nodes != 1 {
			l.t.Errorf("%d nodes in step 1", job.Nodes)
		}
		l.has(l.next(id, 1), 3)
		l.has(l.next(id, 2), 1)
		l.end(id)
	}
	for _, c := range []struct {
		name, site string
		drive      drivemode.Mode
		stored     bool // evosbatch has put the request into the script
	}{
		{"append", "append", drivemode.Merge, false},
		{"wrap", "wrap append", drivemode.Companion, false},
		{"overwrite", "overwrite", drivemode.Merge, true},
		{"overwrite always", "overwrite update", drivemode.Merge, true},
		{"overwrite always, companions", "overwrite update", drivemode.Companion, true},
	} {
		l.run(c.name, func(l *lab) {
			site(l, c.site)
			sp := request.Request{Drive: c.drive, Comment: "my own; words", Nodes: "n[1-5]"}
			if !c.stored {
				through(l, l.submitSpec(sp, profile.String()))
				return
			}
			sp.Profile = profile
			through(l, l.stored(sp))
		})
	}

	l.run("a chain without a marker", func(l *lab) {
		site(l, "overwrite update")
		chain, err := planner.ParseProfile("1@60s,2@60s")
		l.must(err)
		first := l.stored(request.Request{Profile: chain, Drive: drivemode.Chain, Chain: &request.ChainLink{Step: 1}})
		second := l.stored(request.Request{Profile: chain, Drive: drivemode.Chain, Chain: &request.ChainLink{Step: 2, First: first}},
			fmt.Sprintf("--dependency=afterany:%d", first))
		l.running(first, 1)
		l.cancelStock(0, first)
		l.eventually("the rest of the chain goes with its first job", func() error {
			if state := l.squeue(second, "%T"); strings.TrimSpace(state) != "" {
				return fmt.Errorf("job %d is %s", second, state)
			}
			return nil
		})
	})

	l.run("neither marker nor script", func(l *lab) {
		site(l, "overwrite")
		id := l.submit("1@60s") // its script says nothing
		other := l.stored(request.Request{Profile: profile})
		l.running(other, 1)
		if job, err := l.Job(l.ctx(), id); err == nil {
			l.t.Errorf("a job that asks for nothing was adopted: %+v", job)
		}
		l.cancelStock(0, id)
		l.end(other)
	})

	l.run("a damaged marker that the script makes good", func(l *lab) {
		site(l, "")
		id := l.stored(request.Request{Profile: profile}, "--comment=evo:v2;p=1@6")
		through(l, id)
		bad := l.sbatch(0, "--comment=evo:v2;p=1@6", "--begin="+submit.ParkedUntil)
		l.eventually("the one that it does not is refused in words", func() error {
			jobs, err := l.Jobs(l.ctx(), false)
			for _, job := range jobs {
				if job.ID == bad && strings.Contains(job.Reason, "refused: damaged marker: it has no end") {
					return nil
				}
			}
			return fmt.Errorf("%+v, %v", jobs, err)
		})
		l.cancelStock(0, bad)
	})

	l.run("updates want Account=", func(l *lab) {
		site(l, "account")
		again := func() { // as a process of its own, which knows nothing of that
			l.stop()
			l.slurm = &slurmctl.Client{Env: l.cluster.Env(), Timeout: 20 * time.Second}
			l.start()
		}
		again()
		companion := func(id uint32) {
			if job := l.running(id, 1); job.Drive != string(drivemode.Companion) || strings.Contains(job.Reason, "Account") {
				l.t.Errorf("drive mode %s, reason %q", job.Drive, job.Reason)
			}
		}
		id := l.submit("1@60s,3@60s,5@60s,3@60s,1@60s") // auto
		companion(id)
		if !l.slurm.WantsAccount() {
			l.t.Error("the client does not know it")
		}
		for step, nodes := range []int{3, 5, 3, 1} {
			l.has(l.next(id, step+1), nodes)
		}
		l.end(id)
		id = l.submit("1@60s,3@60s,1@60s,3@60s,1@60s") // nodes that are held for it once more
		companion(id)
		l.has(l.next(id, 1), 3)
		l.must(l.cluster.RestartController(l.ctx())) // what runs in a hold goes on there
		l.has(l.next(id, 2), 1)
		l.has(l.next(id, 3), 3)
		l.has(l.next(id, 4), 1)
		l.end(id)
		l.eventually("the holds to be given up", func() error {
			out, err := l.cluster.Run(l.ctx(), slurmtest.Root, "scontrol", "show", "reservation")
			if strings.Contains(out, "evo_") {
				err = errors.New(out)
			}
			return err
		})
		id = l.submit(profile.String())
		companion(id)
		again() // while it runs: the growth finds it out
		l.has(l.next(id, 1), 3)
		l.has(l.next(id, 2), 1)
		l.end(id)
		l.verdict(l.submitSpec(request.Request{Drive: drivemode.Merge}, profile.String()), "drive mode merge cannot work here: the site's job_submit plugin refuses updates without Account=")
		l.verdict(l.submit("3@60s,1@60s"), "step 2, of 1 nodes, would have to give back nodes of the 3")
	})
	l.run("no update is taken", func(l *lab) {
		site(l, "never")
		id := l.submit(profile.String())
		l.verdict(id, "the site refuses to have it changed, so it could never start")
	})
}

// stored submits a job whose script holds the request, as evosbatch does on sites with such
// plugins.
func (l *lab) stored(sp request.Request, args ...string) uint32 {
	l.t.Helper()
	file := filepath.Join(l.user(0).Home, fmt.Sprintf("request-%d", len(args)))
	l.must(os.WriteFile(file, []byte(sp.ScriptLine()), 0o644))
	marker, _ := sp.Marker()
	step := 0
	if sp.Chain != nil {
		step = sp.Chain.Step - 1
	}
	return l.sbatch(0, append([]string{"--begin=" + submit.ParkedUntil, "--exclusive", "--comment=" + marker, "--bbf=" + file,
		fmt.Sprintf("--nodes=%d", sp.Profile[step].Nodes), "--time=10"}, args...)...)
}
