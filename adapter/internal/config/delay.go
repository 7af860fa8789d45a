package config

import (
	"fmt"
	"strings"
	"time"
)

// MostGrowDelay bounds grow_delay.
const MostGrowDelay = time.Hour

// Delays is how much later stock jobs may start because of holds.
type Delays struct {
	of         time.Duration
	partitions map[string]time.Duration
	qos        map[string]time.Duration
}

// Delays returns the delay budgets of max_delay and max_delays.
func (c *Config) Delays() (Delays, error) {
	d := Delays{c.MaxDelay, map[string]time.Duration{}, map[string]time.Duration{}}
	for _, text := range c.MaxDelays {
		what, value, _ := strings.Cut(text, "=")
		kind, name, _ := strings.Cut(what, ":")
		budget, err := time.ParseDuration(value)
		of := map[string]map[string]time.Duration{"partition": d.partitions, "qos": d.qos}[kind]
		if err != nil || budget < 0 || of == nil || name == "" {
			return d, fmt.Errorf("%q; want partition:NAME=TIME or qos:NAME=TIME, such as partition:debug=5m", text)
		}
		of[name] = budget
	}
	return d, nil
}

// Of returns the budget of a job in some partitions (a comma list) and a QOS: the smallest that
// applies by name, otherwise max_delay.
func (d Delays) Of(partitions, qos string) time.Duration {
	least, named := d.of, false
	take := func(budget time.Duration, ok bool) {
		if ok && (!named || budget < least) {
			least, named = budget, true
		}
	}
	for name := range strings.SplitSeq(partitions, ",") {
		budget, ok := d.partitions[name]
		take(budget, ok)
	}
	budget, ok := d.qos[qos]
	take(budget, ok)
	return least
}
