package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// diagnose runs doctor and gives its report and exit status.
func (s *site) diagnose(u slurmtest.User, env ...string) (report, int) {
	s.t.Helper()
	cmd := s.command("evosctl", "doctor", "--json")
	if u.Name == slurmtest.Root.Name {
		cmd = s.Command(s.t.Context(), u, cmd.Path, "doctor", "--json")
		cmd.Env = append(cmd.Env, s.env...)
	}
	cmd.Env = append(cmd.Env, env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var r report
	if e := json.Unmarshal(out.Bytes(), &r); e != nil {
		s.t.Fatalf("doctor: %v, %v: %s%s", err, e, out.String(), errs.String())
	}
	return r, cmd.ProcessState.ExitCode()
}

// results returns the results by check.
func (r report) results() map[string]result {
	m := make(map[string]result)
	for _, c := range r.Checks {
		m[c.Check] = c.Result
	}
	return m
}

func TestDoctor(t *testing.T) {
	s := newSite(t, slurmtest.Options{Nodes: 2, PermitJobExpansion: true}, "")
	cfg, err := s.backend.slurm.Config(t.Context())
	must.OK(t, err)
	merge, _ := slurmctl.Capabilities(cfg)
	shrinks := ok // root may all
	if os.Geteuid() != 0 {
		shrinks = warn
	}
	want := map[string]result{
		"configuration": ok, "MUNGE": ok, "Slurm commands": ok, "slurmctld": ok, "Slurm's version": ok, "clock": ok,
		"rights": ok, "permit_job_expansion": ok, "merged jobs": ok, "disable_job_shrink": ok, "PrologFlags": ok, "Epilog": ok, "stepmgr": ok, "GRES": ok, "shrinks": shrinks,
		"slurmdbd": warn, "nodes": ok, "partition main": ok, "power saving": ok, "priorities": ok, "rate limit": ok, "sidecar": warn, // the sidecar by hand never looks at Slurm
	}
	if os.Geteuid() != 0 {
		want["AllocNodes"] = ok
	}
	r, status := s.diagnose(slurmtest.Root)
	if d := cmp.Diff(want, r.results()); d != "" || status != 0 {
		t.Errorf("as the administrator, exit status %d: %s", status, d)
	}
	if want := map[bool]string{true: "merge", false: "companion"}[merge]; r.Drive != want || len(r.Reasons) == 0 {
		t.Errorf("drive mode %s because %q, want %s", r.Drive, r.Reasons, want)
	}

	if r, _ := s.diagnose(slurmtest.Root, "EVOSLURM_DRIVE=merge"); r.results()["merged jobs"] != warn {
		t.Errorf("drive: merge: %v", r.results())
	}
	s.run("what Slurm's configuration says", s.doctorOnConfiguration)
	s.run("what is missing", s.doctorOnMissing)
	s.run("the table", s.doctorTable)
	s.run("what a start needs", s.doctorStarting)
	s.run("slurmctld is down", s.doctorWithoutController)
}

// doctorOnConfiguration sees that doctor reports what slurm.conf rules out.
func (s *site) doctorOnConfiguration(t *testing.T) {
	err := s.Reconfigure(t.Context(), func(o *slurmtest.Options) {
		o.PermitJobExpansion = false
		o.SchedulerParameters = "disable_job_shrink"
		o.ExtraConf += "Epilog=/bin/true\n"
	})
	must.OK(t, err)
	r, status := s.diagnose(s.user)
	got := r.results()
	if got["permit_job_expansion"] != warn || got["disable_job_shrink"] != warn || got["Epilog"] != warn || r.Drive != "companion" || status != 0 {
		t.Errorf("exit status %d, drive mode %s: %v", status, r.Drive, got)
	}
	if os.Geteuid() == 0 && got["rights"] != warn {
		t.Errorf("an ordinary user's rights are %s", got["rights"])
	}
	if got["merged jobs"] != "" {
		t.Errorf("merged jobs without permit_job_expansion: %v", got)
	}
	r, status = s.diagnose(s.user, "EVOSLURM_DRIVE=merge")
	if r.results()["drive mode"] != fail || r.results()["Epilog"] != ok || status != 1 {
		t.Errorf("drive: merge where it cannot be: exit status %d, %v", status, r.results())
	}
}

// doctorOnMissing sees that doctor names what is missing, and nothing else.
func (s *site) doctorOnMissing(t *testing.T) {
	for env, check := range map[string]string{
		"EVOSLURM_API=unix:///nonexistent/socket": "sidecar",
		"EVOSLURM_MUNGE_SOCKET=/nonexistent":      "MUNGE",
		"EVOSLURM_SLURM_BIN=/nonexistent":         "Slurm commands",
		"SLURM_CONF=/nonexistent":                 "slurmctld",
		"EVOSLURM_GRACE=soon":                     "configuration",
		"EVOSLURM_CONFIG=/nonexistent":            "configuration",
	} {
		r, status := s.diagnose(s.user, env)
		failures := slices.Collect(maps.Keys(r.results()))
		failures = slices.DeleteFunc(failures, func(name string) bool { return r.results()[name] != fail })
		// Without MUNGE, neither the sidecar can be reached nor slurmctld on the same socket;
		// without slurm.conf, a request cannot name the cluster.
		if status != 1 || !slices.Contains(failures, check) || check != "MUNGE" && check != "slurmctld" && len(failures) != 1 {
			t.Errorf("%s: exit status %d, failures %q, want %s", env, status, failures, check)
		}
		for _, c := range r.Checks {
			if c.Result == fail && c.Detail == "" {
				t.Errorf("%s: %s failed without a reason", env, c.Check)
			}
		}
	}
}

// doctorTable looks at what doctor prints for people.
func (s *site) doctorTable(t *testing.T) {
	out := s.must("evosctl", "doctor")
	for _, want := range []string{"slurmctld", "Jobs grow by drive mode companion: ", "permit_job_expansion  warn  not set\n", "→ for drive mode merge"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if !regexp.MustCompile(`partition main +ok +drive mode companion`).MatchString(out) {
		t.Errorf("no drive mode of partition main in\n%s", out)
	}
	if strings.Contains(out, "\x1b") {
		t.Errorf("colour where there is no terminal: %q", out)
	}
}

// doctorStarting sees that an ordinary user, who may not change jobs, cannot be the sidecar's, and that no sidecar is asked for.
func (s *site) doctorStarting(t *testing.T) {
	cmd := s.command("evosctl", "doctor", "--json", "--starting")
	text, _ := cmd.Output() // the status is below
	var r report
	must.OK(t, json.Unmarshal(text, &r))
	got := r.results()
	if _, asked := got["sidecar"]; asked || got["rights"] != fail || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("exit status %d: %v", cmd.ProcessState.ExitCode(), got)
	}
}

// doctorWithoutController sees that doctor reports a slurmctld that is down.
func (s *site) doctorWithoutController(t *testing.T) {
	must.OK(t, s.StopController(t.Context()))
	r, status := s.diagnose(s.user)
	if got := r.results()["slurmctld"]; got != fail || status != 1 || r.Drive != "" {
		t.Errorf("exit status %d, slurmctld %s, drive mode %q", status, got, r.Drive)
	}
	must.OK(t, s.StartController(t.Context()))
}
