package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/show/ran"
)

func TestShowRan(t *testing.T) {
	var out bytes.Buffer
	showRan(&out, api.Job{ID: 12}, []ran.Step{{Nodes: 2, Asked: 600, Lasted: 600, Idled: 20, ByApplication: true}, {Nodes: 5, Asked: 1800, Lasted: 1200}})
	if got := strings.Join(strings.Fields(out.String()), " "); got != "# job 12 # STEP NODES ASKED LASTED IDLE AFTER # 1 2 10m 10m 20s # 2 5 30m 20m 0s (until the job's end)" {
		t.Errorf("shown as %q", got)
	}
}
