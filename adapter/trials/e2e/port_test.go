package e2e_test

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestSocketUnit: the port stays open while the sidecar is away, nobody else gets it, and what is
// asked meanwhile is answered by the sidecar that comes back.
func TestSocketUnit(t *testing.T) {
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
	l, err := net.Listen("tcp", s.Address)
	s.must(err)
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
	log, err := os.ReadFile(s.log.Name())
	s.must(err)
	if strings.Contains(string(log), "address is taken") {
		t.Error("the sidecar tried to listen at a port that was passed to it")
	}
}

// TestAddressTaken: a sidecar that starts while another user has its port plans, and takes the port when it can.
func TestAddressTaken(t *testing.T) {
	s := newSite(t, slurmtest.Options{}, nil)
	s.stop(syscall.SIGKILL)
	impostor, err := net.Listen("tcp", s.Address)
	s.must(err)
	defer impostor.Close()
	s.start()
	id := s.submit("--profile=1@1h", "--wrap", "sleep 3600")
	s.eventually("the job was started", func() bool {
		out, _, _ := s.As(0, "squeue", "-h", "-o", "%T", "-j", id)
		return strings.TrimSpace(out) == "RUNNING"
	})
	log, err := os.ReadFile(s.log.Name())
	s.must(err)
	if !strings.Contains(string(log), "address is taken") {
		t.Errorf("the log does not say that the address is taken:\n%s", log)
	}
	s.must(impostor.Close())
	s.eventually("the sidecar answers at its address", func() bool { return s.job(id).State == "running" })
	_, _, err = s.As(0, "scancel", id)
	s.must(err)
}
