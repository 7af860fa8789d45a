package web

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

const secret = "0123456789abcdef0123"

// tokenFile returns a file of tokens with this text.
func tokenFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "web.tokens")
	must.OK(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func me(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	must.OK(t, err)
	return u.Username
}

// guarded returns a page for signed-in users, who are its only readers.
func guarded(tokens *Tokens, base string, told *[]string) http.Handler {
	p := Page{Base: base, Tokens: tokens, Told: func(_ *http.Request, what string) { *told = append(*told, what) },
		Reader: func(r *http.Request) (Reader, error) {
			_, uid, err := tokens.User(r)
			if err == nil && uid == nil {
				err = api.Errorf(api.ErrDenied, "who are you?")
			}
			return small(), err
		}}
	return p.Handler()
}

func TestTokenFiles(t *testing.T) {
	for text, want := range map[string]string{
		"# nobody yet\n\n":          "",
		me(t) + " " + secret + "\n": "",
		me(t) + " " + secret:        "",
		"alice short\n":             "line 1: the token has 5 characters",
		"alice\n":                   "line 1: want USER TOKEN",
		"# x\nalice a b\n":          "line 2: want USER TOKEN",
		me(t) + " " + secret + "\n" + me(t) + " " + secret:      "line 2: this token is there twice",
		"no-such-user-here " + secret:                           "whom this machine does not know",
		"a \x00" + strings.Repeat("x", 30) + "\nb\tc\td\te\n\n": "line 2: want USER TOKEN",
	} {
		err := (&Tokens{File: tokenFile(t, text)}).Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	open := tokenFile(t, me(t)+" "+secret)
	must.OK(t, os.Chmod(open, 0o640))
	for name, want := range map[string]string{open: "others may read it (mode 0640)", t.TempDir(): "it is no file", "/nowhere/at/all": "no such file"} {
		if err := (&Tokens{File: name}).Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if err := (&Tokens{}).Check(); err != nil {
		t.Error("no file: ", err)
	}
}

// TestSignIn checks that no caller reads before signing in, or once the token is removed. The
// cookie is not the token, is valid only below the path of its session, and ends with it.
func TestSignIn(t *testing.T) {
	tokens := &Tokens{File: tokenFile(t, me(t)+" "+secret+"\n")}
	var told []string
	h := guarded(tokens, "/evo/", &told)
	send := func(method, address string, form url.Values, head ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, address, strings.NewReader(form.Encode()))
		if method == http.MethodPost {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		for i := 0; i+1 < len(head); i += 2 {
			r.Header.Add(head[i], head[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for _, address := range []string{"/evo/", "/evo/job?id=12", "/evo/strategies"} {
		w := send(http.MethodGet, address, nil)
		if body := w.Body.String(); w.Code != http.StatusUnauthorized || strings.Contains(body, "amr") || !regexp.MustCompile(`action="s/[A-Z2-7]{26}/signin"`).MatchString(body) {
			t.Errorf("%s without a token: %d %s", address, w.Code, body)
		}
	}
	if body := send(http.MethodGet, "/evo/job?id=12", nil).Body.String(); !strings.Contains(body, `value="job?id=12"`) {
		t.Errorf("it forgets the job: %s", body)
	}
	const at = "/evo/s/ABCDEFGHIJKLMNOPQRSTUVWXYZ/"
	good := url.Values{"token": {" " + secret + "\n"}, "to": {"job?id=12"}}
	for name, c := range map[string]struct {
		*httptest.ResponseRecorder
		want int
	}{
		"wrong":             {send(http.MethodPost, at+"signin", url.Values{"token": {secret + "4"}}), 401},
		"none":              {send(http.MethodPost, at+"signin", url.Values{}), 401},
		"without a path":    {send(http.MethodPost, "/evo/signin", good), 401},
		"by an address":     {send(http.MethodGet, "/evo/signin?"+good.Encode(), nil), 405},
		"from another site": {send(http.MethodPost, at+"signin", good, "Sec-Fetch-Site", "cross-site"), 403},
		"of another origin": {send(http.MethodPost, at+"signin", good, "Origin", "https://evil.example"), 403},
		"a stale cookie":    {send(http.MethodGet, at, nil, "Cookie", plainCookie+"="+secret+"x"), 401},
		"the token":         {send(http.MethodGet, at, nil, "Cookie", plainCookie+"="+secret), 401},
	} {
		if c.Code != c.want || len(c.Result().Cookies()) != 0 {
			t.Errorf("%s: %d, want %d: %v", name, c.Code, c.want, c.Header())
		}
	}
	w := send(http.MethodPost, at+"signin", good, "X-Forwarded-Proto", "https")
	cookies := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "job?id=12" || len(cookies) != 1 {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	if c := cookies[0]; !c.HttpOnly || !c.Secure || c.Name != "__Secure-evoslurm" || c.SameSite != http.SameSiteStrictMode || c.Path != "" || c.Domain != "" ||
		strings.Contains(c.Value, secret) || c.MaxAge != 8*60*60 {
		t.Errorf("the cookie is %+v", c)
	}
	cookie := cookies[0].Name + "=" + cookies[0].Value
	for _, other := range []string{"/evo/job?id=12", strings.Replace(at, "ABC", "ABD", 1) + "job?id=12"} { // as one who got the cookie on another port would ask
		if w := send(http.MethodGet, other, nil, "Cookie", cookie); w.Code != http.StatusUnauthorized {
			t.Errorf("the cookie opens %s: %d", other, w.Code)
		}
	}
	if w := send(http.MethodPost, at+"signout", nil); w.Code != http.StatusSeeOther {
		t.Errorf("sign out without the cookie: %d", w.Code)
	}
	if w := send(http.MethodGet, at+"job?id=12", nil, "Cookie", cookie); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), ">"+me(t)+"</span>") {
		t.Errorf("signed in: %d %s", w.Code, w.Body)
	}
	again := send(http.MethodPost, at+"signin", good).Result().Cookies()[0]
	if w := send(http.MethodPost, at+"signout", nil, "Cookie", cookie); w.Code != http.StatusSeeOther || w.Result().Cookies()[0].MaxAge >= 0 || w.Header().Get("Location") != "../../" {
		t.Errorf("sign out: %d %v", w.Code, w.Header())
	}
	for _, c := range []string{cookie, again.Name + "=" + again.Value} {
		if w := send(http.MethodGet, at, nil, "Cookie", c); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), `action="../`) {
			t.Errorf("after signing out: %d %s", w.Code, w.Body)
		}
	}
	last := send(http.MethodPost, at+"signin", good).Result().Cookies()[0]
	cookie = last.Name + "=" + last.Value
	if w := send(http.MethodGet, at, nil, "Cookie", cookie); w.Code != http.StatusOK {
		t.Errorf("signed in again: %d", w.Code)
	}
	for to, want := range map[string]string{"https://evil.example": "./", "//evil.example/job": "./", "/job": "./", "javascript:alert(1)": "./", "job?id=1": "job?id=1", "./?by=node": "./?by=node", "signout": "./", "": "./"} {
		if got := wayBack(to); got != want {
			t.Errorf("back to %q: %q, want %q", to, got, want)
		}
	}
	// The line is taken out, then the file is opened to others.
	must.OK(t, os.WriteFile(tokens.File, []byte("# "+me(t)+"\n"), 0o600))
	if w := send(http.MethodGet, at, nil, "Cookie", cookie); w.Code != http.StatusUnauthorized {
		t.Errorf("with a token that is no more: %d", w.Code)
	}
	must.OK(t, os.Chmod(tokens.File, 0o644))
	if w := send(http.MethodPost, at+"signin", good); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "chmod 600") {
		t.Errorf("with a file that others read: %d %s", w.Code, w.Body)
	}
	if all := fmt.Sprint(told); !strings.Contains(all, "signed in as "+me(t)) || !strings.Contains(all, "not known here") || strings.Contains(all, secret) {
		t.Errorf("the log has %s", all)
	}
}

// TestSessionsEnd checks that sessions end after their hours, and a user's oldest when there are
// too many; others' stay.
func TestSessionsEnd(t *testing.T) {
	now := noon
	s := sessions{clock: func() time.Time { return now }}
	holds := func(secret string) bool {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.AddCookie(&http.Cookie{Name: plainCookie, Value: secret})
		_, ok := s.of(r, "h")
		return ok
	}
	token := [sha256.Size]byte{}
	other := s.begin("h", "bob", token)
	var mine []string
	for range mostSessions + 1 {
		now = now.Add(time.Minute)
		mine = append(mine, s.begin("h", "alice", token))
	}
	if holds(mine[0]) || !holds(mine[1]) || !holds(other) {
		t.Errorf("the first of too many: %v, the next: %v, another's: %v", holds(mine[0]), holds(mine[1]), holds(other))
	}
	now = noon.Add(sessionTime)
	if holds(other) || !holds(mine[1]) {
		t.Error("a session lasts longer, or less long, than its hours")
	}
	now = now.Add(sessionTime)
	s.begin("h", "carol", token)
	if len(s.all) != 1 {
		t.Errorf("%d sessions are kept that are over", len(s.all)-1)
	}
}

// slow is a Reader that waits for leave.
type slow struct {
	*cluster
	in   chan struct{}
	stay chan struct{}
}

func (s slow) Cluster(ctx context.Context) (api.Cluster, error) {
	s.in <- struct{}{}
	<-s.stay
	return s.cluster.Cluster(ctx)
}

// TestReadersWait: of a hundred readers at once all are served, a few at the same time.
func TestReadersWait(t *testing.T) {
	s := slow{small(), make(chan struct{}, 100), make(chan struct{})}
	h := pageOf(s, "/")
	answers := make(chan int, 100)
	for range cap(answers) {
		go func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			answers <- w.Code
		}()
	}
	for range mostAtOnce {
		select {
		case <-s.in:
		case code := <-answers:
			t.Fatalf("one reader is answered before the cluster is: %d", code)
		}
	}
	for range 1000 {
		runtime.Gosched()
	}
	if n := len(s.in); n > 0 {
		t.Errorf("%d more pages are being made", n)
	}
	close(s.stay)
	for range cap(answers) {
		if code := <-answers; code != http.StatusOK {
			t.Fatal(code)
		}
	}
}
