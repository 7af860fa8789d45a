package slurm

import (
	"context"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestSuspects checks whose failed expanders make all jobs avoid idle nodes, and that no user can go on with that.
func TestSuspects(t *testing.T) {
	stays := func(reason string) error {
		return &slurmctl.PendingError{Job: 9, Reason: reason, Err: context.DeadlineExceeded}
	}
	for name, c := range map[string]struct {
		errs []error // of one expander after another
		want string  // the last of the nodes n1, n2, … that is suspect
	}{
		"Slurm starts it":                      {[]error{nil}, ""},
		"it waits for resources":               {[]error{stays("Resources")}, "n1"},
		"another job comes first":              {[]error{stays("Priority")}, ""},
		"no reason was seen":                   {[]error{stays("")}, "n1"},
		"a limit of the user's account":        {[]error{stays("AssocGrpNodeLimit")}, ""},
		"its user holds it":                    {[]error{stays("JobHeldUser")}, ""},
		"Slurm was away":                       {[]error{slurmctl.ErrUnreachable}, ""},
		"the sidecar stopped":                  {[]error{&slurmctl.PendingError{Err: context.Canceled}}, ""},
		"a second time":                        {[]error{stays("Resources"), stays("Resources")}, "n2"},
		"a third time: the user may be at it":  {[]error{stays("Resources"), stays("Resources"), stays("Resources")}, "n2"},
		"a success in between":                 {[]error{stays("Resources"), stays("Resources"), nil, stays("Resources")}, "n4"},
		"a limit in between is not a success.": {[]error{stays("Resources"), stays("Resources"), stays("AssocMaxJobsLimit"), stays("Resources")}, "n2"},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 4)
			j := b.Evolving(1, 1, "1@1m", time.Hour)
			for i, err := range c.errs {
				SuspectNodes(b.Core, j, []string{b.Seen.Nodes[i].Name}, err)
			}
			last := ""
			for name := range b.Suspect {
				last = max(last, name)
			}
			if last != c.want {
				t.Errorf("the last one is %q, want %q", last, c.want)
			}
			other := b.Evolving(2, 1, "1@1m", time.Hour)
			other.UID = 2000
			if SuspectNodes(b.Core, other, []string{"n9"}, stays("Resources")); !IsSuspect(b.Core, []string{"n9"}) {
				t.Error("another user's expander does not count")
			}
			if b.Now = b.Now.Add(suspectFor); !IsSuspect(b.Core, []string{"n9"}) {
				t.Error("a node is trusted again too soon")
			}
			if b.Now = b.Now.Add(time.Second); IsSuspect(b.Core, []string{"n9", "n1", "n2", "n4"}) || len(b.Suspect) > 0 {
				t.Errorf("suspect for good: %v", b.Suspect)
			}
		})
	}
}
