// Package workload reads, checks, writes, and generates workloads: jobs and clusters for evosim,
// for strategies' tests, and for experiments.
//
// A workload file is JSON:
//
//	{"nodes": 100,
//	 "busy": [{"start": 0, "duration": 1200, "nodes": 10}],
//	 "jobs": [{"id": "a", "submit": 0,
//	           "profile": [{"duration": 500, "nodes": 5}, {"duration": 3600, "nodes": 10}],
//	           "expand_limit": 2}]}
//
// Times are whole seconds from 0, jobs are in list order. busy, submit and
// expand_limit (a number ≥ 1 or "inf"; in place of the strategy's) are optional.
//
// A moldable job has further profiles, beside or instead of its profile, and gets one of them. It
// may say which it prefers: "completion" (the default), "waste", or "node-hours":
//
//	{"id": "b", "alternatives": [[{"duration": 7200, "nodes": 4}], [{"duration": 2400, "nodes": 16}]],
//	 "moldable_by": "node-hours"}
//
// Package trace also writes traces in this form: "header" holds the lines of the trace's header,
// and "swf" (with "more") a job's line. A malleable job has "malleable": {"min": 2, "max": 16}
// beside its profile, with "speedup": "amdahl:0.95" or "1:1,16:9" unless it is n times as fast on n
// nodes. Plans ignore all that; evosim run lets such jobs follow offers.
package workload
