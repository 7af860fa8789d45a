package slurmtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
)

const (
	backupHost    = "slurmtest-backup"
	backupAddress = "127.0.0.2"
)

func (s site) backupConf() string { return s.dir + "/slurm.backup.conf" }

// writeBackup writes what the controllers need to be two on one machine: names for their addresses,
// and for the second a slurm.conf with another PID file (slurmctld ends the process that it finds
// there) and log.
func (c *Cluster) writeBackup(conf string) error {
	if !c.options.Backup {
		return nil
	}
	if os.Geteuid() != 0 {
		return errors.New("slurmtest: Options.Backup needs root")
	}
	conf = strings.NewReplacer("/state/slurmctld.pid", "/log/backup.pid", "/log/slurmctld.log", "/log/backup.log").Replace(conf)
	hosts := fmt.Sprintf("%s localhost %s\n%s %s\n", loopback, c.site.host, backupAddress, backupHost)
	return errors.Join(replaceFile(c.site.dir+"/hosts", hosts), replaceFile(c.site.backupConf(), conf))
}

// StartBackup starts the second slurmctld and returns when it waits for the first one, or acts for it.
func (c *Cluster) StartBackup(ctx context.Context) error {
	return c.startController(ctx, "backup", backupHost, c.site.backupConf())
}

// StopBackup stops the second slurmctld with SIGTERM.
func (c *Cluster) StopBackup(ctx context.Context) error {
	return c.sup.kill(ctx, "backup", syscall.SIGTERM)
}

// startController starts a slurmctld and returns when it answers.
func (c *Cluster) startController(ctx context.Context, name, at, conf string) error {
	r := request{
		// With another argv[0], Slurm does not know which of its programs it is; 22.05 with
		// slurmdbd then crashes.
		Name: name, Path: daemonPath("slurmctld"), Argv: []string{"slurmctld", "-D"},
		Env: daemonEnv(append(c.clockEnv(), "SLURM_CONF="+conf)...), Dir: c.site.dir + "/state", Output: c.site.dir + "/log/" + name + ".out", User: account(c.site.slurmUser),
	}
	if c.Options().Backup {
		r.Host = &host{at, c.site.dir + "/hosts"}
	}
	d, err := c.sup.start(ctx, r)
	if err != nil {
		return err
	}
	return d.until(ctx, func() bool {
		out, err := c.Run(ctx, Root, "scontrol", "ping")
		if r.Host == nil {
			return err == nil
		}
		return strings.Contains(out, " at "+at+" is UP")
	})
}

// host is a machine of its own as far as names go.
type host struct {
	Name  string
	Hosts string // its /etc/hosts
}

// forkExec starts a process on the host. Its namespaces belong to the thread that forks, which ends
// with the goroutine; the process can therefore not be tied to that thread (Pdeathsig).
func (h *host) forkExec(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	if h == nil {
		return syscall.ForkExec(path, argv, attr)
	}
	attr.Sys.Pdeathsig = 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked
		for _, step := range []func() error{
			func() error { return syscall.Unshare(syscall.CLONE_NEWUTS | syscall.CLONE_NEWNS) },
			func() error { return syscall.Sethostname([]byte(h.Name)) },
			func() error { return syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "") },
			func() error { return syscall.Mount(h.Hosts, "/etc/hosts", "", syscall.MS_BIND, "") },
			func() error { pid, err = syscall.ForkExec(path, argv, attr); return err },
		} {
			if err = step(); err != nil {
				return
			}
		}
	}()
	<-done
	return pid, err
}
