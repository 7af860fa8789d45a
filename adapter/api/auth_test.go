package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
)

const nextBody = `{"from": 1}`

// post sends a next request with the credential of payload, made by uid.
func post(t *testing.T, r *running, uid uint32, payload string) (int, string) {
	t.Helper()
	return send(t, http.DefaultClient, "POST", "http://"+r.tcp+"/v1/jobs/12/next", authorization(encodeAs(t, uid, payload, 60)), nextBody)
}

// payload returns the payload of the credential for a request to the server.
func (r *running) payload(method, uri string, body []byte) string {
	return newTarget("", r.tcp, method, uri, body).request()
}

func (r *running) good() string { return r.payload("POST", "/v1/jobs/12/next", []byte(nextBody)) }

// ready returns a backend whose next step's nodes are there at once.
func ready(owner uint32) *fakeBackend {
	b := newBackend(owner)
	close(b.ready)
	return b
}

func TestCredentialIsBoundToTheRequest(t *testing.T) {
	me := uint32(os.Geteuid())
	b := ready(me)
	r := serve(t, b, nil)
	for name, payload := range map[string]string{
		"method":      r.payload("GET", "/v1/jobs/12/next", []byte(nextBody)),
		"path":        r.payload("POST", "/v1/jobs/13/next", []byte(nextBody)),
		"query":       r.payload("POST", "/v1/jobs/12/next?x", []byte(nextBody)),
		"body":        r.payload("POST", "/v1/jobs/12/next", []byte(`{"from": 2}`)),
		"empty":       "",
		"other use":   "slurm",
		"with a tail": r.good() + "x",
		"cut":         strings.TrimSuffix(r.good(), "\n"),
	} {
		if status, body := post(t, r, me, payload); status != 401 || !strings.Contains(body, "another request") {
			t.Errorf("other %s: %d %s; want 401", name, status, body)
		}
	}
	if len(b.posted) > 0 {
		t.Fatalf("the backend was asked: %+v", b.posted)
	}
	if status, body := post(t, r, me, r.good()); status != 200 {
		t.Errorf("right: %d %s; want 200", status, body)
	}
	if want := fmt.Sprintf("uid=%d", me); me != 0 && !strings.Contains(r.log.String(), want) {
		t.Errorf("the log has no %s: %s", want, r.log)
	}
	if !strings.Contains(r.log.String(), "made for another request") {
		t.Errorf("the log has no reason: %s", r.log)
	}
}

func TestReplayIsRefused(t *testing.T) {
	me := uint32(os.Geteuid())
	b := ready(me)
	r := serve(t, b, nil)
	auth := authorization(encodeAs(t, me, r.good(), 60))
	for i, want := range []int{200, 401, 401} {
		if status, body := send(t, http.DefaultClient, "POST", "http://"+r.tcp+"/v1/jobs/12/next", auth, nextBody); status != want || want == 401 && !strings.Contains(body, "used before") {
			t.Errorf("time %d: %d %s; want %d", i+1, status, body, want)
		}
	}
	if len(b.posted) != 1 {
		t.Errorf("the backend was asked %d times", len(b.posted))
	}
}

func TestExpiredCredential(t *testing.T) {
	me := uint32(os.Geteuid())
	r := serve(t, ready(me), nil)
	auth := authorization(encodeAs(t, me, r.good(), 1))
	time.Sleep(2100 * time.Millisecond) // munged counts whole seconds
	if status, body := send(t, http.DefaultClient, "POST", "http://"+r.tcp+"/v1/jobs/12/next", auth, nextBody); status != 401 || !strings.Contains(body, "expired") {
		t.Errorf("%d %s; want 401 expired", status, body)
	}
}

func TestCredentialAge(t *testing.T) {
	a, at := (&Server{}).authenticator(), time.Unix(1e9, 0)
	local := context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 341})
	r, err := http.NewRequestWithContext(local, http.MethodPost, "/v1/jobs/12/next", nil)
	if err != nil {
		t.Fatal(err)
	}
	payload := newTarget("", "10.0.0.1:341", "POST", "/v1/jobs/12/next", []byte(nextBody)).request()
	for age, ok := range map[time.Duration]bool{0: true, time.Minute: true, 61 * time.Second: false, -time.Minute: true, -61 * time.Second: false} {
		c := Credential{Encoded: at, Decoded: at.Add(age), Payload: payload}
		if err := a.bind(r, "MUNGE:x:", c, []byte(nextBody)); (err == nil) != ok || err != nil && !errors.Is(err, ErrDenied) {
			t.Errorf("age %v: %v", age, err)
		}
	}
}

func TestNoCredential(t *testing.T) {
	b := ready(uint32(os.Geteuid()))
	r := serve(t, b, nil)
	for _, auth := range []string{"", "Basic eDp5", "MUNGE", "MUNGE x", "MUNGE MUNGE:AAAA:", "MUNGE --help", "MUNGE MUNGE:" + strings.Repeat("A", maxCredential) + ":"} {
		if status, body := send(t, http.DefaultClient, "POST", "http://"+r.tcp+"/v1/jobs/12/next", auth, nextBody); status != 401 {
			t.Errorf("%.20q: %d %s; want 401", auth, status, body)
		}
	}
	if len(b.posted) > 0 {
		t.Errorf("the backend was asked: %+v", b.posted)
	}
}

func TestMungedAway(t *testing.T) {
	r := serve(t, ready(0), func(s *Server) { s.Munge.Socket = "/nonexistent/socket" })
	if status, body := post(t, r, uint32(os.Geteuid()), r.good()); status != 503 {
		t.Errorf("%d %s; want 503, so that the client asks again", status, body)
	}
}

// TestMungedRestarted checks that callers are asked to try again while the sidecar's munged is
// away, and that the running sidecar serves them with a new one.
func TestMungedRestarted(t *testing.T) {
	const other = "other" // the sidecar's, with the key of the callers'
	dir := filepath.Dir(munged.Socket)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	stop, err := runMunged(dir, other)
	if err != nil {
		t.Fatal(err)
	}
	r := serve(t, ready(uint32(os.Geteuid())), func(s *Server) { s.Munge.Socket = dir + "/" + other })
	ask := func() (int, string) { return post(t, r, uint32(os.Geteuid()), r.good()) }
	if status, body := ask(); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	stop()
	if status, body := ask(); status != 503 {
		t.Errorf("while munged is away: %d %s", status, body)
	}
	if stop, err = runMunged(dir, other); err != nil {
		t.Fatal(err)
	}
	defer stop()
	if status, body := ask(); status != 200 {
		t.Errorf("with another munged: %d %s", status, body)
	}
}

// The callers' rights, on both transports. As root, the callers are real: the kernel and munged see
// other users. Otherwise only one user exists.
func TestRights(t *testing.T) {
	me := uint32(os.Geteuid())
	other := uint32(nobody)
	if me != 0 {
		other = me
	}
	operators := func(uids ...uint32) func(uint32) bool {
		return func(uid uint32) bool {
			return slices.Contains(uids, uid)
		}
	}
	for _, c := range []struct {
		name     string
		owner    uint32
		caller   uint32
		operator func(uint32) bool
		allowed  bool
	}{
		{"owner", other, other, nil, true},
		{"stranger", other + 1, other, nil, other == me},
		{"not an operator", other + 1, other, operators(other + 1), other == me},
		{"operator", other + 1, other, operators(other), true},
		{"the server's own user", other + 1, me, nil, true},
	} {
		b := ready(c.owner)
		r := serve(t, b, func(s *Server) { s.Operator, s.Reading = c.operator, nil })
		want := 404 // as if there were no such job
		if c.allowed {
			want = 200
		}
		if status, body := post(t, r, c.caller, r.good()); status != want {
			t.Errorf("%s, TCP: %d %s; want %d", c.name, status, body, want)
		}
		hc := unixAs(int(c.caller), r.unix)
		if status, body := send(t, hc, "POST", "http://x/v1/jobs/12/next", "", nextBody); status != want {
			t.Errorf("%s, Unix: %d %s; want %d", c.name, status, body, want)
		}
		for _, path := range []string{"/v1/jobs/12", "/v1/jobs/12/allocation"} {
			if status, body := send(t, hc, "GET", "http://x"+path, "", ""); status != want {
				t.Errorf("%s, closed reading of %s: %d %s; want %d", c.name, path, status, body, want)
			}
		}
		_, body := send(t, hc, "GET", "http://x/v1/jobs", "", "")
		if seen := strings.Contains(body, `"id":12`); seen != c.allowed {
			t.Errorf("%s, closed reading of the list: %s", c.name, body)
		}
		if c.allowed {
			if len(b.posted) != 2 {
				t.Errorf("%s: the backend was asked %d times", c.name, len(b.posted))
			}
			continue
		}
		for path, body := range map[string]string{"change": `{"id": "a", "update": {"profile": "1@1m"}}`, "offer": "{}", "answer": `{"offer": 1, "accept": 1}`, "progress": `{"fraction": 0.5}`} {
			if status, said := send(t, hc, "POST", "http://x/v1/jobs/12/"+path, "", body); status != want { // the backend has none of these
				t.Errorf("%s, %s: %d %s; want %d", c.name, path, status, said, want)
			}
		}
		if len(b.posted) != 0 {
			t.Errorf("%s: the backend was asked", c.name)
		}
		if log := r.log.String(); strings.Count(log, fmt.Sprintf("uid=%d", c.caller)) < 2 || !strings.Contains(log, "belongs to uid") {
			t.Errorf("%s: the refusals are not in the log with uid and reason: %s", c.name, log)
		}
	}
}

// TestStrangersMayNot checks the same rule without a transport, so that it covers strangers
// whichever user runs the tests.
func TestStrangersMayNot(t *testing.T) {
	me := uint32(os.Geteuid())
	l := logrus.New()
	l.SetOutput(io.Discard)
	s := &Server{Backend: ready(me + 100), Log: l, Reading: func() Reading { return AllJobs }}
	for _, c := range []struct {
		caller caller
		want   error
	}{
		{caller{known: true, uid: me + 100}, nil},
		{caller{known: true, uid: me + 101}, ErrForbidden},
		{caller{known: true, uid: 0}, nil},
		{caller{known: false, uid: 0}, ErrDenied},
		{caller{known: false, uid: me + 100}, ErrDenied},
	} {
		if err := s.rights().mayAct(t.Context(), c.caller, 12); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.caller, err, c.want)
		}
	}
	if err := s.rights().mayAct(t.Context(), caller{known: true}, 99); !errors.Is(err, ErrNotFound) {
		t.Errorf("no such job: %v", err)
	}
}

// TestReading checks who reads what under each rule, over TCP. Operators always read everything.
func TestReading(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this needs root, to be other users")
	}
	const owner, other, operator, anonymous = 4000, nobody, 4242, -1
	const coordinator, elsewhere, admin = 4301, 4302, 4303
	for _, c := range []struct {
		name    string
		reading func() Reading
		// of each caller, what the answers about the owner's job 12 and for status are
		job, status map[int]int
	}{
		{"anybody", anybody,
			map[int]int{owner: 200, other: 200, operator: 200, anonymous: 200}, map[int]int{other: 200, anonymous: 200}},
		{"all jobs", func() Reading { return AllJobs },
			map[int]int{owner: 200, other: 200, operator: 200, anonymous: 401}, map[int]int{other: 200, anonymous: 401}},
		{"own jobs", nil,
			map[int]int{owner: 200, other: 404, operator: 200, anonymous: 401, coordinator: 200, elsewhere: 404, admin: 200}, map[int]int{other: 200, anonymous: 401}},
	} {
		r := serve(t, ready(owner), func(s *Server) {
			s.Reading, s.Operator = c.reading, func(uid uint32) bool { return uid == operator }
			s.Sees = func(_ context.Context, uid uint32) func(string) bool {
				return func(account string) bool {
					return uid == admin || account != "" && account == map[uint32]string{coordinator: "proj", elsewhere: "physics"}[uid]
				}
			}
		})
		get := func(uid int, path string) (int, string) {
			header := ""
			if uid != anonymous {
				header = authorization(encodeAs(t, uint32(uid), r.payload("GET", path, nil), 60))
			}
			return send(t, http.DefaultClient, "GET", "http://"+r.tcp+path, header, "")
		}
		for uid, want := range c.job {
			for _, path := range []string{"/v1/jobs/12", "/v1/jobs/12/allocation", "/v1/events?job=12"} {
				status, body := get(uid, path)
				if status != want {
					t.Errorf("%s: uid %d, %s: %d %s; want %d", c.name, uid, path, status, body, want)
				}
				if _, unknown := get(uid, strings.Replace(path, "12", "77", 1)); status == 404 && strings.Replace(unknown, "77", "12", 1) != body {
					t.Errorf("%s: uid %d can distinguish a job, %q, from none, %q", c.name, uid, body, unknown)
				}
			}
			status, body := get(uid, "/v1/jobs?all=1")
			if seen := strings.Contains(body, `"id":12`); seen != (want == 200) || status != 401 && uid == anonymous && want == 401 {
				t.Errorf("%s: uid %d sees the list %d %s", c.name, uid, status, body)
			}
		}
		for uid, want := range c.status {
			if status, body := get(uid, "/v1/status"); status != want {
				t.Errorf("%s: uid %d, status: %d %s; want %d", c.name, uid, status, body, want)
			}
		}
		if status, body := send(t, http.DefaultClient, "GET", "http://"+r.tcp+"/v1/jobs", "MUNGE x", ""); status != 401 {
			t.Errorf("%s: with a false credential: %d %s; want 401", c.name, status, body)
		}
	}
}

// TestReadingEvents checks that events are read as jobs are, and the sidecar's own events only by
// operators.
func TestReadingEvents(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this needs root, to be other users")
	}
	const owner, operator, anonymous = 4000, 4242, -1
	for _, c := range []struct {
		name    string
		reading func() Reading
		uid     int
		want    string // kinds of events by their jobs
	}{
		{"anybody", anybody, anonymous, "12 13"},
		{"all jobs", func() Reading { return AllJobs }, nobody, "12 13"},
		{"all jobs", func() Reading { return AllJobs }, operator, "0 12 13"},
		{"own jobs", nil, owner, "12"},
		{"own jobs", nil, nobody, ""},
		{"own jobs", nil, operator, "0 12 13"},
		{"own jobs", nil, 0, "0 12 13"},
	} {
		r := serve(t, ready(owner), func(s *Server) {
			s.Reading, s.Operator = c.reading, func(uid uint32) bool { return uid == operator }
		})
		header, path := "", "/v1/events?after=0&limit=50&since="+time.Unix(0, 0).UTC().Format(time.RFC3339)
		if c.uid != anonymous {
			header = authorization(encodeAs(t, uint32(c.uid), r.payload("GET", path, nil), 60))
		}
		status, body := send(t, http.DefaultClient, "GET", "http://"+r.tcp+path, header, "")
		var events []Event
		if err := json.Unmarshal([]byte(body), &events); err != nil || status != 200 {
			t.Fatalf("%s: uid %d: %d %s (%v)", c.name, c.uid, status, body, err)
		}
		var jobs []string
		for _, e := range events {
			jobs = append(jobs, fmt.Sprint(e.Job))
		}
		if got := strings.Join(jobs, " "); got != c.want {
			t.Errorf("%s: uid %d reads events of %q, want %q", c.name, c.uid, got, c.want)
		}
	}
	r := serve(t, ready(owner), nil)
	for _, query := range []string{"job=x", "job=-1", "after=-1", "since=yesterday", "limit=x", "owner=0"} {
		if status, body := send(t, http.DefaultClient, "GET", "http://"+r.tcp+"/v1/events?"+query, "", ""); status != 400 {
			t.Errorf("%s: %d %s; want 400", query, status, body)
		}
	}
}

func TestReplayCache(t *testing.T) {
	var c replayCache
	at := time.Unix(1e9, 0)
	const keep = 2 * time.Minute
	if c.used("a", at, keep) {
		t.Error("a is new")
	}
	for i, after := range []time.Duration{59 * time.Second, 61 * time.Second, 122 * time.Second} {
		c.used(fmt.Sprint("other", i), at.Add(after), keep)
	}
	if !c.used("other0", at.Add(59*time.Second+keep), keep) { // that of a caller whose clock is a minute ahead
		t.Error("it was forgotten within its time")
	}
	for i := range 100000 {
		c.used(fmt.Sprint(i), at.Add(time.Duration(i)*time.Second), keep)
		if n := len(c.now) + len(c.old); n > 400 {
			t.Fatalf("%d credentials kept", n)
		}
	}
	if !c.used("99999", at.Add(99999*time.Second+time.Minute), keep) {
		t.Error("the last one was forgotten within its time")
	}
}

func TestParseCredential(t *testing.T) {
	const head = "ENCODE_TIME: 10\nDECODE_TIME: 12\nUID: 7\nGID: 8\n"
	c, err := parseCredential(head + "LENGTH: 6\n\na\n\nb: c")
	if err != nil || c.UID != 7 || c.GID != 8 || c.Payload != "a\n\nb: " || c.Decoded.Sub(c.Encoded) != 2*time.Second {
		t.Errorf("got %+v, %v", c, err)
	}
	for _, bad := range []string{"", "\n\n", head + "\nx", head + "LENGTH: 9\n\nx", head + "LENGTH: -1\n\nx", head + "LENGTH: x\n\nx", strings.Replace(head, "UID: 7", "UID: 4294967296", 1) + "LENGTH: 0\n\n", "UID: 0\nLENGTH: 0\n\n"} {
		if c, err := parseCredential(bad); err == nil {
			t.Errorf("%q gave %+v", bad, c)
		}
	}
}
