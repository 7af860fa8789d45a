package state

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// sample returns a small state with some of everything that several parts of the state refer to.
func sample() *Core {
	now := time.Unix(1.7e9, 5).UTC()
	c := New(msg.Site{Version: "v1", User: "root"}, config.Default(), msg.Strategy{ExpandLimit: 1}, now)
	j := &Job{Job: &row.Job{Owned: row.Owned{ID: 3, SlurmID: 7, User: "amr"}, Life: row.Life{State: row.Running, Step: 1}, Terms: row.Terms{Profile: planner.Profile{{Duration: 60, Nodes: 1}}}}}
	c.Active, c.ByID[7], c.ByID[8] = []*Job{j}, j, j
	c.Snapshot = &Snapshot{Taken: now, Jobs: []slurmctl.Job{{ID: 7, User: "amr"}, {ID: 9, User: "bob"}}, Nodes: []slurmctl.Node{{Name: "n1"}}}
	c.Snapshot.index()
	c.Made = []*msg.Made{}
	c.Do(j, "grow", "to 2 nodes", KindGrow, msg.Grow{Base: 7, Nodes: []string{"n1"}}, Args{Nodes: 2})
	c.LastErr = &slurmctl.CommandError{Args: []string{"squeue"}, ExitCode: 1, Stderr: "away", Err: slurmctl.ErrUnreachable}
	c.Calling = []*OpenCall{{Of: j, Basis: &Basis{Changed: 1, Step: j.Step}}}
	c.Intruders[9] = Intrusion{Job: j, Step: 2, Text: "bob"}
	c.EventsOf, c.MutedOf = map[uint32]msg.Quota{5: msg.Quota(now)}, map[uint32]muted{5: {1, "refused", now, map[string]any{"uid": uint32(5)}}}
	c.Strategy.Policy = "fpsma"
	c.Looking = &Managing{Core: c, S: c.Snapshot, Malleable: []*Job{j}}
	c.Effects = nil
	return c
}

// TestEncode checks that a state is the same after it was written and read, with everything that several parts of it
// refer to.
func TestEncode(t *testing.T) {
	c := sample()
	data, err := Encode(c)
	must.OK(t, err)
	got, err := Decode(data, "v1")
	must.OK(t, err)
	j := got.Active[0]
	if got.ByID[7] != j || got.ByID[8] != j || got.Calling[0].Of != j || got.Intruders[9].Job != j || got.Looking.Malleable[0] != j ||
		got.Looking.Core != got || got.Log.C != got || got.Looking.S != got.Snapshot || got.Snapshot.ByID[9] != &got.Snapshot.Jobs[1] {
		t.Error("what was one is several now")
	}
	if !errors.Is(got.LastErr, slurmctl.ErrUnreachable) || got.LastErr.Error() != c.LastErr.Error() {
		t.Errorf("%v became %v", c.LastErr, got.LastErr)
	}
	got.LastErr = c.LastErr
	if !reflect.DeepEqual(c, got) {
		t.Errorf("wrote\n%+v, read\n%+v", c, got)
	}
}

// TestEncodeIsDiscreet checks that no secret is in an encoded state.
func TestEncodeIsDiscreet(t *testing.T) {
	c := sample()
	c.Config.Strategies.Parameters = []string{"password=hunter2"}
	data, err := Encode(c)
	if err != nil || bytes.Contains(data, []byte("hunter2")) || !bytes.Contains(data, []byte("password=…")) {
		t.Errorf("%v: %q", err, data)
	}
	if c.Config.Strategies.Parameters[0] != "password=hunter2" {
		t.Error("the state itself has changed")
	}
}

// TestEncodeRefuses checks that nothing is left out without a word.
func TestEncodeRefuses(t *testing.T) {
	c := sample()
	c.Emit(msg.Wake{})
	if _, err := Encode(c); err == nil {
		t.Error("during a step")
	}
	c = sample()
	c.Active[0].Asking.Muted.Detail = map[string]any{"x": struct{ Y int }{1}}
	if _, err := Encode(c); err == nil {
		t.Error("with a type that is not known")
	}
}

// TestDecodeRefuses checks what is said about bytes that are no state of this version.
func TestDecodeRefuses(t *testing.T) {
	data, err := Encode(sample())
	must.OK(t, err)
	changed := bytes.Clone(data)
	changed[len(changed)-20] ^= 1
	for _, c := range []struct {
		name, version string
		data          []byte
		want          []string
	}{
		{"another version", "v2", data, []string{"version v1, format", "version v2, format", "use the program that wrote it"}},
		{"another format", "v1", bytes.Replace(data, []byte("format "), []byte("format 0"), 1), []string{"format 0", "use the program that wrote it"}},
		{"changed", "v1", changed, []string{"checksum", "copy it again"}},
		{"longer", "v1", append(bytes.Clone(data), 0), []string{"checksum", "copy it again"}},
		{"cut", "v1", data[:len(data)-1], []string{"cut short", "copy it again"}},
		{"cut in the heading", "v1", data[:30], []string{"cut short"}},
		{"cut behind the heading", "v1", data[:bytes.IndexByte(data, '\n')+5], []string{"cut short"}},
		{"empty", "v1", nil, []string{"no encoded state of evoslurmd"}},
		{"something else", "v1", []byte("evoslurm recording, version v1\n"), []string{"no encoded state of evoslurmd"}},
	} {
		if _, err := Decode(c.data, c.version); err == nil {
			t.Errorf("%s: no error", c.name)
		} else {
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %q is not in %q", c.name, want, err)
				}
			}
		}
	}
}

// TestDecodeIsBounded checks that no length in an encoded state sizes memory: bytes by chance in a state, whose
// checksum does not count here, take little of it.
func TestDecodeIsBounded(t *testing.T) {
	body, err := encode(sample())
	must.OK(t, err)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		bad := bytes.Clone(body)
		for range 1 + random.IntN(3) {
			at := random.IntN(len(bad))
			if bad[at] = byte(random.Uint32()); random.IntN(2) == 0 {
				copy(bad[at:], "\xff\xff\xff\xff\xff\xff\x7f")
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = decode(bad)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<10+1000*uint64(len(bad)) {
			t.Fatalf("seed %d: %d bytes took %d of memory", seed, len(bad), used)
		}
	}
}

// FuzzDecode reads any bytes as a state, without a checksum. What can be read is written and read again as the same.
func FuzzDecode(f *testing.F) {
	for _, c := range []*Core{sample(), New(msg.Site{}, config.Config{}, msg.Strategy{}, time.Time{})} {
		body, err := encode(c)
		must.OK(f, err)
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := decode(body)
		if err != nil {
			return
		}
		first, err := encode(c)
		must.OK(t, err)
		again, err := decode(first)
		must.OK(t, err)
		if !reflect.DeepEqual(c, again) {
			t.Fatalf("wrote %+v, read %+v", c, again)
		}
		if second, err := encode(again); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%v: wrote %q, read and wrote %q", err, first, second)
		}
	})
}
