package simulate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
)

// Bounds on a model of an hour, whatever users write: a few times what it costs without attackers.
const (
	mostFuzzed  = 1 << 30 // bytes allocated
	mostSteps   = 12_000  // steps of the core: an endless loop of steps ends here, not with the test's time
	mostHostile = 4       // markers in an input, each on three jobs
)

// FuzzUsers has users write what they like into comments (each line is a marker), scripts and calls, beside another
// user's job, which gets its steps, and with bounds on memory and work. Its corpus is in
// testdata/fuzz/FuzzUsers; run it with go test -fuzz FuzzUsers ./adapter/lab/simulate.
func FuzzUsers(f *testing.F) {
	for _, seed := range []struct{ comment, script, change string }{
		{"evo:v2;p=2147483647@1;;", "", "+60000000!1"},
		{"evo:v2;p=1@1m;n=n[1-131072];;", "#EVO --profile=1@1m,2147483647@1m", "=2147483647@1m"},
		{"evo:v2;p=1@1m;s=10000@1@1@2147483647@1;;", "#EVO --profile=1-2147483647@5m --size=multiple:2147483647", "-2147483647"},
		{"evo:v2;script;s=2000@1@1;;", "#EVO --profile=1@1m", "=1-2147483647@1m"},
		{"evo:v2;p=1@1|2147483647@2;m=waste;l=1|1;k=2;;", "#EVO --moldable=1@1m,1000000@1m", "+1?2147483647s/2147483647s"},
		{"evo:v2;p=1@2147483647s,8@2147483647s;x=inf;g=2147483647;;", "#EVO: evo:v2;p=3@1m;n=n[1-131072];;", "+2!2"},
		{"evo:v2;script;d=chain;i=2147483647;f=4294967295;;", "#EVO --max-nodes=2147483647", "=1@1m.2@1m"},
		{"evo:v2;p=1-4@9m;z=pow2;t=2147483647;e=1:1,2147483647:2;;", "#EVO --speedup=amdahl:0.5 --profile=1-8@9m", "+3"},
		{strings.Repeat("evo:v2;p=1@1;n=n[1-131072];", 37), "", "+1"},
		{"evo:v2;p=1@1m;b=140737488355327;;", "", "=8@1m"},
		{"", "#EVO: evo:v2;script;z=pow2;;", "+1"},
		{"evo:v2;script;m=waste;z=pow2;;", "#EVO: evo:v2;script;m=waste;l=1;;", "+1"},
		{"evo:v2;p=1@1m,8@1h;;\nevo:v2;p=1-8@9m;;\nevo:v2;p=1@1m;g=8;;\nevo:v2;p=0@1;;", "", "+7"},
		{"evo:v2;p=8@9m;x=8;;\nevo:v2;p=8@9m;x=8;;", "", "+1"},
	} {
		f.Add(seed.comment, seed.script, seed.change)
	}
	f.Fuzz(func(t *testing.T, comment, script, change string) {
		if len(comment) > mostHostile*1024 || len(script) > 4096 || len(change) > 256 { // longer than Slurm and the API accept
			return
		}
		attacked(t, comment, script, change)
	})
}

// TestUsersByChance has chance write what users write: fields of markers in any number and order,
// with numbers at every bound. Seeds are new in every run.
func TestUsersByChance(t *testing.T) {
	for range 150 {
		seed := rand.Uint64()
		g := &scribe{rand.New(rand.NewPCG(seed, 0))}
		comment, script, change := g.marker(), g.script(), g.change()
		for range g.IntN(mostHostile) {
			comment += "\n" + g.marker()
		}
		if attacked(t, comment, script, change); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// attacked plays a cluster on which bob and mallory in turn write a line of a comment each, on jobs that wait and jobs
// that already run when the sidecar first sees them, with a script. Bob changes jobs of his. Alice's job must get all its
// steps. (Histories check that it gets them on time: the others' jobs may be in its way like any other user's.)
func attacked(t *testing.T, comment, script, change string) {
	t.Helper()
	h := "cluster nodes=12 accounting merge\nrest\n0s submit amr 2@2m,4@2m\n4s kill\n"
	rough := false
	for i, marker := range strings.SplitN(comment, "\n", mostHostile) {
		asked, _, _ := request.ParseMarker(marker)
		rough = rough || len(asked.Whole()) > 100
		as := fmt.Sprintf("user=%s hexcomment=%x hexscript=%x", []string{"bob", "mallory"}[i%2], marker, script)
		h += fmt.Sprintf("5s stock runs%[1]d 1 10m 9m %[2]s\n5s stock waits%[1]d 1 10m 1m %[2]s parked\n5s stock more%[1]d 1 10m 1m %[2]s parked\n", i, as)
	}
	h += fmt.Sprintf("6s submit own 1@6m user=bob limit=30m most=4\n20s start\n40s change own %[1]s\n90s change runs0 %[1]s\n", word(change))
	var story strings.Builder
	steps, err := 0, error(nil)
	count := func(c *core.Core) *core.Core {
		if steps++; steps > mostSteps {
			panic("too many steps")
		}
		return c
	}
	bytes := allocated(func() { _, err = play(h+"60m end\n", &story, playing{rough: rough, encode: count}) })
	if errors.Is(err, ErrScript) { // a change that evosctl does not ask for
		return
	}
	if err != nil {
		t.Error(err)
	}
	if want := "amr: step 1 on 2 nodes at 0:03.060, step 2 on 4 nodes at "; !strings.Contains(story.String(), want) {
		t.Errorf("no %q in\n%s", want, story.String())
	}
	if bytes > mostFuzzed {
		t.Errorf("%d MiB were allocated, at most %d are expected", bytes>>20, mostFuzzed>>20)
	}
	if t.Failed() {
		t.Logf("comment %q, script %q, change %q", comment, script, change)
	}
}

// word returns a text as one word of a history that can have no other meaning there.
func word(text string) string {
	text = strings.Map(func(r rune) rune {
		if r <= ' ' || r == '#' || r > '~' {
			return -1
		}
		return r
	}, text)
	if text == "" {
		return "+1"
	}
	return text
}

// scribe writes what users write, by chance.
type scribe struct{ *rand.Rand }

func (g *scribe) of(texts ...string) string { return texts[g.IntN(len(texts))] }

// number returns one at a bound, or small, or any.
func (g *scribe) number() string {
	switch g.IntN(4) {
	case 0:
		return g.of("0", "1", "8", "9", "2000", "2001", "10000", "131072", "2147483647", "2147483648", "4294967295", "9223372036854775807", "-1")
	case 1:
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], g.Uint64())
		return fmt.Sprint(binary.LittleEndian.Uint64(b[:]) >> g.IntN(64))
	}
	return fmt.Sprint(1 + g.IntN(9))
}

func (g *scribe) steps() string {
	var steps []string
	for range 1 + g.IntN(6) {
		nodes := g.number()
		if g.IntN(4) == 0 {
			nodes += "-" + g.number()
		}
		steps = append(steps, nodes+"@"+g.number()+g.of("", "s", "m", "h"))
	}
	return strings.Join(steps, g.of(",", ",", ",", "|"))
}

func (g *scribe) marker() string {
	text := "evo:v" + g.of("2", "2", "2", "2", "1", "3") + ";" + g.of("p="+g.steps(), "p="+g.steps(), "script")
	for _, field := range []string{"m=" + g.of("completion", "waste", "node-hours"), "l=" + g.number() + "|" + g.number(), "k=" + g.number(), "z=" + g.of("pow2", "multiple:"+g.number()),
		"t=" + g.number(), "e=" + g.of("amdahl:0.9", g.number()+":1,"+g.number()+":2"), "x=" + g.of("inf", "1", g.number()), "d=" + g.of("merge", "companion", "chain", "auto"),
		"b=" + g.number(), "n=" + g.of("n1", "n[1-8]", "n[1-"+g.number()+"]", "n[0-9][0-9][0-9][0-9][0-9]"), "i=" + g.number(), "f=" + g.number(), "g=" + g.number(), "u=" + g.of("1", "ff"),
		"s=" + g.number() + "@" + g.number() + "@" + g.number() + "@" + g.number() + "@" + g.number(), "c=x"} {
		if g.IntN(6) == 0 {
			text += ";" + field
		}
	}
	text += g.of(";;", ";;", ";;", ";;", "")
	if g.IntN(8) == 0 {
		text = strings.Repeat(text, 1+1024/len(text))
	}
	return text[:min(len(text), 1024)]
}

func (g *scribe) script() string {
	switch g.IntN(3) {
	case 0:
		return ""
	case 1:
		return "#EVO: " + g.marker()
	}
	return "#EVO --" + g.of("profile", "moldable", "malleable") + "=" + g.steps() + " --" + g.of("max-nodes", "grace", "expand-limit") + "=" + g.number()
}

func (g *scribe) change() string {
	switch g.IntN(3) {
	case 0:
		return "=" + strings.ReplaceAll(g.steps(), ",", ".")
	case 1:
		return "-" + g.number()
	}
	return "+" + g.number() + g.of("", "!1", "!"+g.number(), "?"+g.number()+"s", "/"+g.number()+"s")
}
