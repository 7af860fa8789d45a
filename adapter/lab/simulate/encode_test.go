package simulate

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
)

// encoded returns what encodes the core before every nth step or so, and continues with the decoded one, which must
// encode to the same bytes.
func encoded(t *testing.T, seed uint64, nth int, times *int) func(*core.Core) *core.Core {
	random := rand.New(rand.NewPCG(seed, 0))
	return func(c *core.Core) *core.Core {
		if random.IntN(nth) > 0 || t.Failed() {
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
// decoded: the history is the same, and so is every effect of every step that a core takes on which nothing was done.
// The steps are others in every run.
func TestHistoriesEncoded(t *testing.T) {
	histories(t, func(t *testing.T, _, script, want string) {
		seed, times := rand.Uint64(), 0
		var got strings.Builder
		r := recording{dir: t.TempDir()}
		if _, err := play(script, &got, playing{record: r.life(t), encode: encoded(t, seed, 7, &times)}); err != nil {
			t.Error(err)
		}
		r.replays(t)
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got.String(), "\n")); diff != "" {
			t.Errorf("without (-) and with an encoded state (+):\n%s", diff)
		}
		if times == 0 || t.Failed() {
			t.Errorf("encoded %d times, seed %d", times, seed)
		}
	})
}

// TestStormsEncoded does the same with storms.
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
