package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/certs/certstest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// checkOf runs evoslurmd --check beside an evosctl that says what a script prints.
func checkOf(t *testing.T, dir, yaml, doctor string) (string, int) {
	t.Helper()
	for name, text := range map[string]string{"evosctl": "#!/bin/sh\necho \"$@\" >" + dir + "/asked\n" + doctor, "evoslurm.yaml": yaml} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	var out bytes.Buffer
	cmd := command()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--check", "--config=" + filepath.Join(dir, "evoslurm.yaml")})
	if err := cmd.Execute(); err != nil {
		return out.String() + err.Error(), exitStatus(err)
	}
	return out.String(), 0
}

// fine is a doctor who finds no fault.
const fine = `echo '{"checks": [{"check": "rights", "result": "ok", "detail": "root: all"}, {"check": "configuration", "result": "ok"}], "drive": "merge"}'`

// TestCheck checks what evoslurmd --check says where all is well, and that it makes no file.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "db", "evoslurm.db")
	site := "database: " + path + "\nlisten:\n  socket: " + dir + "/run/api.sock\n"
	out, status := checkOf(t, dir, site, fine)
	if status != 0 || strings.Contains(out, "fail") || !strings.Contains(out, "does not exist: the sidecar makes one") || !strings.Contains(out, "root: all") || !strings.Contains(out, "drives evolving jobs, new ones by drive mode merge; strategy noX; records are kept for 9600h0m0s.") {
		t.Errorf("%d: %s", status, out)
	}
	if asked, err := os.ReadFile(dir + "/asked"); err != nil || string(asked) != "doctor --json --starting --config="+dir+"/evoslurm.yaml\n" {
		t.Errorf("doctor was called with %s, %v", asked, err)
	}
	if left, err := filepath.Glob(dir + "/*"); err != nil || len(left) != 3 {
		t.Errorf("it left %v, %v", left, err)
	}
	s, err := store.Open(t.Context(), path)
	must.OK(t, err)
	s.Close()
	if out, status := checkOf(t, dir, site+"mode: observe\nretention: 0s\n", fine); status != 0 || !strings.Contains(out, " MB, schema ") || !strings.Contains(out, ", 0 jobs (0 have not ended), 0 events") || !strings.Contains(out, "observes, and changes nothing in Slurm; strategy noX; no record is deleted.") {
		t.Errorf("%d: %s", status, out)
	}
}

// TestCheckFaults checks that each fault is found, with a remedy, and that nothing is changed.
func TestCheckFaults(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "evoslurm.db")
	site := "database: " + path + "\nlisten:\n  socket: " + dir + "/run/api.sock\n"
	must.OK(t, os.WriteFile(path, []byte(strings.Repeat("text", 5000)), 0o600))
	for _, c := range []struct{ yaml, doctor, want string }{
		{"drive: x\n", fine, "drive: "}, {site, fine, "no sound database"}, {site + "strategy: nothing\n", fine, "neither built in nor a plugin"},
		{"database: " + dir + "/evoslurm.yaml/db\n", fine, "cannot be written"}, {"listen:\n  socket: " + dir + "/asked\n", fine, "is no socket, and in the way"},
		{site, "exit 3", "evosctl doctor"}, {site, `echo '{"checks": [{"check": "rights", "result": "fail", "detail": "may not", "remedy": "sacctmgr"}]}'; exit 1`, "may not"},
		{site + "web:\n  listen: localhost:1\n  tokens: " + dir + "/none\n", fine, "none"},
	} {
		out, status := checkOf(t, dir, c.yaml, c.doctor)
		lines := strings.Split(out, "\n")
		for i, line := range lines {
			if strings.Contains(line, "  fail  ") && !strings.Contains(lines[i+1], "→ ") {
				t.Errorf("no remedy: %s", line)
			}
		}
		if status != exitOther || !strings.Contains(out, c.want) || !strings.Contains(out, "of these checks failed") {
			t.Errorf("%s: status %d, %s; want %s", c.yaml, status, out, c.want)
		}
	}
	if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "texttext") {
		t.Errorf("the database was changed: %v", err)
	}
}

// TestCheckCertificates checks that the end of a certificate is warned of 30 days before, and fails nothing.
func TestCheckCertificates(t *testing.T) {
	for days, want := range map[int]string{31: "ok", 29: "warn", -1: "warn"} {
		dir := t.TempDir()
		certstest.Write(t, dir, "head", 1, time.Now().AddDate(0, 0, days))
		out, status := checkOf(t, dir, fmt.Sprintf("database: %[1]s/db\nlisten: {socket: %[1]s/s, tcp: \":7\", certificate: %[1]s/cert, key: %[1]s/key}\n", dir), fine)
		if line := regexp.MustCompile(`(?m)^.*listen\.certificate.*$`).FindString(out); status != 0 || !slices.Contains(strings.Fields(line), want) {
			t.Errorf("%d days before its end: status %d, %q; want %s", days, status, line, want)
		}
	}
}
