package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/cmd/internal/contribtest"
)

// TestExitStatus checks the statuses of failed starts, and that the manual and the unit have them.
func TestExitStatus(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for want, args := range map[int][]string{
		exitUsage: {"--nothing"}, exitConfig: {"--config=" + file("bad.yaml", "drive: x\n")},
		exitDatabase: {"--config=" + file("good.yaml", "listen:\n  socket: "+dir+"/s\n"), "--database=" + dir + "/good.yaml/evoslurm.db"},
		exitListen:   {"--config=" + file("taken.yaml", "listen:\n  socket: "+dir+"/bad.yaml\n"), "--database=" + dir + "/evoslurm.db"},
	} {
		cmd := command()
		cmd.SetArgs(args)
		cmd.SetErr(io.Discard)
		if err := cmd.Execute(); exitStatus(err) != want {
			t.Errorf("%s: %v: status %d, want %d", args, err, exitStatus(err), want)
		}
	}
	if got := exitStatus(failure{exitOther, failure{exitDatabase, os.ErrPermission}}); got != exitDenied {
		t.Errorf("no permission: %d", got)
	}
	if got := exitStatus(failure{exitOther, errors.New("x")}); got != exitOther {
		t.Errorf("another error: %d", got)
	}
	manual := contribtest.Manual(t, "evoslurmd.8")
	for _, status := range []int{exitOther, exitUsage, exitListen, exitDatabase, exitDenied, exitConfig} {
		if !strings.Contains(manual, "\n.B "+strconv.Itoa(status)+"\n") {
			t.Errorf("status %d is not in the manual", status)
		}
	}
	unit, err := os.ReadFile("../../../contrib/systemd/evoslurmd.service")
	if err != nil || !strings.Contains(string(unit), "\nRestartPreventExitStatus=64 77 78\n") {
		t.Errorf("the unit restarts the sidecar after faults that stay: %v", err)
	}
}
