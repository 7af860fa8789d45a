package e2e_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestSocketUnit checks that the port stays open while the sidecar is away, that no other process
// gets it, and that the returning sidecar answers requests made meanwhile.
func TestSocketUnit(t *testing.T) {
	t.Parallel()
	const file = "../../../contrib/systemd/evoslurmd.socket"
	unit, err := section(file, "[Socket]")
	if err != nil {
		t.Fatal(err)
	}
	if _, port, _ := strings.Cut(":"+unit["ListenStream"], ":"); port != "341" || api.DefaultPort != 341 || unit["FileDescriptorName"] != "api" {
		t.Errorf("%s has %v, and clients use port %d", file, unit, api.DefaultPort)
	}
	s := newSite(t, slurmtest.Options{}, nil)
	s.stop(syscall.SIGKILL)
	l := s.takePort()
	s.socket, err = l.(*net.TCPListener).File()
	s.must(err)
	s.must(l.Close()) // systemd accepts nothing itself
	defer s.socket.Close()
	s.start()
	s.eventually("the sidecar answers", func() bool { _, err := s.Jobs(0); return err == nil })
	s.stop(syscall.SIGKILL)
	if _, err := net.Listen("tcp", s.Address); err == nil {
		t.Error("another process got the port while the sidecar was away")
	}
	answered := make(chan error, 1)
	go func() {
		_, err := s.Jobs(0)
		answered <- err
	}()
	s.start()
	s.must(<-answered)
	log := must.Read(s.t, s.log.Name())
	if strings.Contains(string(log), "address is taken") {
		t.Error("the sidecar tried to listen at a port that was passed to it")
	}
}

// takePort listens at the sidecar's port, which the process that served it frees a moment after a sidecar that is killed.
func (s *site) takePort() (l net.Listener) {
	s.eventually("the port is free", func() bool {
		var err error
		l, err = net.Listen("tcp", s.Address)
		return err == nil
	})
	return l
}

// TestAddressTaken: a sidecar that starts while another user has its port plans, and takes the port when it can.
func TestAddressTaken(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{}, nil)
	s.stop(syscall.SIGKILL)
	impostor := s.takePort()
	defer impostor.Close()
	s.start()
	id := s.submit("--profile=1@1h", "--wrap", "sleep 3600")
	s.eventually("the job was started", func() bool {
		out, _, _ := s.As(0, "squeue", "-h", "-o", "%T", "-j", id)
		return strings.TrimSpace(out) == "RUNNING"
	})
	log := must.Read(s.t, s.log.Name())
	if !strings.Contains(string(log), "address is taken") {
		t.Errorf("the log does not say that the address is taken:\n%s", log)
	}
	s.must(impostor.Close())
	s.eventually("the sidecar answers at its address", func() bool { return s.job(id).State == "running" })
	_, _, err := s.As(0, "scancel", id)
	s.must(err)
}

// lies holds the answer of the impostor in TestImpostor: the next step, on n8, and sequences that a terminal obeys.
const lies = `{"ready": true, "job": 1, "step": 2, "steps": 2, "drive": "merge", "nodes": 1, "note": "\u001b[2Jowned",
	"parts": [{"job": 1, "node_list": ["n8"], "cpus": [4]}]}`

// TestImpostor: who has the sidecar's port while it is away ends no job's step, and root's request to it is
// of no use at the sidecar later.
func TestImpostor(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, nil)
	id := s.submit("--profile=1@10m,2@10m", "--wrap", `while [ ! -e go ]; do sleep 0.2; done
		eval "$(evosctl next 2>next.err)"
		echo "step $EVO_STEP on $EVO_NODES"`)
	s.eventually("the job runs", func() bool { return s.job(id).State == "running" })
	s.stop(syscall.SIGKILL)

	asked := make(chan *http.Request, 1000)
	l := s.takePort()
	impostor := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		asked <- r
		io.WriteString(w, lies)
	})}
	go impostor.Serve(l)
	defer impostor.Close()
	s.must(os.WriteFile(s.Dir+"/out/go", nil, 0o644))
	next := func(what string) *http.Request {
		select {
		case r := <-asked:
			return r
		case <-time.After(patience):
			t.Fatalf("waited %v for %s", patience, what)
			return nil
		}
	}
	next("the job's request")
	next("its second one: the first answer was not believed")

	root := exec.Command(bin+"/evosctl", "strategy", "use", "rigid")
	root.Env = append(os.Environ(), s.Env()...)
	s.must(root.Start())
	var stolen *http.Request
	for stolen == nil {
		if r := next("root's request"); strings.HasSuffix(r.URL.Path, "/use") {
			stolen = r
		}
	}
	s.must(root.Process.Kill())
	root.Wait()
	said := must.Read(s.t, s.Dir+"/out/next.err")
	if !bytes.Contains(said, []byte("did not prove that it is the sidecar")) || bytes.ContainsRune(said, 0x1b) {
		t.Errorf("evosctl next printed %q", said)
	}
	s.must(impostor.Close())

	s.start()
	s.eventually("the job has its step", func() bool { return s.job(id).Step == 2 })
	replay, err := http.NewRequestWithContext(t.Context(), stolen.Method, "http://"+s.Address+stolen.URL.RequestURI(), stolen.Body)
	s.must(err)
	replay.Header = stolen.Header
	answer, err := http.DefaultClient.Do(replay)
	s.must(err)
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusServiceUnavailable || s.status().Strategy != "noX" {
		t.Errorf("root's request, relayed: %s, %s; the strategy is %s", answer.Status, text, s.status().Strategy)
	}
	if got := messages(s.output(id)); !slices.Equal(got, []string{"step 2 on 2"}) {
		t.Errorf("the job printed %q", got)
	}
	s.stop(syscall.SIGTERM)
}
