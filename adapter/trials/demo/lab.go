package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

//go:embed job.sh
var jobScript []byte

// commands lists the programs of bin/ that the lab needs.
var commands = []string{"evoslurmd", "evosbatch", "evosctl", "evosrun"}

// lab is a private Slurm with the sidecar beside it, all in one folder.
type lab struct {
	dir     string // slurm/ is the cluster's, bin/ and traces/ the jobs'
	cluster *slurmtest.Cluster
	api     *api.Client
	sidecar *exec.Cmd
	ended   chan error // how the sidecar ended
}

// openLab boots the demo's cluster and starts the sidecar. Close it in any case.
func openLab(ctx context.Context, o Options) (*lab, error) {
	return open(ctx, setting{bin: o.Bin, commands: commands, slurm: slurmtest.Options{
		Nodes: o.Nodes, Accounting: true, PermitJobExpansion: o.Drive != drivemode.Companion,
	}})
}

// setting holds a lab's settings.
type setting struct {
	bin      string
	commands []string // of bin that its users have
	slurm    slurmtest.Options
	more     func(*lab) string // lines of evoslurm.yaml; nil: none
	// setUp is done before the sidecar starts; nil: nothing.
	setUp func(context.Context, *slurmtest.Cluster) error
}

// open boots a cluster and starts the sidecar. Close the lab in any case.
func open(ctx context.Context, s setting) (*lab, error) {
	l := &lab{}
	dir, err := os.MkdirTemp("", "evosdemo-")
	if err != nil {
		return l, err
	}
	l.dir = dir
	if err := l.fill(s.bin, s.commands); err != nil {
		return l, err
	}
	s.slurm.Dir = l.path("slurm")
	l.cluster, err = slurmtest.Boot(ctx, s.slurm)
	if err != nil {
		return l, err
	}
	if s.setUp != nil {
		if err := s.setUp(ctx, l.cluster); err != nil {
			return l, err
		}
	}
	for _, u := range l.cluster.Users() {
		traces := l.path("traces", u.Name)
		if err := errors.Join(os.MkdirAll(traces, 0o755), os.Chown(traces, int(u.UID), int(u.GID))); err != nil {
			return l, err
		}
	}
	more := ""
	if s.more != nil {
		more = s.more(l)
	}
	return l, l.startSidecar(ctx, more)
}

func (l *lab) path(elem ...string) string { return filepath.Join(append([]string{l.dir}, elem...)...) }

// fill puts the commands and the job script where every user can reach them: the
// source tree may lie in a private home.
func (l *lab) fill(bin string, names []string) error {
	if err := os.Chmod(l.dir, 0o755); err != nil {
		return err
	}
	for _, sub := range []string{"bin", "traces", "log"} {
		if err := os.Mkdir(l.path(sub), 0o755); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := os.MkdirAll(filepath.Dir(l.path("bin", name)), 0o755); err != nil {
			return err
		}
		if err := copyFile(commandIn(bin, name), l.path("bin", name)); err != nil {
			return fmt.Errorf("the commands must be built (make) or installed first: %w", err)
		}
	}
	return os.WriteFile(l.path("job.sh"), jobScript, 0o755)
}

// commandIn returns where a command is: in the folder, as it is built, or about it, as packages install it.
func commandIn(bin, name string) string {
	for _, about := range []string{"", "../sbin", "../libexec/evoslurm"} {
		file := filepath.Join(bin, about, name)
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return filepath.Join(bin, name)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// configuration is the sidecar's and the commands', who reach it over TCP with
// MUNGE, as from another machine.
const configuration = `database: %[1]s/evoslurm.db
listen:
  socket: %[1]s/api.sock
  tcp: %[2]s
api: %[2]s
munge:
  socket: %[3]s
poll_interval: 500ms
log:
  level: debug
`

// startSidecar starts evoslurmd and waits for its first look at Slurm.
func (l *lab) startSidecar(ctx context.Context, more string) error {
	address, err := rig.FreeAddress()
	if err != nil {
		return err
	}
	text := fmt.Sprintf(configuration, l.dir, address, l.cluster.MungeSocket()) + more
	if err := os.WriteFile(l.path("evoslurm.yaml"), []byte(text), 0o644); err != nil {
		return err
	}
	log, err := os.Create(l.path("log", "evoslurmd.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	l.sidecar = l.cluster.Command(context.WithoutCancel(ctx), slurmtest.Root, l.path("bin", "evoslurmd"), "--config", l.path("evoslurm.yaml"))
	l.sidecar.Stdout, l.sidecar.Stderr = log, log
	l.sidecar.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ^C is for the demo, which stops things in order
	if err := l.sidecar.Start(); err != nil {
		return err
	}
	l.ended = make(chan error, 1)
	go func() { l.ended <- l.sidecar.Wait() }()
	if l.api, err = api.NewClient("unix://"+l.path("api.sock"), api.Munge{}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		s, err := l.api.Status(ctx)
		if err == nil && !s.LastCycle.IsZero() {
			return nil
		}
		select {
		case err := <-l.ended:
			l.ended <- err
			return fmt.Errorf("evoslurmd ended at its start: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("evoslurmd does not look at Slurm: %w", errors.Join(err, ctx.Err()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// alive reports whether the sidecar is still there.
func (l *lab) alive() error {
	select {
	case err := <-l.ended:
		l.ended <- err
		return fmt.Errorf("evoslurmd has ended: %v", err)
	default:
		return nil
	}
}

// user returns the user of a job's number, by turns.
func (l *lab) user(number int) slurmtest.User {
	users := l.cluster.Users()
	return users[number%len(users)]
}

// command prepares a command as a user of the cluster who has Evoslurm's commands and
// configuration.
func (l *lab) command(ctx context.Context, u slurmtest.User, name string, args ...string) *exec.Cmd {
	cmd := l.cluster.Command(ctx, u, name, args...)
	cmd.Env = append(cmd.Env, "PATH="+l.path("bin")+":"+os.Getenv("PATH"), "EVOSLURM_CONFIG="+l.path("evoslurm.yaml"))
	return cmd
}

// run runs such a command.
func (l *lab) run(ctx context.Context, u slurmtest.User, name string, args ...string) (string, error) {
	cmd := l.command(ctx, u, name, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), err
}

// stopTime bounds each part of the end.
const stopTime = 20 * time.Second

// close stops the sidecar and the cluster. The folder stays if keep is set.
func (l *lab) close(keep bool) error {
	var errs []error
	if l.ended != nil {
		errs = append(errs, l.sidecar.Process.Signal(syscall.SIGTERM))
		select {
		case err := <-l.ended:
			if err != nil {
				errs = append(errs, fmt.Errorf("evoslurmd: %w", err))
			}
		case <-time.After(stopTime):
			errs = append(errs, fmt.Errorf("evoslurmd does not stop at SIGTERM"), l.sidecar.Process.Kill())
		}
	}
	if l.cluster != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		errs = append(errs, l.cluster.Stop(ctx))
	}
	if !keep && l.dir != "" {
		errs = append(errs, os.RemoveAll(l.dir))
	}
	return errors.Join(errs...)
}
