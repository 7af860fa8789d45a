package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRoundTrip(t *testing.T) {
	b := newBackend(uint32(os.Geteuid()))
	close(b.ready)
	r := serve(t, b, nil)
	for _, address := range []string{r.unix, r.tcp} {
		c := client(t, address)
		if s, err := c.Status(t.Context()); err != nil || s.Cluster != "c" {
			t.Errorf("%s: Status: %+v, %v", address, s, err)
		}
		for all, want := range map[bool]int{false: 2, true: 3} {
			if js, err := c.Jobs(t.Context(), all); err != nil || len(js) != want {
				t.Errorf("%s: Jobs(%v): %+v, %v; want %d", address, all, js, err, want)
			}
		}
		if j, err := c.Job(t.Context(), 12); err != nil || j.ID != 12 {
			t.Errorf("%s: Job: %+v, %v", address, j, err)
		}
		if a, err := c.Allocation(t.Context(), 12); err != nil || a.Steps != 3 {
			t.Errorf("%s: Allocation: %+v, %v", address, a, err)
		}
		if a, err := c.Next(t.Context(), 12, NextRequest{From: 2, Release: []string{"n3"}}); err != nil || !a.Ready || a.Step != 3 {
			t.Errorf("%s: Next: %+v, %v", address, a, err)
		}
		if got := b.posted[len(b.posted)-1]; got.From != 2 || len(got.Release) != 1 || got.Release[0] != "n3" {
			t.Errorf("%s: the backend got %+v", address, got)
		}
	}
}

func TestErrorsKeepTheirKind(t *testing.T) {
	for status, kind := range map[int]error{400: ErrInvalid, 401: ErrDenied, 403: ErrForbidden, 404: ErrNotFound, 409: ErrConflict, 500: nil} {
		b := newBackend(uint32(os.Geteuid()))
		b.fail = errors.New("the disk is full")
		if kind != nil {
			b.fail = fmt.Errorf("looking: %w", Errorf(kind, "because of %d", status))
		}
		r := serve(t, b, nil)
		for _, address := range []string{r.unix, r.tcp} {
			_, err := client(t, address).Job(t.Context(), 12)
			if err == nil || err.Error() != b.fail.Error() {
				t.Errorf("%d: got %v, want %v", status, err, b.fail)
			}
			for _, k := range []error{ErrInvalid, ErrDenied, ErrForbidden, ErrNotFound, ErrConflict, ErrUnavailable} {
				if errors.Is(err, k) != (k == kind) {
					t.Errorf("%d: errors.Is(%v, %v) = %v", status, err, k, k != kind)
				}
			}
		}
		if got, body := send(t, http.DefaultClient, "GET", "http://"+r.tcp+"/v1/jobs/12", "", ""); got != status {
			t.Errorf("status %d, want %d: %s", got, status, body)
		}
		r.stop()
	}
}

func TestBadRequests(t *testing.T) {
	r := serve(t, newBackend(uint32(os.Geteuid())), func(s *Server) { s.TCP = "" })
	hc := unixClient(r.unix)
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/v1/jobs/x", "", 400, "invalid job ID"},
		{"GET", "/v1/jobs/0", "", 400, "invalid job ID"},
		{"GET", "/v1/jobs/4294967296", "", 400, "invalid job ID"},
		{"GET", "/v1/jobs/99", "", 404, "job 99"},
		{"GET", "/v1/jobs?all=perhaps", "", 400, "all="},
		{"GET", "/v1/nothing", "", 404, "/v1/nothing"},
		{"DELETE", "/v1/jobs/12", "", 405, "use GET"},
		{"GET", "/v1/jobs/12/next", "", 405, "use POST"},
		{"POST", "/v1/jobs/12/next", "", 400, "body"},
		{"POST", "/v1/jobs/12/next", "{", 400, "body"},
		{"POST", "/v1/jobs/12/next", `{"from": 1, "form": 1}`, 400, "form"},
		{"POST", "/v1/jobs/12/next", `{"from": 0}`, 400, "numbered from 1"},
		{"POST", "/v1/jobs/12/next", `{"from": 1, "release": ["` + strings.Repeat("n", maxBody) + `"]}`, 400, "too large"},
	} {
		status, body := send(t, hc, c.method, "http://x"+c.path, "", c.body)
		var e Error
		if err := json.Unmarshal([]byte(body), &e); status != c.status || err != nil || !strings.Contains(e.Error, c.want) {
			t.Errorf("%s %s: %d %s; want %d and an error with %q", c.method, c.path, status, body, c.status, c.want)
		}
	}
	if status, _ := send(t, hc, "GET", "http://x/v1/status", strings.Repeat("x", 2*maxHeader), ""); status != 431 {
		t.Errorf("a header of %d bytes: status %d, want 431", 2*maxHeader, status)
	}
}

func unixClient(address string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", strings.TrimPrefix(address, unixPrefix))
	}}}
}

func TestNextIsCutIntoPieces(t *testing.T) {
	b := newBackend(uint32(os.Geteuid()))
	r := serve(t, b, func(s *Server) { s.Wait = 20 * time.Millisecond; s.readTimeout = 10 * time.Millisecond })
	for _, address := range []string{r.unix, r.tcp} {
		b.ready = make(chan struct{})
		got := make(chan Allocation, 1)
		go func() {
			a, err := client(t, address).Next(t.Context(), 12, NextRequest{From: 1})
			if err != nil {
				t.Error(err)
			}
			got <- a
		}()
		await(t, 3, b.waiting, nil)
		close(b.ready)
		if a := <-got; !a.Ready || a.Step != 2 {
			t.Errorf("%s: got %+v", address, a)
		}
	}
	for _, p := range b.posted {
		if p.From != 1 {
			t.Errorf("asked for the end of step %d, want always 1", p.From)
		}
	}
}

func TestManyWait(t *testing.T) {
	b := newBackend(uint32(os.Geteuid()))
	r := serve(t, b, nil)
	const n = itsWaiting
	errs := make(chan error, n)
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	for range n {
		c := client(t, r.unix)
		go func() {
			a, err := c.Next(ctx, 12, NextRequest{From: 1})
			if err == nil && (!a.Ready || a.Step != 2) {
				err = fmt.Errorf("got %+v", a)
			}
			errs <- err
		}()
	}
	await(t, n, b.waiting, errs)
	close(b.ready)
	for range n {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadDeadlineDoesNotEndTheWait(t *testing.T) {
	b := newBackend(uint32(os.Geteuid()))
	r := serve(t, b, func(s *Server) { s.Wait = time.Minute; s.readTimeout = 50 * time.Millisecond })
	got := make(chan Allocation, 1)
	go func() {
		a, err := client(t, r.unix).Next(t.Context(), 12, NextRequest{From: 1})
		if err != nil {
			t.Error(err)
		}
		got <- a
	}()
	await(t, 1, b.waiting, nil)
	select {
	case a := <-got:
		t.Fatalf("answered %+v before the nodes were there", a)
	case <-b.waiting:
		t.Fatal("the wait was cut at the read deadline")
	case <-time.After(5 * r.readTimeout):
	}
	close(b.ready)
	if a := <-got; !a.Ready {
		t.Errorf("got %+v", a)
	}
}

func TestStopAnswersWaiters(t *testing.T) {
	b := newBackend(uint32(os.Geteuid()))
	r := serve(t, b, func(s *Server) { s.Wait = time.Hour })
	var answers []chan string
	for _, hc := range []*http.Client{unixClient(r.unix), unixClient(r.unix)} {
		answer, failed := make(chan string, 1), make(chan error, 1)
		answers = append(answers, answer)
		go func() {
			status, body, err := try(t.Context(), hc, "POST", "http://x/v1/jobs/12/next", "", `{"from": 1}`)
			answer <- fmt.Sprint(status, " ", body, err)
			failed <- err
		}()
		await(t, 1, b.waiting, failed)
	}
	r.stop()
	for _, answer := range answers {
		if a := <-answer; !strings.HasPrefix(a, "200 ") || !strings.Contains(a, `"ready":false`) {
			t.Errorf("got %s", a)
		}
	}
	if _, err := os.Lstat(r.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestClientWaitsForTheServer(t *testing.T) {
	b := newBackend(uint32(os.Geteuid()))
	close(b.ready)
	first := serve(t, b, nil)
	first.stop()
	for _, address := range []string{first.unix, first.tcp} {
		c := client(t, address)
		told := make(chan string, 10)
		c.Waiting = func(address string, err error) { told <- address }
		got := make(chan error, 1)
		go func() {
			_, err := c.Next(t.Context(), 12, NextRequest{From: 1})
			got <- err
		}()
		select {
		case a := <-told:
			if a != address {
				t.Errorf("told of %s, want %s", a, address)
			}
		case err := <-got:
			t.Fatalf("%s: it did not wait for the server: %v", address, err)
		case <-time.After(longest):
			t.Fatalf("%s: not told in %v that the server is away", address, longest)
		}
		second := serve(t, b, func(s *Server) { s.Socket, s.TCP = first.Socket, first.tcp })
		if err := <-got; err != nil {
			t.Errorf("%s: %v", address, err)
		}
		if len(told) > 0 {
			t.Errorf("%s: told more than once", address)
		}
		second.stop()
	}
}

func TestClientGivesUpWithItsContext(t *testing.T) {
	c := client(t, unixPrefix+filepath.Join(t.TempDir(), "none"))
	ctx, cancel := context.WithCancelCause(t.Context())
	c.Waiting = func(string, error) { cancel(nil) }
	_, err := c.Status(ctx)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want the cancellation and its cause", err)
	}
	if text := err.Error(); !strings.HasSuffix(text, "/none does not answer: "+text[strings.LastIndex(text, "dial unix"):]) || strings.Contains(text, "http") || strings.Contains(text, "cancel") {
		t.Errorf("it is reported as %q", text)
	}
}

func TestClientGoesOnWhileUnavailable(t *testing.T) {
	b := newBackend(uint32(os.Geteuid()))
	b.fail = Errorf(ErrUnavailable, "still looking at Slurm")
	r := serve(t, b, nil)
	c := client(t, r.tcp)
	c.Waiting = func(_ string, err error) {
		if !strings.Contains(err.Error(), "still looking") {
			t.Errorf("told of %v", err)
		}
		b.mu.Lock()
		b.fail = nil
		b.mu.Unlock()
	}
	if _, err := c.Job(t.Context(), 12); err != nil {
		t.Error(err)
	}
}

// TestClientMakesAnotherCredential: one that is refused may have been made just before the
// clock was stepped. Another one that is refused is an answer.
func TestClientMakesAnotherCredential(t *testing.T) {
	for _, c := range []struct {
		refusals, requests int
		ok                 bool
	}{{1, 2, true}, {2, 2, false}} {
		seen := map[string]bool{}
		srv := httptest.NewServer(proving(func(r *http.Request) (int, any) {
			if seen[r.Header.Get("Authorization")] = true; len(seen) <= c.refusals {
				return http.StatusUnauthorized, Error{"the MUNGE credential has expired"}
			}
			return http.StatusOK, Job{ID: 12}
		}))
		client := client(t, strings.TrimPrefix(srv.URL, "http://"))
		client.Waiting = func(_ string, err error) { t.Errorf("told to wait: %v", err) }
		_, err := client.Job(t.Context(), 12)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrDenied) || len(seen) != c.requests {
			t.Errorf("refused %d times: %v after %d credentials", c.refusals, err, len(seen))
		}
		srv.Close()
	}
}

func TestClientRefusesOtherServers(t *testing.T) {
	for status, body := range map[int]string{200: "<html>", 404: "<html>", 302: ""} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://"+l.Addr().String()+"/")
			w.WriteHeader(status)
			io.WriteString(w, body)
		})}
		go srv.Serve(l)
		if err := notAnswered(t, client(t, l.Addr().String())); !strings.Contains(err.Error(), "did not prove that it is the sidecar") {
			t.Errorf("%d %q: got %v", status, body, err)
		}
		srv.Close()
	}
}

func TestAddresses(t *testing.T) {
	for _, a := range []string{"", "unix://x", "unix:/x", "http://h:1", "a:b:c"} {
		if _, err := NewClient(a, munged); err == nil {
			t.Errorf("%q was taken", a)
		}
	}
	if c := client(t, "head"); c.Address() != "head:341" {
		t.Errorf("without a port the address is %s", c.Address())
	}
}

func TestListen(t *testing.T) {
	r := serve(t, newBackend(0), nil)
	if st, err := os.Stat(r.Socket); err != nil || st.Mode().Perm() != 0o666 {
		t.Errorf("socket: %v, %v; want mode 0666", st.Mode(), err)
	}
	second := &Server{Backend: r.Backend, Log: r.Log, Socket: r.Socket}
	if err := second.Listen(); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("second server on the socket: %v", err)
	}
	second = &Server{Backend: r.Backend, Log: r.Log, Socket: filepath.Join(t.TempDir(), "s"), TCP: "nowhere.invalid:1"}
	if err := second.Listen(); err == nil {
		t.Error("an address that does not exist was taken")
	}
	if _, err := os.Lstat(second.Socket); err == nil {
		t.Error("a failed Listen left its socket")
	}
	open := filepath.Join(t.TempDir(), "open")
	os.Mkdir(open, 0o755)
	os.Chmod(open, 0o777)
	for _, socket := range []string{filepath.Join(open, "s"), filepath.Join(open, "below", "s")} {
		if err := (&Server{Socket: socket}).Listen(); err == nil || !strings.Contains(err.Error(), open+" may be written by others") {
			t.Errorf("%s, in a folder that others may write: %v", socket, err)
		}
	}
	theirs := filepath.Join(t.TempDir(), "theirs")
	os.Mkdir(theirs, 0o755)
	os.Chown(theirs, nobody, nobody)
	if err := (&Server{Socket: filepath.Join(theirs, "s")}).Listen(); err == nil || !strings.Contains(err.Error(), theirs+" belongs to user 65534") {
		t.Errorf("in another user's folder: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, []byte("x"), 0o600)
	if err := (&Server{Socket: file}).Listen(); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("a file in the way: %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "x" {
		t.Errorf("the file in the way is now %q, %v", text, err)
	}
	if err := (&Server{}).Listen(); err == nil {
		t.Error("listening nowhere was taken")
	}
}

func TestDeadSocketIsTakenOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	r := serve(t, newBackend(0), func(s *Server) { s.Socket = path })
	if _, err := client(t, r.unix).Status(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSlowCallersAreCutOff(t *testing.T) {
	r := serve(t, newBackend(0), func(s *Server) { s.readTimeout = 50 * time.Millisecond })
	for name, text := range map[string]string{
		"nothing":     "",
		"half a head": "GET /v1/status HTTP/1.1\r\nHost: x\r\n",
		"no body":     "POST /v1/jobs/12/next HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{",
	} {
		c, err := net.Dial("tcp", r.tcp)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, text)
		c.SetReadDeadline(time.Now().Add(30 * time.Second))
		if answer, err := io.ReadAll(c); err != nil || bytes.Contains(answer, []byte("200 OK")) {
			t.Errorf("%s: %q, %v; want the connection closed", name, answer, err)
		}
	}
}

func TestViews(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "page "+r.URL.Path) })
	r := serve(t, newBackend(0), func(s *Server) { s.Views = page })
	if status, body := send(t, http.DefaultClient, "GET", "http://"+r.tcp+"/jobs.html", "", ""); status != 200 || body != "page /jobs.html" {
		t.Errorf("open: %d %s", status, body)
	}
	if status, _ := send(t, http.DefaultClient, "POST", "http://"+r.tcp+"/jobs.html", "", ""); status != 405 {
		t.Errorf("POST: %d", status)
	}
	asked := 0 // a scrape runs no command of Slurm's
	shows := func(context.Context, uint32) *Sight { asked++; return nil }
	closed := serve(t, newBackend(0), func(s *Server) {
		s.Views, s.Reading, s.Shows, s.HidesNodes = page, nil, shows, func() bool { return true }
	})
	if status, _ := send(t, http.DefaultClient, "GET", "http://"+closed.tcp+"/", "", ""); status != 403 {
		t.Errorf("closed: %d, want 403", status)
	}
	if status, body := send(t, unixClient(closed.unix), "GET", "http://x/", "", ""); status != 200 || body != "page /" {
		t.Errorf("closed, as the server's own user: %d %s", status, body)
	}
	if asked != 0 {
		t.Errorf("Slurm was asked %d times what it shows", asked)
	}
	if status, _ := send(t, http.DefaultClient, "GET", "http://"+serve(t, newBackend(0), nil).tcp+"/", "", ""); status != 404 {
		t.Errorf("without views: %d", status)
	}
}

// TestHealth: supervisors have no credentials.
func TestHealth(t *testing.T) {
	var trouble error
	r := serve(t, newBackend(0), func(s *Server) { s.Reading, s.Ready = nil, func() error { return trouble } })
	for _, c := range []struct {
		trouble error
		path    string
		status  int
		body    string
	}{{nil, "healthz", 200, "ok\n"}, {nil, "readyz", 200, "ok\n"}, {errors.New("no"), "healthz", 200, "ok\n"}, {errors.New("no"), "readyz", 503, "no\n"}} {
		trouble = c.trouble
		if status, body := send(t, http.DefaultClient, "GET", "http://"+r.tcp+"/"+c.path, "", ""); status != c.status || body != c.body {
			t.Errorf("%s (%v): %d %q", c.path, c.trouble, status, body)
		}
	}
	if status, _ := send(t, http.DefaultClient, "POST", "http://"+r.tcp+"/readyz", "", ""); status != 405 {
		t.Errorf("POST: %d", status)
	}
}
