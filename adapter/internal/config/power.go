package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/energy"
	"github.com/evoslurm/evoslurm/slurmctl"
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
	Watts   Watts         `mapstructure:"watts"`    // of nodes that are of no type
	Types   []NodeType    `mapstructure:"types"`
}

// NodeType holds what the nodes of a list, or with a feature, draw.
type NodeType struct {
	Nodes   string `mapstructure:"nodes"` // such as gpu[1-8]; "": those with the feature
	Feature string `mapstructure:"feature"`
	Watts   Watts  `mapstructure:"watts"`
}

// mostTypes bounds the types of nodes.
const mostTypes = 100

// ByFeature reports whether what a node draws depends on its features.
func (p Power) ByFeature() bool {
	return slices.ContainsFunc(p.Types, func(t NodeType) bool { return t.Feature != "" })
}

// TypeOf returns a function that returns a node's first type, or len(p.Types) for a node without one.
func (p Power) TypeOf() func(node string, features []string) int {
	listed := map[string]int{}
	for i, t := range p.Types {
		nodes, _ := slurmctl.ExpandNodes(t.Nodes) // Validate has read it
		for _, node := range nodes {
			if _, before := listed[node]; !before {
				listed[node] = i
			}
		}
	}
	return func(node string, features []string) int {
		by, is := listed[node]
		if !is {
			by = len(p.Types)
		}
		for i, t := range p.Types {
			if i == by || t.Feature != "" && slices.Contains(features, t.Feature) {
				return i
			}
		}
		return len(p.Types)
	}
}

// WattsOf returns a function that returns the watts of a node: of its first type, or those of nodes without one.
func (p Power) WattsOf() func(node string, features []string) Watts {
	typeOf := p.TypeOf()
	return func(node string, features []string) Watts {
		if i := typeOf(node, features); i < len(p.Types) {
			return p.Types[i].Watts
		}
		return p.Watts
	}
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
	if p.Watts.Known() {
		p.Watts.validate("power.watts", check)
	} else {
		check(p.Mode == PowerOff, "power.watts", "missing; power.mode: %s needs what a node draws, such as {busy: 350, idle: 180, off: 10, booting: 250}", p.Mode)
		check(len(p.Types) == 0, "power.watts", "missing; power.types needs what nodes of no type draw, such as {busy: 350, idle: 180, off: 10, booting: 250}")
	}
	p.validateTypes(check)
}

func (p Power) validateTypes(check func(ok bool, key, format string, args ...any)) {
	check(len(p.Types) <= mostTypes, "power.types", "%d types; want %d or fewer", len(p.Types), mostTypes)
	total := 0
	for i, t := range p.Types[:min(len(p.Types), mostTypes)] {
		key := fmt.Sprintf("power.types[%d]", i)
		nodes, err := slurmctl.CountNodes(t.Nodes)
		check(err == nil, key+".nodes", "%v", err)
		total += nodes
		check((nodes > 0) != (t.Feature != ""), key, "nodes %q and feature %q; want one of them", t.Nodes, t.Feature)
		check(t.Watts.Known(), key+".watts", "missing; want what a node of this type draws, such as {busy: 350, idle: 180, off: 10, booting: 250}")
		if t.Watts.Known() {
			t.Watts.validate(key+".watts", check)
		}
	}
	check(total <= slurmctl.MaxNodes, "power.types", "%d nodes are listed; want %d or fewer", total, slurmctl.MaxNodes)
}

// validate checks watts that are known.
func (w Watts) validate(key string, check func(ok bool, key, format string, args ...any)) {
	if err := w.Model().Validate(); err != nil {
		check(false, key, "%v", err)
		return
	}
	check(w.Idle > w.Off, key, "idle (%v) is not more than off (%v): a node that is off would save nothing", w.Idle, w.Off)
	check(w.Busy >= w.Idle, key, "busy (%v) is less than idle (%v)", w.Busy, w.Idle)
	even, saves := w.Model().BreakEven(0, int64(time.Hour/time.Second))
	check(!saves || even <= int64(longestBreakEven/time.Second), key,
		"after a boot of an hour at %v watts, a node would have to be off for %v to save anything: idle (%v) and off (%v) are too close", w.Booting, time.Duration(even)*time.Second, w.Idle, w.Off)
}
