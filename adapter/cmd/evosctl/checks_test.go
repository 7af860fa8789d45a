package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl"
)

func TestSlurmdbd(t *testing.T) {
	for _, c := range []struct {
		version, storage string
		want             result
		remedy           string
	}{
		{"22.05.8", "(null)", warn, "resize a job more than once"},
		{"22.05.8", "accounting_storage/slurmdbd", ok, "quickack"},
		{"23.11.4", "accounting_storage/slurmdbd", ok, "quickack"},
		{"24.11.5", "accounting_storage/slurmdbd", ok, ""},
	} {
		d := &doctor{}
		d.accounting(slurmctl.Config{Version: c.version, Values: map[string]string{"AccountingStorageType": c.storage}})
		got := d.Checks[0]
		if got.Result != c.want || !strings.Contains(got.Remedy, c.remedy) || (c.remedy == "") != (got.Remedy == "") {
			t.Errorf("Slurm %s with %s: %+v, want %s and %q", c.version, c.storage, got, c.want, c.remedy)
		}
	}
}

// TestCompanions checks that doctor says how companions end, where slurmdbd records it.
func TestCompanions(t *testing.T) {
	for script, want := range map[string]result{"exit 0": ok, "exit 2": warn} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "perl"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		d := &doctor{slurm: &slurmctl.Client{Env: []string{"PATH=" + dir}}}
		for _, storage := range []string{"(null)", "accounting_storage/slurmdbd"} {
			d.companions(t.Context(), slurmctl.Config{Values: map[string]string{"AccountingStorageType": storage}})
		}
		if len(d.Checks) != 1 || d.Checks[0].Result != want {
			t.Errorf("with perl that says %q: %+v, want one %s", script, d.Checks, want)
		}
	}
}

// TestShrinks checks that doctor names sites on which a node stays refused after a shrink, and what helps.
func TestShrinks(t *testing.T) {
	for _, c := range []struct {
		version, level, params string
		want                   result
		detail, remedy         string
	}{
		{"22.05.8", "root", "", ok, "has nodes answer", ""},
		{"24.11.5", "SlurmUser", "", ok, "has nodes answer", ""},
		{"22.05.8", "Administrator", "", ok, "has nodes answer", ""},
		{"22.05.8", "Operator", "", warn, "SlurmdTimeout (300 sec), and an operator cannot", "as root; or set a smaller SlurmdTimeout"},
		{"22.05.8", "None", "", warn, "only as root", "run doctor as the sidecar's user"},
		{"20.11.4", "root", "", warn, "Slurm 20.11.4 asks no such node", "use Slurm 22.05 or later; or"},
		{"20.11.4", "root", "disable_job_shrink", ok, "no job gives back", ""},
	} {
		d := &doctor{}
		d.shrinks(slurmctl.Config{Version: c.version, Values: map[string]string{"SchedulerParameters": c.params, "SlurmdTimeout": "300 sec"}}, c.level)
		got := d.Checks[0]
		if got.Result != c.want || !strings.Contains(got.Detail, c.detail) || !strings.Contains(got.Remedy, c.remedy) || (c.remedy == "") != (got.Remedy == "") {
			t.Errorf("Slurm %s as %s: %+v, want %s, %q, %q", c.version, c.level, got, c.want, c.detail, c.remedy)
		}
	}
}

func TestStepManagers(t *testing.T) {
	for _, c := range []struct {
		version, prolog, params string
		want                    result
		detail                  string
	}{
		{"22.05.8", "Contain", "enable_stepmgr", ok, "no job has"},
		{"24.11.5", "Alloc", "enable_stepmgr", ok, "no job has"}, // slurmctld does not start so
		{"24.11.5", "Alloc,Contain", "", ok, "if they ask for it"},
		{"24.11.5", "Contain", "idle_on_node_suspend,enable_stepmgr", warn, "every job has"},
		{"26.05.5", "X11", "enable_stepmgr", warn, "every job has"},
		{"a later one", "Contain", "", ok, "if they ask for it"},
	} {
		d := &doctor{}
		d.stepManagers(slurmctl.Config{Version: c.version, Values: map[string]string{"PrologFlags": c.prolog, "SlurmctldParameters": c.params}})
		if got := d.Checks[0]; got.Result != c.want || !strings.Contains(got.Detail, c.detail) {
			t.Errorf("Slurm %s with %s and %s: %+v, want %s and %q", c.version, c.prolog, c.params, got, c.want, c.detail)
		}
	}
}

// TestSecondHost checks what doctor says of a sidecar on a second host.
func TestSecondHost(t *testing.T) {
	now := time.Now()
	follows := &api.Standby{Host: "b", Version: "v", Seen: now, Copied: now}
	for _, c := range []struct {
		takeover time.Duration
		lease    *api.Lease
		want     result
		detail   string
	}{
		{0, nil, "", ""},
		{time.Minute, nil, fail, "without a lease"},
		{time.Minute, &api.Lease{Host: "a"}, warn, "none follows"},
		{time.Minute, &api.Lease{Host: "a", Standby: &api.Standby{Host: "b", Seen: now.Add(-time.Hour)}}, warn, "none follows"},
		{0, &api.Lease{Host: "a", Standby: &api.Standby{Host: "b", Version: "v", Seen: now}}, warn, "no recent copy"},
		{0, &api.Lease{Host: "a", Standby: &api.Standby{Host: "b", Version: "w", Seen: now, Copied: now}}, warn, "has version w"},
		{time.Minute, &api.Lease{Host: "a", Name: "evo_lease_4", Standby: follows}, ok, "(evo_lease_4); that on b follows"},
	} {
		d := &doctor{}
		d.second(api.Status{Version: "v", Lease: c.lease}, c.takeover)
		if len(d.Checks) == 0 && c.want == "" {
			continue
		}
		if got := d.Checks[0]; got.Result != c.want || !strings.Contains(got.Detail, c.detail) {
			t.Errorf("%+v: %+v, want %s and %q", c.lease, got, c.want, c.detail)
		}
	}
}

// TestCertificateEnds checks that doctor warns of a certificate from 30 days before its end.
func TestCertificateEnds(t *testing.T) {
	const day = 24 * time.Hour
	for left, want := range map[time.Duration]result{31 * day: ok, 29 * day: warn, -day: fail} {
		d, ends := &doctor{}, time.Now().Add(left)
		d.certificate("the sidecar's", nil, "listen.certificate")
		d.certificate("the sidecar's", &ends, "listen.certificate")
		if got := d.Checks; len(got) != 1 || got[0].Result != want || !strings.Contains(got[0].Detail, ends.UTC().Format(time.DateOnly)) || (want == ok) != (got[0].Remedy == "") {
			t.Errorf("%v before its end: %+v; want one %s", left, got, want)
		}
	}
}
