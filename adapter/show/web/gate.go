package web

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// Gate admits only callers who know a secret, because an address on this machine is open to all of
// its users. The secret comes with the first address that is opened, ?token=…, and begins a
// session. Like other sessions' pages, the page must be below a random path (NewPath).
type Gate struct {
	Secret string

	sessions sessions
}

// NewSecret returns an unguessable secret.
func NewSecret() string { return rand.Text() }

// NewPath draws a folder below base for the page behind a gate.
func NewPath(base string) string {
	return strings.TrimRight(base, "/") + "/" + sessionRoot + rand.Text() + "/"
}

// Handler is h behind the gate.
func (g *Gate) Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := g.sessions.of(r, ""); ok {
			h.ServeHTTP(w, r)
			return
		}
		q := r.URL.Query()
		if !g.opens(q.Get("token")) {
			w.Header().Set("Cache-Control", "no-store")
			http.Error(w, "This page belongs to one user: open the address that evosctl web printed.", http.StatusForbidden)
			return
		}
		setCookie(w, r, g.sessions.begin("", "", [sha256.Size]byte{}))
		q.Del("token") // keep it out of history and Referer
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Location", "?"+q.Encode())
		w.WriteHeader(http.StatusSeeOther)
	})
}

func (g *Gate) opens(secret string) bool {
	return g.Secret != "" && subtle.ConstantTimeCompare([]byte(g.Secret), []byte(secret)) == 1
}
