package simulate

import (
	"bufio"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// ErrScript means that a script is invalid.
var ErrScript = errors.New("not a history")

// setting is a script as it was read: the site, and what happens there.
type setting struct {
	options slurmsim.Options
	config  config.Config
	policy  *Policy
	rest    bool     // skip polls without effect
	account bool     // the sidecar is an operator
	hosts   []string // words of the line that says that there are two
	learnt  []row.Arrivals
	events  []line
}

type line struct {
	number int
	at     time.Duration
	words  []string
}

// read reads a script, up to its end.
func (set *setting) read(script string) error {
	number := 0
	for lines := bufio.NewScanner(strings.NewReader(script)); lines.Scan(); {
		number++
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if err := set.line(number, words); err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrScript, number, err)
		}
	}
	return nil
}

// line reads the words of one line.
func (set *setting) line(number int, words []string) error {
	switch words[0] {
	case "cluster":
		return clusterOptions(&set.options, words[1:])
	case "partition":
		return partition(&set.options, words[1:])
	case "power":
		return powerSaving(&set.options, words[1:])
	case "config":
		return configure(&set.config, &set.policy, words[1:])
	case "random": // beside the latencies, which are then by chance, too
		return chance(&set.options, words[1:])
	case "hosts":
		set.hosts = append(words[1:], "")
		return nil
	case "operator":
		set.account = true
		return nil
	case "learnt":
		return set.learns(words[1:])
	case "rest":
		set.rest = true
		return nil
	}
	at, err := time.ParseDuration(words[0])
	if err == nil && len(words) < 2 {
		err = fmt.Errorf("what happens at %v?", at)
	}
	set.events = append(set.events, line{number, at, words[1:]})
	return err
}

// learns reads PARTITION HOUR [NODES,…]: in this hour of the week, in UTC from Monday 0:00, an earlier sidecar saw jobs that
// nobody planned take so many nodes within a boot. It has watched the hour long enough.
func (set *setting) learns(words []string) error {
	if len(words) < 2 {
		return errors.New("learnt PARTITION HOUR [NODES,…]")
	}
	r := row.Arrivals{Partition: words[0], Weeks: 3}
	var err error
	if r.Hour, err = strconv.Atoi(words[1]); err != nil {
		return err
	}
	for _, text := range words[2:] {
		for _, one := range strings.Split(text, ",") {
			nodes, err := strconv.Atoi(one)
			if err != nil {
				return err
			}
			r.Nodes = append(r.Nodes, nodes)
		}
	}
	set.learnt = append(set.learnt, r)
	return nil
}
