package slurm

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestUnsuited checks what keeps a job out of one of its partitions, at and beside each bound.
func TestUnsuited(t *testing.T) {
	const limit = time.Hour
	for name, c := range map[string]struct {
		change func(b *statetest.Bench, p *slurmctl.Partition, j *state.Job)
		want   string
	}{
		"nothing": {func(*statetest.Bench, *slurmctl.Partition, *state.Job) {}, ""},
		"it is down": {func(_ *statetest.Bench, p *slurmctl.Partition, _ *state.Job) { p.Up = false },
			"partition b is not up"},
		"the site allows no evolving jobs there": {func(b *statetest.Bench, _ *slurmctl.Partition, _ *state.Job) { b.Config.Partitions = []string{"main"} },
			"partition b has no evolving jobs here"},
		"the site names it": {func(b *statetest.Bench, _ *slurmctl.Partition, _ *state.Job) {
			b.Config.Partitions = []string{"main", "b"}
		}, ""},
		"MaxTime is the job's limit": {func(_ *statetest.Bench, p *slurmctl.Partition, _ *state.Job) { p.MaxTime = limit }, ""},
		"MaxTime is a second less":   {func(_ *statetest.Bench, p *slurmctl.Partition, _ *state.Job) { p.MaxTime = limit - time.Second }, "partition b allows 59m59s"},
		"MaxTime for a job without a limit": {func(_ *statetest.Bench, p *slurmctl.Partition, j *state.Job) {
			p.MaxTime, j.Record.TimeLimit = limit, slurmctl.Unlimited
		}, "partition b allows 1h0m0s"},
		"MaxNodes is the largest step":          {func(_ *statetest.Bench, p *slurmctl.Partition, _ *state.Job) { p.MaxNodes = 3 }, ""},
		"MaxNodes is one less":                  {func(_ *statetest.Bench, p *slurmctl.Partition, _ *state.Job) { p.MaxNodes = 2 }, "partition b allows 2 nodes"},
		"MinNodes is the first step":            {func(_ *statetest.Bench, p *slurmctl.Partition, _ *state.Job) { p.MinNodes = 2 }, ""},
		"MinNodes is the largest step":          {func(_ *statetest.Bench, p *slurmctl.Partition, _ *state.Job) { p.MinNodes = 3 }, "partition b allows no fewer than 3 nodes"},
		"Slurm refused it until a second later": {func(b *statetest.Bench, _ *slurmctl.Partition, j *state.Job) { refuse(j, b.Now.Add(time.Second)) }, "partition b: not for you"},
		"Slurm refused it until now":            {func(b *statetest.Bench, _ *slurmctl.Partition, j *state.Job) { refuse(j, b.Now) }, ""},
		"a limit of the site": {func(b *statetest.Bench, _ *slurmctl.Partition, _ *state.Job) {
			b.Limited("PartitionName=b Nodes=n[1-4] DenyQos=normal", "", "")
		}, "partition b is not for QOS normal (AllowQos, DenyQos): choose another --qos or --partition"},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 4)
			b.Partition("b", 1, 4)
			j := b.Evolving(1, 1, "2@10m,3@10m", limit)
			j.Record.QOS = "normal"
			p := b.Seen.Partitions["b"]
			c.change(b, &p, j)
			b.Seen.Partitions["b"] = p
			if why := Unsuited(b.Core, b.Seen, j, "b"); why != c.want {
				t.Errorf("%q, want %q", why, c.want)
			}
		})
	}
	b := statetest.New(t, 4)
	if why := Unsuited(b.Core, b.Seen, b.Evolving(1, 1, "1@1m", time.Hour), "gone"); why != "partition gone is not known" {
		t.Errorf("a partition that Slurm does not show: %q", why)
	}
}

func refuse(j *state.Job, until time.Time) {
	j.RefusedIn = map[string]state.Refusal{"b": {"not for you", until}}
}

// TestPlaces checks where a job of several partitions may run: never on nodes of two of them.
func TestPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		partition, moved, profile string
		want                      string // the nodes of each choice, or why there is none
	}{
		"one partition":               {"left", "", "3@1m", "n[1-3]"},
		"one that is too small":       {"left", "", "9@1m", "n[1-3]"}, // the planner says so
		"two":                         {"left,right", "", "3@1m", "n[1-3] or n[3-6]"},
		"in the order of the user":    {"right,left", "", "3@1m", "n[3-6] or n[1-3]"},
		"too large for one of them":   {"left,right", "", "1@1m,4@1m", "n[3-6]"},
		"too large for both":          {"left,right", "", "1@1m,5@1m", "no partition suits it: partition left has 3 nodes for it; partition right has 4 nodes for it"},
		"one that is not there":       {"left,gone", "", "3@1m", "n[1-3]"},
		"others moved it elsewhere":   {"left,right", "main", "3@1m", "n[1-6]"},
		"Slurm moved it to one of it": {"left,right", "left", "3@1m", "n[1-3] or n[3-6]"},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 6)
			b.Partition("left", 1, 3)
			b.Partition("right", 3, 6)
			j := b.Evolving(1, 1, c.profile, time.Hour)
			if j.Partition, j.Record.Partition = c.partition, c.partition; c.moved != "" {
				j.Record.Partition = c.moved
			}
			all, choices, err := PlacesOf(b.Core, b.Seen, j)
			if choices == nil {
				choices = [][]int{all}
			}
			var words []string
			for _, nodes := range choices {
				var names []string
				for _, n := range nodes {
					names = append(names, b.Seen.Nodes[n].Name)
				}
				words = append(words, slurmctl.CompressNodes(names))
			}
			got := strings.Join(words, " or ")
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
