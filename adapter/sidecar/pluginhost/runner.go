package pluginhost

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	sdk "github.com/evoslurm/evoslurm/plugins/strategy"
)

// keeperRunner starts a plugin under a keeper. It implements go-plugin's Runner.
type keeperRunner struct {
	path      string
	socketDir string
	cmd       *exec.Cmd
	in        io.Closer // closed, the keeper ends all
	out, errs *io.PipeReader
	log       *logrus.Entry

	outRaw, errRaw io.ReadCloser
	outEnd, errEnd *io.PipeWriter

	starting sync.Mutex
	stopped  bool
	ended    chan struct{} // closed when the keeper has ended

	mu    sync.Mutex
	died  string   // the line that a Go runtime begins its farewell with
	words []string // the last lines on standard error
}

// Bounds on a plugin's output.
const (
	maxHandshake  = 64 << 10 // bytes
	maxLine       = 1000     // bytes of a line on standard error
	linesASecond  = 50       // that are logged
	lastWords     = 3        // lines kept for the report of a fault
	stopTimeout   = 5 * time.Second
	pluginPath    = "/usr/local/bin:/usr/bin:/bin"
	goMemoryShare = 80 // percent of the memory limit at which a Go plugin collects garbage harder
)

// newKeeperRunner prepares a keeper; given has go-plugin's variables.
func newKeeperRunner(o order, given *exec.Cmd, log *logrus.Entry) (*keeperRunner, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	r := &keeperRunner{path: o.Path, socketDir: o.SocketDir, log: log, ended: make(chan struct{})}
	r.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{keeperName, string(text)}, Dir: "/",
		Env: append([]string{"PATH=" + pluginPath, "LANG=C.UTF-8", "HOME=/", "PYTHONDONTWRITEBYTECODE=1",
			"GOMEMLIMIT=" + strconv.FormatInt(o.Memory*goMemoryShare/100, 10)}, given.Env...),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // ^C is for the sidecar
	}
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if r.outRaw, err = r.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if r.errRaw, err = r.cmd.StderrPipe(); err != nil {
		return nil, err
	}
	r.out, r.outEnd = io.Pipe()
	r.errs, r.errEnd = io.Pipe()
	return r, nil
}

// Start implements runner.Runner.
func (r *keeperRunner) Start(context.Context) error {
	r.starting.Lock()
	defer r.starting.Unlock()
	if r.stopped {
		return context.Canceled
	}
	if err := r.cmd.Start(); err != nil {
		return err
	}
	var reading sync.WaitGroup
	reading.Go(r.readOut)
	reading.Go(r.readErrs)
	go func() {
		reading.Wait()
		r.cmd.Wait()
		close(r.ended)
		r.outEnd.Close()
		r.errEnd.Close()
	}()
	return nil
}

// readOut passes on only the handshake.
func (r *keeperRunner) readOut() {
	in := bufio.NewReaderSize(r.outRaw, maxHandshake)
	if line, err := in.ReadSlice('\n'); err == nil {
		_, _ = r.outEnd.Write(line)
	} else {
		r.outEnd.Close() // not a handshake
	}
	_, _ = io.Copy(io.Discard, in)
}

// readErrs logs the plugin's standard error, a limited number of lines per second, and keeps the
// last.
func (r *keeperRunner) readErrs() {
	in := bufio.NewReaderSize(r.errRaw, maxLine)
	second, logged, whole := time.Now(), 0, true
	for {
		text, isPrefix, err := in.ReadLine()
		if err != nil {
			return
		}
		begins := whole
		if whole = !isPrefix; !begins {
			continue // of an overlong line only the beginning
		}
		line := sdk.Clean(strings.TrimSpace(string(text)), maxLine)
		r.mu.Lock()
		if r.died == "" && (strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")) {
			r.died = line
		}
		r.words = append(r.words, line)
		if len(r.words) > lastWords {
			r.words = r.words[1:]
		}
		r.mu.Unlock()
		if time.Since(second) > time.Second {
			second, logged = time.Now(), 0
		}
		if logged++; logged <= linesASecond {
			r.log.Info("the plugin says: " + line)
		}
	}
}

// said returns the plugin's last output on standard error.
func (r *keeperRunner) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.died != "" {
		return r.died + "; " + r.words[len(r.words)-1]
	}
	return strings.Join(r.words, "; ")
}

// Wait implements runner.Runner.
func (r *keeperRunner) Wait(context.Context) error {
	<-r.ended
	if !r.cmd.ProcessState.Success() {
		return errors.New(r.cmd.ProcessState.String())
	}
	return nil
}

// Kill implements runner.Runner: it ends the plugin and all that came of it.
func (r *keeperRunner) Kill(context.Context) error {
	if !r.close() {
		return nil
	}
	select {
	case <-r.ended:
		return nil
	case <-time.After(stopTimeout):
	}
	if err := r.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// close closes the pipe that keeps the keeper going; it reports whether there is one.
func (r *keeperRunner) close() bool {
	r.starting.Lock()
	defer r.starting.Unlock()
	if !r.stopped {
		r.stopped = true
		r.in.Close()
	}
	return r.cmd.Process != nil
}

// Stdout, Stderr, Name, ID and Diagnose implement runner.Runner.
func (r *keeperRunner) Stdout() io.ReadCloser { return r.out }

func (r *keeperRunner) Stderr() io.ReadCloser { return r.errs }

func (r *keeperRunner) Name() string { return r.path }

func (r *keeperRunner) ID() string {
	if r.cmd.Process == nil {
		return ""
	}
	return strconv.Itoa(r.cmd.Process.Pid)
}

func (r *keeperRunner) Diagnose(context.Context) string { return r.said() }

// PluginToHost accepts only a socket in the folder made for it.
func (r *keeperRunner) PluginToHost(network, address string) (string, string, error) {
	if network != "unix" || filepath.Dir(address) != r.socketDir {
		return "", "", fmt.Errorf("it listens on %s %s, not on a Unix socket in PLUGIN_UNIX_SOCKET_DIR", sdk.Clean(network, 10), sdk.Clean(address, 200))
	}
	st, err := os.Lstat(address)
	if err != nil {
		return "", "", err
	}
	if st.Mode()&fs.ModeSocket == 0 {
		return "", "", fmt.Errorf("%s is no socket", sdk.Clean(address, 200))
	}
	return network, address, nil
}

// HostToPlugin is for go-plugin's broker, which the contract does not use.
func (r *keeperRunner) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
