package injob

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/planner"
)

// The values of --restart.
const (
	restartNever  = "never"
	restartFailed = "on-failure"
	restartAlways = "always"
)

const (
	defaultDrainTime    = 30 * time.Second
	defaultRestartLimit = 5
)

// The values of --accept: how to answer what a malleable job is offered or asked for.
const (
	acceptAll    = "all"
	acceptShrink = "shrink" // offers of nodes are declined
	acceptNone   = "none"   // the script answers
)

// followOptions holds the options of evosrun --follow that srun does not have.
type followOptions struct {
	script       bool // the script ends the steps, not the follower
	drain        string
	drainTime    time.Duration
	drainAuto    bool // drainTime until it is learned from checkpoints
	drainSignal  string
	onNodes      string
	accept       string
	restart      string
	restartLimit int
	perNode      int // tasks
	exclude      string
	component    string // "": all nodes of the job
}

// followOwn lists the names of these options.
var followOwn = []string{"follow", "accept", "drain", "drain-time", "drain-signal", "on-nodes", "restart", "restart-limit"}

// notFollowed lists srun's options that make no sense if the nodes change.
var notFollowed = []struct{ name, why string }{
	{"nodes", "it runs on every node that the job has; leave some out with --exclude"},
	{"nodelist", "it runs on every node that the job has; leave some out with --exclude"},
	{"ntasks", "as many tasks as there are nodes; --ntasks-per-node gives each more"},
	{"input", "instances read nothing"},
	{"multi-prog", "its file counts the tasks of one srun"},
	{"pty", "there is one terminal"},
	{"relative", "it counts the nodes of one Slurm job"},
	{"nodefile", "it runs on every node that the job has"},
	{"het-group", "evolving jobs are not heterogeneous"},
	{"no-allocate", "the nodes are allocated"},
	{"bcast", "copy the file before"},
	{"launch-cmd", "instances are started"},
}

// parseFollow reads the options of evosrun --follow.
func parseFollow(s srunArgs) (f followOptions, err error) {
	for _, o := range notFollowed {
		if s.has(o.name) {
			return f, fmt.Errorf("--%s cannot be used with --follow: %s", o.name, o.why)
		}
	}
	f = followOptions{drainTime: defaultDrainTime, drainSignal: "TERM", restart: restartFailed, restartLimit: defaultRestartLimit, perNode: 1}
	switch value, _ := s.last("follow"); value {
	case "", "steps":
	case "script":
		f.script = true
	default:
		return f, fmt.Errorf("--follow=%s: want steps (it ends each step at its planned time) or script (the script does, by evosctl next)", value)
	}
	f.accept = acceptAll
	if f.script {
		f.accept = acceptNone
	}
	if value, given := s.last("accept"); given {
		if f.accept = value; !slices.Contains([]string{acceptAll, acceptShrink, acceptNone}, value) {
			return f, fmt.Errorf("--accept=%s: want all, shrink or none", value)
		}
	}
	f.drain, _ = s.last("drain")
	f.onNodes, _ = s.last("on-nodes")
	f.exclude, _ = s.last("exclude")
	f.component, _ = s.last("component")
	switch value, given := s.last("drain-time"); {
	case !given:
	case value == "auto" && s.has("tasks"):
		f.drainAuto = true
	default:
		if f.drainTime, err = parseTime(value); err != nil {
			return f, fmt.Errorf("--drain-time=%s: want a length of time such as 30s or 2m", value)
		}
	}
	if value, given := s.last("drain-signal"); given {
		f.drainSignal = strings.TrimPrefix(value, "SIG")
		if !slices.Contains(LeaveSignals, f.drainSignal) {
			return f, fmt.Errorf("--drain-signal=%s: want HUP, INT, QUIT, TERM, USR1 or USR2", value)
		}
	}
	if value, given := s.last("restart"); given {
		if f.restart = value; !slices.Contains([]string{restartNever, restartFailed, restartAlways}, value) {
			return f, fmt.Errorf("--restart=%s: want never, on-failure or always", value)
		}
	}
	if n, given, err := s.number("restart-limit"); err != nil {
		return f, err
	} else if given {
		f.restartLimit = n
	}
	if n, given, err := s.number("ntasks-per-node"); err != nil {
		return f, err
	} else if given {
		f.perNode = n
	}
	for name, command := range map[string]string{"drain": f.drain, "on-nodes": f.onNodes} {
		if word := firstWord(command); filepath.IsAbs(word) {
			if _, err := exec.LookPath(word); err != nil {
				return f, fmt.Errorf("--%s: %w", name, err)
			}
		} else if s.has(name) && word == "" {
			return f, fmt.Errorf("--%s: no command", name)
		}
	}
	return f, nil
}

// parseTime reads a length of time, as Go or Slurm writes it.
func parseTime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		var seconds int64
		seconds, err = planner.ParseDuration(text)
		d = time.Duration(seconds) * time.Second
	}
	if err == nil && d < 0 {
		err = errors.New("it is negative")
	}
	return d, err
}

func firstWord(command string) string {
	if words := strings.Fields(command); len(words) > 0 {
		return words[0]
	}
	return ""
}
