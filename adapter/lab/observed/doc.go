// Package observed reports on days that a sidecar has observed (package sidecar/observed): how well it predicted,
// what it would have gained, and what it would have cost.
//
//	report.go   the report, and its parts
//	table.go    the same for people, as text and as a page
//	predict.go  planned against actual starts
//	play.go     a day in the model, as it was and with evolving jobs
//	evolve.go   which jobs evolve
//	site.go     the model of a site
//	record.go   what the files say
//	stat.go     statistics with confidence intervals
package observed
