package confine

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

const firstFile = 3 // of those that a process is given

// TestMain is also the confined process, which serves on the listener that it is given.
func TestMain(m *testing.M) {
	if os.Getenv("CONFINED") == "" {
		os.Exit(m.Run())
	}
	l, err := net.FileListener(os.NewFile(firstFile, "listener"))
	if err == nil {
		err = Self(512 << 20)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	err = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, tried(r.URL.Path)) }))
	fmt.Fprintln(os.Stderr, err)
}

// tried returns how an attempt ends.
func tried(what string) error {
	parent := os.Getppid()
	switch what {
	case "/read":
		_, err := os.ReadFile("/etc/passwd")
		return err
	case "/write":
		return os.WriteFile("/tmp/confined", nil, 0o600)
	case "/remove":
		return os.Remove("/tmp/confined")
	case "/dial":
		_, err := net.Dial("tcp", "127.0.0.1:1")
		return err
	case "/listen":
		_, err := net.Listen("tcp", "127.0.0.1:0")
		return err
	case "/exec":
		return syscall.Exec("/bin/true", []string{"true"}, nil)
	case "/fork":
		return exec.Command("/bin/true").Run()
	case "/kill":
		return syscall.Kill(parent, 0)
	case "/thread":
		return unix.Tgkill(parent, parent, 0)
	case "/trace":
		return syscall.PtraceAttach(parent)
	case "/limit":
		return unix.Prlimit(parent, unix.RLIMIT_NOFILE, nil, new(unix.Rlimit))
	case "/root":
		return unix.Setuid(0)
	}
	return misused(what, parent)
}

// misused returns how an attempt on the listener ends.
func misused(how string, parent int) error {
	switch how {
	case "/owner": // then the kernel signals the owner
		_, err := unix.FcntlInt(firstFile, unix.F_SETOWN, parent)
		return err
	case "/signal": // SIGKILL in place of SIGIO
		_, err := unix.FcntlInt(firstFile, unix.F_SETSIG, int(unix.SIGKILL))
		return err
	case "/shut": // the listener, which the next process of the port gets, too
		return unix.Shutdown(firstFile, unix.SHUT_RDWR)
	case "/open": // a connection, without connect
		return unix.Sendto(firstFile, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: 1, Addr: [4]byte{127, 0, 0, 1}})
	case "/message":
		return unix.Sendmsg(firstFile, []byte("x"), nil, &unix.SockaddrInet4{Port: 1, Addr: [4]byte{127, 0, 0, 1}}, unix.MSG_FASTOPEN)
	case "/filter": // of what arrives
		return unix.SetsockoptSockFprog(firstFile, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}})
	case "/local": // no answers by way of a router
		return unix.SetsockoptInt(firstFile, unix.SOL_SOCKET, unix.SO_DONTROUTE, 1)
	case "/near":
		return unix.SetsockoptInt(firstFile, unix.IPPROTO_IP, unix.IP_MINTTL, 255)
	case "/later":
		return unix.SetsockoptInt(firstFile, unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, 1000)
	case "/nothing": // as accept does
		return errors.Join(unix.SetsockoptInt(firstFile, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1), unix.SetsockoptInt(firstFile, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
			unix.SetsockoptInt(firstFile, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15), unix.SetsockoptInt(firstFile, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15),
			unix.SetsockoptInt(firstFile, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 9))
	}
	return nil
}

// TestSelf checks that a confined process goes on serving, many at once, and can do nothing else, even as root.
func TestSelf(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	must.OK(t, err)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env, cmd.ExtraFiles, cmd.Stderr = []string{"CONFINED=1"}, []*os.File{file}, os.Stderr
	must.OK(t, cmd.Start())
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	file.Close()
	get := func(path string) string {
		res, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return string(text) + fmt.Sprint(err)
	}
	answers := make(chan string, 100)
	for range cap(answers) {
		go func() { answers <- get("/nothing") }()
	}
	for range cap(answers) {
		if a := <-answers; a != "<nil><nil>" && a != "%!v(<nil>)<nil>" {
			t.Fatal(a)
		}
	}
	for _, what := range []string{"/read", "/write", "/remove", "/dial", "/listen", "/exec", "/fork", "/kill", "/thread", "/trace", "/limit", "/root", "/owner", "/signal", "/open", "/message", "/local", "/near", "/later", "/filter", "/shut"} {
		if a := get(what); !strings.Contains(a, "not permitted") {
			t.Errorf("%s: %s", what, a)
		}
	}
}

// TestAccount checks that only root gives a child another account.
func TestAccount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this needs root")
	}
	if c, err := Account("nobody"); err != nil || c.Uid != 65534 || len(c.Groups) > 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := Account("no-such-account"); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
