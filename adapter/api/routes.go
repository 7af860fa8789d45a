package api

import (
	"context"
	"net/http"
	"strings"
)

// route is an operation of the API.
type route struct {
	method, path string
	answer       handler
}

// table lists the operations, by path in the order in which a refusal names the methods.
func (d *desk) table() []route {
	return []route{
		{http.MethodGet, "/v1/status", d.status},
		{http.MethodGet, "/v1/cluster", d.cluster},
		{http.MethodGet, "/v1/jobs", d.jobs},
		{http.MethodGet, "/v1/jobs/{id}", d.job},
		{http.MethodGet, "/v1/jobs/{id}/allocation", d.allocation},
		{http.MethodPost, "/v1/jobs/{id}/next", d.next},
		{http.MethodPost, "/v1/jobs/{id}/change", d.change},
		{http.MethodPost, "/v1/jobs/{id}/offer", d.offer},
		{http.MethodPost, "/v1/jobs/{id}/answer", d.answerOffer},
		{http.MethodPost, "/v1/jobs/{id}/progress", d.progress},
		{http.MethodPost, "/v1/jobs/{id}/cancel-holds", d.cancelHolds},
		{http.MethodPost, "/v1/places", d.place},
		{http.MethodPost, "/v1/drain", d.drain},
		{http.MethodPost, "/v1/resume", d.resume},
		{http.MethodGet, "/v1/events", d.events},
		{http.MethodGet, "/v1/report", d.report},
		{http.MethodGet, "/v1/history", d.history},
		{http.MethodGet, "/v1/strategies", d.strategies},
		{http.MethodPost, "/v1/strategies", d.changeStrategy},
		{http.MethodGet, "/v1/strategies/{name}", d.strategies},
		{http.MethodPost, "/v1/strategies/{name}/use", d.changeStrategy},
		{http.MethodPost, "/v1/strategies/{name}/try", d.changeStrategy},
		{http.MethodGet, "/v1/settings", d.settings},
		{http.MethodPost, "/v1/settings", d.settings},
		{http.MethodGet, "/v1/access", d.access},
		{http.MethodGet, "/v1/budget", d.budget},
		{http.MethodGet, "/v1/power", d.power},
		{http.MethodGet, "/v1/power/history", d.power},
		{http.MethodGet, "/v1/policies", d.strategies},
		{http.MethodPost, "/v1/policies/{name}/use", d.changeStrategy},
		{http.MethodPost, "/v1/ship", d.ships},
	}
}

// routes returns the whole API with the pages beside it.
func (f *front) routes(d *desk, pages pages) http.Handler {
	mux := http.NewServeMux()
	allow := map[string]string{} // by path
	for _, one := range d.table() {
		mux.HandleFunc(one.method+" "+one.path, func(w http.ResponseWriter, r *http.Request) { f.handle(w, r, d.acting(one)) })
		if allow[one.path] != "" {
			allow[one.path] += ", "
		}
		allow[one.path] += one.method
	}
	for path, methods := range allow {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", methods)
			f.reply(w, r, http.StatusMethodNotAllowed, Error{Error: r.Method + " is not for " + r.URL.Path + "; use " + methods})
		})
	}
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		f.handle(w, r, func(context.Context, request) (any, error) {
			return nil, Errorf(ErrNotFound, noRoute+"%s in this API", strings.TrimPrefix(r.URL.Path, "/v1/"))
		})
	})
	if pages.ready != nil {
		Health(mux, pages.ready, pages.warnings)
	}
	if pages.page != nil {
		mux.HandleFunc(PagePath, func(w http.ResponseWriter, r *http.Request) { f.page(w, r, d, pages.page) })
	}
	if pages.views != nil {
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { f.views(w, r, pages.views) })
	}
	return mux
}
