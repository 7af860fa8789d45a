package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
)

// proving returns a server that proves its answers as a Server does.
func proving(answer func(*http.Request) (int, any)) http.Handler {
	f := front{auth: (&Server{Munge: munged}).authenticator()}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = sealed(r)
		body, err := io.ReadAll(r.Body)
		if err == nil {
			_, err = f.auth.authenticate(r, body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
			return
		}
		status, v := answer(r)
		f.reply(w, r, status, v)
	})
}

// notAnswered asks for a job and returns why no answer was believed: the client waits for another one.
func notAnswered(t *testing.T, c *Client) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var why error
	c.Waiting = func(_ string, err error) { why = err; cancel() }
	a, err := c.Next(ctx, 12, NextRequest{From: 1})
	if err == nil || why == nil {
		t.Fatalf("the client believed %+v, %v", a, err)
	}
	return why
}

// impostorAt answers every request as the attacker of the issue did: step 2, on n8.
func impostorAt(t *testing.T, prove func(r *http.Request, credential, body string) string) *httptest.Server {
	const body = `{"ready": true, "job": 12, "step": 2, "steps": 2, "nodes": 1, "parts": [{"job": 12, "node_list": ["n8"], "cpus": [4]}]}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		credential, _, err := credentialOf(r.Header)
		if err != nil {
			t.Error(err)
		}
		if prove != nil {
			w.Header().Set(answerHeader, prove(r, credential, body))
		}
		io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	return srv
}

func addressOf(srv *httptest.Server) string { return srv.Listener.Addr().String() }

// TestImpostor checks that another process on the sidecar's port is not believed, whatever proof it
// sends.
func TestImpostor(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this needs root, to be other users")
	}
	target := func(r *http.Request) target {
		body, _ := io.ReadAll(r.Body)
		return newTarget("", r.Host, r.Method, r.URL.RequestURI(), body)
	}
	var old string // the sidecar's proof of an earlier answer
	for name, c := range map[string]struct {
		prove func(r *http.Request, credential, body string) string
		want  string
	}{
		"no proof":  {nil, "did not prove that it is the sidecar"},
		"not MUNGE": {func(*http.Request, string, string) string { return "MUNGE:AAAA:" }, "credential"},
		"its own proof": {func(r *http.Request, c, body string) string {
			return encodeAs(t, nobody, target(r).answer(c, 200, []byte(body)), 60)
		}, "the answer came from user nobody (uid 65534), not from the sidecar"},
		"other body": {func(r *http.Request, c, _ string) string {
			return encodeAs(t, 0, target(r).answer(c, 200, []byte("{}")), 60)
		}, "not for this answer"},
		"other status": {func(r *http.Request, c, body string) string {
			return encodeAs(t, 0, target(r).answer(c, 404, []byte(body)), 60)
		}, "not for this answer"},
		"other request": {func(r *http.Request, _, body string) string {
			return encodeAs(t, 0, target(r).answer("MUNGE:x:", 200, []byte(body)), 60)
		}, "not for this answer"},
		"root's request": {func(_ *http.Request, c, _ string) string { return c }, "credential"},
		"an old one": {func(r *http.Request, c, body string) string {
			if old == "" {
				old = encodeAs(t, 0, target(r).answer(c, 200, []byte(body)), 60)
				if _, err := munged.Decode(t.Context(), old); err != nil {
					t.Error(err)
				}
			}
			return old
		}, "used before"},
	} {
		srv := impostorAt(t, c.prove)
		if err := notAnswered(t, client(t, addressOf(srv))); !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

// TestConfiguredAccount checks that a sidecar that runs as a user other than root is believed if
// the client knows that user.
func TestConfiguredAccount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this needs root, to be other users")
	}
	srv := impostorAt(t, func(r *http.Request, c, body string) string {
		sent, _ := io.ReadAll(r.Body)
		return encodeAs(t, nobody, newTarget("", r.Host, r.Method, r.URL.RequestURI(), sent).answer(c, 200, []byte(body)), 60)
	})
	for _, trusted := range []bool{true, false} {
		c := client(t, addressOf(srv))
		c.Trusts = func(_ context.Context, uid uint32) (bool, error) { return trusted && uid == nobody, nil }
		if trusted {
			if a, err := c.Next(t.Context(), 12, NextRequest{From: 1}); err != nil || a.Step != 2 {
				t.Errorf("got %+v, %v", a, err)
			}
		} else if err := notAnswered(t, c); !strings.Contains(err.Error(), "user nobody") {
			t.Error(err)
		}
	}
}

// TestRelay: a credential that a false server was given opens nothing elsewhere, nor at the same address later.
func TestRelay(t *testing.T) {
	b := ready(uint32(os.Geteuid()))
	real := serve(t, b, func(s *Server) { s.Cluster = func() string { return "main" } })
	var stolen, uri, body string
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		stolen, uri, body = r.Header.Get("Authorization"), r.URL.RequestURI(), string(text)
	}))
	defer thief.Close()
	ask := func(c *Client, cluster string) {
		c.ClusterName = func(context.Context) (string, error) { return cluster, nil }
		notAnswered(t, c)
	}
	relay := func(to *running) (int, string) {
		return send(t, http.DefaultClient, http.MethodPost, "http://"+to.tcp+uri, stolen, body)
	}

	ask(client(t, addressOf(thief)), "main")
	if status, text := relay(real); status != 401 || !strings.Contains(text, "made for a server at") {
		t.Errorf("to another address: %d %s", status, text)
	}

	other := client(t, addressOf(thief)) // as if it had the address of the sidecar of another cluster
	other.line.at = real.tcp
	other.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addressOf(thief))
	}}
	ask(other, "test")
	if status, text := relay(real); status != 401 || !strings.Contains(text, `made for cluster \"test\"`) {
		t.Errorf("to another cluster: %d %s", status, text)
	}
	ask(other, "Main")
	began := time.Now().Add(time.Minute)
	real.since.Store(&began) // the address was the thief's when the credential was made
	if status, text := relay(real); status != 503 || !strings.Contains(text, "before the sidecar began to listen") {
		t.Errorf("to the sidecar that has the address now: %d %s", status, text)
	}
	if len(b.posted) > 0 {
		t.Errorf("the backend was asked: %+v", b.posted)
	}
	real.since.Store(nil)
	ask(other, "main")
	if status, text := relay(real); status != 200 {
		t.Errorf("the credential is good: %d %s", status, text)
	}
}

// TestClusterNotKnown checks that before the first poll of Slurm no caller is refused for the
// cluster's name.
func TestClusterNotKnown(t *testing.T) {
	name := ""
	r := serve(t, ready(uint32(os.Geteuid())), func(s *Server) { s.Cluster = func() string { return name } })
	c := client(t, r.tcp)
	c.ClusterName = func(context.Context) (string, error) { return "main", nil }
	c.Waiting = func(_ string, err error) {
		if !strings.Contains(err.Error(), "has not asked Slurm") {
			t.Error(err)
		}
		name = "main"
	}
	if _, err := c.Job(t.Context(), 12); err != nil {
		t.Error(err)
	}
}

// TestCallerLeaves checks that a caller that hangs up before its answer is proved leaves no warning.
func TestCallerLeaves(t *testing.T) {
	log, out := logrus.New(), &strings.Builder{}
	log.Out = out
	a := (&Server{Munge: munged, Log: log}).authenticator()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(context.WithValue(ctx, sealKey{}, &seal{credential: "MUNGE:x:"}))
	for range 64 { // a slot for munge or the end of the context, by chance
		a.prove(httptest.NewRecorder(), r, 200, nil)
	}
	if out.Len() > 0 {
		t.Error(out)
	}
}

// TestForwarder: behind one that the configuration names, credentials for its address are accepted.
func TestForwarder(t *testing.T) {
	for _, known := range []bool{true, false} {
		r := serve(t, ready(uint32(os.Geteuid())), func(s *Server) {
			if known {
				s.Forwarded = []string{"192.0.2.1:341"}
			}
		})
		c := client(t, "192.0.2.1:341")
		c.line.at = "192.0.2.1:341"
		c.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", r.tcp)
		}}
		if !known {
			if err := notAnswered(t, c); !strings.Contains(err.Error(), "listen.forwarded") {
				t.Error(err)
			}
		} else if _, err := c.Job(t.Context(), 12); err != nil {
			t.Error(err)
		}
	}
}

// TestSocketOfAnotherUser checks that the kernel reports the listening user of a Unix socket.
func TestSocketOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this needs root, to be other users")
	}
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o777), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	listening := make(chan net.Listener)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), nobody, ^uintptr(0)); e != 0 {
			t.Error(e)
		}
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Error(err)
		}
		listening <- l
	}()
	l := <-listening
	if l == nil {
		return
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("it was asked")
		io.WriteString(w, `{"ready": true}`)
	})}
	go srv.Serve(l)
	defer srv.Close()
	if err := notAnswered(t, client(t, unixPrefix+path)); !strings.Contains(err.Error(), "user nobody (uid 65534), not from the sidecar") {
		t.Error(err)
	}
}

// TestAnswersArePrintable: nothing of an answer, of the sidecar or another, reaches a terminal as a control.
func TestAnswersArePrintable(t *testing.T) {
	const evil = "a\x1b]0;owned\x07\u202eb\u009b2Jc\x7f\nd\xff"
	b := newBackend(uint32(os.Geteuid()))
	b.fail = errors.New(evil)
	r := serve(t, b, nil)
	for _, address := range []string{r.unix, r.tcp} {
		_, err := client(t, address).Job(t.Context(), 12)
		if want := "a?]0;owned??b?2Jc?; d?"; err == nil || err.Error() != want {
			t.Errorf("the error is %q, want %q", err, want)
		}
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		json.NewEncoder(w).Encode(Error{Error: evil})
	}))
	defer srv.Close()
	if err := notAnswered(t, client(t, addressOf(srv))); err.Error() != Printable(err.Error()) || !strings.Contains(err.Error(), "owned") {
		t.Errorf("an impostor's text: %q", err)
	}
	j := Job{Name: evil, Plan: []Span{{NodeList: evil}}, Moldable: &Moldable{By: evil}}
	e := Event{Text: evil, Detail: json.RawMessage(`{"` + "\u202e" + `": ["\u001b", 12345678901234567890]}`)}
	p := StrategyPlan{Parameters: map[string]string{evil: evil}}
	for _, v := range []any{&j, &e, &p} {
		clean(reflect.ValueOf(v))
		if text := fmt.Sprintf("%+v", reflect.ValueOf(v).Elem()); text != Printable(text) {
			t.Errorf("%T still has controls: %q", v, text)
		}
	}
	if want := `{"?":["?",12345678901234567890]}`; string(e.Detail) != want || j.Moldable.By != Printable(evil) || p.Parameters[Printable(evil)] == "" {
		t.Errorf("the rest is not as it was: %s, %+v, %+v", e.Detail, j.Moldable, p)
	}
}

// BenchmarkRequest is one request and its answer, by a client that has just begun as a command does.
func BenchmarkRequest(b *testing.B) {
	r := serve(b, newBackend(uint32(os.Geteuid())), func(s *Server) { s.Start = startDoorman })
	direct := httptest.NewUnstartedServer(r.routes(b.Context())) // as if the sidecar served TCP itself
	direct.Config.ConnContext = withConn
	direct.Start()
	defer direct.Close()
	for _, c := range []struct{ name, address string }{{"unix", r.unix}, {"tcp", r.tcp}, {"tcp-direct", addressOf(direct)}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := client(b, c.address).Allocation(b.Context(), 12); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	// Without MUNGE, and on one connection: the path alone.
	for _, c := range []struct{ name, address string }{{"status", r.tcp}, {"status-direct", addressOf(direct)}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if status, _, err := try(b.Context(), http.DefaultClient, http.MethodGet, "http://"+c.address+"/v1/status", "", ""); status != 200 {
					b.Fatal(status, err)
				}
			}
		})
	}
	b.Run("munge", func(b *testing.B) {
		for b.Loop() {
			if _, err := munged.Encode(b.Context(), "x", credentialTTL); err != nil {
				b.Fatal(err)
			}
		}
	})
}
