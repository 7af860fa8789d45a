package submit

import (
	"io"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestMoved checks which jobs remain feasible in the partitions that plugins put them into.
func TestMoved(t *testing.T) {
	for _, c := range []struct{ words, plugins, partition, reason string }{
		{"-p short --profile=1@1m,5@1m", "all_partitions", "short,main,endless", ""}, // one of several suffices
		{"-p short --profile=1@1m,5@1m", "all_partitions", "main", ""},
		{"-p short --profile=1@1m,5@1m", "all_partitions", "short", "partition short has 3 for this job"},
		{"-p short --profile=1@1m,6@1m", "all_partitions", "short,endless", "partition short has 3 for this job, partition endless has 5 for this job (MaxNodes)"},
		{"-p short --profile=1@1m,3@1h", "all_partitions", "short,endless", ""},
		{"--profile=1@1m,5@1m", "lua", "short", "partition short has 3 for this job"},
		{"--profile=1@1m,5@1m", "lua", "short,endless", ""},
		{"--profile=1@1m,5@1m", "", "short", ""}, // without plugins, the request was checked
		{"--moldable=4@2h,5@1h -p short", "all_partitions", "short,endless", ""},
		{"--moldable=6@2h,7@1h -p short", "all_partitions", "short,endless", "partition endless has 5"},
	} {
		r, err := build(c.words+" job.sh", "")
		must.OK(t, err)
		s := site{cluster: still{version: "22.05.8", values: map[string]string{"JobSubmitPlugins": c.plugins}}, stderr: io.Discard}
		if r, err = s.feasible(t.Context(), r); err != nil {
			t.Errorf("%s with plugins %q: rejected before submission: %v", c.words, c.plugins, err)
			continue
		}
		err = s.checkMoved(t.Context(), r, r.request, slurmctl.Job{ID: 7, Partition: c.partition})
		if (err != nil) != (c.reason != "") || err != nil && !(strings.Contains(err.Error(), c.reason) && strings.Contains(err.Error(), "where Slurm has put job 7")) {
			t.Errorf("%s moved into %s: %v, want %q", c.words, c.partition, err, c.reason)
		}
	}
}

// TestMovedMalleable checks that a malleable job's sizes are cut by the partition that plugins put
// it into, not by the requested one.
func TestMovedMalleable(t *testing.T) {
	for _, c := range []struct {
		plugins, partition string
		submitted          int // the largest size in the request that Slurm gets
		warned             string
	}{
		{"", "short", 3, "it is malleable up to 3, not 8: partition short"}, // without plugins, before submission
		{"lua", "main", 8, ""},
		{"lua", "endless", 8, "it is malleable up to 5, not 8: partition endless"},
		{"lua", "short", 8, "it is malleable up to 3, not 8: partition short"}, // not moved
	} {
		r, err := build("-p short --profile=1-8@1m --grace=1m job.sh", "")
		must.OK(t, err)
		var said strings.Builder
		s := site{cluster: still{version: "22.05.8", values: map[string]string{"JobSubmitPlugins": c.plugins}}, stderr: &said}
		if r, err = s.feasible(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if got := r.request.MostNodes(); got != c.submitted {
			t.Errorf("with plugins %q, it is submitted with up to %d nodes, want %d", c.plugins, got, c.submitted)
		}
		if err := s.checkMoved(t.Context(), r, r.request, slurmctl.Job{ID: 7, Partition: c.partition}); err != nil {
			t.Errorf("with plugins %q, moved into %s: %v", c.plugins, c.partition, err)
		}
		if got := said.String(); !strings.Contains(got, c.warned) || strings.Count(got, "malleable") > 1 || (c.warned == "") != (got == "") {
			t.Errorf("with plugins %q, moved into %s, it said %q, want %q", c.plugins, c.partition, got, c.warned)
		}
	}
}
