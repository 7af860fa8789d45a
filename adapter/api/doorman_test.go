package api

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// hostile is a process that serves a port and is in the hands of an attacker, who has its line to the sidecar.
type hostile struct {
	line chan http.RoundTripper
	end  chan struct{}
}

func (h *hostile) Wait() error { <-h.end; return nil }
func (h *hostile) Kill() error { return nil }

func (h *hostile) start(files []*os.File) (Process, error) {
	conn, err := net.FileConn(files[1])
	if err != nil {
		return nil, err
	}
	line, err := lineTo(conn, make(chan error, 1))
	h.line <- line
	return h, err
}

// TestHostileDoorman checks that who has taken over the process that serves TCP is nobody to the sidecar, and cannot use
// there what callers made for other servers.
func TestHostileDoorman(t *testing.T) {
	h := &hostile{make(chan http.RoundTripper, 1), make(chan struct{})}
	defer close(h.end)
	me := uint32(os.Geteuid())
	b := ready(me)
	r := serve(t, b, func(s *Server) { s.Start, s.Reading = h.start, func() Reading { return AllJobs } })
	line := <-h.line
	send := func(at, from, credential, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://sidecar/v1/jobs/12/next", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(atHeader, at)
		req.Header.Set(fromHeader, from)
		if credential != "" {
			req.Header.Set("Authorization", authorization(credential))
		}
		res, err := line.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(text)
	}
	const body, from = `{"from": 1}`, "127.0.0.1:7"
	made := func(server, body string) string {
		return encodeAs(t, me, newTarget("", server, http.MethodPost, "/v1/jobs/12/next", []byte(body)).request(), 60)
	}
	for name, c := range map[string]struct {
		at, from, credential, want string
	}{
		"as the sidecar's own user":      {r.tcp, from, "", "needs a MUNGE credential"},
		"with a credential of elsewhere": {"192.0.2.1:341", from, made("192.0.2.1:341", body), "no such address"},
		"at another port":                {"127.0.0.1:1", from, made("127.0.0.1:1", body), "no such address"},
		"with another body":              {r.tcp, from, made(r.tcp, `{"from": 2}`), "made for another request"},
		"without addresses":              {"", "", made(r.tcp, body), "no such address"},
	} {
		if status, text := send(c.at, c.from, c.credential, body); status/100 != 4 || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	good := made(r.tcp, body)
	if status, text := send(r.tcp, from, good, body); status != 200 {
		t.Errorf("what callers ask: %d %s", status, text)
	}
	if status, text := send(r.tcp, from, good, body); status != 401 || !strings.Contains(text, "used before") {
		t.Errorf("once more: %d %s", status, text)
	}
	if len(b.posted) != 1 {
		t.Errorf("the backend was asked %d times", len(b.posted))
	}
}

// TestForgedHeaders checks that callers cannot say who they are in the words of a Doorman.
func TestForgedHeaders(t *testing.T) {
	r := serve(t, newBackend(7), func(s *Server) { s.Reading = func() Reading { return OwnJobs } })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.tcp+"/v1/jobs/12", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{fromHeader, atHeader, secureHeader, callerHeader} {
		req.Header.Set(name, "192.0.2.7:7")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if log := r.log.String(); res.StatusCode != http.StatusUnauthorized || res.Header.Get(callerHeader) != "" || strings.Contains(log, "192.0.2.7") {
		t.Errorf("%d, %v; log: %s", res.StatusCode, res.Header, log)
	}
}

// TestDoormanDies checks that requests are answered again after the process that serves TCP was killed, also one that waited,
// and that the sidecar's socket answers meanwhile.
func TestDoormanDies(t *testing.T) {
	var mu sync.Mutex
	var all []Process
	b := newBackend(uint32(os.Geteuid()))
	r := serve(t, b, func(s *Server) {
		s.Start = func(files []*os.File) (Process, error) {
			mu.Lock()
			defer mu.Unlock()
			if len(all) == 1 { // it fails once
				all = append(all, nil)
				return nil, errors.New("no process")
			}
			p, err := startDoorman(files)
			all = append(all, p)
			return p, err
		}
	})
	answer := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		a, err := client(t, r.tcp).Next(ctx, 12, NextRequest{From: 1})
		if err == nil && a.Step != 2 {
			err = errors.New("another step")
		}
		answer <- err
	}()
	await(t, 1, b.waiting, answer)
	mu.Lock()
	err := all[0].Kill()
	mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, r.unix).Job(t.Context(), 12); err != nil {
		t.Errorf("on the socket: %v", err)
	}
	await(t, 1, b.waiting, answer) // it came back
	close(b.ready)
	if err := <-answer; err != nil {
		t.Error(err)
	}
	if log := r.log.String(); !strings.Contains(log, "starting it again") || !strings.Contains(log, "no process") {
		t.Error(log)
	}
}
