package simulate

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
	"github.com/evoslurm/evoslurm/adapter/sidecar/recorder"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// encoded returns what encodes the core before every nth step or so, the nth in any case, and continues with the decoded one, which must
// encode to the same bytes.
func encoded(t *testing.T, seed uint64, nth int, times *int) func(*core.Core) *core.Core {
	random, steps := rand.New(rand.NewPCG(seed, 0)), 0
	return func(c *core.Core) *core.Core {
		if steps++; random.IntN(nth) > 0 && steps != nth || t.Failed() {
			return c
		}
		*times++
		data, err := c.Encode()
		if err != nil {
			t.Error(err)
			return c
		}
		other, err := core.Decode(data, "simulated")
		if err != nil {
			t.Error(err)
			return c
		}
		again, err := other.Encode()
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("%v; %d bytes of state became %d others", err, len(data), len(again))
		}
		return other
	}
}

// TestHistoriesEncoded checks that a core continues as if nothing had happened after its state was encoded and
// decoded: the history is the same. The steps are others in every run.
func TestHistoriesEncoded(t *testing.T) {
	histories(t, func(t *testing.T, _, script, want string) {
		seed, times := rand.Uint64(), 0
		var got strings.Builder
		if _, err := play(script, &got, playing{encode: encoded(t, seed, 20, &times)}); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got.String(), "\n")); diff != "" {
			t.Errorf("without (-) and with an encoded state (+):\n%s", diff)
		}
		if times == 0 || t.Failed() {
			t.Errorf("encoded %d times, seed %d", times, seed)
		}
	})
}

// TestStormsEncoded checks in storms that every effect of every step is that of a core whose state was never encoded.
func TestStormsEncoded(t *testing.T) {
	for range 2 {
		seed, times := rand.Uint64N(1_000_000), 0
		r := recording{dir: t.TempDir()}
		play(Storm(2*seed), io.Discard, playing{record: r.life(t), encode: encoded(t, seed, 20, &times)}) // without rest, which the recorder does not know
		if r.replays(t); times == 0 || t.Failed() {
			t.Fatalf("encoded %d times, seed %d", times, seed)
		}
	}
}

// stormFiles records a storm in several small files of one run: the first that has enough steps in its last life and
// fits into the folder.
func stormFiles(t *testing.T) []string {
	for seed := range uint64(20) {
		if files := recordStorm(t, seed); len(files) > 2 && strings.HasSuffix(files[len(files)-1], fmt.Sprintf("-%06d.evorec", len(files)-1)) {
			t.Logf("seed %d", seed)
			return files
		}
	}
	t.Fatal("no storm has enough steps in its last life, and fits into the folder: try other seeds")
	return nil
}

// recordStorm returns the files of a storm's last life.
func recordStorm(t *testing.T, seed uint64) []string {
	dir := t.TempDir()
	var r *recorder.Recorder
	play(Storm(2*seed), io.Discard, playing{record: func(start recorder.Start) *recorder.Recorder {
		if r != nil {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		r = recorder.New(dir, 1, "test", start)
		r.Warn = func(err error) { t.Error(err) }
		return r
	}})
	must.OK(t, r.Close())
	files, err := recorder.Find(dir)
	must.OK(t, err)
	return files
}

// TestReplayFromAnyFile checks that a recording can be replayed from each of its files, whatever was before, and over
// a gap.
func TestReplayFromAnyFile(t *testing.T) {
	files := stormFiles(t)
	for i := range files {
		p := recorder.Player{Version: "test"}
		if err := p.Play(files[i:]); err != nil || p.Gap != "" || p.Missing != "" || p.Core == nil {
			t.Errorf("from file %d of %d, %d steps: %v, %q, %q", i, len(files), p.Steps, err, p.Gap, p.Missing)
		}
	}
	p := recorder.Player{Version: "test"}
	if err := p.Play(append(files[:1:1], files[2:]...)); err != nil || p.Gap != "" || !strings.Contains(p.Missing, "files are missing") {
		t.Errorf("over a gap: %v, %q, %q", err, p.Gap, p.Missing)
	}
}

// TestReplaySince checks that a replay can begin at any time.
func TestReplaySince(t *testing.T) {
	files := stormFiles(t)
	var times []time.Time
	all := recorder.Player{Version: "test", See: func(s recorder.Step) { times = append(times, s.At) }}
	must.OK(t, all.Play(files))
	for range 5 {
		p := recorder.Player{Version: "test", Since: times[rand.IntN(len(times))]}
		want := len(times) - slices.IndexFunc(times, func(at time.Time) bool { return !at.Before(p.Since) })
		if err := p.Play(files); err != nil || p.Gap != "" || p.Steps != want || !p.From.Equal(p.Since) {
			t.Errorf("from %v: %v, %q, %d steps from %v, want %d", p.Since, err, p.Gap, p.Steps, p.From, want)
		}
	}
}

// FuzzState encodes and decodes the state before one step of one history, which continues as it is written down.
func FuzzState(f *testing.F) {
	files, err := filepath.Glob("testdata/histories/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("no histories: %v", err)
	}
	for _, name := range []string{"claims.txt", "chain-early.txt", "budget.txt"} {
		f.Add(name, uint16(40))
	}
	f.Fuzz(func(t *testing.T, name string, step uint16) {
		text, err := os.ReadFile(filepath.Join("testdata/histories", filepath.Base(name)))
		if err != nil {
			name = files[int(step)%len(files)]
			if text, err = os.ReadFile(name); err != nil {
				t.Fatal(err)
			}
		}
		script, want, _ := strings.Cut(string(text), below)
		times, at := 0, 0
		one := encoded(t, 0, 1, &times)
		var got strings.Builder
		if _, err := play(script, &got, playing{encode: func(c *core.Core) *core.Core {
			if at++; at != int(step) {
				return c
			}
			return one(c)
		}}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got.String(), "\n")); diff != "" {
			t.Errorf("%s, step %d: without (-) and with an encoded state (+):\n%s", name, step, diff)
		}
	})
}
