package energy_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/internal/energy"
)

var watts = energy.Watts{energy.Busy: 300, energy.Idle: 200, energy.Boot: 250, energy.Shutdown: 200, energy.Off: 20}

func TestKWh(t *testing.T) {
	for _, c := range []struct {
		seconds energy.Seconds
		want    float64
	}{
		{energy.Seconds{}, 0},
		{energy.Seconds{energy.Idle: 3600}, .2},
		{energy.Seconds{energy.Busy: 36_000, energy.Boot: 3600, energy.Shutdown: 1800, energy.Off: 7200}, 3 + .25 + .1 + .04},
	} {
		if got := watts.KWh(c.seconds); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: %v, want %v", c.seconds, got, c.want)
		}
	}
}

func TestBreakEven(t *testing.T) {
	for _, c := range []struct {
		watts energy.Watts
		want  int64
		ok    bool
	}{
		{watts, 43, true}, // 154 s of 50 W more, 180 W less
		{energy.Watts{energy.Idle: 200, energy.Boot: 200, energy.Shutdown: 200, energy.Off: 80}, 0, true},
		{energy.Watts{energy.Idle: 200, energy.Boot: 100, energy.Shutdown: 100}, 0, true},
		{energy.Watts{energy.Idle: 200, energy.Boot: 300, energy.Shutdown: 230}, 80, true}, // 450 and 15,400 J
		{energy.Watts{energy.Idle: 200, energy.Boot: 300, energy.Off: 200}, 0, false},
		{energy.Watts{energy.Idle: 200, energy.Boot: 100, energy.Off: 300}, 0, false},
	} {
		if got, ok := c.watts.BreakEven(15, 154); got != c.want || ok != c.ok {
			t.Errorf("%v: %d %v, want %d %v", c.watts, got, ok, c.want, c.ok)
		}
	}
}

// TestBreakEvenIsLeast: after the break-even time, a node that was off has drawn no more than an idle one; a second before, it
// has drawn more.
func TestBreakEvenIsLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) float64 { return float64(rapid.IntRange(0, 1000).Draw(t, name)) }
		w := energy.Watts{energy.Idle: draw("idle"), energy.Boot: draw("boot"), energy.Shutdown: draw("shutdown"), energy.Off: draw("off")}
		down, boot := rapid.Int64Range(0, 1000).Draw(t, "down"), rapid.Int64Range(0, 1000).Draw(t, "up")
		more := func(off int64) bool {
			return w.KWh(energy.Seconds{energy.Shutdown: down, energy.Boot: boot, energy.Off: off}) > w.KWh(energy.Seconds{energy.Idle: down + boot + off})+1e-9
		}
		even, ok := w.BreakEven(down, boot)
		if !ok {
			if w[energy.Off] < w[energy.Idle] {
				t.Fatal("there is a break-even time")
			}
			return
		}
		if more(even) || even > 0 && !more(even-1) {
			t.Fatalf("%d is not the break-even time", even)
		}
	})
}

func TestValidate(t *testing.T) {
	for _, v := range []float64{-1, math.NaN(), math.Inf(1), math.Inf(-1), 2e6} {
		for s := range watts {
			w := watts
			if w[s] = v; w.Validate() == nil {
				t.Errorf("%v: accepted", w)
			}
		}
	}
	if err := watts.Validate(); err != nil {
		t.Error(err)
	}
	if err := (energy.Watts{}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestMeter: the energy is what a count of every second gives, and no second is lost.
func TestMeter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const nodes = 3
		m, now := energy.NewMeter(nodes), int64(0)
		joules := 0.
		for range rapid.IntRange(0, 20).Draw(t, "changes") {
			for range rapid.IntRange(0, 50).Draw(t, "seconds") {
				for i := range nodes {
					joules += watts[m.State(i)]
				}
				now++
			}
			node := rapid.IntRange(0, nodes-1).Draw(t, "node")
			m.Set(node, rapid.SampledFrom(m.State(node).Follows()).Draw(t, "state"), now)
			if m.Since(node) != now {
				t.Fatalf("since %d, want %d", m.Since(node), now)
			}
		}
		m.Stop(now)
		sum := int64(0)
		for _, s := range m.Seconds {
			sum += s
		}
		if sum != nodes*now {
			t.Fatalf("%d node-seconds of %d", sum, nodes*now)
		}
		if got := watts.KWh(m.Seconds); math.Abs(got-joules/3.6e6) > 1e-9 {
			t.Fatalf("%v kWh, want %v", got, joules/3.6e6)
		}
	})
}

func TestParseWatts(t *testing.T) {
	for text, want := range map[string]energy.Watts{
		"busy=300,idle=200,boot=250,shutdown=190,off=20": {300, 200, 250, 190, 20},
		"idle=0.5,busy=1e3": {1000, .5, 1000, .5, 0},
	} {
		if got, err := energy.ParseWatts(text); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                      `"" is not one of`,
		"busy":                  `"busy" is not one of`,
		"busy=1,nap=2":          `"nap=2" is not one of`,
		"busy=1":                "idle is missing",
		"idle=1":                "busy is missing",
		"busy=1,busy=2":         "busy is given twice",
		"busy=much,idle=1":      `busy: "much" is not a number of watts`,
		"busy=1,idle=-1":        "idle: -1 is not within 0 … 1e+06 watts",
		"busy=NaN,idle=1":       "busy: NaN is not within",
		"busy=1,idle=1,off=Inf": "off: +Inf is not within",
		"busy=1e400,idle=1":     `busy: "1e400" is not a number of watts`,
	} {
		if _, err := energy.ParseWatts(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if got := watts.ByName(); len(got) != len(watts) || got["off"] != 20 || got["busy"] != 300 {
		t.Errorf("%v", got)
	}
}
