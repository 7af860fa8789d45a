// Package workload reads, checks, writes and generates workloads: the jobs and
// the cluster that evosim and the strategies' tests plan, and those of experiments.
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
// A moldable job has, beside its profile or in its place, a list of further ones, of which
// it gets one, and may say which it prefers: "completion" (the default), "waste" or
// "node-hours":
//
//	{"id": "b", "alternatives": [[{"duration": 7200, "nodes": 4}], [{"duration": 2400, "nodes": 16}]],
//	 "moldable_by": "node-hours"}
//
// Package trace writes traces so, too: "header" are the lines of its header, and "swf" (with "more")
// what a job's line said; a malleable job has "malleable": {"min": 2, "max": 16} beside its
// profile, with "speedup": "amdahl:0.95" or "1:1,16:9" where it is not n times as fast on n nodes. Nothing of that is planned;
// evosim run has such jobs follow offers.
package workload
