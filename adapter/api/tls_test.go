package api

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/certs"
	"github.com/evoslurm/evoslurm/adapter/internal/certs/certstest"
)

// TestTLS checks that a client reaches the server by TLS, and says by name why it does not.
func TestTLS(t *testing.T) {
	year := time.Now().AddDate(1, 0, 0)
	dir := t.TempDir()
	files := &certs.Files{}
	files.Certificate, files.Key = certstest.Write(t, dir, "127.0.0.1", 1, year)
	r := serve(t, ready(uint32(os.Geteuid())), func(s *Server) { s.TLS = files })
	reach := func(address string, c certs.Client) *Client {
		t.Helper()
		cfg, err := c.Config()
		if err != nil {
			t.Fatal(err)
		}
		client := client(t, address)
		client.UseTLS(cfg)
		return client
	}
	known := certs.Client{CA: files.Certificate}
	refused := func(c *Client, want string) {
		t.Helper()
		if err := notAnswered(t, c); !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
	c := reach("https://"+r.tcp, known)
	if _, err := c.Job(t.Context(), 12); err != nil || c.Expires() == nil || c.Expires().Sub(year).Abs() > time.Minute {
		t.Errorf("%v, expires %v", err, c.Expires())
	}
	_, port, err := net.SplitHostPort(r.tcp)
	if err != nil {
		t.Fatal(err)
	}
	refused(reach("https://localhost:"+port, known), "is for 127.0.0.1, not for localhost: set api")
	refused(reach("https://"+r.tcp, certs.Client{}), "set tls.ca")
	refused(client(t, r.tcp), "set api to https://")
	refused(reach("https://"+serve(t, newBackend(0), nil).tcp, known), "write api without https://")

	certstest.Write(t, dir, "127.0.0.1", 2, time.Now().Add(-time.Hour)) // renewed, too late
	certstest.Await(t, r.tcp, 2)
	refused(reach("https://"+r.tcp, known), "expired on")

	closed := &certs.Files{}
	authority, key := certstest.Write(t, t.TempDir(), "node", 3, year)
	closed.Authority = authority
	closed.Certificate, closed.Key = certstest.Write(t, t.TempDir(), "127.0.0.1", 4, year)
	r = serve(t, ready(uint32(os.Geteuid())), func(s *Server) { s.TLS = closed })
	known.CA = closed.Certificate
	refused(reach("https://"+r.tcp, known), "certificate required")
	known.Certificate, known.Key = authority, key
	if _, err := reach("https://"+r.tcp, known).Job(t.Context(), 12); err != nil {
		t.Errorf("with a client's certificate: %v", err)
	}
	certstest.Write(t, filepath.Dir(key), "node", 5, time.Now().Add(-time.Hour))
	refused(reach("https://"+r.tcp, known), "this machine's certificate, which has expired: the administrator must renew it (tls.certificate)")
	if _, err := tls.Dial("tcp", r.tcp, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
}
