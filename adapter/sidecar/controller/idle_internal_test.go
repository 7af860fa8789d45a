package controller

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
)

// TestIdleTime: what is idle counts until the next cycle, and is due once a minute. A time that nobody saw does not count, nor
// does one that the clock went back by.
func TestIdleTime(t *testing.T) {
	begin := time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)
	var it idleTime
	for i, c := range []struct {
		second, nodes int
		want          float64 // node-seconds; -1: nothing is due
	}{{0, 2, -1}, {10, 3, -1}, {20, 0, -1}, {59, 0, -1}, {60, 4, 20 + 30}, {120, 4, 240}, {900, 1, -1}, {930, 1, -1}, {960, 1, 60}, {100, 1, -1}, {130, 1, -1}, {160, 1, 60}} {
		got, due := it.sees(msg.Idle{Nodes: c.nodes, Watts: 100 * float64(c.nodes)}, begin.Add(time.Duration(c.second)*time.Second))
		if want := (store.Idle{Seconds: c.want, Joules: 100 * c.want}); due != (c.want >= 0) || due && got != want {
			t.Errorf("%d: %+v, %v, want %+v", i, got, due, want)
		}
	}
}
