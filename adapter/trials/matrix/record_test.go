package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// fileVariable names the environment variable with the file that results go to.
const fileVariable = "EVOSLURM_MATRIX"

var fileLock sync.Mutex

// bench is one cluster under test.
type bench struct {
	t       *testing.T
	cluster *slurmtest.Cluster
	slurm   *slurmctl.Client
	on      world // the same, or the model
	plugin  string
	drive   string
	broken  bool // an operation that others build on did not pass
}

// operation is one row of the table.
type operation struct {
	name string
	// quirk: Evoslurm does not rely on it; the table tells what comes of it.
	quirk bool
	try   func(context.Context) error
}

// operationTime bounds one operation; the slowest takes a few seconds.
const operationTime = 3 * time.Minute

// run tries the operations in order.
func (b *bench) run(operations ...operation) {
	b.t.Helper()
	for _, op := range operations {
		b.t.Run(b.drive+"/"+op.name, func(t *testing.T) {
			r := Result{Slurm: b.on.version(), Select: b.plugin, Drive: b.drive, Operation: op.name, Outcome: Unreached}
			if !b.broken {
				ctx, cancel := context.WithTimeout(context.Background(), operationTime)
				defer cancel()
				r.Outcome, r.Text = judge(op.try(ctx))
			}
			if err := write(r); err != nil {
				t.Error(err)
			}
			switch {
			case r.Outcome == Passed:
			case op.quirk:
				t.Logf("%s: %s", r.Outcome, r.Text)
			default:
				b.broken = true
				t.Errorf("%s: %s", r.Outcome, r.Text)
			}
		})
	}
}

// refusal is a "no" of Slurm's that the sidecar has told.
type refusal string

func (r refusal) Error() string { return string(r) }

// judge tells a refusal of Slurm from everything else.
func judge(err error) (Outcome, string) {
	var command *slurmctl.CommandError
	var told refusal
	switch {
	case err == nil:
		return Passed, ""
	case errors.As(err, &command) && command.ExitCode > 0 && command.Stderr != "":
		lines := strings.Split(strings.TrimSpace(command.Stderr), "\n")
		return Refused, plain(fmt.Sprintf("`%s`: %s", command.Args[0], lines[len(lines)-1]))
	case errors.As(err, &told):
		return Refused, plain(told.Error())
	}
	return Failed, plain(err.Error())
}

// jobNumber matches what makes equal answers differ.
var jobNumber = regexp.MustCompile(`(?i) for job \d+|\bJobId=\d+ `)

// plain makes a text fit for a line of a list.
func plain(text string) string {
	return strings.Join(strings.Fields(jobNumber.ReplaceAllString(text, "")), " ")
}

func write(r Result) error {
	name := os.Getenv(fileVariable)
	if name == "" {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	fileLock.Lock()
	defer fileLock.Unlock()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// until waits for check to have nothing to complain of.
func until(ctx context.Context, check func() error) error {
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}
