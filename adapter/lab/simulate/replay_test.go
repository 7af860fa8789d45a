package simulate

import (
	"io"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/sidecar/recorder"
)

// TestReplayStorms checks that the core repeats what was recorded in every life of the sidecar in a
// storm, as TestHistories does for every history.
func TestReplayStorms(t *testing.T) {
	for seed := range uint64(4) {
		r := recording{dir: t.TempDir()}
		play(Storm(2*seed), io.Discard, playing{record: r.life(t)}) // a storm without rest, which the recorder does not know
		r.replays(t)
	}
}

// recording is the flight recorders of all lives of a sidecar.
type recording struct {
	dir   string
	lives []*recorder.Recorder
}

// life begins another one's.
func (rec *recording) life(t *testing.T) func(recorder.Start) *recorder.Recorder {
	return func(start recorder.Start) *recorder.Recorder {
		r := recorder.New(rec.dir, 4, "test", start)
		r.Warn = func(err error) { t.Error(err) }
		rec.lives = append(rec.lives, r)
		return r
	}
}

// replays checks that the core repeats what was recorded.
func (rec *recording) replays(t *testing.T) {
	t.Helper()
	for _, r := range rec.lives {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	files, err := recorder.Files(rec.dir)
	if err != nil || len(files) < len(rec.lives) {
		t.Fatalf("%d files of %d lives: %v", len(files), len(rec.lives), err)
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
