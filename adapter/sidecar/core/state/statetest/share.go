package statetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// NewShared returns a bench of two nodes that jobs share, with SelectTypeParameters and further fields of the partition.
// There are two licences foo.
func NewShared(t *testing.T, conf, partition string, gpus bool) *Bench {
	b := New(t, 2)
	b.Config.Mode, b.Config.Margin, b.Config.StockJobs = "observe", 0, 100
	b.SlurmConfig.Values = map[string]string{"SelectType": "select/cons_tres", "SelectTypeParameters": conf}
	if conf == "linear" {
		b.SlurmConfig.Values["SelectType"] = "select/linear"
	}
	b.Rules.Limits = slurmctl.ParseLimits(b.SlurmConfig, slurmctl.LimitsText{Partitions: "PartitionName=main Nodes=n[1-2] " + partition + "\n"})
	b.Seen.Nodes[0].Features, b.Seen.Nodes[1].Features = []string{"a"}, []string{"b"}
	b.Licenses = state.LicenseBook{Stock: []slurmctl.LicenseStock{{License: slurmctl.License{Name: "foo", Count: 2}}}, Known: true, Read: b.Now}
	if gpus {
		b.Seen.Nodes[1].GRES = "gpu:a:3(S:0),gpu:b:1"
	}
	return b
}

// Share adds a stock job: CPUSxMINUTES[@NODE][{OPTION,…}]; with a node, it runs.
func (b *Bench) Share(t *testing.T, id int, text string) {
	text, more, _ := strings.Cut(strings.TrimSuffix(text, "}"), "{")
	text, node, runs := strings.Cut(text, "@")
	var cpus, minutes int
	if _, err := fmt.Sscanf(text, "%dx%d", &cpus, &minutes); err != nil {
		t.Fatal(err)
	}
	r := b.Stock(id, uint64(1000-id), 1, time.Duration(minutes)*time.Minute)
	if runs {
		b.Seen.Jobs = b.Seen.Jobs[:len(b.Seen.Jobs)-1]
		r = b.StockRuns(id, node, time.Duration(minutes)*time.Minute)
	}
	r.NumCPUs, r.Exclusive, r.ArrayJobID = cpus, false, r.ID
	for text := range strings.SplitSeq(more, ",") {
		name, value, _ := strings.Cut(text, "=")
		option(r, name, value)
	}
}

// option sets what else a job of a table is.
func option(r *slurmctl.Job, name, value string) {
	n := 0
	_, _ = fmt.Sscan(value, &n) // of a number
	switch name {
	case "whole":
		r.Exclusive = true
	case "feat":
		r.Features = value
	case "het":
		r.Heterogenous, r.Display = true, fmt.Sprintf("%d+%d", n, r.ID)
	case "in":
		r.Reservation = value
	case "lic":
		r.Licenses = value
	case "why":
		r.Reason = value
	case "held":
		r.Priority, r.Reason = 0, "JobHeldUser"
	case "nodes":
		r.NumNodes = n
	case "mem":
		r.MinMemory = int64(n)
	case "gres":
		r.TRESPer = "gres:" + strings.ReplaceAll(value, "+", ",gres:")
	case "uid":
		r.UID = uint32(n)
	case "tasks":
		r.ArrayTasks = n
	case "limit":
		r.ArrayLimit = n
	}
}
