package api

import (
	"fmt"
	"net/http"
)

// Health adds endpoints for supervisors: GET /healthz answers while the process serves, with a line for each
// warning; GET /readyz answers 503 with the reason if the sidecar is not ready. warnings may be nil.
func Health(mux *http.ServeMux, ready func() error, warnings func() []error) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
		if warnings == nil {
			return
		}
		for _, err := range warnings() {
			fmt.Fprintln(w, "warning:", err)
		}
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			w.Header().Set("Retry-After", "1")
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}
