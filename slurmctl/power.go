package slurmctl

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Power is how far a node is from being switched on, where Slurm saves power.
type Power int

// What sinfo's marks tell of a node's power. It shows one mark alone: a node that is
// being switched on or off has no other that it would show.
const (
	PowerOn     Power = iota // as far as sinfo tells
	PowerUp                  // "#": it is being switched on
	PoweredDown              // "~": Slurm switches it on for a job, or when asked to
	PowerDown                // "%": it is being switched off; for SuspendTimeout nobody can have it
	PowerDrain               // "!": it is to be switched off, once nobody uses it
)

// powerMarks are the marks of power among a node's flags; Slurm before 21.08 has no "!".
var powerMarks = []struct {
	mark  string
	power Power
}{{"#", PowerUp}, {"~", PoweredDown}, {"%", PowerDown}, {"!", PowerDrain}}

// Power is the node's state of power.
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

// Awake reports whether the node can run a job at once when it is free: it is usable and
// switched on.
func (n Node) Awake() bool { return n.Usable() && n.Power() == PowerOn }

// PowerSaving is how Slurm switches nodes off and on.
type PowerSaving struct {
	SuspendTime    time.Duration // idle for so long, a node is switched off; 0: never by itself
	SuspendTimeout time.Duration // a node may take so long to go off
	ResumeTimeout  time.Duration // and so long to come up; then Slurm takes it for down
}

// PowerSaving reports whether nodes are switched off and on, and how. Partitions may have
// times of their own, which it does not know.
func (c Config) PowerSaving() (PowerSaving, bool) {
	if c.Values["ResumeProgram"] == "" || c.Values["SuspendProgram"] == "" {
		return PowerSaving{}, false
	}
	p := PowerSaving{SuspendTime: c.seconds("SuspendTime"), SuspendTimeout: c.seconds("SuspendTimeout"), ResumeTimeout: c.seconds("ResumeTimeout")}
	if p.SuspendTimeout == 0 {
		p.SuspendTimeout = 30 * time.Second // Slurm's own
	}
	if p.ResumeTimeout == 0 {
		p.ResumeTimeout = time.Minute
	}
	return p, true
}

// SuspendsJobs reports whether Slurm may suspend running jobs by itself, for others to run
// on their nodes.
func (c Config) SuspendsJobs() bool {
	for _, mode := range c.List("PreemptMode") {
		if strings.EqualFold(mode, "SUSPEND") || strings.EqualFold(mode, "GANG") {
			return true
		}
	}
	return false
}

// Unshown are the nodes of a partition that are not among those shown: of State=CLOUD and
// off, where PrivateData lacks cloud. The partition itself names them all.
func (l *Limits) Unshown(partition string, shown []Node) []string {
	p := l.partitions[partition]
	if p == nil {
		return nil
	}
	known := map[string]bool{}
	for _, n := range shown {
		known[n.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(p.nodes), func(name string) bool { return known[name] })
}

// HidesCloud reports whether Slurm shows no State=CLOUD node that is powered down, to root
// neither: what is not shown cannot be planned.
func (c Config) HidesCloud() bool {
	for _, what := range c.List("PrivateData") {
		if strings.EqualFold(what, "cloud") {
			return false
		}
	}
	return true
}

// PowerUp has Slurm switch nodes on, for root, SlurmUser and administrators. Give only
// those that are PoweredDown: of others some versions would begin anew, or take no
// notice. Slurm does so within ten seconds, and keeps them on for SuspendTime after they
// have come up.
func (c *Client) PowerUp(ctx context.Context, nodes []string) error {
	a := newSetting("update")
	a.nodes("NodeName", nodes)
	a.raw("State", "POWER_UP")
	return c.setting(ctx, a)
}

// KeepUp has Slurm count from now for how long nodes have been idle, so that none of
// them is switched off within SuspendTime; for root, SlurmUser and administrators. It
// looks first, since State=IDLE takes a node out of draining too, and leaves those alone
// that are not simply idle.
func (c *Client) KeepUp(ctx context.Context, nodes []string) error {
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
	a.raw("State", "IDLE")
	return c.setting(ctx, a)
}

// parseIdle lists the nodes that are idle and have no mark.
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
