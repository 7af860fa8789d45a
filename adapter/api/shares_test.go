package api

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
)

// upload is a body that counts what is read of it.
type upload struct {
	read int
	left int
	hold func() // called at the first byte
}

func (u *upload) Read(b []byte) (int, error) {
	if u.left == 0 {
		return 0, io.EOF
	}
	if u.hold != nil && u.read == 0 {
		u.hold()
	}
	n := min(len(b), u.left)
	u.read, u.left = u.read+n, u.left-n
	return n, nil
}

func (u *upload) Close() error { return nil }

// posted sends a body to a server without a network.
func posted(t *testing.T, h http.Handler, from holder, authorization string, length int64, body *upload) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/jobs/12/next", nil)
	r.Body, r.ContentLength, r.RemoteAddr = body, length, from.address+":1"
	if from.known {
		r = r.WithContext(context.WithValue(t.Context(), peerKey{}, peer{uid: from.uid}))
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := deadlines{httptest.NewRecorder()}
	h.ServeHTTP(w, r)
	return w.Code
}

// quiet returns a server without a network and without munge.
func quiet() *Server {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return &Server{Backend: newBackend(0), Log: log, Munge: Munge{Dir: "/nonexistent"}, Reading: anybody}
}

// TestAnonymousBodies checks 600 callers with no credential, or with junk, that send 1 MiB each,
// announced or not. Nothing may be read. With a well-formed credential, at most one request's
// maximum is read.
func TestAnonymousBodies(t *testing.T) {
	h := quiet().routes(t.Context())
	for _, c := range []struct {
		name, authorization string
		length              int64
		status, most        int
	}{
		{"none", "", 1 << 20, http.StatusUnauthorized, 0},
		{"none, chunked", "", -1, http.StatusUnauthorized, 0},
		{"another scheme", "Basic eDp5", -1, http.StatusUnauthorized, 0},
		{"no credential", "MUNGE x", -1, http.StatusUnauthorized, 0},
		{"too long", "MUNGE MUNGE:" + strings.Repeat("A", maxCredential) + ":", -1, http.StatusUnauthorized, 0},
		{"well-formed", "MUNGE MUNGE:AAAA:", 1 << 20, http.StatusBadRequest, 0},
		{"well-formed, chunked", "MUNGE MUNGE:AAAA:", -1, http.StatusBadRequest, 600 * (maxBody + 1)},
	} {
		read := 0
		for range 600 {
			u := &upload{left: 1 << 20}
			if status := posted(t, h, holder{address: "10.0.0.1"}, c.authorization, c.length, u); status != c.status {
				t.Fatalf("%s: status %d, want %d", c.name, status, c.status)
			}
			read += u.read
		}
		if read > c.most {
			t.Errorf("%s: %d bytes are read, want %d at most", c.name, read, c.most)
		}
	}
}

// TestBodiesShareABudget checks 600 callers that send maximal requests at the same time, all from
// one address and from as many. The memory in use stays below the bounds, and root is served.
func TestBodiesShareABudget(t *testing.T) {
	for _, addresses := range []int{1, 600} {
		s := quiet()
		h := s.routes(t.Context())
		var held, refused sync.WaitGroup
		done := make(chan struct{})
		var mu sync.Mutex
		reading := 0
		held.Add(600)
		for i := range 600 {
			refused.Go(func() {
				once := sync.OnceFunc(held.Done)
				u := &upload{left: maxBody, hold: func() {
					mu.Lock()
					reading += maxBody
					mu.Unlock()
					once()
					<-done
				}}
				posted(t, h, holder{address: "10.0.0." + string(rune('a'+i%addresses))}, "MUNGE MUNGE:AAAA:", maxBody, u)
				once()
			})
		}
		held.Wait() // all are read or were refused
		bound := allBodies - keptBodies
		if addresses == 1 {
			bound = itsBodies
		}
		if reading > bound || reading == 0 {
			t.Errorf("from %d addresses: %d bytes at a time, want %d at most", addresses, reading, bound)
		}
		if status := posted(t, h, holder{known: true, uid: uint32(os.Geteuid())}, "", 3, &upload{left: 3}); status != http.StatusBadRequest {
			t.Errorf("from %d addresses: root gets %d, want its own nonsense refused (400)", addresses, status)
		}
		close(done)
		refused.Wait()
		if s.share().bodies.sum != 0 || len(s.share().bodies.of) != 0 {
			t.Errorf("%d bytes are counted at the end, of %d callers", s.share().bodies.sum, len(s.share().bodies.of))
		}
	}
}

// TestSlowBodiesGiveWay checks that a caller whose body comes at once is heard though another one at
// its address fills their share with bodies that never end.
func TestSlowBodiesGiveWay(t *testing.T) {
	s := quiet()
	server := httptest.NewServer(s.routes(t.Context()))
	t.Cleanup(server.Close) // after the connections
	const head = "POST /v1/jobs/1/next HTTP/1.1\r\nHost: x\r\nAuthorization: MUNGE MUNGE:AAAA:\r\nContent-Length: %d\r\n\r\n"
	send := func(size int, body string) net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err == nil {
			_, err = fmt.Fprintf(c, head+body, size)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	for range itsBodies / maxBody {
		send(maxBody, "x")
	}
	address, full := holder{address: "127.0.0.1"}, false
	for end := time.Now().Add(time.Minute); !full && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		s.share().bodies.mu.Lock()
		full = s.share().bodies.of[address] == itsBodies
		s.share().bodies.mu.Unlock()
	}
	if !full {
		t.Fatal("the share is not full")
	}
	answer, err := http.ReadResponse(bufio.NewReader(send(2, "{}")), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("the answer is %s, want that its credential is false (401)", answer.Status)
	}
}

// slow is a backend whose status takes as long as a test wants.
type slow struct {
	*fakeBackend
	asked  chan struct{}
	answer chan struct{}
}

func (b slow) Status(context.Context) (Status, error) {
	b.asked <- struct{}{}
	<-b.answer
	return Status{}, nil
}

// insist asks until too many requests are no longer on their way, as clients do. It returns why the answer is not 200.
func insist(ctx context.Context, uid int, to *running, method, path, body string) error {
	for {
		switch status, text, err := try(ctx, unixAs(uid, to.unix), method, "http://x"+path, "", body); {
		case err != nil:
			return err
		case status == http.StatusOK:
			return nil
		case status != http.StatusServiceUnavailable:
			return fmt.Errorf("%s %s: %d %s", method, path, status, text)
		}
	}
}

// TestRequestsByUser checks that a user has a bounded number of concurrent requests, and that
// requests waiting for a job count only for the job. Another user is served.
func TestRequestsByUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("without root there is one user: it counts for both")
	}
	greedy, other := strangers()
	b := slow{newBackend(uint32(greedy)), make(chan struct{}, 1000), make(chan struct{})}
	r := serve(t, b, nil)
	var all sync.WaitGroup
	failed := make(chan error, itsWaiting+itsRequests)
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	begin := func(method, path, body string) {
		all.Go(func() {
			if err := insist(ctx, greedy, r, method, path, body); err != nil {
				failed <- err
			}
		})
	}
	for range itsWaiting {
		begin("POST", "/v1/jobs/12/next", nextBody)
	}
	await(t, itsWaiting, b.waiting, failed)
	if status, body := send(t, unixAs(greedy, r.unix), "POST", "http://x/v1/jobs/12/next", "", nextBody); status != 503 || !strings.Contains(body, "try again") {
		t.Errorf("beyond what may wait for a job: %d %s, want 503", status, body)
	}
	for range itsRequests { // those that wait do not count
		begin("GET", "/v1/status", "")
	}
	await(t, itsRequests, b.asked, failed)
	if status, body := send(t, unixAs(greedy, r.unix), "GET", "http://x/v1/jobs", "", ""); status != 503 || !strings.Contains(body, "try again") {
		t.Errorf("beyond a user's share: %d %s, want 503", status, body)
	}
	if status, _ := send(t, unixAs(other, r.unix), "GET", "http://x/v1/jobs", "", ""); other != greedy && status != 200 {
		t.Errorf("another user: %d, want 200", status)
	}
	close(b.answer)
	close(b.ready)
	all.Wait()
	if len(failed) > 0 {
		t.Error(<-failed)
	}
	if err := insist(ctx, greedy, r, "GET", "/v1/jobs", ""); err != nil {
		t.Error("afterwards:", err)
	}
}

// anyJob has all jobs.
type anyJob struct{ *fakeBackend }

func (anyJob) Owner(context.Context, uint32) (uint32, error) { return 0, nil }

func (b anyJob) Next(ctx context.Context, _ uint32, req NextRequest) (Allocation, error) {
	return b.fakeBackend.Next(ctx, 12, req)
}

// TestWaitingBehindOneAddress checks that requests that wait for their jobs do not use up the share of the address from
// which all of them come.
func TestWaitingBehindOneAddress(t *testing.T) {
	const callers = itsBodies/leastBody + 1
	key, now := bytes.Repeat([]byte("k"), 32), time.Now()
	b := anyJob{newBackend(0)}
	r := serve(t, b, func(s *Server) { s.Tokens = keys(t, key) })
	public, signature, err := splitToken(tokenOf(key, head, claimsOf("root", now, now.Add(time.Hour))))
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, callers)
	var all sync.WaitGroup
	for i := range callers {
		uri := fmt.Sprintf("/v1/jobs/%d/next", 1+i/itsWaiting)
		credential := tokenCredential(public, signature, time.Now(), newTarget("", r.tcp, http.MethodPost, uri, []byte(nextBody)))
		all.Go(func() {
			if status, text, err := try(t.Context(), http.DefaultClient, http.MethodPost, "http://"+r.tcp+uri, tokenScheme+" "+credential, nextBody); err != nil || status != http.StatusOK {
				failed <- fmt.Errorf("%d %s %w", status, text, err)
			}
		})
		await(t, 1, b.waiting, failed)
	}
	close(b.ready)
	all.Wait()
	if len(failed) > 0 {
		t.Error(<-failed)
	}
}

// reader is a caller who reads the answer only once it is let.
type reader struct {
	*httptest.ResponseRecorder
	begun chan struct{}
	goOn  chan struct{}
}

func (r reader) SetReadDeadline(time.Time) error { return nil }

func (r reader) Write(b []byte) (int, error) {
	r.begun <- struct{}{}
	<-r.goOn
	return r.ResponseRecorder.Write(b)
}

// TestSlowReaders checks that an answer counts as its caller's until it is read: the sidecar keeps it meanwhile.
func TestSlowReaders(t *testing.T) {
	s := &Server{Log: logrus.New()}
	f := &front{auth: s.authenticator(), shares: s.share(), rights: s.rights(), log: s.Log}
	begun, goOn, atOnce := make(chan struct{}, 2*itsRequests), make(chan struct{}), make(chan struct{})
	close(atOnce)
	ask := func(goOn chan struct{}) *httptest.ResponseRecorder {
		w := reader{httptest.NewRecorder(), begun, goOn}
		f.handle(w, httptest.NewRequest(http.MethodGet, "/v1/jobs", http.NoBody), func(context.Context, request) (any, error) { return "jobs", nil })
		return w.ResponseRecorder
	}
	var all sync.WaitGroup
	for range itsRequests {
		all.Go(func() { ask(goOn) })
	}
	await(t, itsRequests, begun, nil)
	if got := ask(atOnce); got.Code != http.StatusServiceUnavailable {
		t.Errorf("beyond what a caller may have: %d", got.Code)
	}
	close(goOn)
	all.Wait()
	if got := ask(atOnce); got.Code != http.StatusOK {
		t.Errorf("afterwards: %d", got.Code)
	}
}

// TestRates checks a burst, then requests at the refill rate, and that idle callers are forgotten.
func TestRates(t *testing.T) {
	r := rates[int]{perSecond: 2, burst: 3}
	now := time.Unix(1e9, 0)
	count := func(who int) (n int) {
		for r.take(who, now) {
			n++
		}
		return n
	}
	for i, want := range []int{3, 0, 2, 3} {
		if got := count(1); got != want {
			t.Errorf("round %d: %d times, want %d", i, got, want)
		}
		now = now.Add(time.Duration(i) * time.Second)
	}
	for who := range 3 * most {
		r.take(who, now)
	}
	if len(r.of) > most {
		t.Errorf("%d are remembered", len(r.of))
	}
	now = now.Add(time.Minute)
	r.take(-1, now)
	if len(r.of) != 1 {
		t.Errorf("%d are remembered a minute later, want 1", len(r.of))
	}
}

// TestManyCallersAreCheap checks that a caller costs as little while as many callers as there may be
// are remembered. A search for idle ones at each call took this test minutes.
func TestManyCallersAreCheap(t *testing.T) {
	r := rates[int]{perSecond: 1, burst: 1}
	begin := time.Unix(1e9, 0)
	for who := range 20 * most {
		r.take(who, begin.Add(time.Duration(who)*time.Microsecond))
	}
	if len(r.of) != most {
		t.Errorf("%d are remembered, want %d", len(r.of), most)
	}
}

// TestFloodedLog: 1,000 anonymous calls write some lines, and one that says how many were left out.
func TestFloodedLog(t *testing.T) {
	var log strings.Builder
	s := quiet()
	s.Log.(*logrus.Logger).SetOutput(&log)
	s.Reading = nil
	var later []func()
	s.share().lines.after = func(_ time.Duration, f func()) { later = append(later, f) }
	h := s.routes(t.Context())
	get := func(from string) {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/jobs", nil)
		r.RemoteAddr = from + ":1"
		if w := (deadlines{httptest.NewRecorder()}); true {
			if h.ServeHTTP(w, r); w.Code != http.StatusUnauthorized {
				t.Fatalf("status %d", w.Code)
			}
		}
	}
	for range 1000 {
		get("10.0.0.1")
	}
	if n := strings.Count(log.String(), "\n"); n != lineBurst || len(later) != 1 {
		t.Errorf("%d lines and %d to come, want %d and 1", n, len(later), lineBurst)
	}
	get("10.0.0.2")
	if n := strings.Count(log.String(), "10.0.0.2"); n != 1 {
		t.Errorf("another caller has %d lines, want 1", n)
	}
	later[0]()
	if !strings.Contains(log.String(), "suppressed=995") {
		t.Errorf("nothing says how many lines were left out:\n%s", &log)
	}
}
