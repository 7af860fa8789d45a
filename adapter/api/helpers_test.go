package api

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
)

// The UID of the user nobody on all systems with Slurm.
const nobody = 65534

// munged is a real MUNGE daemon with a key and a socket of its own.
var munged Munge

func TestMain(m *testing.M) {
	if os.Getenv("DOORMAN") != "" { // as a process of its own
		d := Doorman{Log: logrus.New()}
		if err := d.Serve([]*os.File{os.NewFile(3, ""), os.NewFile(4, ""), os.NewFile(5, "")}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code, err := withMunged(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "these tests need a MUNGE daemon of their own (Debian's package munge):", err)
		code = 1
	}
	os.Exit(code)
}

func withMunged(run func() int) (int, error) {
	dir, err := os.MkdirTemp("", "munge")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // other users must reach the socket
		return 0, err
	}
	key := make([]byte, 128)
	rand.Read(key)
	if err := os.WriteFile(dir+"/key", key, 0o400); err != nil {
		return 0, err
	}
	munged = Munge{Socket: dir + "/socket"}
	runtime.LockOSThread() // the daemon dies with the thread that started it
	defer runtime.UnlockOSThread()
	stop, err := runMunged(dir, "socket")
	if err != nil {
		return 0, err
	}
	defer stop()
	return run(), nil
}

// runMunged starts a MUNGE daemon with the key in dir, at a socket there, and waits until it
// serves.
func runMunged(dir, socket string) (stop func(), err error) {
	path, err := exec.LookPath("munged")
	if err != nil {
		path = "/usr/sbin/munged"
	}
	base := dir + "/" + socket
	log, err := os.Create(base + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(path, "--foreground", "--key-file="+dir+"/key", "--socket="+base,
		"--pid-file="+base+".pid", "--seed-file="+base+".seed", "--num-threads=2")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	}
	for range 500 {
		if _, err = (Munge{Socket: base}).Encode(context.Background(), "hello", time.Minute); err == nil {
			return stop, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	text, _ := os.ReadFile(base + ".log")
	return nil, fmt.Errorf("%w: %s", err, text)
}

// anybody returns the reading that most tests have.
func anybody() Reading { return Anybody }

// fakeBackend has job 12 of owner, at step 1 of 3.
type fakeBackend struct {
	Backend // whose other methods are those of further fakes
	owner   uint32

	mu     sync.Mutex
	step   int
	ready  chan struct{} // closed: the nodes of the next step are there
	posted []NextRequest
	fail   error // of every call

	reported []ReportQuery

	waiting chan struct{} // receives at each wait of Next
}

func newBackend(owner uint32) *fakeBackend {
	return &fakeBackend{owner: owner, step: 1, ready: make(chan struct{}), waiting: make(chan struct{}, 1000)}
}

func (b *fakeBackend) find(id uint32) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return b.fail
	}
	if id != 12 {
		return Unknown(id)
	}
	return nil
}

func (b *fakeBackend) Status(context.Context) (Status, error) {
	return Status{Version: "v", Cluster: "c", LastCycle: time.Unix(1_800_000_000, 0)}, b.find(12)
}

func (b *fakeBackend) Jobs(_ context.Context, all bool) ([]Job, error) {
	js := []Job{{ID: 12, UID: b.owner, Account: "proj"}, {ID: 13, UID: b.owner + 1}}
	if all {
		js = append(js, Job{ID: 11, UID: b.owner})
	}
	return js, b.find(12)
}

func (b *fakeBackend) Job(_ context.Context, id uint32) (Job, error) {
	return Job{ID: id, UID: b.owner, Account: "proj"}, b.find(id)
}

// History is empty.
func (b *fakeBackend) History(context.Context, HistoryQuery) (History, error) {
	return History{Jobs: []Job{}}, nil
}

// Report notes the query.
func (b *fakeBackend) Report(_ context.Context, q ReportQuery) (Report, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reported = append(b.reported, q)
	return Report{Start: q.Start, End: q.End, By: q.By, Rows: []ReportRow{}}, nil
}

// Events has one of job 12, one of another user's and one of the sidecar.
func (b *fakeBackend) Events(_ context.Context, q EventQuery) ([]Event, error) {
	var es []Event
	for _, e := range []Event{{ID: 1, Kind: "sidecar started"}, {ID: 2, Job: 12, Kind: "started"}, {ID: 3, Job: 13, Kind: "started"}} {
		uid := b.owner + e.Job - 12
		if e.ID > q.After && (q.Job == 0 || e.Job == q.Job) && (e.Job != 0 || q.Sidecar) && (e.Job == 0 || q.Owner == nil || *q.Owner == uid) {
			es = append(es, e)
		}
	}
	return es, b.find(12)
}

func (b *fakeBackend) Cluster(context.Context) (*Cluster, error) {
	return nil, Errorf(ErrUnavailable, "no cluster was seen")
}

func (b *fakeBackend) Owner(_ context.Context, id uint32) (uint32, error) { return b.owner, b.find(id) }

func (b *fakeBackend) Allocation(_ context.Context, id uint32) (Allocation, error) {
	if err := b.find(id); err != nil {
		return Allocation{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return Allocation{Ready: true, Job: id, Step: b.step, Steps: 3}, nil
}

func (b *fakeBackend) Next(ctx context.Context, id uint32, req NextRequest) (Allocation, error) {
	if err := b.find(id); err != nil {
		return Allocation{}, err
	}
	b.mu.Lock()
	b.posted = append(b.posted, req)
	ready := b.ready
	b.mu.Unlock()
	b.waiting <- struct{}{}
	select {
	case <-ready:
		b.mu.Lock()
		defer b.mu.Unlock()
		b.step = req.From + 1
		return Allocation{Ready: true, Job: id, Step: b.step, Steps: 3}, nil
	case <-ctx.Done():
		return Allocation{}, ctx.Err()
	}
}

// longest is how long a test waits for what it has asked for. It ends a test that would hang, and is long enough for any machine.
const longest = 10 * time.Minute

// await receives n times from a channel of a backend, which the requests of a test reach, unless one
// of these fails before.
func await(t *testing.T, n int, reached <-chan struct{}, failed <-chan error) {
	t.Helper()
	end := time.After(longest)
	for i := range n {
		select {
		case <-reached:
		case err := <-failed:
			t.Fatal(err)
		case <-end:
			t.Fatalf("%d of %d requests have come in %v", i, n, longest)
		}
	}
}

// running is a server at work.
type running struct {
	*Server
	unix, tcp string        // addresses
	log       *lockedBuffer // its log
	stop      func()        // ends it and waits
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// serve starts a server on a Unix socket and a TCP port, as change wants it.
func serve(t testing.TB, b Backend, change func(*Server)) *running {
	t.Helper()
	dir, err := os.MkdirTemp("", "api")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := &running{log: &lockedBuffer{}}
	l := logrus.New()
	l.SetOutput(r.log)
	l.SetLevel(logrus.DebugLevel)
	r.Server = &Server{Backend: b, Log: l, Socket: filepath.Join(dir, "s"), TCP: "127.0.0.1:0", Munge: munged, Reading: anybody,
		readTimeout: 5 * time.Minute} // a loaded machine cuts nobody off
	if change != nil {
		change(r.Server)
	}
	if err := r.Listen(); err != nil {
		t.Fatal(err)
	}
	for _, a := range r.Addresses() {
		if strings.HasPrefix(a, unixPrefix) {
			r.unix = a
		} else {
			r.tcp = a
		}
	}
	r.since.Store(nil) // else the first second's credentials are refused
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx) }()
	var once sync.Once
	r.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Serve: %v", err)
			}
		})
	}
	t.Cleanup(r.stop)
	return r
}

// startDoorman starts this test as a process that serves a port.
func startDoorman(files []*os.File) (Process, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env, cmd.ExtraFiles, cmd.Stderr = []string{"DOORMAN=1"}, files, os.Stderr
	return child{cmd}, cmd.Start()
}

type child struct{ cmd *exec.Cmd }

func (c child) Wait() error { return c.cmd.Wait() }
func (c child) Kill() error { return c.cmd.Process.Kill() }

func client(t testing.TB, address string) *Client {
	t.Helper()
	c, err := NewClient(address, munged)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// encodeAs makes a credential as another user: munged sees the user of munge.
func encodeAs(t *testing.T, uid uint32, payload string, ttl int) string {
	t.Helper()
	cmd := exec.Command("munge", "--socket="+munged.Socket, fmt.Sprintf("--ttl=%d", ttl))
	cmd.Stdin = strings.NewReader(payload)
	if int(uid) != os.Geteuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("munge as uid %d: %v", uid, err)
	}
	return strings.TrimSpace(string(out))
}

// dialAs connects to a Unix socket as another user.
func dialAs(t *testing.T, uid int, path string) net.Conn {
	t.Helper()
	c, err := connectAs(uid, path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// connectAs is dialAs for goroutines that are not the test's. The kernel records the effective UID
// of the thread, which is then not reused.
func connectAs(uid int, path string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); e != 0 {
			done <- result{err: e}
			return
		}
		c, err := net.Dial("unix", path)
		done <- result{c, err}
	}()
	r := <-done
	if r.err != nil {
		return nil, fmt.Errorf("connect as uid %d: %w", uid, r.err)
	}
	return r.conn, nil
}

// unixAs returns an HTTP client of the socket that the kernel reports as uid.
func unixAs(uid int, address string) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return connectAs(uid, strings.TrimPrefix(address, unixPrefix))
	}}}
}

// send sends a request and gives its status and body.
func send(t *testing.T, hc *http.Client, method, url, authorization, body string) (int, string) {
	t.Helper()
	status, text, err := try(t.Context(), hc, method, url, authorization, body)
	if err != nil {
		t.Fatal(err)
	}
	return status, text
}

// try is send for a goroutine that is not the test's, which must not end with the request.
func try(ctx context.Context, hc *http.Client, method, url, authorization, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	res, err := hc.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return res.StatusCode, string(data), err
}
