package submit

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/adapter/job/request"
)

// ownVariable returns the variable for one of evosbatch's own options. These rank between the
// command line and the script, like sbatch's.
func ownVariable(option string) string {
	return "EVOSBATCH_" + strings.ToUpper(strings.ReplaceAll(option, "-", "_"))
}

// shapes lists the options that say how a job evolves; only one from the strongest place counts.
var shapes = []string{"profile", "moldable", "malleable"}

// asksToEvolve reports whether an option is a wish for an evolving job, whatever its value.
func asksToEvolve(o getopt.Option) bool {
	return isOwn(o) && o.Name != "dry-run" && o.Name != "require-profile"
}

// hasDirectives reports whether a script has #EVO lines, valid or not; errors in them are reported
// where they are read.
func hasDirectives(script []byte) bool {
	found, err := request.ParseDirectives(script)
	return err != nil || len(found) > 0
}

// passOn passes a submission that requests nothing of Evoslurm on to sbatch, unchanged, and reports
// whether it did. sbatch also reports unreadable files.
func (c *Command) passOn(ctx context.Context) (bool, error) {
	line, err := c.table.Parse(c.Args, "")
	if err != nil {
		c.learn(ctx)
		line, err = c.table.Parse(c.Args, "")
	}
	for _, o := range line.Options {
		switch o.Name {
		case "help", "usage", "version", "autocomplete", "require-profile":
			return false, nil
		}
		if asksToEvolve(o) {
			return false, nil
		}
	}
	if slices.ContainsFunc(shapes, func(name string) bool { return c.getenv(ownVariable(name)) != "" }) {
		return false, nil
	}
	if err != nil {
		for _, word := range c.Args { // it cannot be read, but may be meant for us
			if slices.ContainsFunc(request.Options, func(name string) bool { return strings.HasPrefix(word, "--"+name) }) {
				return false, nil
			}
		}
		return true, c.exec(c.Args, c.Stdin)
	}
	dry := slices.ContainsFunc(line.Options, func(o getopt.Option) bool { return o.Name == "dry-run" })
	var stdin []byte
	if wrapped := slices.ContainsFunc(line.Options, func(o getopt.Option) bool { return o.Name == "wrap" }); !wrapped {
		var script []byte
		if len(line.Operands) > 0 {
			script, _ = readScript(c.find(line.Operands[0])) // sbatch reports what is wrong with it
		} else if script, err = readAll(c.Stdin); err != nil {
			return true, err
		} else {
			stdin = append([]byte{}, script...)
		}
		if hasDirectives(script) {
			c.read = stdin
			return false, nil
		}
	}
	if dry {
		c.show(slices.DeleteFunc(slices.Clone(c.Args), func(word string) bool { return word == "--dry-run" }))
		return true, nil
	}
	return true, c.submit(c.Args, stdin)
}

// link is a sbatch that waits for its job, one of a chain.
type link struct {
	ended chan error
}

// submitWaiting runs sbatch --wait until it has submitted its job.
func (c *Command) submitWaiting(r *submission, cmd *exec.Cmd) (string, error) {
	l := link{make(chan error, 1)}
	ids := make(chan uint32, 1)
	w := &idWatcher{out: &bytes.Buffer{}, look: func(id uint32) error { ids <- id; return nil }}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	go func() { l.ended <- c.runWith(cmd, w, true) }()
	select {
	case id := <-ids:
		r.links = append(r.links, l)
		return fmt.Sprint(id), nil
	case err := <-l.ended:
		select {
		case id := <-ids:
			l.ended <- err
			r.links = append(r.links, l)
			return fmt.Sprint(id), nil
		default:
		}
		return "", err
	}
}

// await waits for the jobs of a chain, and returns the highest status.
func (r *submission) await() (int, error) {
	highest := 0
	for _, l := range r.links {
		status, err := statusOf(<-l.ended)
		if err != nil {
			return 0, err
		}
		highest = max(highest, status)
	}
	return highest, nil
}
