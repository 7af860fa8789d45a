package request

import (
	"errors"
	"strings"
)

// Hooks holds commands that run in the job when it changes. The sidecar is not involved: they
// travel in the job's environment.
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

// VarRigid is the number of steps of a job that evosbatch --rigid submitted, in its environment.
const VarRigid = "EVO_RIGID"

// HooksOf returns the hooks in an environment.
func HooksOf(getenv func(string) string) Hooks {
	return Hooks{Grow: getenv(VarOnGrow), Shrink: getenv(VarOnShrink), Step: getenv(VarOnStep)}
}

// Variables returns the names and values of the hooks that are set.
func (h Hooks) Variables() [][2]string {
	var found [][2]string
	for _, v := range [][2]string{{VarOnGrow, h.Grow}, {VarOnShrink, h.Shrink}, {VarOnStep, h.Step}} {
		if v[1] != "" {
			found = append(found, v)
		}
	}
	return found
}

// set returns h the hook of an option's name.
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

// Over returns the hooks of h, and other's for those that h lacks.
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
