package matrix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Release is a Debian release with a version of Slurm.
type Release struct {
	Slurm string // major version, e.g. "24.11"
	Suite string // of Debian, e.g. "trixie"
}

// Releases lists the table's releases, oldest first.
var Releases = []Release{{"20.11", "bullseye"}, {"22.05", "bookworm"}, {"24.11", "trixie"}, {"26.05", "sid"}}

// Native reports whether the machine itself has that Slurm.
func (r Release) Native(ctx context.Context) bool {
	text, err := exec.CommandContext(ctx, "slurmctld", "-V").Output() // unlike sbatch --version, it needs no slurm.conf
	return err == nil && strings.Contains(string(text), " "+r.Slurm+".")
}

// Packages make a root fit to boot a private Slurm.
var Packages = []string{"slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge", "slurmdbd", "mariadb-server", "libslurm-perl"}

// BuildPackages lists the packages needed in addition to run the whole test suite in a root.
var BuildPackages = []string{"gcc", "libc6-dev", "python3-grpcio", "python3-protobuf", "python3-cryptography"}

// ErrUnavailable is a root that cannot be had here, for no fault of the project's.
var ErrUnavailable = errors.New("cannot be had")

// Mirror returns where this machine's apt gets Debian's main archive.
func Mirror(ctx context.Context) (string, error) {
	out, err := output(exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(LABEL)\t$(REPO_URI)"))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	fallback := ""
	for line := range strings.Lines(out) {
		label, uri, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if label == "Debian" {
			return uri, nil
		}
		if fallback == "" && strings.HasSuffix(strings.TrimRight(uri, "/"), "/debian") {
			fallback = uri
		}
	}
	if fallback == "" {
		return "", fmt.Errorf("%w: apt names no Debian mirror", ErrUnavailable)
	}
	return fallback, nil
}

// Root returns the folder of a release's root, made in the user's cache where it is not
// there yet: about a minute and 0.6 GB. It fails with [ErrUnavailable] where the mirror does
// not have the release, or this process may not make it.
func Root(ctx context.Context, release Release, more []string, log *bytes.Buffer) (string, error) {
	if os.Geteuid() != 0 {
		return "", fmt.Errorf("%w: only root can make a root", ErrUnavailable)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	root := filepath.Join(cache, "evoslurm", "matrix", release.Suite)
	if err := os.MkdirAll(filepath.Dir(root), 0o755); err != nil {
		return "", err
	}
	lock, err := os.Create(root + ".lock") // tests of several packages make the same root
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	if _, err := os.Stat(root + "/usr/sbin/policy-rc.d"); err != nil {
		if err := bootstrap(ctx, release, root, log); err != nil {
			return "", err
		}
	}
	packages := slices.Concat(Packages, more)
	if release.Suite != "bullseye" { // there, slurm-wlm-basic-plugins has it
		packages = append(packages, "slurm-wlm-jwt-plugin")
	}
	missing := false
	for _, name := range packages {
		if _, err := os.Stat(filepath.Join(root, "var/lib/dpkg/info", name+".list")); err != nil {
			if found, _ := filepath.Glob(filepath.Join(root, "var/lib/dpkg/info", name+":*.list")); len(found) == 0 {
				missing = true
			}
		}
	}
	if !missing {
		return root, nil
	}
	install := "apt-get install -y -q --no-install-recommends " + strings.Join(packages, " ")
	cmd, err := Enter(ctx, root, nil, "/bin/sh", "-c", "export DEBIAN_FRONTEND=noninteractive; "+install+" || { apt-get update -q && "+install+"; }")
	if err != nil {
		return "", err
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: its packages cannot be installed: %v", ErrUnavailable, err)
	}
	return root, nil
}

// bootstrap makes a minimal root in a folder beside, which takes its name when it
// is whole.
func bootstrap(ctx context.Context, release Release, root string, log *bytes.Buffer) error {
	if _, err := exec.LookPath("debootstrap"); err != nil {
		cmd := exec.CommandContext(ctx, "apt-get", "install", "-y", "-q", "--no-install-recommends", "debootstrap")
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%w: debootstrap is missing and cannot be installed: %v", ErrUnavailable, err)
		}
	}
	mirror, err := Mirror(ctx)
	if err != nil {
		return err
	}
	fresh := root + ".new"
	for _, at := range []string{"proc", "sys"} {
		_ = syscall.Unmount(filepath.Join(fresh, at), syscall.MNT_DETACH) // a debootstrap that was killed leaves it mounted
	}
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "debootstrap", "--variant=minbase", "--include=ca-certificates,procps", release.Suite, fresh, mirror)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: debootstrap of %s: %v: %s", ErrUnavailable, release.Suite, err, lastOf(log.String()))
	}
	// Packages start no services.
	if err := os.WriteFile(fresh+"/usr/sbin/policy-rc.d", []byte("#!/bin/sh\nexit 101\n"), 0o755); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	if err := os.WriteFile(fresh+"/etc/hosts", []byte("127.0.0.1 localhost "+host+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, root)
}

// lastOf returns the last line of a text.
func lastOf(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// output runs a command; the error has its last line of standard error.
func output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %v: %s", cmd.Path, err, lastOf(stderr.String()))
	}
	return stdout.String(), nil
}
