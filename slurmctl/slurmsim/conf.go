package slurmsim

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// NotModelled lists parameters of a slurm.conf that the model does not know.
type NotModelled struct{ Parameters []string }

func (e *NotModelled) Error() string {
	return "not in the model: " + strings.Join(e.Parameters, ", ")
}

// ReadConf makes options from a slurm.conf. It names everything that the model does not know in one
// error (*NotModelled), except what leaveOut names; "all" leaves out everything unknown. It ignores
// parameters that make no difference to the model (paths, ports, logs, permissions).
func ReadConf(in io.Reader, leaveOut ...string) (Options, error) {
	c := conf{leave: map[string]bool{}, defaults: map[string]map[string]string{}}
	for _, name := range leaveOut {
		c.leave[strings.ToLower(name)] = true
	}
	c.options.BackfillInterval = 30 * time.Second
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	text, begun := "", 0
	for number := 1; lines.Scan(); number++ {
		part := lines.Text()
		if i := strings.IndexByte(part, '#'); i >= 0 && (i == 0 || part[i-1] != '\\') {
			part = part[:i]
		}
		if text == "" {
			begun = number
		}
		more := false
		part, more = strings.CutSuffix(strings.TrimRight(part, " \t\r"), `\`)
		if text += part; more {
			continue
		}
		if err := c.line(strings.TrimSpace(text)); err != nil {
			return Options{}, fmt.Errorf("line %d: %w", begun, err)
		}
		text = ""
	}
	if err := lines.Err(); err != nil {
		return Options{}, err
	}
	if strings.TrimSpace(text) != "" {
		return Options{}, fmt.Errorf("line %d: it goes on after the end", begun)
	}
	return c.finish()
}

// line reads a line of the file. A node's or partition's line has several parameters.
func (c *conf) line(text string) error {
	if text == "" {
		return nil
	}
	if first, _, _ := strings.Cut(text, " "); strings.EqualFold(first, "include") {
		c.unmodelled("Include")
		return nil
	}
	pairs, err := confPairs(text)
	if err != nil {
		return err
	}
	switch kind := strings.ToLower(pairs[0][0]); kind {
	case "nodename":
		return c.node(c.merged(kind, pairs))
	case "partitionname":
		return c.partition(c.merged(kind, pairs))
	case "nodeset", "downnodes", "frontendname", "switchname":
		c.unmodelled(pairs[0][0])
		return nil
	}
	for _, p := range pairs {
		if err := c.set(p[0], p[1]); err != nil {
			return fmt.Errorf("%s=%s: %w", p[0], p[1], err)
		}
	}
	return nil
}

// merged returns a line's parameters, by lower-case name, with the defaults set before it. If the
// line sets defaults, merged stores them and returns nil.
func (c *conf) merged(kind string, pairs [][2]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, c.defaults[kind])
	for _, p := range pairs {
		all[strings.ToLower(p[0])] = p[1]
	}
	if strings.EqualFold(all[kind], "DEFAULT") {
		delete(all, kind)
		c.defaults[kind] = all
		return nil
	}
	return all
}

// node reads a NodeName line.
func (c *conf) node(p map[string]string) error {
	if p == nil {
		return nil
	}
	names, err := slurmctl.ExpandNodes(p["nodename"])
	if err != nil {
		return err
	}
	count := map[string]int{"boards": 1, "corespersocket": 1, "threadspercore": 1, "weight": 1, "realmemory": 1}
	n := slurmctl.Node{}
	for _, key := range sorted(p) {
		switch value := p[key]; key {
		case "nodename", "nodeaddr", "nodehostname", "port", "reason", "tmpdisk", "memspeclimit", "corespeccount", "cpuspeclist", "bcastaddr":
		case "cpus", "procs", "boards", "sockets", "socketsperboard", "corespersocket", "threadspercore", "weight", "realmemory":
			if count[key], err = confNumber(value); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		case "feature", "features":
			n.Features = strings.Split(value, ",")
		case "state":
			if !slices.Contains([]string{"UNKNOWN", "IDLE", "CLOUD"}, strings.ToUpper(value)) || strings.EqualFold(value, "CLOUD") {
				c.unmodelled("NodeName:State")
			}
		default:
			c.unmodelled("NodeName:" + key)
		}
	}
	sockets := max(count["sockets"], count["socketsperboard"]*count["boards"], 1)
	n.CPUs = max(count["cpus"], count["procs"])
	if n.CPUs == 0 {
		n.CPUs = sockets * max(count["corespersocket"], 1) * max(count["threadspercore"], 1)
	}
	n.Memory, n.Weight = int64(count["realmemory"]), count["weight"]
	if c.nodes == nil {
		c.nodes = map[string]bool{}
	}
	for _, n.Name = range names {
		if c.nodes[n.Name] {
			return fmt.Errorf("node %s is there twice", n.Name)
		}
		c.nodes[n.Name] = true
		c.options.NodeList = append(c.options.NodeList, n)
	}
	return nil
}

// partition reads a PartitionName line.
func (c *conf) partition(p map[string]string) error {
	if p == nil {
		return nil
	}
	one := confPartition{Partition: Partition{Partition: slurmctl.Partition{Name: p["partitionname"], Up: true, MaxTime: slurmctl.Unlimited, DefaultTime: slurmctl.Unlimited}, Tier: 1}}
	for _, key := range sorted(p) {
		var err error
		switch value := p[key]; key {
		case "partitionname", "hidden", "rootonly", "disablerootjobs", "allowgroups", "allowaccounts", "denyaccounts", "reqresv", "alternate", "gracetime",
			"defmempercpu", "defmempernode", "defcpupergpu", "cpubind", "lln", "allocnodes", "exclusiveuser", "priorityjobfactor":
		case "nodes":
			one.nodes = value
		case "default":
			one.Default = strings.EqualFold(value, "YES")
		case "state":
			one.Up = strings.EqualFold(value, "UP")
		case "maxtime":
			one.MaxTime, err = confTime(value)
		case "defaulttime":
			one.DefaultTime, err = confTime(value)
		case "minnodes":
			one.MinNodes, err = confNumber(value)
		case "maxnodes":
			if !strings.EqualFold(value, "UNLIMITED") {
				one.MaxNodes, err = confNumber(value)
			}
		case "prioritytier", "priority":
			one.Tier, err = confNumber(value)
		case "oversubscribe", "shared":
			one.OverSubscribe = c.overSubscribe(value)
		default:
			c.unmodelled("PartitionName:" + key)
		}
		if err != nil {
			return fmt.Errorf("partition %s: %s: %w", one.Name, key, err)
		}
	}
	c.partitions = append(c.partitions, one)
	return nil
}

// overSubscribe reads whether a partition's jobs share nodes.
func (c *conf) overSubscribe(value string) string {
	kind, _, _ := strings.Cut(strings.ToUpper(value), ":")
	if kind == "FORCE" {
		c.unmodelled("PartitionName:OverSubscribe=FORCE")
	}
	return kind
}

// finish checks that everything fits together.
func (c *conf) finish() (Options, error) {
	o := c.options
	if c.multi {
		if o.MultifactorAge = c.age; c.age == 0 {
			o.MaxAge = 0 // equal priorities: jobs run in submission order
		}
	}
	if len(o.NodeList) == 0 {
		return Options{}, errors.New("there is no NodeName line")
	}
	if len(c.partitions) == 0 {
		return Options{}, errors.New("there is no PartitionName line")
	}
	for _, p := range c.partitions {
		if p.nodes != "" && !strings.EqualFold(p.nodes, "ALL") {
			names, err := slurmctl.ExpandNodes(p.nodes)
			if err != nil {
				return Options{}, fmt.Errorf("partition %s: %w", p.Name, err)
			}
			for _, name := range names {
				if !c.nodes[name] {
					return Options{}, fmt.Errorf("partition %s: there is no node %s", p.Name, name)
				}
			}
			p.Nodes = names
		}
		o.Partitions = append(o.Partitions, p.Partition)
	}
	if len(c.unknown) > 0 {
		slices.Sort(c.unknown)
		return Options{}, &NotModelled{c.unknown}
	}
	return o, nil
}
