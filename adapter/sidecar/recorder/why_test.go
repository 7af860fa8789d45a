package recorder

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestWhyIsPrintable checks that recorded texts of users steer no terminal.
func TestWhyIsPrintable(t *testing.T) {
	const evil = "\x1b]0;mine\x07\nline"
	s := Story{Job: 7}
	s.See(Step{At: time.Unix(1, 0), Inputs: []msg.Input{
		msg.Observation{Jobs: []slurmctl.Job{{ID: 7, State: slurmctl.Pending, Reason: evil}}},
		msg.Planned{Jobs: []msg.PlannedJob{{Job: 7, Unfit: evil}}},
		msg.Observation{Err: errors.New(evil)},
	}})
	var b strings.Builder
	if !s.Why(&b, time.Unix(2, 0), nil) {
		t.Fatal("the job is not known")
	}
	if strings.ContainsAny(b.String(), "\x1b\x07") || strings.Contains(b.String(), "\nline") {
		t.Errorf("%q", b.String())
	}
}
