package e2e_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestInstall: make install puts all that there is to install where PREFIX says, and the
// unit names the sidecar that was installed.
func TestInstall(t *testing.T) {
	dir := t.TempDir()
	built, root := dir+"/built", dir+"/root"
	// What is installed matters here, not what it does.
	for _, name := range []string{"evosbatch", "evosqueue", "evosacct", "evosctl", "evosrun", "evosim", "evostop", "strategytest", "evoslurmd"} {
		touch(t, built+"/"+name)
	}
	strategies, err := filepath.Glob("../../../plugins/cmd/*")
	if err != nil || len(strategies) == 0 {
		t.Fatal(err, strategies)
	}
	for _, s := range strategies {
		touch(t, built+"/strategies/"+filepath.Base(s))
	}
	make := exec.Command("make", "install", "BIN="+built, "DESTDIR="+root, "PREFIX=/opt/evo", "SYSCONFDIR=/opt/etc", "LIBEXECDIR=/opt/evo/libexec")
	make.Dir = "../../.."
	if out, err := make.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	installed := map[string]bool{} // paths, and names without folders
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			installed[strings.TrimPrefix(path, root)], installed[d.Name()] = true, true
		}
		return err
	})
	must.OK(t, err)
	for _, folder := range []string{"completions", "c", "examples", "man", "prometheus", "python", "systemd", "sysusers"} {
		err := filepath.WalkDir("../../../contrib/"+folder, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !installed[d.Name()] {
				t.Errorf("%s is not installed", path)
			}
			return err
		})
		must.OK(t, err)
	}
	const prefix = "/opt/evo"
	for _, path := range []string{
		prefix + "/bin/evosbatch", prefix + "/bin/evolaunch", prefix + "/sbin/evoslurmd", prefix + "/libexec/evoslurm/strategies/klein",
		prefix + "/share/man/man1/evosqueue.1", prefix + "/share/man/man8/evoslurmd.8",
		prefix + "/share/bash-completion/completions/evosqueue", prefix + "/share/zsh/site-functions/_evosqueue",
		prefix + "/share/fish/vendor_completions.d/evosqueue.fish",
		prefix + "/include/evoslurm.h", prefix + "/include/evoslurm.f90", prefix + "/lib/libevoslurm.a", prefix + "/lib/libevoslurm.so.0",
		prefix + "/lib/pkgconfig/evoslurm.pc", prefix + "/share/man/man3/evoslurm.3",
		prefix + "/lib/sysusers.d/evoslurm.conf", prefix + "/share/evoslurm/job_submit.lua", prefix + "/share/doc/evoslurm/RIGHTS.md", prefix + "/share/doc/evoslurm/evoslurm.yaml",
		"/opt/etc/evoslurm/evoslurm.yaml",
	} {
		if !installed[path] {
			t.Errorf("%s is not installed", path)
		}
	}
	unit := must.Read(t, root+prefix+"/lib/systemd/system/evoslurmd.service")
	if !strings.Contains(string(unit), "\nExecStart="+prefix+"/sbin/evoslurmd\n") || strings.Contains(string(unit), "/usr/local") {
		t.Errorf("the unit starts another sidecar:\n%s", unit)
	}
}

// TestInstallWithoutCompiler checks that the library is left out, with a message that names the
// command to build it later from the installed files.
func TestInstallWithoutCompiler(t *testing.T) {
	root, prefix := t.TempDir(), "/opt/evo"
	install := func(folder string, args ...string) string {
		t.Helper()
		out, err := exec.Command("make", append([]string{"-C", folder, "install", "PREFIX=" + prefix, "DESTDIR=" + root}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	if out := install("../../../contrib/c", "CC="); !strings.Contains(out, "there is no C compiler: libevoslurm is not built; later: make -C /opt/evo/share/evoslurm/c install") {
		t.Errorf("it said\n%s", out)
	}
	library := root + prefix + "/lib/libevoslurm.so"
	if _, err := os.Stat(library); err == nil {
		t.Error("there is a library")
	}
	if _, err := os.Stat(root + prefix + "/include/evoslurm.h"); err != nil {
		t.Error(err)
	}
	install(root + prefix + "/share/evoslurm/c")
	if _, err := os.Stat(library); err != nil {
		t.Error(err)
	}
	if out, err := exec.Command("make", "-C", "../../../contrib/c", "CC=", "OUT="+t.TempDir()).CombinedOutput(); err == nil || !strings.Contains(string(out), "a C compiler is needed") {
		t.Errorf("%v\n%s", err, out)
	}
}

func touch(t *testing.T, path string) {
	t.Helper()
	must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.OK(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
}
