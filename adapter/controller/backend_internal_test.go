package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/core"
)

// TestComing: a job that is about to be adopted is told to ask again, not that there is no
// such job: its script would end.
func TestComing(t *testing.T) {
	v := &view{View: core.View{Coming: map[uint32]bool{1: true}}, Status: api.Status{LastCycle: time.Now()}}
	if err := v.unknown(1); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("a job to be adopted: %v", err)
	}
	if err := v.unknown(4); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("no job: %v", err)
	}
}
