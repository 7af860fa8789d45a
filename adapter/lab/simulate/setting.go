package simulate

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
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
