package statetest

import (
	"fmt"
	rand "math/rand/v2"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Crowd returns a poll of a busy cluster of 1,000 nodes: some 200 stock jobs that run on 950 of them, 10,000 that wait,
// and 1,000 evolving jobs that wait, with their profiles in turn.
func Crowd(now time.Time) (o msg.Observation, profiles []planner.Profile) {
	random := rand.New(rand.NewPCG(1, 2))
	names := Names(1, 1000)
	o = msg.Observation{Begun: now, Config: &slurmctl.Config{Version: "22.05.8", Values: map[string]string{"SlurmUser": "root(0)"}}, Commands: 3,
		Partitions: []slurmctl.Partition{{Name: "main", Up: true, Default: true, Nodes: names, MaxTime: slurmctl.Unlimited}}}
	for _, name := range names {
		o.Nodes = append(o.Nodes, slurmctl.Node{Name: name, State: "idle", CPUs: 4, Memory: 1000, Partitions: []string{"main"}})
	}
	add := func(j slurmctl.Job) {
		j.ID = slurmctl.JobID(len(o.Jobs) + 1)
		j.Display, j.ArrayJobID = fmt.Sprint(j.ID), j.ID
		j.ArrayTasks, j.MinCPUs, j.Partition, j.User, j.UID, j.Exclusive, j.SubmitTime = 1, 1, "main", "user", 1000, true, now
		o.Jobs = append(o.Jobs, j)
	}
	for at := 0; len(o.Jobs) < 200; {
		size := 1 + random.IntN(8)
		if at+size > 950 {
			break
		}
		left := time.Duration(60+random.IntN(7200)) * time.Second
		add(slurmctl.Job{State: slurmctl.Running, NumNodes: size, NodeList: names[at : at+size], TimeLimit: 3 * time.Hour,
			StartTime: now.Add(left - 3*time.Hour), EndTime: now.Add(left)})
		at += size
	}
	for i := range 10_000 {
		add(slurmctl.Job{State: slurmctl.Pending, Reason: "Priority", Priority: uint64(1_000_000 - i), NumNodes: 1 + random.IntN(50), NumCPUs: 4,
			TimeLimit: time.Duration(1+random.IntN(60)) * time.Minute})
	}
	for i := range 1000 {
		var p planner.Profile
		for range 5 {
			p = append(p, planner.Step{Duration: int64(60 + random.IntN(1800)), Nodes: 1 + random.IntN(60)})
		}
		profiles = append(profiles, p)
		marker, _ := (request.Request{Profile: p, Drive: drivemode.Companion}).Marker()
		add(slurmctl.Job{State: slurmctl.Pending, Reason: "BeginTime", Priority: uint64(999_500 - i), NumNodes: p[0].Nodes, Comment: marker,
			TimeLimit: time.Duration(p.Duration()/60+2) * time.Minute, StartTime: now.Add(3650 * 24 * time.Hour)})
	}
	return o, profiles
}

// LargeSite returns a poll of a large site: 5,000 nodes in 50 partitions of 100, with stock jobs on 95 of each 100 nodes,
// 100,000 that wait, of 500 users, and 2,000 evolving jobs that wait in the first 20 partitions, with their profiles.
func LargeSite(now time.Time) (o msg.Observation, profiles []planner.Profile) {
	const nodes, partitions, stock, evolving, with = 5000, 50, 100_000, 2000, 20
	const each = nodes / partitions
	random := rand.New(rand.NewPCG(3, 4))
	names := Names(1, nodes)
	o = msg.Observation{Begun: now, Config: &slurmctl.Config{Version: "22.05.8", Values: map[string]string{"SlurmUser": "root(0)"}}, Commands: 3, CPU: time.Second}
	part := func(i int) string { return fmt.Sprintf("part%d", i%partitions) }
	for i := range partitions {
		o.Partitions = append(o.Partitions, slurmctl.Partition{Name: part(i), Up: true, Default: i == 0, Nodes: names[i*each : (i+1)*each], MaxTime: slurmctl.Unlimited})
	}
	for i, name := range names {
		o.Nodes = append(o.Nodes, slurmctl.Node{Name: name, State: "idle", CPUs: 4, Memory: 1000, Partitions: []string{part(i / each)}})
	}
	add := func(i int, j slurmctl.Job) {
		j.ID = slurmctl.JobID(len(o.Jobs) + 1)
		j.UID = uint32(1000 + random.IntN(500))
		j.Display, j.ArrayJobID, j.User = fmt.Sprint(j.ID), j.ID, fmt.Sprint("user", j.UID)
		j.ArrayTasks, j.MinCPUs, j.Partition, j.Exclusive, j.SubmitTime = 1, 1, part(i), true, now
		o.Jobs = append(o.Jobs, j)
	}
	for i := range partitions {
		for at := 0; at < each*95/100; at += 5 {
			left := time.Duration(600+random.IntN(7200)) * time.Second
			list := names[i*each+at : i*each+at+5]
			add(i, slurmctl.Job{State: slurmctl.Running, NumNodes: 5, NodeList: list, TimeLimit: 3 * time.Hour, StartTime: now.Add(left - 3*time.Hour), EndTime: now.Add(left)})
			for k := range list {
				o.Nodes[i*each+at+k].State, o.Nodes[i*each+at+k].CPUsAlloc = "allocated", 4
			}
		}
	}
	for i := range stock {
		add(i, slurmctl.Job{State: slurmctl.Pending, Reason: "Priority", Priority: uint64(1_000_000 - i), NumNodes: 1 + random.IntN(20), NumCPUs: 4,
			TimeLimit: time.Duration(1+random.IntN(60)) * time.Minute})
	}
	for i := range evolving {
		var p planner.Profile
		for range 3 {
			p = append(p, planner.Step{Duration: int64(60 + random.IntN(1800)), Nodes: 1 + random.IntN(20)})
		}
		profiles = append(profiles, p)
		marker, _ := (request.Request{Profile: p, Drive: drivemode.Companion}).Marker()
		add(i%with, slurmctl.Job{State: slurmctl.Pending, Reason: "BeginTime", Priority: uint64(1_000_000 - 40*i), NumNodes: p[0].Nodes, Comment: marker,
			TimeLimit: time.Duration(p.Duration()/60+2) * time.Minute, StartTime: now.Add(3650 * 24 * time.Hour)})
	}
	return o, profiles
}
