package simulate

import (
	"io"
	"strings"
	"testing"
)

// TestAlive checks that a job that waits while nothing progresses is found and named: here a job
// that never starts, because the sidecar was down when it came.
func TestAlive(t *testing.T) {
	const script = "cluster nodes=4\n0s kill\n1s stock runs 3 10m 9m\n2s submit waits 2@10m\n1h end clean"
	err := Play(script, io.Discard)
	if err == nil {
		t.Fatal("nobody starts it, and nothing is wrong")
	}
	for _, want := range []string{"no job makes progress: ", "(waits) is PENDING"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nhas no %q", err, want)
		}
	}
}
