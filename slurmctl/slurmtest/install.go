package slurmtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// part is a file that a cluster needs, with the Debian package that provides it.
type part struct {
	pkg   string
	paths []string // any of these; the last component may be a pattern
}

var slurmParts = []part{
	{"slurmctld", []string{"/usr/sbin/slurmctld-wlm", "/usr/sbin/slurmctld"}},
	{"slurmd", []string{"/usr/sbin/slurmd-wlm", "/usr/sbin/slurmd"}},
	{"slurmd", []string{"/usr/sbin/slurmstepd-wlm", "/usr/sbin/slurmstepd", "/usr/libexec/slurmstepd"}},
	{"slurm-client", []string{"/usr/bin/scontrol"}},
	{"slurm-wlm-basic-plugins", []string{"/usr/lib/*/slurm-wlm/auth_munge.so", "/usr/lib/slurm*/auth_munge.so", "/usr/lib64/slurm/auth_munge.so"}},
	{"munge", []string{"/usr/sbin/munged"}},
}

// perlParts lets allocations end as COMPLETED (slurmctl.Client.Complete). A cluster works without.
var perlParts = []part{{"libslurm-perl", []string{"/usr/lib/*/perl5/*/Slurm.pm", "/usr/lib/*/perl/*/Slurm.pm", "/usr/lib64/perl5/vendor_perl/Slurm.pm"}}}

var accountingParts = []part{
	{"slurmdbd", []string{"/usr/sbin/slurmdbd"}},
	{"mariadb-server", []string{"/usr/sbin/mariadbd"}},
	{"mariadb-server", []string{"/usr/bin/mariadb-install-db"}},
}

// find returns the first existing path of the part with that base name, or "".
func (p part) find() string {
	for _, pattern := range p.paths {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// daemonPath returns the executable of a daemon by its plain name.
func daemonPath(name string) string {
	for _, p := range slices.Concat(slurmParts, accountingParts) {
		if slices.ContainsFunc(p.paths, func(path string) bool { return filepath.Base(path) == name }) {
			return p.find()
		}
	}
	return ""
}

// Missing returns the Debian packages that this machine lacks for clusters, including accounting.
func Missing() []string { return missing(slices.Concat(slurmParts, accountingParts, perlParts)) }

func missing(parts []part) []string {
	var pkgs []string
	for _, p := range parts {
		if p.find() == "" && !slices.Contains(pkgs, p.pkg) {
			pkgs = append(pkgs, p.pkg)
		}
	}
	return pkgs
}

// checkInstalled returns an error that says in one line what to install, if anything.
func checkInstalled(accounting bool) error {
	parts := slurmParts
	if accounting {
		parts = slices.Concat(slurmParts, accountingParts)
	}
	pkgs := missing(parts)
	if len(pkgs) == 0 {
		return nil
	}
	return fmt.Errorf("slurmtest: Slurm is not complete on this machine; install it with: apt-get install -y --no-install-recommends %s",
		strings.Join(pkgs, " "))
}

// slurmVersion returns the version of the installed slurmctld, e.g. "22.05.8".
func slurmVersion(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, daemonPath("slurmctld"), "-V")
	cmd.Args[0] = "slurmctld"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	f := strings.Fields(string(out))
	if err != nil || len(f) == 0 {
		return "", fmt.Errorf("slurmtest: slurmctld -V: %v: %s%s", err, out, stderr.Bytes())
	}
	return f[len(f)-1], nil
}
