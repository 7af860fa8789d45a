package metrics

import (
	"net/http"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// Listen opens an address, to all who reach it, for metrics and health; "" is nowhere.
func Listen(address string, metrics http.Handler, ready func() error) (*api.Side, error) {
	mux := http.NewServeMux()
	mux.Handle("/metrics", metrics)
	api.Health(mux, ready)
	return api.ListenSide(address, mux, 10*time.Second)
}
