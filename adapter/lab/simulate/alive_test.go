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

// TestAliveThoughDeaf checks that the steps of an application that never calls next count as progress. The sidecar
// ends them since another job waits for their nodes, and each may raise time limits.
func TestAliveThoughDeaf(t *testing.T) {
	const script = `cluster nodes=12 accounting merge
0s stock first 12 100m 75m
1m submit deaf 9@250s,7@243s,2@33s,12@301s,4@428s limit=92m lasts=3:19s deaf
2m submit waits 1@179s,12@248s,5@61s,5@86s limit=70m
14h end clean`
	if err := Play(script, io.Discard); err != nil {
		t.Error(err)
	}
}
