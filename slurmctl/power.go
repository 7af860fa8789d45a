package slurmctl

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Power is how far a node is from being powered up, if Slurm saves power.
type Power int

// What sinfo's marks say about a node's power. sinfo shows one mark only. For a node that is
// powering up or down, it shows the power mark.
const (
	PowerOn     Power = iota // as far as sinfo tells
	PowerUp                  // "#": powering up
	PoweredDown              // "~": Slurm powers it up for a job or on request
	PowerDown                // "%": powering down; unusable for SuspendTimeout
	PowerDrain               // "!": will be powered down once no job uses it
)

// powerMarks are the power marks among a node's flags; Slurm before 21.08 has no "!".
var powerMarks = []struct {
	mark  string
	power Power
}{{"#", PowerUp}, {"~", PoweredDown}, {"%", PowerDown}, {"!", PowerDrain}}

// Power returns the node's power state.
func (n Node) Power() Power {
	if n.Flags == "" {
		return PowerOn
	}
	for _, m := range powerMarks {
		if strings.Contains(n.Flags, m.mark) {
			return m.power
		}
	}
	return PowerOn
}

// Awake reports whether the node can run a job as soon as it is free: it is usable, powered up, and registered.
func (n Node) Awake() bool { return n.Usable() && n.Power() == PowerOn && !n.Unheard() }

// PowerSaving describes how Slurm powers nodes down and up.
type PowerSaving struct {
	SuspendTime    time.Duration // how long a node is idle before it is powered down; 0 for never
	SuspendTimeout time.Duration // how long a node may take to power down
	ResumeTimeout  time.Duration // how long a node may take to power up before Slurm sets it down
	SuspendRate    int           // nodes that Slurm powers down within a minute; 0 for any number
	ResumeRate     int           // nodes that Slurm powers up within a minute; 0 for any number
}

// PowerSaving reports whether Slurm powers nodes down and up, and how. It does not know times that
// partitions set themselves.
func (c Config) PowerSaving() (PowerSaving, bool) {
	if c.Values["ResumeProgram"] == "" || c.Values["SuspendProgram"] == "" {
		return PowerSaving{}, false
	}
	p := PowerSaving{SuspendTime: c.seconds("SuspendTime"), SuspendTimeout: c.seconds("SuspendTimeout"), ResumeTimeout: c.seconds("ResumeTimeout"),
		SuspendRate: c.perMinute("SuspendRate"), ResumeRate: c.perMinute("ResumeRate")}
	if p.SuspendTimeout == 0 {
		p.SuspendTimeout = 30 * time.Second // Slurm's default
	}
	if p.ResumeTimeout == 0 {
		p.ResumeTimeout = time.Minute
	}
	return p, true
}

// perMinute returns a rate that is printed as "60 nodes/min".
func (c Config) perMinute(name string) int {
	number, _, _ := strings.Cut(c.Values[name], " ")
	n, _ := strconv.Atoi(number) // any number, if there is none
	return max(n, 0)
}

// PowerExceptions describes which nodes Slurm never powers down by itself. On request, Slurm powers them down all the same.
type PowerExceptions struct {
	Nodes      []ExceptedNodes
	Partitions []string
	Unclear    string // a setting that does not say which nodes it means, as far as sinfo shows nodes; "" if there is none
}

// ExceptedNodes holds nodes, and how many of them stay on.
type ExceptedNodes struct {
	Nodes []string
	Count int // of those that are on and idle; 0 for all
}

// shownStates are members of SuspendExcStates that sinfo shows in place of "idle".
var shownStates = []string{"DOWN", "DRAIN", "FAIL", "INVALID_REG", "MAINTENANCE", "NOT_RESPONDING", "PLANNED", "RESERVED"}

// PowerExceptions returns SuspendExcNodes, SuspendExcParts, and SuspendExcStates.
func (c Config) PowerExceptions() (x PowerExceptions) {
	x.Partitions = c.List("SuspendExcParts")
	for _, state := range c.List("SuspendExcStates") {
		if !slices.Contains(shownStates, strings.ToUpper(state)) {
			x.Unclear = "SuspendExcStates=" + state
		}
	}
	for _, part := range outside(c.Values["SuspendExcNodes"]) {
		list, number, counted := strings.Cut(part, ":")
		one := ExceptedNodes{}
		var err error
		if one.Nodes, err = ExpandNodes(list); err == nil && counted {
			one.Count, err = strconv.Atoi(number)
		}
		if err != nil { // a NodeSet, say
			x.Unclear = "SuspendExcNodes=" + part
			continue
		}
		x.Nodes = append(x.Nodes, one)
	}
	return x
}

// outside splits a text at the commas outside of brackets.
func outside(text string) (parts []string) {
	depth, from := 0, 0
	for i, r := range text {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth == 0 {
				parts, from = append(parts, text[from:i]), i+1
			}
		}
	}
	if from < len(text) {
		parts = append(parts, text[from:])
	}
	return parts
}

// SuspendsJobs reports whether Slurm may suspend running jobs so that others can run on their
// nodes.
func (c Config) SuspendsJobs() bool {
	for _, mode := range c.List("PreemptMode") {
		if strings.EqualFold(mode, "SUSPEND") || strings.EqualFold(mode, "GANG") {
			return true
		}
	}
	return false
}

// Unshown returns the nodes of a partition that are not among those shown: State=CLOUD nodes that
// are off, if PrivateData lacks cloud. The partition itself names all its nodes.
func (l *Limits) Unshown(partition string, shown []Node) []string {
	p := l.Parts[partition]
	if p == nil {
		return nil
	}
	known := map[string]bool{}
	for _, n := range shown {
		known[n.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(p.Nodes), func(name string) bool { return known[name] })
}

// HidesCloud reports whether Slurm hides powered-down State=CLOUD nodes, even from root. Hidden
// nodes cannot be planned.
func (c Config) HidesCloud() bool {
	for _, what := range c.List("PrivateData") {
		if strings.EqualFold(what, "cloud") {
			return false
		}
	}
	return true
}

// PowerUp makes Slurm power up nodes; for root, SlurmUser, and administrators. Pass only nodes that
// are PoweredDown: with others, some versions start over or do nothing. Slurm acts within ten
// seconds and keeps the nodes up for SuspendTime afterwards.
func (c *Client) PowerUp(ctx context.Context, nodes []string) error {
	a := newSetting("update")
	a.nodes("NodeName", nodes)
	a.raw("State", "POWER_UP")
	return c.setting(ctx, a)
}

// PowerDown makes Slurm power down those of the nodes that are simply idle; for root, SlurmUser, and administrators. Slurm
// then heeds neither SuspendTime nor SuspendExcNodes and its like (source, all versions). It acts within ten seconds, and no
// job gets an idle node meanwhile: sinfo shows "idle!", 20.11 "idle*". So POWER_DOWN_ASAP would only drain the node as well,
// as if it were broken. Pass no more than SuspendRate within a minute: the rest would wait like that. With SuspendTime=INFINITE
// (and none of a partition), Slurm powers down nothing, and the nodes would wait forever.
func (c *Client) PowerDown(ctx context.Context, nodes []string) error {
	return c.setIdle(ctx, nodes, "POWER_DOWN")
}

// DrainNodes keeps jobs from nodes, for a reason; for root, SlurmUser, and administrators.
func (c *Client) DrainNodes(ctx context.Context, nodes []string, reason string) error {
	a := newSetting("update")
	a.nodes("NodeName", nodes)
	a.raw("State", "DRAIN")
	a.add("Reason", checkText, reason)
	return c.setting(ctx, a)
}

// KeepUp restarts the idle time of nodes, so that Slurm powers none of them down within
// SuspendTime; for root, SlurmUser, and administrators. It changes only nodes that are simply idle,
// because State=IDLE would also undrain a node.
func (c *Client) KeepUp(ctx context.Context, nodes []string) error {
	return c.setIdle(ctx, nodes, "IDLE")
}

// Contact makes slurmctld ask nodes to register, for root, SlurmUser, and administrators. A node from which a job was
// shrunk gets no job after an exclusive one has ended there, until it answers something (docs/slurm-bugs.md, 5). With
// State=UNDRAIN, slurmctld asks within a second, and shows the node as not responding until then; Slurm 20.11 does
// nothing. Contact changes only nodes that are simply idle, because State=UNDRAIN would also undrain a node.
func (c *Client) Contact(ctx context.Context, nodes []string) error {
	return c.setIdle(ctx, nodes, "UNDRAIN")
}

// setIdle sets the state of those of the nodes that are simply idle.
func (c *Client) setIdle(ctx context.Context, nodes []string, state string) error {
	expr, err := checkNodes(nodes)
	if err != nil {
		return fmt.Errorf("sinfo --nodes: %w", err)
	}
	t := newTable(2)
	out, err := c.output(ctx, "sinfo", "--noheader", "--all", "--local", "--Node", "--nodes="+expr, "--format="+t.short("N", "T"))
	if err != nil {
		return err
	}
	idle, err := parseIdle(t, out)
	if err != nil || len(idle) == 0 {
		return err
	}
	a := newSetting("update")
	a.nodes("NodeName", idle)
	a.raw("State", state)
	return c.setting(ctx, a)
}

// parseIdle lists the idle nodes without a mark.
func parseIdle(t table, out string) ([]string, error) {
	records, err := t.split(out)
	if err != nil {
		return nil, fmt.Errorf("sinfo: %w", err)
	}
	var idle []string
	seen := map[string]bool{}
	for _, r := range records {
		state, flags := splitState(r[1])
		if (state == "idle" || state == "reserved") && strings.Trim(flags, "-") == "" && !seen[r[0]] {
			idle, seen[r[0]] = append(idle, r[0]), true
		}
	}
	return idle, nil
}
