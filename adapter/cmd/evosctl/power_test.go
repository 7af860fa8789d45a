package main

import (
	"maps"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestDoctorPower: an administrator learns that nodes are switched off, what that asks of
// the sidecar, and that jobs may be suspended.
func TestDoctorPower(t *testing.T) {
	saving := map[string]string{"ResumeProgram": "/r", "SuspendProgram": "/s", "ResumeTimeout": "300 sec", "SlurmUser": "nobody(65534)"}
	with := func(extra ...string) slurmctl.Config {
		values := map[string]string{}
		maps.Copy(values, saving)
		for i := 0; i < len(extra); i += 2 {
			values[extra[i]] = extra[i+1]
		}
		return slurmctl.Config{Values: values}
	}
	for _, c := range []struct {
		cfg  slurmctl.Config
		want string
	}{
		{slurmctl.Config{Values: map[string]string{}}, "off"},
		{with("PrivateData", "cloud"), "within 5m0s|switched on 5m0s before"}, // by who runs the test
		{with("PreemptMode", "GANG,SUSPEND"), "Slurm suspends jobs"},
	} {
		d := &doctor{}
		d.power(c.cfg)
		all := ""
		for _, check := range d.Checks {
			all += check.Check + ": " + check.Detail + "\n"
		}
		found := false
		for _, words := range strings.Split(c.want, "|") {
			found = found || strings.Contains(all, words)
		}
		if !found {
			t.Errorf("doctor says\n%swant %q", all, c.want)
		}
	}
}
