package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/evoslurm/evoslurm/adapter/cmd/internal/findings"
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

	starting bool // the sidecar is to start as this user: it need not answer yet, and needs its rights
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

// What a check found.
type (
	result = findings.Result
	check  = findings.Check
)

const (
	ok   = findings.OK
	warn = findings.Warn
	fail = findings.Fail
)

// report is all that doctor found.
type report struct {
	Checks  []check  `json:"checks"`
	Drive   string   `json:"drive,omitempty"` // what drive mode auto gets; "" if Slurm could not be asked
	Reasons []string `json:"reasons,omitempty"`

	users []string // that settings name
}

func (r *report) add(name string, res result, detail, remedy string) {
	r.Checks = append(r.Checks, check{Check: name, Result: res, Detail: detail, Remedy: remedy})
}

func (r *report) failed() bool { return findings.Failed(r.Checks) > 0 }

// print writes a table, and which drive mode jobs get.
func (r *report) print(w io.Writer, colour bool) {
	findings.Print(w, r.Checks, colour)
	if r.Drive != "" {
		fmt.Fprintf(w, "\nJobs grow by drive mode %s: %s.\n", r.Drive, strings.Join(r.Reasons, "; "))
	}
}
