package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/show/display"
)

const doctorHelp = `Check the installation and the cluster, and tell which drive mode jobs get and
why. Run it as the sidecar's user, on its host; run as a user on a compute node it
tells whether jobs can reach the sidecar from there.

With --trial an evolving job of ten seconds is really run instead, as the calling
user, through a growth and a shrink: what the site does to its comment, which drive
mode it gets and how long each change takes. It is for users, too: give what jobs
must have there (-p, -A, -q). What is wrong is reported with the remedy, and nothing is
left behind.

Exit status: 1 if a check failed, else 0.`

func newDoctor() *cobra.Command {
	var asJSON bool
	t := &trial{progress: os.Stderr}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation and the cluster",
		Long:  doctorHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			if err := t.check(cmd.Flags()); err != nil {
				return err
			}
			var r *report
			if t.on {
				r = t.run(ctx, cmd.Flags())
			} else {
				r = examine(ctx, cmd.Flags())
			}
			if asJSON {
				enc := json.NewEncoder(os.Stdout)
				enc.SetIndent("", "  ")
				if err := enc.Encode(r); err != nil {
					return err
				}
			} else {
				var text bytes.Buffer
				r.print(&text, display.Look(os.Stdout, os.Getenv).Color)
				if _, err := text.WriteTo(os.Stdout); err != nil {
					return err
				}
			}
			if r.failed() {
				return exitStatus(1)
			}
			return nil
		},
	}
	t.addFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the results as JSON")
	return cmd
}

// result is how a check ended.
type result string

const (
	ok   result = "ok"
	warn result = "warn"
	fail result = "fail"
)

// check is one thing looked at.
type check struct {
	Check  string `json:"check"`
	Result result `json:"result"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// report is all that doctor found.
type report struct {
	Checks  []check  `json:"checks"`
	Drive   string   `json:"drive,omitempty"` // what drive mode auto gets; "" if Slurm could not be asked
	Reasons []string `json:"reasons,omitempty"`
}

func (r *report) add(name string, res result, detail, remedy string) {
	r.Checks = append(r.Checks, check{name, res, detail, remedy})
}

func (r *report) failed() bool {
	for _, c := range r.Checks {
		if c.Result == fail {
			return true
		}
	}
	return false
}

// print writes a table: check, result, finding; with the remedy below.
func (r *report) print(w io.Writer, colour bool) {
	width := 0
	for _, c := range r.Checks {
		width = max(width, len(c.Check))
	}
	colours := map[result]string{ok: "32", warn: "33", fail: "31"}
	for _, c := range r.Checks {
		res := fmt.Sprintf("%-4s", c.Result)
		if colour {
			res = "\x1b[" + colours[c.Result] + "m" + res + "\x1b[0m"
		}
		fmt.Fprintf(w, "%-*s  %s  %s\n", width, c.Check, res, c.Detail)
		if c.Remedy != "" {
			fmt.Fprintf(w, "%*s        → %s\n", width, "", c.Remedy)
		}
	}
	if r.Drive != "" {
		fmt.Fprintf(w, "\nJobs grow by drive mode %s: %s.\n", r.Drive, strings.Join(r.Reasons, "; "))
	}
}
