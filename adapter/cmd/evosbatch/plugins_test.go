package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

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
	if site("append") then job.comment = (job.comment or "") .. ",stdout=x" end
	if site("overwrite") or site("strip") or site("begin") then job.comment = "uid" end
	if site("strip") then job.script = job.script:gsub("#EVO[^\n]*\n", "") end
	if site("begin") then job.begin_time = os.time() + 3600 end
	return slurm.SUCCESS
end
function slurm_job_modify(job, record, parts, uid)
	return slurm.SUCCESS
end
return slurm.SUCCESS
`

// TestSubmitPlugins: on sites whose plugins change comments a request survives, or the
// job is refused with the reason.
func TestSubmitPlugins(t *testing.T) {
	cluster := slurmtest.Start(t, slurmtest.Options{ExtraConf: "JobSubmitPlugins=lua", Files: map[string]string{"job_submit.lua": sitePlugin}})
	testscript.Run(t, testscript.Params{
		Dir: "testdata/plugins",
		Setup: func(env *testscript.Env) error {
			keep := env.Getenv("PATH") // with the commands under test
			for _, assignment := range cluster.Env() {
				name, value, _ := strings.Cut(assignment, "=")
				env.Setenv(name, value)
			}
			env.Setenv("PATH", keep)
			env.Setenv("TZ", "UTC")
			env.Setenv("SITE", filepath.Join(cluster.Dir(), "site"))
			env.Setenv("EVOSLURM_CONFIG", filepath.Join(env.WorkDir, "evoslurm.yaml"))
			return os.WriteFile(filepath.Join(env.WorkDir, "evoslurm.yaml"), nil, 0o644)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"jobid":  jobID,
			"fields": fields,
		},
	})
}
