package simulate

import (
	"io"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/recorder"
)

// TestReplay: what was recorded of every life of the sidecar, in every history, the core
// does again.
func TestReplay(t *testing.T) {
	histories(t, func(t *testing.T, _, script, _ string) { replays(t, script) })
}

// TestReplayStorms is the same of storms.
func TestReplayStorms(t *testing.T) {
	for seed := range uint64(4) {
		replays(t, Storm(2*seed)) // those without rest, of which the recorder knows nothing
	}
}

func replays(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	var lives []*recorder.Recorder
	play(script, io.Discard, playing{record: func(start recorder.Start) *recorder.Recorder {
		r := recorder.New(dir, 4, "test", start)
		r.Warn = func(err error) { t.Error(err) }
		lives = append(lives, r)
		return r
	}})
	for _, r := range lives {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	files, err := recorder.Files(dir)
	if err != nil || len(files) < len(lives) {
		t.Fatalf("%d files of %d lives: %v", len(files), len(lives), err)
	}
	steps := 0
	for _, first := range files {
		if !strings.HasSuffix(first, "-000000.evorec") {
			continue
		}
		run, err := recorder.Find(first)
		if err != nil {
			t.Fatal(err)
		}
		p := recorder.Player{Version: "test"}
		if err := p.Play(run); err != nil {
			t.Error(err)
		}
		if p.Gap != "" {
			t.Error(p.Gap)
		}
		steps += p.Steps
	}
	if steps < 10 {
		t.Errorf("only %d steps", steps)
	}
}
