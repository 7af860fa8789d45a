package request

import (
	"errors"
	"strings"
)

// Hooks are commands that are run in the job when it changes. The sidecar has no part in
// them: they travel in the job's environment.
type Hooks struct {
	Grow   string // once the nodes are there
	Shrink string // before the nodes leave
	Step   string // whenever a step has begun
}

// The variables of a job's environment that hold its hooks.
const (
	VarOnGrow   = "EVO_ON_GROW"
	VarOnShrink = "EVO_ON_SHRINK"
	VarOnStep   = "EVO_ON_STEP"
)

// HooksOf are the hooks in an environment.
func HooksOf(getenv func(string) string) Hooks {
	return Hooks{Grow: getenv(VarOnGrow), Shrink: getenv(VarOnShrink), Step: getenv(VarOnStep)}
}

// Variables are the names and values of those that there are.
func (h Hooks) Variables() [][2]string {
	var found [][2]string
	for _, v := range [][2]string{{VarOnGrow, h.Grow}, {VarOnShrink, h.Shrink}, {VarOnStep, h.Step}} {
		if v[1] != "" {
			found = append(found, v)
		}
	}
	return found
}

// set gives h the hook of an option's name.
func (h *Hooks) set(name, command string) error {
	if strings.TrimSpace(command) == "" || strings.ContainsRune(command, 0) {
		return errors.New("--" + name + ": no command")
	}
	switch name {
	case "on-grow":
		h.Grow = command
	case "on-shrink":
		h.Shrink = command
	case "on-step":
		h.Step = command
	}
	return nil
}

// Over are the hooks of h, and where it has none those of other.
func (h Hooks) Over(other Hooks) Hooks {
	for _, p := range []struct {
		to   *string
		from string
	}{{&h.Grow, other.Grow}, {&h.Shrink, other.Shrink}, {&h.Step, other.Step}} {
		if *p.to == "" {
			*p.to = p.from
		}
	}
	return h
}
