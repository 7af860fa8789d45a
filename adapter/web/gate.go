package web

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
)

// Gate lets in who knows a secret: an address on this machine is open to all of its users.
// The secret comes with the first address that is opened, ?token=…, and stays in a cookie.
type Gate struct {
	Secret string
	Cookie string // its name; those of other ports of a machine are sent here, too
}

// NewSecret is one that nobody guesses.
func NewSecret() string { return rand.Text() }

// Handler is h behind the gate.
func (g Gate) Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie(g.Cookie); err == nil && g.opens(c.Value) {
			h.ServeHTTP(w, r)
			return
		}
		q := r.URL.Query()
		if !g.opens(q.Get("token")) {
			w.Header().Set("Cache-Control", "no-store")
			http.Error(w, "This page is somebody's own: open the address that evosctl web has printed.", http.StatusForbidden)
			return
		}
		//nolint:gosec // plain HTTP, on this machine alone
		http.SetCookie(w, &http.Cookie{Name: g.Cookie, Value: g.Secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
		q.Del("token") // it is to be in no history and in no Referer
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Location", "?"+q.Encode())
		w.WriteHeader(http.StatusSeeOther)
	})
}

func (g Gate) opens(secret string) bool {
	return g.Secret != "" && subtle.ConstantTimeCompare([]byte(g.Secret), []byte(secret)) == 1
}
