package demo

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/trials/sites"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

//go:embed first.sh
var firstScript []byte

// ShellOptions are how a shell is given.
type ShellOptions struct {
	Bin     string         // folder of the built commands
	Nodes   int            // of the cluster
	Drive   drivemode.Mode // merge or companion
	Site    string         // of package sites; "": a plain cluster
	Command []string       // in the shell's place; none: an interactive shell
	Out     *os.File       // what is said before and after
}

// shellCommands lists the commands of the shell's user.
var shellCommands = []string{"evoslurmd", "evosbatch", "evosqueue", "evosacct", "evostop", "evosctl", "evosrun", "evosim", "strategytest"}

// Shell boots a private Slurm with the sidecar and runs a shell, or a command, as an
// ordinary user in it, on this process's standard input and outputs. Then everything is taken
// down, also when ctx ends. The error is an [*exec.ExitError] where the command failed.
func Shell(ctx context.Context, o ShellOptions) (err error) {
	slurm := slurmtest.Options{Nodes: o.Nodes, Accounting: true, PermitJobExpansion: o.Drive != drivemode.Companion}
	what := fmt.Sprintf("a private Slurm of %d nodes", o.Nodes)
	var site sites.Site
	if o.Site != "" {
		if site, err = findSite(o.Site); err != nil {
			return err
		}
		if !site.Native(ctx) {
			return fmt.Errorf("--site=%s needs Slurm %s, which this machine does not have: `make sites` makes a root with it", site.Name, site.Slurm)
		}
		slurm, what = site.Boot(), "a Slurm like that of "+site.Name
	}
	fmt.Fprintf(o.Out, "Booting %s, with evoslurmd beside it …\n", what)
	names, err := withStrategies(o.Bin, shellCommands)
	if err != nil {
		return err
	}
	l, err := open(ctx, setting{
		bin: o.Bin, commands: names, slurm: slurm, setUp: site.SetUp,
		more: func(l *lab) string {
			return fmt.Sprintf("operators:\n  users: [%s]\nstrategies:\n  dir: %s\n", l.user(0).Name, l.path("bin", "strategies"))
		},
	})
	defer func() { err = errors.Join(err, l.close(false)) }()
	if err != nil {
		return err
	}
	if site.Helper != nil {
		helping, stop := context.WithCancel(context.WithoutCancel(ctx))
		helped := make(chan error, 1)
		go func() { helped <- site.Helper(helping, l.cluster) }()
		defer func() {
			stop()
			err = errors.Join(err, <-helped)
		}()
	}
	u := l.user(0)
	if err := errors.Join(giveFiles(u), l.giveLibrary(o.Bin)); err != nil {
		return err
	}
	status, err := l.api.Status(ctx)
	if err != nil {
		return err
	}
	if len(o.Command) == 0 {
		page, stop, err := l.page(ctx, u)
		if err != nil {
			return err
		}
		defer stop()
		fmt.Fprintf(o.Out, "Slurm %s, drive mode %s. You are %s, an ordinary user, and Evoslurm's operator.\n", l.cluster.Version(), status.Drive, u.Name)
		if site.Trap != "" {
			fmt.Fprintf(o.Out, "What is special here: %s\n", site.Trap)
		}
		if len(site.Job) > 0 {
			fmt.Fprintf(o.Out, "Jobs of this site need: %s\n", strings.Join(site.Job, " "))
		}
		fmt.Fprintf(o.Out, "The page, by `evosctl web`: %s\n", page)
		fmt.Fprint(o.Out, "`cat tutorial` has five commands to begin with; `exit` takes everything down.\n\n")
	}
	err = l.attach(ctx, u, o.Command)
	if len(o.Command) == 0 {
		fmt.Fprintln(o.Out, "Taking everything down …")
		if _, ok := errors.AsType[*exec.ExitError](err); ok { // of the last command that was typed
			err = nil
		}
	}
	return err
}

// page has evosctl web serve the page as a user, and tells its address.
func (l *lab) page(ctx context.Context, u slurmtest.User) (address string, stop func(), err error) {
	cmd := l.command(ctx, u, l.path("bin", "evosctl"), "web")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true // ^C is for what runs in the shell
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // stopped on purpose
	}
	if address, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		stop()
		return "", nil, fmt.Errorf("evosctl web: %w", err)
	}
	return strings.TrimSpace(address), stop, nil
}

// attach runs the command, or a shell, in the foreground of this process's terminal.
func (l *lab) attach(ctx context.Context, u slurmtest.User, command []string) error {
	if len(command) == 0 {
		command = []string{"/bin/sh"}
		if bash, err := exec.LookPath("bash"); err == nil {
			command = []string{bash, "--noprofile", "--rcfile", u.Home + "/.playrc"}
		}
	}
	// An interactive shell takes the terminal for itself, and ^C then is for what runs in
	// it; in between it must not end this process, nor must writing to the terminal.
	keys := make(chan os.Signal, 1)
	signal.Notify(keys, syscall.SIGQUIT, syscall.SIGTTOU, syscall.SIGTTIN, syscall.SIGTSTP)
	defer signal.Stop(keys)
	cmd := l.command(ctx, u, command[0], command[1:]...)
	cmd.Env = append(cmd.Env, "TERM="+os.Getenv("TERM"), "PS1=evoslurm \\W$ ")
	if _, err := os.Stat(l.path("python", "evoslurm")); err == nil {
		cmd.Env = append(cmd.Env, "PYTHONPATH="+l.path("python"))
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGHUP) }
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case err := <-l.ended:
		l.ended <- err
		fmt.Fprintln(os.Stderr, "evosdemo: evoslurmd has ended; the shell goes on without it:", err)
		return <-ended
	}
}

// giveFiles puts the tutorial and its job into the user's home.
func giveFiles(u slurmtest.User) error {
	for name, text := range map[string]string{
		"first.sh": string(firstScript), "tutorial": Tutorial(),
		".playrc": "PS1='evoslurm \\W\\$ '\n",
	} {
		path := filepath.Join(u.Home, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			return err
		}
		if err := os.Chown(path, int(u.UID), int(u.GID)); err != nil {
			return err
		}
	}
	return nil
}

// giveLibrary puts what `make install` would besides commands where all users have it: evolaunch, and the Python library,
// where the commands lie in a tree of sources.
func (l *lab) giveLibrary(bin string) error {
	if err := os.Symlink("evosctl", l.path("bin", "evolaunch")); err != nil {
		return err
	}
	err := os.CopyFS(l.path("python"), os.DirFS(filepath.Join(bin, "..", "contrib", "python")))
	if errors.Is(err, fs.ErrNotExist) { // installed commands have it as well, unless its package is left out
		return nil
	}
	return err
}

// withStrategies adds the strategies that lie beside the commands, where they were built.
func withStrategies(bin string, names []string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(bin, "strategies"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names = append([]string(nil), names...)
	for _, e := range entries {
		names = append(names, "strategies/"+e.Name())
	}
	return names, nil
}

// findSite returns the site of that name, or the only one with it as a part of its name.
func findSite(name string) (sites.Site, error) {
	var found []sites.Site
	for _, s := range sites.All() {
		if strings.EqualFold(s.Name, name) {
			return s, nil
		}
		if strings.Contains(strings.ToLower(s.Name), strings.ToLower(name)) {
			found = append(found, s)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return sites.Site{}, fmt.Errorf("--site=%s: want (a part of) one of: %s", name, strings.Join(SiteNames(), "; "))
}

// SiteNames returns the names of the sites that there are.
func SiteNames() []string {
	var names []string
	for _, s := range sites.All() {
		names = append(names, s.Name)
	}
	return names
}
