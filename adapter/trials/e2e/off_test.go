package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// root runs a shell's text as root in the site's environment and folder.
func (s *site) root(text string) (string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", text)
	cmd.Dir = s.Dir
	cmd.Env = slices.Concat(os.Environ(), s.Env(), []string{"PATH=" + s.Dir + "/shims:" + bin + ":" + os.Getenv("PATH")})
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// busy submits jobs that fill six nodes: one has grown to two, with a companion; one has ended its step and waits for
// nodes that another user's job has; and one is parked.
func (s *site) busy() (grown, waits, hog, parked string) {
	s.t.Helper()
	const next = `eval "$(evosctl next)"; echo "done=$EVO_DONE on $(evosctl hostfile | wc -l)"`
	out, err := s.Cluster.Run(s.t.Context(), s.Cluster.Users()[1], "sbatch", "--parsable", "-N3", "--exclusive", "-t30", "-o/dev/null", "--wrap", "sleep 1800")
	s.must(err)
	hog = strings.TrimSpace(out)
	grown = s.submit("--drive=companion", "--profile=1@2s,2@40m,2@10m", "--wrap", `eval "$(evosctl next)"; until [ -e go ]; do sleep 0.2; done; `+next)
	s.eventually("a job has grown", func() bool { return s.job(grown).Step == 2 })
	waits = s.submit("--profile=1@40m,4@10m", "--wrap", next)
	s.eventually("a job waits for its next step", func() bool { return s.job(waits).State == "waiting" })
	parked = s.submit("--profile=6@1m,1@1m", "--wrap", `sleep 1; `+next)
	s.eventually("a job is planned and held", func() bool { j := s.job(parked); return j.State == "queued" && !j.Start.IsZero() })
	return grown, waits, hog, parked
}

// back starts the sidecar if it was killed.
func (s *site) back(killed bool) {
	s.t.Helper()
	if killed {
		s.start()
	}
	s.eventually("the sidecar is up", func() bool { _, err := os.Stat(s.Dir + "/run/api.sock"); return err == nil })
}

// TestReleaseAll: everything is released while a job has a companion, one waits in next, and one is parked; by the
// sidecar, and then without it. All scripts end, and nothing of ours is left.
func TestReleaseAll(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Nodes: 6, Accounting: true, PermitJobExpansion: true}, nil)
	said := func(id string) string { text, _ := os.ReadFile(s.Dir + "/out/out-" + id); return string(text) }
	for _, direct := range []bool{false, true} {
		t.Run(fmt.Sprintf("direct=%v", direct), func(t *testing.T) {
			s.t = t
			grown, waits, hog, parked := s.busy()
			command := "evosctl release-all"
			if direct {
				s.stop(syscall.SIGKILL)
				command += " --direct"
			} else {
				s.drained(waits, parked)
			}
			out, err := s.root(command)
			t.Logf("%s: %v\n%s", command, err, out)
			if err != nil || !strings.Contains(out, "hold evo_") || !strings.Contains(out, "queued "+parked) {
				t.Errorf("%s: %v", command, err)
			}
			s.must(os.WriteFile(s.Dir+"/out/go", nil, 0o644))
			defer os.Remove(s.Dir + "/out/go")
			reservations, err := s.Cluster.Run(t.Context(), slurmtest.Root, "scontrol", "show", "reservation", "-o")
			s.must(err)
			if strings.Contains(reservations, "evo_") {
				t.Errorf("holds are left:\n%s", reservations)
			}
			for id, nodes := range map[string]int{waits: 1, grown: 2} {
				want := "done=1 on " + strconv.Itoa(nodes)
				s.eventually("job "+id+" hears that nothing more comes", func() bool { return strings.Contains(said(id), want) })
			}
			_, err = s.Cluster.Run(t.Context(), slurmtest.Root, "scancel", hog)
			s.must(err)
			s.eventually("the companion is cancelled", func() bool { // which has outlived its job if there is no sidecar
				out, err := s.root(command)
				return err == nil && (!direct || strings.Contains(out, "nothing of Evoslurm's"))
			})
			s.eventually("the parked job hears the same", func() bool { return strings.Contains(said(parked), "done=1 on 6") })
			s.output(parked)
			s.back(direct)
			s.eventually("the sidecar is drained, and has nothing left", func() bool { d := s.status().Drain; return d != nil && d.Left.None() })
			_, err = s.root("evosctl resume")
			s.must(err)
		})
	}
	s.t = t
	if got := messages(s.output(s.submit(s.script("evolve.sh", evolve)))); !slices.Contains(got, evolved[1]) || !slices.Contains(got, evolved[3]) {
		t.Errorf("a job after that printed\n%s", strings.Join(got, "\n"))
	}
	s.promised()
}

// promised checks that the report has the last job's growth as kept, and others' as not.
func (s *site) promised() {
	s.t.Helper()
	var report api.Report
	out, err := s.root("evosctl report --format=json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &report)
	}
	if err != nil || report.Total.Promises.Kept < 1 || report.Total.Promises.Made <= report.Total.Promises.Kept || report.Total.Allocated == 0 || report.Total.Held == 0 {
		s.t.Errorf("evosctl report: %v\n%s", err, out)
	}
}

// drained drains the sidecar: a new job is not adopted, a queued one loses its hold, and a running one keeps its own.
func (s *site) drained(waits, parked string) {
	s.t.Helper()
	out, err := s.root("evosctl drain")
	if err != nil {
		s.t.Errorf("evosctl drain: %v\n%s", err, out)
	}
	later := s.submit("--profile=1@1m,2@1m", "--wrap", "true")
	s.eventually("a new job stays parked", func() bool { return strings.Contains(s.job(later).Reason, "stays parked until evosctl resume") })
	s.eventually("only the running job has a hold", func() bool {
		out, err := s.Cluster.Run(s.t.Context(), slurmtest.Root, "scontrol", "show", "reservation", "-o")
		return err == nil && strings.Contains(out, "evo_"+waits+"_") && !strings.Contains(out, "evo_"+parked+"_")
	})
	if j := s.job(waits); j.State != "waiting" {
		s.t.Errorf("the job that waits is %s (%s)", j.State, j.Reason)
	}
}

// here replaces what the runbook names by what is here.
func (s *site) here(line, job string) string {
	for from, to := range map[string]string{"/var/lib/evoslurm/": s.Dir + "/db/", "/etc/evoslurm/": s.Dir + "/etc/", "BACKUP": s.Dir + "/backup.db", "db backup FILE": "db backup " + s.Dir + "/new.db", "evosctl doctor --trial": "evosctl doctor --trial -p main",
		"scontrol update NodeName=NODE State=RESUME": "scontrol update NodeName=n4 State=DRAIN Reason=test && scontrol update NodeName=n4 State=RESUME"} {
		line = strings.ReplaceAll(line, from, to)
	}
	line = regexp.MustCompile(`\b(JOB|J)\b`).ReplaceAllString(line, job)
	return regexp.MustCompile(`\bNODE\b`).ReplaceAllString(line, "n1")
}

// TestRunbook types every command of docs/runbook.md, one section after the other, on a site with a job that has a hold
// and one that is queued. A section has at most 24 lines. In place of systemd, a shim stops and starts the sidecar. In place of rsync, one takes a folder
// away, and puts a copy of it there.
func TestRunbook(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Nodes: 4, Accounting: true, PermitJobExpansion: true}, nil)
	pid := s.Dir + "/evoslurmd.pid"
	s.must(os.Mkdir(s.Dir+"/shims", 0o755))
	s.must(os.WriteFile(s.Dir+"/shims/systemctl", []byte(`#!/bin/sh
stop() { [ ! -s `+pid+` ] || { p=$(cat `+pid+`); kill $p 2>/dev/null; while kill -0 $p 2>/dev/null; do sleep 0.1; done; rm `+pid+`; }; }
case $1 in
stop | disable) stop ;;
start | enable) stop; setsid evoslurmd --config `+s.Dir+`/evoslurm.yaml >>`+s.Dir+`/evoslurmd.log 2>&1 & echo $! >`+pid+`
	until evosctl events >/dev/null 2>&1; do sleep 0.2; done ;;
esac
`), 0o755))
	s.must(os.WriteFile(s.Dir+"/shims/rsync", []byte(`#!/bin/sh -e
[ "$1" = -a ]
old=${2#OLD:} && old=${old%/}
mv "$old" "$old.old" && mkdir "$3" && cp -a "$old.old/." "$3" && rm -r "$old.old"
`), 0o755))
	s.must(os.Mkdir(s.Dir+"/etc", 0o755))
	s.stop(syscall.SIGKILL)
	t.Cleanup(func() { s.t = t; _, _ = s.root("systemctl stop evoslurmd") })
	text, err := os.ReadFile("../../../docs/runbook.md")
	s.must(err)
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		t.Run(name, func(t *testing.T) {
			s.t = t
			if n := strings.Count(strings.TrimSpace(body), "\n") + 2; n > 24 {
				t.Errorf("it has %d lines: a screen has 24", n)
			}
			out, err := s.root("systemctl start evoslurmd && evosctl resume && rm -f " + s.Dir + "/backup.db && evosctl db backup " + s.Dir + "/backup.db")
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			job := s.submit("--profile=1@20m,2@10m", "--wrap", "sleep 600")
			s.eventually("the job runs", func() bool { return s.job(job).State == "running" })
			queued := s.submit("--profile=4@10m,1@1m", "--wrap", "sleep 600")
			defer func() {
				_, _ = s.Cluster.Run(context.Background(), slurmtest.Root, "scancel", job, queued)
				_, _ = s.root("systemctl start evoslurmd && evosctl resume")
				s.output(job)
			}()
			s.eventually("its growth is held", func() bool {
				out, _ := s.Cluster.Run(t.Context(), slurmtest.Root, "scontrol", "show", "reservation", "-o")
				return strings.Contains(out, "evo_"+job+"_2_")
			})
			for _, line := range commandsIn(body) {
				line, _, _ = strings.Cut(line, "  #")
				line = strings.TrimSpace(line)
				first, _, more := strings.Cut(line, " ")
				ours := programs[first] != "" || slices.Contains([]string{"systemctl", "scontrol", "squeue", "sdiag", "mv", "cp", "rsync"}, first)
				if !ours || !more && first != "sdiag" && first != "evosqueue" || line == "evosctl next" {
					continue // text names what scripts wait for: TestReleaseAll
				}
				if first == "evosctl" && !strings.Contains(line, "--direct") && !strings.Contains(line, "db restore") {
					_, _ = s.root("[ -s " + pid + " ] || systemctl start evoslurmd") // the text names it for another moment
				}
				begun := time.Now()
				out, err := s.root(s.here(line, job))
				if err != nil {
					t.Errorf("%s: %v\n%s", line, err, out)
				}
				t.Logf("%s: %v", line, time.Since(begun).Round(time.Millisecond))
			}
		})
	}
}
