package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
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

// TestStatus checks what doctor says of the sidecar's state.
func TestStatus(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*api.Status)
		want   result
		detail string
	}{
		"well":                 {nil, ok, "version v at unix:///socket drives cluster c"},
		"it observes":          {func(s *api.Status) { s.Mode = "observe" }, ok, "is observing cluster c, and changes nothing"},
		"an error":             {func(s *api.Status) { s.LastError = "squeue failed" }, warn, "; squeue failed"},
		"it has never polled":  {func(s *api.Status) { s.LastCycle = time.Time{} }, warn, "has not polled Slurm lately"},
		"it polls no more":     {func(s *api.Status) { s.LastCycle = s.Now.Add(-time.Hour) }, warn, "has not polled Slurm lately"},
		"it is drained":        {func(s *api.Status) { s.Drain = &api.Drain{Words: "drained by root"} }, warn, "; drained by root"},
		"jobs are set aside":   {func(s *api.Status) { s.SetAside = 2 }, warn, "it has set aside 2 of users' jobs"},
		"another clock":        {func(s *api.Status) { s.ClockLead = -90 }, warn, "slurmctld's clock is -90 s from that of its host"},
		"a pause":              {func(s *api.Status) { s.PollPause = 9 }, ok, "it polls every 9 s to take at most 0.01 of slurmctld's time"},
		"the site is too slow": {func(s *api.Status) { s.PollPause, s.PollsApart, s.MostShare = 20, 90, 0.01 }, warn, "polls come 20 to 90 s apart, to take at most 1 % of slurmctld's time (slurm.share) or keep to its rate limit: a new job may wait 90 s until it is seen"},
		"a late poll of such":  {func(s *api.Status) { s.PollsApart, s.LastCycle = 90, s.Now.Add(-100*time.Second) }, warn, "polls come 0 to 90 s apart"},
		"later than it can be": {func(s *api.Status) { s.PollsApart, s.LastCycle = 90, s.Now.Add(-time.Hour) }, warn, "has not polled Slurm lately"},
	} {
		d := &doctor{cfg: config.Config{API: "unix:///socket", PollInterval: time.Second, Slurm: config.Slurm{Share: 0.01}}}
		s := api.Status{Version: "v", Cluster: "c", Now: time.Now()}
		if s.LastCycle = s.Now; c.change != nil {
			c.change(&s)
		}
		d.status(s)
		if got := d.Checks[0]; got.Check != "sidecar" || got.Result != c.want || !strings.Contains(got.Detail, c.detail) || (got.Result == warn) != (got.Remedy != "") {
			t.Errorf("%s: %+v, want %s and %q", name, got, c.want, c.detail)
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
