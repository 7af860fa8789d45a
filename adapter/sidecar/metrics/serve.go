package metrics

import (
	"net/http"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// Listen opens a port for metrics and health, to all who can reach it.
func Listen(port api.Port, metrics http.Handler, ready func() error, warnings func() []error) (*api.Side, error) {
	mux := http.NewServeMux()
	mux.Handle("/metrics", metrics)
	api.Health(mux, ready, warnings)
	return api.ListenSide(port, mux, 10*time.Second, "")
}
