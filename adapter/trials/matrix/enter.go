package matrix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// enterArgument makes this program the first process inside of a root; see [Enter].
const enterArgument = "__enter"

// rootVariable tells a program that it runs inside of a root, whose files it may change.
const rootVariable = "EVOSLURM_MATRIX_ROOT"

// Enter prepares a command inside of a root, in mount and process namespaces of
// its own: whatever it mounts or starts goes with it, also when this process is
// killed. binds are folders of the machine that it sees at the same place. The
// calling program must begin with [Entered].
func Enter(ctx context.Context, root string, binds []string, command string, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{enterArgument, root, strings.Join(binds, ":"), command}, args...)...)
	cmd.Env = []string{rootVariable + "=" + root, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}

// Again prepares this very test program inside of a release's root, which is made if need be. Its output goes into log.
func Again(ctx context.Context, release Release, log *bytes.Buffer, binds []string, args ...string) (*exec.Cmd, error) {
	root, err := Root(ctx, release, nil, log)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd, err := Enter(ctx, root, append([]string{filepath.Dir(self)}, binds...), self, args...)
	if err != nil {
		return nil, err
	}
	log.Reset()
	cmd.Stdout, cmd.Stderr = log, log
	return cmd, nil
}

// Entered does the inner half of [Enter], where this process is that; it then does
// not return.
func Entered() {
	if len(os.Args) < 5 || os.Args[1] != enterArgument {
		return
	}
	err := enter(os.Args[2], filepath.SplitList(os.Args[3]), os.Args[4], os.Args[5:])
	var exit *exec.ExitError
	switch {
	case err == nil:
		os.Exit(0)
	case errors.As(err, &exit):
		os.Exit(max(exit.ExitCode(), 1))
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func enter(root string, binds []string, command string, args []string) error {
	mount := func(source, target, kind string, flags uintptr) error {
		if err := syscall.Mount(source, target, kind, flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", target, err)
		}
		return nil
	}
	err := errors.Join(
		mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE),
		mount("proc", root+"/proc", "proc", 0),
		mount("/sys", root+"/sys", "", syscall.MS_BIND|syscall.MS_REC),
		mount("/dev", root+"/dev", "", syscall.MS_BIND|syscall.MS_REC),
		mount("tmpfs", root+"/tmp", "tmpfs", 0),
		mount("tmpfs", root+"/run", "tmpfs", 0)) // where auth/slurm has its sockets
	if err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(root+"/tmp", 0o777|os.ModeSticky), os.Chmod(root+"/run", 0o755)); err != nil {
		return err
	}
	for _, dir := range binds {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			return err
		}
		if err := mount(dir, root+dir, "", syscall.MS_BIND|syscall.MS_REC); err != nil {
			return err
		}
	}
	cmd := exec.Command(command, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Dir = "/"
	if dir := os.Getenv("PWD"); dir != "" {
		cmd.Dir = dir
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	return cmd.Run()
}
