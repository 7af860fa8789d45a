package main

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/show/display"
)

// TestArrays checks that the waiting tasks of an array share a line, and that --array unfolds it.
func TestArrays(t *testing.T) {
	task := func(id, n uint32, state string, start time.Duration) api.Job {
		return api.Job{ID: id, Array: 20, ArrayTask: n, Name: "sweep", User: "ann", State: state, Step: 0, Steps: 2, Submit: at(-time.Hour), Start: at(start), Reason: "waits for 2 nodes"}
	}
	from := fixed{jobs: []api.Job{task(21, 1, "running", -time.Minute), task(24, 4, "queued", 40*time.Minute), task(22, 2, "queued", 10*time.Minute),
		task(23, 3, "queued", 20*time.Minute), task(20, 9, "queued", 50*time.Minute), {ID: 5, Name: "other", User: "bob", State: "queued", Start: at(30 * time.Minute)}}}
	limited := from.jobs[:5:5]
	for i := range limited {
		limited[i].ArrayLimit = 2
	}
	from.jobs = append(from.jobs, api.Job{ID: 30, Array: 30, ArrayRest: "0-999999:3,...", Name: "long", State: "queued"})
	for args, want := range map[string]string{
		"--noheader":                "20_1 -1m|20_[2-4,9%2] 10m|5 30m|30_[0-999999:3,...] -",
		"--noheader --array":        "20_1 -1m|20_2 10m|20_3 20m|5 30m|20_4 40m|20_9 50m|30_[0-999999:3,...] -",
		"--noheader --jobs=20":      "20_1 -1m|20_[2-4,9%2] 10m",
		"--noheader --jobs=30_3":    "30_[0-999999:3,...] -",
		"--noheader --jobs=20_3,99": "20_3 20m",
		"--noheader --jobs=23":      "20_3 20m",
		"--noheader --jobs=20_3,5":  "20_3 20m|5 30m",
		"--noheader --states=R":     "20_1 -1m",
	} {
		out, err := viewOf(t, from, display.Terminal{}, strings.Fields(args)...)
		if err != nil {
			t.Errorf("%s: %v", args, err)
		}
		var got []string
		for line := range strings.Lines(out) {
			words := strings.Fields(line)
			if words[7] == "-" {
				got = append(got, words[0]+" -")
				continue
			}
			start, err := time.ParseInLocation("15:04:05", words[7], time.UTC)
			if err != nil {
				t.Fatalf("%s: %v: %s", args, err, line)
			}
			got = append(got, words[0]+" "+strings.TrimSuffix(start.Sub(time.Date(0, 1, 1, 14, 0, 0, 0, time.UTC)).String(), "0s"))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: %s, want %s:\n%s", args, strings.Join(got, "|"), want, out)
		}
	}
	for _, bad := range []string{"--jobs=20_", "--jobs=20_x", "--jobs=_3", "--jobs=20_-1", "--jobs=20_5"} {
		if out, err := viewOf(t, from, display.Terminal{}, bad); err == nil {
			t.Errorf("%s: %s", bad, out)
		}
	}
}
