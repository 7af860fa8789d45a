package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// checkTimeout bounds one question of a check.
const checkTimeout = 5 * time.Second

// doctor holds what the checks share.
type doctor struct {
	report
	cfg   config.Config
	slurm *slurmctl.Client
}

// configuration reads the configuration, and reports whether it could.
func (d *doctor) configuration(flags *pflag.FlagSet) bool {
	cfg, file, err := config.Load(flags)
	if err != nil {
		d.add("configuration", fail, err.Error(), "see the sample configs/evoslurm.yaml")
		return false
	}
	if file == "" {
		file = "defaults (no file)"
	}
	d.cfg = cfg
	d.add("configuration", ok, file, "")
	return true
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

	users []string // that settings name
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
