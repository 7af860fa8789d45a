package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// A browser sends its cookies to every port of a host, so a page on another port could receive this
// one's cookie. Therefore the cookie alone opens nothing: each session has its own random path,
// below which its cookie is sent and valid. Another port does not know that path, so it cannot make
// the browser send the cookie; a person who sees an address lacks the cookie.
//
// The cookie is not the token: it ends with its session, after some hours, at sign-out, and with
// the sidecar.
const (
	sessionTime  = 8 * time.Hour
	mostSessions = 8 // of a user; a further one ends the oldest
	sessionRoot  = "s/"
)

// session is a browser that has signed in.
type session struct {
	handle string            // its path is sessionRoot + handle
	name   string            // of the user
	token  [sha256.Size]byte // hash of the user's token
	ends   time.Time
}

// sessions holds a page's sessions, by the hash of the secret in the cookie.
type sessions struct {
	mu    sync.Mutex
	all   map[[sha256.Size]byte]session
	clock func() time.Time // nil: time.Now
}

func (s *sessions) now() time.Time {
	if s.clock != nil {
		return s.clock()
	}
	return time.Now()
}

// begin begins a session and returns the secret for its cookie.
func (s *sessions) begin(handle, name string, token [sha256.Size]byte) (secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, own := s.now(), 0
	var oldest [sha256.Size]byte
	for key, one := range s.all {
		switch {
		case !one.ends.After(now):
			delete(s.all, key)
		case one.name == name:
			if own++; own == 1 || one.ends.Before(s.all[oldest].ends) {
				oldest = key
			}
		}
	}
	if own >= mostSessions {
		delete(s.all, oldest)
	}
	if s.all == nil {
		s.all = map[[sha256.Size]byte]session{}
	}
	secret = rand.Text()
	s.all[sha256.Sum256([]byte(secret))] = session{handle: handle, name: name, token: token, ends: now.Add(sessionTime)}
	return secret
}

// of finds the session that a request belongs to by its path and its cookie.
func (s *sessions) of(r *http.Request, handle string) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range r.Cookies() {
		one, ok := s.all[sha256.Sum256([]byte(c.Value))]
		if ok && isSessionCookie(c.Name) && one.handle == handle && one.ends.After(s.now()) {
			return one, true
		}
	}
	return session{}, false
}

// end ends all sessions of a path.
func (s *sessions) end(handle string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, one := range s.all {
		if one.handle == handle {
			delete(s.all, key)
		}
	}
}

// The cookie's names. With the second, browsers insist on Secure. __Host- would demand the path /,
// so that the cookie would go to all pages of the host.
const (
	plainCookie  = "evoslurm"
	secureCookie = "__Secure-evoslurm"
)

func isSessionCookie(name string) bool { return name == plainCookie || name == secureCookie }

// setCookie gives the browser a session's cookie, or removes it (""). It sets no path: the default
// is the folder of the request as the browser sees it, whatever a proxy has put in front.
func setCookie(w http.ResponseWriter, r *http.Request, secret string) {
	c := &http.Cookie{Name: plainCookie, Value: secret, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		MaxAge: int(sessionTime.Seconds())}
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		c.Name, c.Secure = secureCookie, true
	}
	if secret == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

type handleKey struct{}

// handleOf returns the session's handle in a request's path; "": there is none.
func handleOf(r *http.Request) string {
	handle, _ := r.Context().Value(handleKey{}).(string)
	return handle
}

var sessionPath = regexp.MustCompile(`^` + sessionRoot + `([A-Z2-7]{26})/`)

// inSession also serves the page below the paths of sessions.
func inSession(base string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, ok := strings.CutPrefix(r.URL.Path, base)
		if found := sessionPath.FindStringSubmatch(rest); ok && found != nil {
			r = r.Clone(context.WithValue(r.Context(), handleKey{}, found[1]))
			r.URL.Path, r.URL.RawPath = base+rest[len(found[0]):], ""
		}
		h.ServeHTTP(w, r)
	})
}

// signInAt returns where a page's form leads: below the path of a new session. The path is always
// new, because a person who sent the address to the user must not know it.
func signInAt(r *http.Request) string {
	up := sessionRoot
	if handleOf(r) != "" {
		up = "../"
	}
	return up + rand.Text() + "/signin"
}
