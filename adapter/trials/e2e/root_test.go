package e2e_test

import (
	"bytes"
	"errors"
	"flag"
	"slices"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/trials/matrix"
)

var built = flag.String("e2e.bin", "", "folder of the commands, which are built already")

// TestNewerSlurm runs tests in the root of a newer Slurm than the machine's. `make matrix MATRIXFLAGS=--full` runs all.
// TestAuthSlurm runs only so.
func TestNewerSlurm(t *testing.T) {
	t.Parallel()
	newer := matrix.Releases[slices.IndexFunc(matrix.Releases, func(r matrix.Release) bool { return r.Slurm == "24.11" })]
	if *built != "" {
		t.Skip("it is the newer one")
	}
	names := []string{"TestAuthSlurm", "TestObserve", "TestAsOperator", "TestReleaseAll/direct=false", "TestReleaseAll/direct=true"}
	if newer.Native(t.Context()) {
		names = names[:1] // the others run on it anyway
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			cmd, err := matrix.Again(t.Context(), newer, &log, []string{bin}, "-test.run=^"+name, "-test.v", "-e2e.bin="+bin)
			if errors.Is(err, matrix.ErrUnavailable) {
				t.Skipf("Debian %s %v", newer.Suite, err)
			}
			if err == nil {
				err = cmd.Run()
			}
			if err != nil || !bytes.Contains(log.Bytes(), []byte("--- PASS: ")) {
				t.Errorf("%v\n%s", err, &log)
			}
		})
	}
}
