package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/confine"
	"github.com/evoslurm/evoslurm/adapter/show/web"
)

// listener is the first argument of a process that serves an address for the sidecar, which starts it: the number of its
// files and the log's configuration follow.
const listener = "listener"

const (
	listenerMemory = 1 << 30 // bytes of data; Go takes half of them at most
	firstFile      = 3
	sharedAccount  = "nobody" // replaces config.WebUser if that account does not exist
)

// process is a listener at work.
type process struct{ cmd *exec.Cmd }

func (p process) Wait() error { return p.cmd.Wait() }
func (p process) Kill() error { return p.cmd.Process.Kill() }

// apart returns what starts listeners: of the same version, even if the file was replaced.
func apart(cfg config.Config, log *logrus.Logger) api.Starter {
	warn := sync.OnceFunc(func() {
		log.Warnf("the account %s does not exist: addresses are served as %s, whose other processes may interfere; systemd-sysusers or \"useradd --system %[1]s\" makes it", cfg.Listen.User, sharedAccount)
	})
	return func(files []*os.File) (api.Process, error) {
		who, err := confine.Account(cfg.Listen.User)
		if errors.As(err, new(user.UnknownUserError)) && cfg.Listen.User == config.WebUser {
			warn()
			who, err = confine.Account(sharedAccount)
		}
		if err != nil {
			return nil, fmt.Errorf("listen.user: %w", err)
		}
		cmd := exec.Command("/proc/self/exe")
		cmd.Args = []string{"evoslurmd", listener, strconv.Itoa(len(files)), log.GetLevel().String(), cfg.Log.Format}
		cmd.Dir, cmd.Env, cmd.ExtraFiles, cmd.Stderr = "/", []string{}, files, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who, Setsid: true}
		return process{cmd}, cmd.Start()
	}
}

// serveApart is a listener's life.
func serveApart(args []string) error {
	if len(args) != 3 {
		return errors.New("the sidecar starts this by itself")
	}
	// It ends when the sidecar does; systemd signals all processes of a unit.
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	log := logrus.New()
	if err := setUp(log, config.Log{Level: args[1], Format: args[2]}); err != nil {
		return err
	}
	_, _ = time.Now().Zone() // whose file is read now
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	var files []*os.File
	for i := range n {
		files = append(files, os.NewFile(uintptr(firstFile+i), "passed"))
	}
	d := api.Doorman{Static: web.Static, Log: log, Fence: func() {
		if err := confine.Self(listenerMemory); err != nil {
			log.WithError(err).Warn("the process that serves an address is not fenced in by the kernel: it has the rights of its account")
		}
	}}
	return d.Serve(files)
}
