package config

import (
	"testing"
	"time"
)

// TestDrain: the words of a drain say the same after a turn through the database; others are refused.
func TestDrain(t *testing.T) {
	for text, want := range map[Drain]Drained{
		"":                          {},
		"drain":                     {},
		"drain by=root at=17":       {By: "root", At: time.Unix(17, 0)},
		"release":                   {Release: true, Queued: "start", As: "first", Running: "keep"},
		"release queued=hold by=op": {Release: true, Queued: "hold", As: "first", Running: "keep", By: "op"},
		"release as=peak running=shrink queued=cancel": {Release: true, Queued: "cancel", As: "peak", Running: "shrink"},
	} {
		got, err := text.Parse()
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if again, err := got.Text().Parse(); err != nil || again != want {
			t.Errorf("%q: again %+v, %v", text, again, err)
		}
	}
	if got, err := (Drained{By: `DOMAIN\Jane Doe`}).Text().Parse(); err != nil || got.By != `DOMAIN\Jane_Doe` {
		t.Errorf("an operator whose name has a space: %+v, %v", got, err)
	}
	for _, text := range []Drain{"off", "drain queued=start", "release queued=", "release queued=keep", "release at=x", "drain by=", "release start"} {
		if got, err := text.Parse(); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
