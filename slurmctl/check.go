package slurmctl

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// The characters of values. No value can begin with '-' (an option) or hold ',', '=', a blank, a
// quote, NUL, or a newline (a further value or setting).
var (
	namePattern    = pattern(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,255}$`)
	wordPattern    = pattern(`^[A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,255}$`)
	partsPattern   = pattern(`^[A-Za-z0-9_][A-Za-z0-9_.,-]*$`)
	userPattern    = pattern(`^[A-Za-z0-9_][A-Za-z0-9_.@\\$-]{0,255}$`)
	nodePattern    = pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$`)
	flagPattern    = pattern(`^[A-Za-z][A-Za-z0-9_]{0,63}(=[0-9:-]{1,32})?$`)
	signalPattern  = pattern(`^[A-Z][A-Z0-9]{0,15}$|^[0-9]{1,2}$`)
	dependPattern  = pattern(`^[a-z][A-Za-z0-9_:,?+]*$`)
	gresPattern    = pattern(`^[A-Za-z0-9_][A-Za-z0-9_.:@+,-]*$`)
	featurePattern = pattern(`^[A-Za-z0-9_(\[][A-Za-z0-9_.,:|&*=()\[\]-]*$`)
)

// maxName bounds names and lists of them, in bytes.
const maxName = 4096

// maxArgument is the kernel's bound on one argument (MAX_ARG_STRLEN), in bytes.
const maxArgument = 128<<10 - 1

func check(what string, p func() *regexp.Regexp) func(string) error {
	return func(s string) error {
		if len(s) > maxName || !p().MatchString(s) {
			return fmt.Errorf("invalid %s %q", what, oneLine(s, 80))
		}
		return nil
	}
}

var (
	checkName       = check("name of a job or a reservation", namePattern)
	checkNames      = check("reservation list", partsPattern)
	checkWord       = check("plain name", wordPattern)
	checkPartitions = check("partition list", partsPattern)
	checkUserName   = check("user name", userPattern)
	checkNode       = check("node name", nodePattern)
	checkFlag       = check("reservation flag", flagPattern)
	checkSignal     = check("signal name", signalPattern)
	checkDependency = check("dependency", dependPattern)
	checkGRES       = check("generic resource", gresPattern)
	checkFeatures   = check("constraint", featurePattern)
)

// checkText accepts free text, which travels as one argument: anything without NUL.
func checkText(s string) error {
	if strings.ContainsRune(s, 0) {
		return errors.New("text has a NUL byte")
	}
	if len(s) > maxArgument-64 {
		return fmt.Errorf("text of %d bytes is too long for an argument", len(s))
	}
	return nil
}

func checkID(id JobID) error {
	if id == 0 {
		return errors.New("invalid job ID 0")
	}
	return nil
}

// checkNodes checks names of single nodes and returns them as one expression.
func checkNodes(nodes []string) (string, error) {
	for _, n := range nodes {
		if err := checkNode(n); err != nil {
			return "", err
		}
	}
	expr := CompressNodes(nodes)
	if len(expr) > maxArgument-64 {
		return "", fmt.Errorf("list of %d nodes is too long for an argument", len(nodes))
	}
	return expr, nil
}

// setting is a scontrol command built from checked Key=value arguments.
type setting struct {
	args []string
	user *User // user to run it as; nil for this process's user
	err  error
}

func newSetting(words ...string) *setting { return &setting{args: words} }

func (a *setting) raw(key, value string) { a.args = append(a.args, key+"="+value) }

func (a *setting) add(key string, check func(string) error, value string) {
	if err := check(value); err != nil && a.err == nil {
		a.err = fmt.Errorf("scontrol %s: %s: %w", a.args[0], key, err)
	}
	a.raw(key, value)
}

func (a *setting) nodes(key string, nodes []string) {
	expr, err := checkNodes(nodes)
	if err != nil && a.err == nil {
		a.err = fmt.Errorf("scontrol %s: %s: %w", a.args[0], key, err)
	}
	a.raw(key, expr)
}

func (a *setting) names(key string, check func(string) error, values []string) {
	if len(values) == 0 {
		return
	}
	for _, v := range values {
		if err := check(v); err != nil && a.err == nil {
			a.err = fmt.Errorf("scontrol %s: %s: %w", a.args[0], key, err)
		}
	}
	a.raw(key, strings.Join(values, ","))
}

// setting runs scontrol for a setting, unless one of its values was rejected.
func (c *Client) setting(ctx context.Context, a *setting) error {
	if a.err != nil {
		return a.err
	}
	_, _, err := c.run(ctx, command{name: "scontrol", args: a.args, user: a.user})
	return err
}
