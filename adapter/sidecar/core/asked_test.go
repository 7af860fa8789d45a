package core

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/view"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestAskedAgain: an answer about a job that is not understood, or a user who is not known at
// the moment, is asked for again some times before it counts.
func TestAskedAgain(t *testing.T) {
	garbled := errors.New("squeue: not understood")
	for name, c := range map[string]struct {
		answers []error // then it is understood
		user    bool    // it is the user who is not known
		want    int     // times that it is asked for
		ok      bool
	}{
		"at once":       {nil, false, 1, true},
		"garbled once":  {[]error{garbled}, false, 2, true},
		"away":          {[]error{slurmctl.ErrUnreachable, slurmctl.ErrUnreachable}, false, 3, true},
		"unknown user":  {[]error{garbled, garbled}, true, 3, true},
		"the last time": {[]error{garbled, garbled, garbled, garbled}, false, 5, true},
		"for good":      {[]error{garbled, garbled, garbled, garbled, garbled}, false, 5, false},
		"refused":       {[]error{fmt.Errorf("%w: no salloc", msg.ErrSiteRefuses)}, false, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			c2 := statetest.NewCore(config.Default(), start)
			c2.Snapshot = &state.Snapshot{ByID: map[slurmctl.JobID]*slurmctl.Job{7: {ID: 7, User: "user", UID: 1000}}}
			c2.Coming[7] = 1000
			asked, last := 0, start
			for c2.Now = start; c2.Now.Sub(start) < 10*time.Minute; c2.Now = c2.Now.Add(time.Second) {
				a, known := adopt.ReadAsked(c2, c2.Snapshot.ByID[7], nil)
				if known {
					if (a.Why() == nil) != c.ok {
						t.Errorf("it is %v", a.Why())
					}
					break
				}
				for _, e := range c2.Effects {
					task, ok := e.(msg.Task)
					if !ok {
						continue
					}
					if pause := c2.Now.Sub(last); asked > 1 && !errors.Is(c.answers[asked-1], slurmctl.ErrUnreachable) && pause < 15*time.Second {
						t.Errorf("asked for the %d. time after %v", asked+1, pause)
					}
					o := msg.Outcome{Task: task.ID, Result: msg.Asked{User: &slurmctl.User{Name: "user"}}}
					if asked < len(c.answers) && c.user {
						o.Result = msg.Asked{UserErr: c.answers[asked]}
					} else if asked < len(c.answers) {
						o.Err = c.answers[asked]
					}
					settled(c2, o)
					asked, last = asked+1, c2.Now
				}
				c2.Effects = nil
				if asked > 0 && asked <= len(c.answers) && errors.Is(c.answers[asked-1], garbled) && asked < adopt.AskTries {
					jobs := view.ViewOf(c2).Jobs
					if len(jobs) != 1 || jobs[0].ID != 7 || !strings.Contains(jobs[0].Reason, "is asked about again at") {
						t.Fatalf("meanwhile evosqueue shows %+v", jobs)
					}
				}
			}
			if asked != c.want {
				t.Errorf("asked for %d times, want %d", asked, c.want)
			}
		})
	}
}

// TestScriptAgain: a script that cannot be read is asked for again before a job that has only
// that counts as asking for nothing.
func TestScriptAgain(t *testing.T) {
	unread := &slurmctl.CommandError{Args: []string{"scontrol"}, ExitCode: 0, Stderr: "Job script not specified"}
	for name, c := range map[string]struct {
		answers []error
		want    int // times that it is asked for
		asked   bool
	}{
		"at once":   {nil, 1, true},
		"once not":  {[]error{unread}, 2, true},
		"away":      {[]error{slurmctl.ErrUnreachable, unread, slurmctl.ErrUnreachable}, 4, true},
		"never":     {[]error{unread, unread, unread, unread, unread}, 5, false},
		"no longer": {[]error{unread, unread, unread, unread}, 5, true},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			core := statetest.NewCore(config.Default(), start)
			asked := 0
			for core.Now = start; core.Now.Sub(start) < 10*time.Minute; core.Now = core.Now.Add(time.Second) {
				if read := adopt.ReadScript(core, &slurmctl.Job{ID: 7}); read.Known {
					if read.Asked != c.asked {
						t.Errorf("it asks: %v", read.Asked)
					}
					break
				}
				for _, e := range core.Effects {
					if task, ok := e.(msg.Task); ok {
						o := msg.Outcome{Task: task.ID, Result: msg.Scripted{Asked: true}}
						if asked < len(c.answers) {
							o.Err = c.answers[asked]
						}
						settled(core, o)
						asked++
					}
				}
				core.Effects = nil
			}
			if asked != c.want {
				t.Errorf("asked for %d times, want %d", asked, c.want)
			}
		})
	}
}
