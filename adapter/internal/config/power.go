package config

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/energy"
)

// PowerMode says what the sidecar does about idle nodes that nothing is planned on.
type PowerMode string

// The modes of power.
const (
	PowerOff    PowerMode = "off"    // leave them to Slurm
	PowerAdvise PowerMode = "advise" // report which of them could be off, and what that would save
	PowerAct    PowerMode = "act"    // switch them off and on
)

// Power is how idle nodes are switched off by plan.
type Power struct {
	Mode    PowerMode     `mapstructure:"mode"`
	MaxWait time.Duration `mapstructure:"max_wait"` // how long jobs that nobody planned may wait for a boot, on average
	Reserve int           `mapstructure:"reserve"`  // nodes of each partition that stay awake without a planned use, at least
	Watts   Watts         `mapstructure:"watts"`
}

// Watts holds how much a node draws in each state.
type Watts struct {
	Busy    float64 `mapstructure:"busy"`
	Idle    float64 `mapstructure:"idle"`
	Off     float64 `mapstructure:"off"`
	Booting float64 `mapstructure:"booting"` // from the request to come up until it has
}

// Model returns the watts by state. A node that shuts down draws as much as an idle one.
func (w Watts) Model() energy.Watts {
	return energy.Watts{energy.Busy: w.Busy, energy.Idle: w.Idle, energy.Boot: w.Booting, energy.Shutdown: w.Idle, energy.Off: w.Off}
}

// Known reports whether the site has said what its nodes draw.
func (w Watts) Known() bool { return w != Watts{} }

// longestBreakEven is the longest break-even time that makes sense, for a boot of an hour.
const longestBreakEven = 24 * time.Hour

// PowerKeys lists the keys of power that operators may set at run time.
func PowerKeys() []string { return []string{"power.mode", "power.max_wait", "power.reserve"} }

func (p Power) validate(check func(ok bool, key, format string, args ...any)) {
	check(p.Mode == PowerOff || p.Mode == PowerAdvise || p.Mode == PowerAct, "power.mode", "%q; want off, advise, or act", p.Mode)
	check(p.MaxWait >= 0, "power.max_wait", "%v; want 0s or more", p.MaxWait)
	check(p.Reserve >= 0, "power.reserve", "%d; want 0 or more", p.Reserve)
	w := p.Watts
	err := w.Model().Validate()
	check(err == nil, "power.watts", "%v", err)
	if err != nil || !w.Known() {
		check(err != nil || p.Mode == PowerOff, "power.watts", "missing; power.mode: %s needs what a node draws, such as {busy: 350, idle: 180, off: 10, booting: 250}", p.Mode)
		return
	}
	check(w.Idle > w.Off, "power.watts", "idle (%v) is not more than off (%v): a node that is off would save nothing", w.Idle, w.Off)
	check(w.Busy >= w.Idle, "power.watts", "busy (%v) is less than idle (%v)", w.Busy, w.Idle)
	even, saves := w.Model().BreakEven(0, int64(time.Hour/time.Second))
	check(!saves || even <= int64(longestBreakEven/time.Second), "power.watts",
		"after a boot of an hour at %v watts, a node would have to be off for %v to save anything: idle (%v) and off (%v) are too close", w.Booting, time.Duration(even)*time.Second, w.Idle, w.Off)
}
