package sweep

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestFile: an outcome holds as long as all on which it rests.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	grid := func(more string) string {
		s, err := Read(write("grid.yaml", "traces: [{file: t.swf}]\nshares: [1]\nstrategies: [noX]\n"+more))
		must.OK(t, err)
		cells := s.Cells()
		return s.file(cells[len(cells)-1])
	}
	write("t.swf", "1")
	first := grid("")
	if again := grid("seeds: [2, 1]\n"); again != first {
		t.Errorf("%s, and with more seeds %s", first, again)
	}
	if other := grid("scheduler_parameters: bf_interval=60\n"); other == first {
		t.Error("another scheduler, and the same file")
	}
	write("t.swf", "2")
	if other := grid(""); other == first {
		t.Error("another trace, and the same file")
	}
}
