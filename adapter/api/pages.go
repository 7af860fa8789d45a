package api

import (
	"context"
	"net/http"
)

// PagePath is the path of the page on the Unix socket.
const PagePath = "/web/"

// pages holds what the server has beside the API; each may be nil.
type pages struct {
	ready func() error // as Server.Ready
	page  http.Handler // as Server.Page
	views http.Handler // as Server.Views

	warnings func() []error // as Server.Warnings
}

// page serves the page to callers on the Unix socket. A browser has no MUNGE: "evosctl web" reads
// the API for it.
func (f *front) page(w http.ResponseWriter, r *http.Request, d *desk, page http.Handler) {
	p, ok := r.Context().Value(peerKey{}).(peer)
	if !ok {
		f.refuse(w, r, Errorf(ErrNotFound, "there is no page on this address: call evosctl web, which opens one"))
		return
	}
	if p.err != nil {
		f.refuse(w, r, p.err)
		return
	}
	v := Visitor{d, caller{known: true, uid: p.uid}}
	leave, err := f.shares.enter(v.caller, callerOf(r))
	if err != nil {
		f.refuse(w, r, err)
		return
	}
	defer leave()
	page.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitorKey{}, v)))
}

// views guards the read-only pages beside the API.
func (f *front) views(w http.ResponseWriter, r *http.Request, views http.Handler) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "these pages can only be read", http.StatusMethodNotAllowed)
		return
	}
	if f.rights.reading() != Anybody {
		c, err := f.auth.authenticate(r, nil)
		if err == nil {
			err = f.rights.mayView(r.Context(), c)
		}
		if err != nil {
			f.refuse(w, r, &refusal{caller: c, err: err})
			return
		}
		leave, err := f.shares.enter(c, callerOf(r))
		if err != nil {
			f.refuse(w, r, &refusal{caller: c, err: err})
			return
		}
		defer leave()
	}
	views.ServeHTTP(w, r)
}
