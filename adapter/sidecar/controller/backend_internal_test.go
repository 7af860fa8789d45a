package controller

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
)

// TestComing checks that a caller asking about a job that is about to be adopted is asked to try
// again, and not told that there is no such job: its script would end.
func TestComing(t *testing.T) {
	v := &view{View: msg.View{Coming: map[uint32]bool{1: true}}, Status: api.Status{LastCycle: time.Now()}}
	if err := v.unknown(1); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("a job to be adopted: %v", err)
	}
	if err := v.unknown(4); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("no job: %v", err)
	}
}

// TestJustStarted: before the first look at Slurm that there are no jobs is not known.
func TestJustStarted(t *testing.T) {
	c := &Controller{}
	for _, s := range []struct {
		view view
		want string
		jobs int
	}{
		{view{}, "has just started and has not seen Slurm's jobs yet", 0},
		{view{Status: api.Status{LastError: "no answer"}}, "yet: no answer", 0},
		{view{View: msg.View{Jobs: []api.Job{{ID: 1}}}}, "", 1}, // of the database
		{view{Status: api.Status{LastCycle: time.Now()}}, "", 0},
	} {
		c.view.Store(&s.view)
		jobs, err := c.Jobs(t.Context(), false)
		if len(jobs) != s.jobs || (err == nil) != (s.want == "") || err != nil && (!errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), s.want)) {
			t.Errorf("%+v: %v, %v", s.view.Status, jobs, err)
		}
	}
}
