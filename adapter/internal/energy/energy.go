// Package energy counts what nodes draw. A node has one state at a time, and each state draws a constant number of watts, so
// that energy is the sum of the seconds in each state times its watts.
package energy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// State describes what a node does.
type State int

// The states of a node. A job has a busy node; an idle node is awake without a job.
const (
	Busy State = iota
	Idle
	Boot
	Shutdown
	Off
	states
)

// follows lists the states that may follow a state.
var follows = [states][]State{Busy: {Idle}, Idle: {Busy, Shutdown}, Boot: {Idle}, Shutdown: {Off}, Off: {Boot}}

// Follows lists the states that may follow s.
func (s State) Follows() []State { return follows[s] }

// Seconds holds node-seconds by state.
type Seconds [states]int64

// Watts holds what a node draws in each state.
type Watts [states]float64

// mostWatts is more than any node draws.
const mostWatts = 1e6

// Validate returns what no node can draw.
func (w Watts) Validate() error {
	for s, name := range names {
		if v := w[s]; math.IsNaN(v) || v < 0 || v > mostWatts {
			return fmt.Errorf("%s: %v is not within 0 … %g watts", name, v, mostWatts)
		}
	}
	return nil
}

// KWh returns the energy of these node-seconds.
func (w Watts) KWh(s Seconds) float64 {
	joules := 0.
	for state, seconds := range s {
		joules += w[state] * float64(seconds)
	}
	return joules / 3.6e6
}

// BreakEven returns how many seconds a node must be off, beyond its shutdown and boot, to draw less than if it had been
// idle, and whether there is such a time.
func (w Watts) BreakEven(shutdown, boot int64) (int64, bool) {
	extra := float64(shutdown)*(w[Shutdown]-w[Idle]) + float64(boot)*(w[Boot]-w[Idle])
	if saves := w[Idle] - w[Off]; saves > 0 {
		return int64(math.Ceil(max(extra/saves, 0))), true
	}
	return 0, false
}

// Gap returns the node-seconds, with the least energy, of a node that has nothing to do for that long, and knows it: it goes off if
// that draws less, and boots in time. With boot 0, it need not come back.
func (w Watts) Gap(length, shutdown, boot int64) Seconds {
	idle, off := Seconds{Idle: length}, Seconds{Shutdown: shutdown, Boot: boot, Off: length - shutdown - boot}
	if off[Off] < 0 || w.KWh(off) >= w.KWh(idle) {
		return idle
	}
	return off
}

// Add adds as many nodes' seconds as are given.
func (s *Seconds) Add(more Seconds, nodes int) {
	for state := range s {
		s[state] += more[state] * int64(nodes)
	}
}

// Meter counts the node-seconds of some nodes from second 0 on. All nodes are idle at first.
type Meter struct {
	Seconds Seconds
	states  []State
	since   []int64
}

// NewMeter returns a meter for that many nodes.
func NewMeter(nodes int) *Meter {
	m := &Meter{states: make([]State, nodes), since: make([]int64, nodes)}
	for i := range m.states {
		m.states[i] = Idle
	}
	return m
}

// State returns the state of a node.
func (m *Meter) State(node int) State { return m.states[node] }

// Since returns when the node came into its state.
func (m *Meter) Since(node int) int64 { return m.since[node] }

// Set changes the state of a node. now never decreases.
func (m *Meter) Set(node int, s State, now int64) {
	m.Seconds[m.states[node]] += now - m.since[node]
	m.states[node], m.since[node] = s, now
}

// Stop counts all nodes up to now.
func (m *Meter) Stop(now int64) {
	for i, s := range m.states {
		m.Set(i, s, now)
	}
}

// names holds the states' names in [ParseWatts].
var names = [states]string{"busy", "idle", "boot", "shutdown", "off"}

// ByName returns the watts by their states' names.
func (w Watts) ByName() map[string]float64 {
	all := make(map[string]float64, states)
	for s, name := range names {
		all[name] = w[s]
	}
	return all
}

// ParseWatts reads STATE=WATTS,… with the states busy and idle, and boot (else as busy), shutdown (else as idle), and off
// (else 0).
func ParseWatts(text string) (w Watts, err error) {
	given := [states]bool{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		s := slices.Index(names[:], name)
		switch {
		case !ok || s < 0:
			return w, fmt.Errorf("%q is not one of busy=, idle=, boot=, shutdown=, and off= with a number of watts", part)
		case given[s]:
			return w, fmt.Errorf("%s is given twice", name)
		}
		if w[s], err = strconv.ParseFloat(value, 64); err != nil {
			return w, fmt.Errorf("%s: %q is not a number of watts", name, value)
		}
		given[s] = true
	}
	for _, s := range []State{Busy, Idle} {
		if !given[s] {
			return w, fmt.Errorf("%s is missing", names[s])
		}
	}
	if !given[Boot] {
		w[Boot] = w[Busy]
	}
	if !given[Shutdown] {
		w[Shutdown] = w[Idle]
	}
	return w, w.Validate()
}
