package submit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func TestPlaces(t *testing.T) {
	nodes := []slurmctl.Node{{Name: "n1", Features: []string{"big", "rack1"}, GRES: "gpu:a100:4", Layout: slurmctl.Layout{Sockets: 2, Cores: 4, Threads: 1}},
		{Name: "n2", Features: []string{"rack1"}, GRES: "gpu:a100:2", Layout: slurmctl.Layout{Sockets: 1, Cores: 8, Threads: 1}},
		{Name: "n3", Features: []string{"big", "rack2"}, Layout: slurmctl.Layout{Sockets: 2, Cores: 8, Threads: 2}}}
	partitions := []slurmctl.Partition{
		{Name: "main", Default: true, Nodes: []string{"n1", "n2", "n3"}},
		{Name: "small", Nodes: []string{"n2", "n3", "gone"}, MaxNodes: 1},
	}
	for words, want := range map[string]string{
		"job.sh":                               "partition main has 3 for this job",
		"-p small,none job.sh":                 "partition small has 1 for this job (MaxNodes)",
		"-p small,main -x n[2-3] job.sh":       "partition main has 1 for this job; partition small has 0 for this job",
		"-p none job.sh":                       "",
		"-C big job.sh":                        "partition main has 2 for this job",
		"-C [rack1|rack2] job.sh":              "partition main has 2 for this job, all of the same alternative of --constraint=[rack1|rack2]",
		"-C [rack1|rack2]&big job.sh":          "partition main has 1 for this job, all of the same alternative of --constraint=[rack1|rack2]&big",
		"-C (rack1|rack2)&big job.sh":          "partition main has 2 for this job",
		"--gres=gpu:3 job.sh":                  "partition main has 1 for this job with gpu:3",
		"-G 4 job.sh":                          "partition main has 2 for this job with gpu:2",
		"-w n[2-4] job.sh":                     "partition main has 2 for this job of --nodelist",
		"-w n[1-3] -x n2 -C big job.sh":        "partition main has 2 for this job of --nodelist",
		"-w n[1-2] -C [rack1|rack2]&big":       "partition main has 1 for this job of --nodelist, all of the same alternative of --constraint=[rack1|rack2]&big",
		"--sockets-per-node=2 job.sh":          "partition main has 2 for this job with --sockets-per-node=2",
		"--cores-per-socket 8-16 -x n3 job.sh": "partition main has 1 for this job with --cores-per-socket=8-16",
		"--threads-per-core=2 --gres=gpu:1":    "partition main has 0 for this job with gpu:1 and --threads-per-core=2",
		"-B 2:8":                               "partition main has 1 for this job with --extra-node-info=2:8",
		"-B *:*:2":                             "partition main has 1 for this job with --extra-node-info=*:*:2",
		"-B 3 --sockets-per-node=1":            "partition main has 3 for this job with --extra-node-info=3 and --sockets-per-node=1",
		"-x n[1 job.sh":                        "error",
	} {
		r, err := build("--profile=2@10m "+words, "")
		must.OK(t, err)
		var all []string
		places, err := r.options.places(nodes, partitions, r.gres)
		for _, p := range places {
			all = append(all, p.why())
		}
		if err != nil {
			all = []string{"error"}
		}
		if got := strings.Join(all, "; "); got != want {
			t.Errorf("%s: %q, %v, want %q", words, got, err, want)
		}
	}
}

func TestTakesComments(t *testing.T) {
	for script, want := range map[string]bool{
		"#!/bin/sh\ntrue\n":                     true,
		"#!/usr/bin/env -S FOO=1 python3.11\nx": true,
		"#!/usr/bin/lua\nx\n":                   false,
		"#!/usr/bin/lua\n# x\n":                 true,
		"#!\n":                                  false,
		"":                                      false,
	} {
		if got := takesComments(script); got != want {
			t.Errorf("%q: %v", script, got)
		}
	}
}

func TestChoose(t *testing.T) {
	for words, want := range map[string]string{
		"":              "2@40m [[] [41]]",
		"-t 90":         "2@40m [[] [90]]",
		"--drive=chain": "2@40m [[] [41]]",
	} {
		r, err := build(strings.TrimSpace("--moldable=4@20m,2@40m "+words)+" job.sh", "")
		must.OK(t, err)
		m := *r.request.Moldable
		m.Minutes = [][]int64{nil, {120}}
		r, err = r.choose(m)
		if got := fmt.Sprint(r.request.Profile, " ", r.request.Moldable.Minutes); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", words, got, err, want)
		}
	}
}

// TestFabrics checks that a job fits only where the nodes are below one topmost switch.
func TestFabrics(t *testing.T) {
	nodes := []slurmctl.Node{{Name: "n1", Features: []string{"a"}}, {Name: "n2", Features: []string{"b"}}, {Name: "n3", Features: []string{"a"}}, {Name: "n4"}}
	fabrics := [][]string{{"n1", "n2"}, {"n3"}}
	for _, c := range []struct {
		p      place
		either []string
		want   string
	}{
		{place{slurmctl.Partition{Name: "main"}, nodes, 4, ""}, nil, "partition main has 2 for this job below the same topmost switch (topology.conf)"},
		{place{slurmctl.Partition{Name: "main"}, nodes, 2, ""}, []string{"a", "b"}, "partition main has 1 for this job below the same topmost switch (topology.conf)"},
		{place{slurmctl.Partition{Name: "main"}, nodes, 2, " (MaxNodes)"}, nil, "partition main has 2 for this job (MaxNodes)"},
	} {
		if c.p.onFabrics(fabrics, c.either); c.p.why() != c.want {
			t.Errorf("%s, want %s", c.p.why(), c.want)
		}
	}
}
