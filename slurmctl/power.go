package slurmctl

import (
	"context"
	"fmt"
	"slices"
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
}

// PowerSaving reports whether Slurm powers nodes down and up, and how. It does not know times that
// partitions set themselves.
func (c Config) PowerSaving() (PowerSaving, bool) {
	if c.Values["ResumeProgram"] == "" || c.Values["SuspendProgram"] == "" {
		return PowerSaving{}, false
	}
	p := PowerSaving{SuspendTime: c.seconds("SuspendTime"), SuspendTimeout: c.seconds("SuspendTimeout"), ResumeTimeout: c.seconds("ResumeTimeout")}
	if p.SuspendTimeout == 0 {
		p.SuspendTimeout = 30 * time.Second // Slurm's default
	}
	if p.ResumeTimeout == 0 {
		p.ResumeTimeout = time.Minute
	}
	return p, true
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
