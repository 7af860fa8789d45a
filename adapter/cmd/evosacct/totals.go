package main

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// owners lists what totals can be by, with the owner of a job.
var owners = map[string]func(j api.Job) string{
	"user":      func(j api.Job) string { return j.User },
	"account":   func(j api.Job) string { return j.Account },
	"partition": func(j api.Job) string { return j.Partition },
}

// totals sums up each owner's jobs in a row with the number of jobs as its step. Rows with the most
// expensive holds come first.
func totals(by string, jobs []api.Job, m *meter, now time.Time) []row {
	sums := map[string]row{}
	for _, j := range jobs {
		of := owners[by](j)
		r := sums[of]
		r.job.Name = of
		r.step++
		job := whole(j, m.steps(j, nil, now), nil, now)
		r.nodeSeconds, r.energy = r.nodeSeconds+job.nodeSeconds, r.energy.add(job.energy)
		r.job.HeldIdle += j.HeldIdle
		sums[of] = r
	}
	return slices.SortedFunc(maps.Values(sums), func(a, b row) int {
		return cmp.Or(cmp.Compare(b.job.HeldIdle, a.job.HeldIdle), strings.Compare(a.job.Name, b.job.Name))
	})
}

// totalColumns returns the columns of totals.
func totalColumns(by string) []column {
	return []column{
		{strings.ToUpper(by[:1]) + by[1:], -12, func(r row) string { return r.job.Name }},
		{"Jobs", 6, func(r row) string { return strconv.Itoa(r.step) }},
		{"NodeSeconds", 12, func(r row) string { return strconv.FormatFloat(r.nodeSeconds, 'f', 0, 64) }},
		{"HeldIdle", 12, func(r row) string { return strconv.FormatInt(r.job.HeldIdle, 10) }},
		{"Energy", 12, func(r row) string { return r.energy.String() }},
	}
}
