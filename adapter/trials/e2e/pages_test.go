package e2e_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// administrators are the commands of docs/install.md and docs/administering.md, and how they are typed here: as root, on a cluster on
// which job $JOB has run, beside a trace.swf.gz, slurm.conf and evoslurm.yaml; "": as they stand. What they say goes to file said.
var administrators = map[string]string{
	"evosctl doctor":    "",
	"evoslurmd --check": `evoslurmd --check && grep -q "drives evolving jobs" said`,
	"evosctl doctor --trial [-p PARTITION] [-A ACCOUNT] [-q QOS]":     "evosctl doctor --trial -p main", // as any user: TestTrial
	"evosim replay --why=JOB --until=TIME /var/lib/evoslurm/recorder": `evosim replay --why=$JOB --until="$(date +%FT%T)" $DIR/db/recorder && grep -q "step 2 of 2" said`,
	"evosctl bundle --mask": "evosctl bundle --mask && tar tzf evoslurm-*.tar.gz",
	"evosctl strategy list": `evosctl strategy list && grep -q noX said`,
	"evosctl events":        "evosctl events && grep -q begun said",
	"evosqueue":             "",
	"evosctl allow --group=pilot --partition=batch": "", "evosctl deny --user=alice": "", "evosctl allow --list": "", "evosctl allow --configured": "", // both
	"evosctl power": `evosctl power && grep -q "Mode: off" said`, "evosctl power set power.reserve=2": "", "evosctl power set power.mode=off": "",
	"evosctl power set power.mode=act": `! evosctl power set power.mode=act && grep -q "power.watts: missing" said`,
	"evosctl budget":                   "", "evosctl budget set max_delay=30m hold_shares.user.node_hours=20": "", "evosctl budget set --configured": "",
	"evosctl report --observe --since=now-7days --html=page.html": `! evosctl report --observe --since=now-7days --html=page.html && grep -q "nothing has been observed" said`, // else TestObserve
	"evosctl web":                          "! timeout 3 evosctl web && grep -q http said",
	"evosctl report -S now-7days --by=day": `evosctl report -S now-7days --by=day && grep -q HELDIDLE said && evosctl report --by=user --format=json | tee -a said | grep -q '"made": 1'`,
	"evosacct -a --totals=user":            "evosacct -a --totals=user && grep -q HeldIdle said",
	"evosim sweep":                         `printf 'traces: [{name: own, file: trace.swf.gz}]\nshares: [0, 0.5]\nstrategies: [slurm, noX]\nseeds: [1]\n' >grid.yaml && evosim sweep grid.yaml && test -s grid.sweep/results.csv`,
	"evosim run --slurm-conf=slurm.conf --config=evoslurm.yaml --evolving=0.1 trace.swf.gz": "",
	"--beside=all --report=page.html": "evosim run --slurm-conf=slurm.conf --config=evoslurm.yaml --evolving=0.1 --beside=all --report=page.html trace.swf.gz && test -s page.html",
	"evosctl next":                    `evosbatch --wait --output=/dev/null --profile=1@1m,2@1m --wrap 'eval "$(evosctl next)"'`,
}

// tried are the commands of these pages that are not ours, or that other tests type, and what runs them.
var tried = map[string]string{
	"systemctl status": "TestStatusLine", "evoslurmd --mask": "TestMask",
	"make": "everything", "make && make install": "TestInstall", "make packages": "make try-packages", "make try-packages": "itself", "make crash": "itself", "make takeover": "itself", "systemctl restart evoslurmd": "TestKeeper", "make load": "itself",
	"systemctl daemon-reload && systemctl enable --now evoslurmd": "systemd-analyze verify, in make try-packages", "systemctl enable --now evoslurm-observed.timer": "systemd-analyze verify, in make try-packages",
	"make sites": "itself", "make chart": "itself", "make image": "make try-image", "make try-image": "itself",
	"evosctl drain": "TestRunbook", "evosctl resume": "TestRunbook", "evosctl release-all": "TestRunbook", "evosctl release-all --direct": "TestRunbook",
	"apt install ./evoslurm_*.deb ./evoslurm-client_*.deb": "make try-packages", "dnf install evoslurm-*.rpm": "make try-packages",
	"editor /etc/evoslurm/evoslurm.yaml": "make try-packages", "systemctl enable --now evoslurmd.socket evoslurmd": "systemd-analyze verify, in make try-packages",
	"spack repo add contrib/spack/spack_repo/evoslurm": "by hand", "spack install evoslurm": "by hand",
	"dnf --installroot=$CHROOT install ./evoslurm-client-*.rpm": "dnf without --installroot, in make try-packages", "wwctl overlay import generic /etc/evoslurm/evoslurm.yaml": "nobody: there is no Warewulf here",
	"evosctl power --history": "evosctl's TestScripts", "evosqueue -M all": "TestClusters", "evosbatch --stage-in": "TestClusters", "evosbatch -M all …": "TestClusters",
	"scontrol update NodeList=": "TestMatrixStepMgr", "scontrol reconfigure": "the controller's tests", "kill -9": "make crash", "import evoslurm": "make try-packages",
}

// TestAdministratorsCommands types every command of the administrators' pages on a private Slurm; one that is on a page and not known here fails.
func TestAdministratorsCommands(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Nodes: 4, PermitJobExpansion: true, Accounting: true}, nil)
	id := s.submit("--profile=1@1m,2@1m", s.script("job.sh", "#!/bin/sh\neval \"$(evosctl next)\"\nsleep 2\n"))
	s.output(id)
	dir := filepath.Join(s.Dir, "admin")
	s.must(os.Mkdir(dir, 0o755))
	trace, err := os.Create(dir + "/trace.swf.gz")
	s.must(err)
	z := gzip.NewWriter(trace)
	fmt.Fprint(z, "; MaxNodes: 4\n; MaxProcs: 4\n")
	for i := range 12 { // submit time, wait, run time, processors, requested processors and time
		fmt.Fprintf(z, "%d %d 0 %d %d -1 -1 %d %d -1 1 1 1 1 1 1 -1 -1\n", i+1, 60*i, 300+60*i, 1+i%3, 1+i%3, 1200)
	}
	s.must(z.Close())
	s.must(trace.Close())
	for from, to := range map[string]string{s.Cluster.Dir() + "/slurm.conf": "/slurm.conf", s.Dir + "/evoslurm.yaml": "/evoslurm.yaml"} {
		text := must.Read(s.t, from)
		s.must(os.WriteFile(dir+to, text, 0o644))
	}
	seen := map[string]bool{}
	for _, page := range []string{"install.md", "administering.md"} {
		text := must.Read(s.t, "../../../docs/"+page)
		for _, line := range commandsIn(string(text)) {
			line, _, _ = strings.Cut(line, " # ")
			line = strings.TrimSpace(line)
			typed, ours := administrators[line]
			first, _, more := strings.Cut(line, " ")
			switch {
			case seen[line] || tried[line] != "":
			case ours:
				if typed == "" {
					typed = line
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				cmd := exec.CommandContext(ctx, "sh", "-c", "exec >said 2>&1; "+typed)
				cmd.Dir = dir
				cmd.Env = slices.Concat(os.Environ(), s.Env(), []string{"JOB=" + id, "DIR=" + s.Dir})
				begun := time.Now()
				if err := cmd.Run(); err != nil {
					said, _ := os.ReadFile(dir + "/said")
					t.Errorf("%s: %s: %v\n%s", page, typed, err, said)
				}
				t.Logf("%s: %s: %v", page, line, time.Since(begun).Round(time.Millisecond))
				cancel()
			case more && (programs[first] != "" || slices.Contains([]string{"make", "apt", "dnf", "systemctl", "spack", "scontrol", "editor", "wwctl", "kill"}, first)):
				t.Errorf("%s has %q, which nothing types", page, line)
			}
			seen[line] = true
		}
	}
	for line := range administrators {
		if !seen[line] {
			t.Errorf("%q is on no page any more", line)
		}
	}
}

// takenBack submits what a page has of a request, and takes it back.
const takenBack = `id=$(evosbatch --parsable --output=/dev/null %s --wrap true) && scancel $id`

// users holds the commands of docs/using.md and docs/applications.md, except the fences
// (TestEvolvePages, TestExamples), and how to type them here, in the order of the page: as a user
// on 16 nodes (job $JOB has two), beside the Python library; "" for unchanged. Their output
// goes to the file said.
var users = map[string]string{
	"evosdemo tutorial": "", "evosctl strategy policies": "evosctl strategy policies && grep -q folding said", "evosctl help launch": "",
	"pydoc3 evoslurm":                                  "python3 -m pydoc evoslurm && grep -q 'steps(' said",
	"evosbatch --on-grow=CMD":                          "--on-grow=true --on-shrink=true --on-step=true --profile=1@1m,2@1m",
	"evosctl update --profile=8@20m,2@5m":              "evosctl update --profile=8@20m,2@5m && until evosqueue -h -j $JOB -o '%{profile}' | grep -qx 2@1h,8@20m,2@5m; do sleep 0.2; done",
	"evosctl grow 4 --for=20m":                         "evosctl grow 4 --for=20m && test $(evosctl hostfile | wc -l) = 6",
	"evosctl shrink 4":                                 "evosctl shrink 4 && test $(evosctl hostfile | wc -l) = 2",
	"evosbatch --max-nodes=16":                         "--max-nodes=16 --profile=1@1m",
	"evosbatch --profile='2@10m,5@30m,?1-16@2h'":       "--profile='2@10m,5@30m,?1-16@2h'",
	"evosbatch --array=1-100%10 job.sh":                "--array=1-100%10 --profile=1@1m,2@1m",
	"--moldable=4@2h,8@70m,16@40m":                     "--moldable=4@2h,8@70m,16@40m",
	"--moldable='2@10m,5@30m | 4@15m,8@20m'":           "--moldable='2@10m,5@30m | 4@15m,8@20m'",
	"evosbatch --malleable=2-8 --size=pow2 --grace=1m": "evosbatch --parsable --malleable=2-8 --size=pow2 --grace=1m --time=60 --output=/dev/null --wrap 'sleep 3000' && cp said malleable && until evosqueue -h -t R -j $(cat malleable) | grep -q .; do sleep 0.2; done",
	"--profile=2-4@10m,5-16@30m":                       "--profile=2-4@10m,5-16@30m",
	"evosctl wait-event":                               "EVO_JOB_ID=$(cat malleable) evosctl wait-event --timeout=2m && grep -q grow said",
	"evosctl accept K":                                 "export EVO_JOB_ID=$(cat malleable); until evosctl accept 2; do evosctl wait-event --timeout=1m; done; test $(evosctl hostfile | wc -l) = 4", // an offer may be withdrawn in between
	"evosbatch --malleable=1-16 --time=4:00:00 --tasks=1-30000 --retries=2 -- ./simulate --seed={}": `id=$(evosbatch --parsable --output=/dev/null --malleable=1-16 --time=4:00:00 --tasks=1-30000 --retries=2 -- ./simulate --seed={}) && scancel $id`,
	"evosctl progress 0.37":            "EVO_JOB_ID=$(cat malleable) evosctl progress 0.37 && until evosqueue -l -j $(cat malleable) | grep -q 37%; do sleep 0.2; done",
	"--profile=2@10m:low,5@30m:2.1GHz": "--profile=2@10m:low,5@30m:2.1GHz",
	"--expand-limit=2":                 "--expand-limit=2 --profile=1@1m,2@1m",
	"--drive=chain":                    "--drive=chain --profile=1@1m,2@1m",
	"evosctl hostfile":                 "evosctl hostfile && test $(wc -l <said) = 2",
	"evosctl launch":                   "evosctl launch $(evosctl hostfile | tail -n 1) uname && grep -q Linux said",
}

// ofUsers are the commands of these pages that something else tries.
var ofUsers = map[string]string{
	"evosctl next": "TestEvolvePages", "evosrun …": "TestEvolvePages", "evosrun --follow -- ./worker": "TestFollow", "evosrun --follow -- worker": "TestFollow", "evosrun --follow": "TestFollow",
	"evosrun --tasks=FILE": "TestBag", "evosrun --tasks": "TestBag", "evosctl tasks": "TestBag", "evosctl tasks --failed": "TestBag",
	"evosbatch -M all --profile=2@10m,5@30m job.sh": "TestClusters", "evosbatch -M all --stage-in=/data/mesh.h5 --placement=close-to-files …": "TestClusters", "evosctl profile 4711": "evosctl's TestScripts", "evosctl env": "evosctl's TestScripts",
	"evosrun --follow=script … &": "TestFollow", "evosctl tasks evocampaign-1": "TestCampaign", "evosctl accept --until=TIME K": "TestPromise", "evosbatch --on-grow=CMD --on-shrink=CMD": "TestEvolvePages", "evosctl … --json": "TestProtocol", "make examples": "itself", "make try-docs": "itself",
}

// TestUsersCommands types every command of the users' pages on a private Slurm; one that is on a page and not known here fails.
func TestUsersCommands(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Nodes: 16, PermitJobExpansion: true, Accounting: true}, nil)
	library, err := filepath.Abs("../../../contrib/python")
	s.must(err)
	id := s.submit("--profile=2@1h,8@1h", "--wrap", "sleep 3000")
	s.eventually("the job runs", func() bool { return s.job(id).State == "running" })
	seen := map[string]bool{}
	for _, page := range []string{"using.md", "applications.md"} {
		text := must.Read(s.t, "../../../docs/"+page)
		for _, line := range commandsIn(anyFence.ReplaceAllString(string(text), "")) {
			line = strings.TrimSpace(line)
			typed, known := users[line]
			first, _, more := strings.Cut(line, " ")
			switch {
			case seen[line] || ofUsers[line] != "":
			case known:
				if typed == "" {
					typed = line
				}
				if strings.HasPrefix(typed, "--") {
					typed = fmt.Sprintf(takenBack, typed)
				}
				begun := time.Now()
				if _, _, err := s.As(0, "sh", "-c", "export JOB="+id+" EVO_JOB_ID="+id+" PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="+library+"; exec >said 2>&1; "+typed); err != nil {
					said, _ := os.ReadFile(s.Dir + "/out/said")
					t.Errorf("%s: %s: %v\n%s", page, typed, err, said)
				}
				t.Logf("%s: %s: %v", page, line, time.Since(begun).Round(time.Millisecond))
			case more && programs[first] != "" || strings.HasPrefix(line, "--") && strings.Contains(line, "@"):
				t.Errorf("%s has %q, which nothing types", page, line)
			}
			seen[line] = true
		}
	}
	for line := range users {
		if !seen[line] {
			t.Errorf("%q is on no page any more", line)
		}
	}
}
