package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// parseActs reads an application's actions: AFTER:WHAT,… where WHAT is next, +N (grow), -N
// (shrink), or =PROFILE with dots for commas (update). A growth may add /FOR, ?WAIT, and !MIN.
func parseActs(text string) (acts []Act, err error) {
	for one := range strings.SplitSeq(text, ",") {
		after, what, _ := strings.Cut(one, ":")
		a := Act{}
		if a.After, err = time.ParseDuration(after); err != nil {
			return nil, err
		}
		if what != "next" {
			if a.Change, err = parseChange(what); err != nil {
				return nil, err
			}
		}
		acts = append(acts, a)
	}
	return acts, nil
}

func parseChange(what string) (*api.ChangeRequest, error) {
	if what == "" {
		return nil, errors.New("nothing to change")
	}
	rest := what[1:]
	switch what[0] {
	case '=':
		u := &api.Update{Profile: strings.ReplaceAll(rest, ".", ",")}
		return &api.ChangeRequest{Update: u}, nil
	case '-':
		if n, err := strconv.Atoi(rest); err == nil {
			return &api.ChangeRequest{Shrink: &api.Shrink{Nodes: n}}, nil
		}
		list, err := slurmctl.ExpandNodes(rest)
		return &api.ChangeRequest{Shrink: &api.Shrink{List: list}}, err
	case '+':
		g := &api.Grow{}
		for rest != "" {
			end := strings.IndexAny(rest[1:], "/?!") + 1
			if end == 0 {
				end = len(rest)
			}
			word := rest[:end]
			rest = rest[end:]
			var err error
			var d int64
			switch word[0] {
			case '/':
				d, err = planner.ParseDuration(word[1:])
				g.For = d
			case '?':
				d, err = planner.ParseDuration(word[1:])
				g.Wait = d
			case '!':
				g.Min, err = strconv.Atoi(word[1:])
			default:
				g.Nodes, err = strconv.Atoi(word)
			}
			if err != nil {
				return nil, err
			}
		}
		return &api.ChangeRequest{Grow: g}, nil
	}
	return nil, fmt.Errorf("unknown command %q", what)
}

// parseSays reads answers in order; the last one repeats: all, none (it declines), mute, or a
// number of nodes, each with an optional @DURATION for which it promises to keep them (@until: until the time that the
// offer names), and an optional +DURATION that the answer takes.
func parseSays(text string) (all []Says, err error) {
	for one := range strings.SplitSeq(text, ",") {
		what, after, slow := strings.Cut(one, "+")
		a := Says{Nodes: -1}
		if slow {
			if a.After, err = time.ParseDuration(after); err != nil {
				return nil, err
			}
		}
		what, keeps, promises := strings.Cut(what, "@")
		if a.Bound = promises && keeps == "until"; promises && !a.Bound {
			if a.Until, err = time.ParseDuration(keeps); err != nil {
				return nil, err
			}
		}
		switch what {
		case "all":
		case "none":
			a.Nodes = 0
		case "mute":
			a.Mute = true
		default:
			if a.Nodes, err = strconv.Atoi(what); err != nil {
				return nil, err
			}
		}
		all = append(all, a)
	}
	return all, nil
}

// bounded reads the profile of an application, with its bounds, if it has any.
func (a *App) bounded(profile string, o map[string]string) error {
	var sp request.Request
	err := sp.Set("profile", profile)
	for _, name := range []string{"size", "grace", "speedup"} {
		if text, given := o[name]; given && err == nil {
			err = sp.Set(name, text)
		}
	}
	if best, given := o["best"]; given && err == nil {
		if err = sp.Set("best-effort", ""); best == request.Cancelled {
			sp.Malleable.BestEffort = best
		}
	}
	if err == nil {
		err = sp.Settle()
	}
	a.Profile, a.Malleable, a.Claim, a.Says = sp.Profile, sp.Malleable, sp.MaxNodes, []Says{{Nodes: -1}}
	if text, given := o["says"]; given && err == nil {
		a.Says, err = parseSays(text)
	}
	return err
}

// parseComponents reads NAME:PROFILE/NAME:PROFILE.
func parseComponents(text string) (planner.Profile, []request.Component, error) {
	var sp request.Request
	for word := range strings.SplitSeq(text, "/") {
		name, profile, _ := strings.Cut(word, ":")
		if err := cmp.Or(sp.Set("component", name), sp.Set("profile", profile)); err != nil {
			return nil, nil, err
		}
	}
	err := sp.SettleComponents()
	return sp.Profile, sp.Components, err
}

// options are words of the form key=value, or key.
func options(words []string) map[string]string {
	all := map[string]string{}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		all[key] = value
	}
	return all
}

// given reads an option, if there is one.
func given[T any](o map[string]string, key string, to *T, parse func(string) (T, error)) (err error) {
	if text := o[key]; text != "" {
		*to, err = parse(text)
	}
	return err
}

// parseLasts reads how long steps really take: STEP:FOR,…
func parseLasts(text string) (map[int]time.Duration, error) {
	lasts := map[int]time.Duration{}
	for one := range strings.SplitSeq(text, ",") {
		if one == "" {
			continue
		}
		step, text, _ := strings.Cut(one, ":")
		k, err := strconv.Atoi(step)
		if err != nil {
			return nil, err
		}
		if lasts[k], err = time.ParseDuration(text); err != nil {
			return nil, err
		}
	}
	return lasts, nil
}

// first returns the first word, "" without one.
func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}
