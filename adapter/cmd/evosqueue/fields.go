package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/show/display"
)

// field is one of Evoslurm's, for formats.
type field struct {
	title string
	help  string
	text  func(j api.Job, now time.Time) string
}

// fieldPrefix precedes their names in long formats, which also have squeue's names.
const fieldPrefix = "evo"

var fields = map[string]field{
	"id":         {"EVO_JOBID", "the evolving job; of a chain's links, the first one", func(j api.Job, _ time.Time) string { return strconv.FormatUint(uint64(j.ID), 10) }},
	"step":       {"STEP", "the present step and how many there are", func(j api.Job, _ time.Time) string { return fmt.Sprintf("%d/%d", j.Step, j.Steps) }},
	"state":      {"EVO_STATE", "the state, WAITING for the next step's nodes too", func(j api.Job, _ time.Time) string { return stateName(j) }},
	"profile":    {"PROFILE", "the profile as it was asked for", func(j api.Job, _ time.Time) string { return j.Asked() }},
	"drive":      {"DRIVE", "the drive mode", func(j api.Job, _ time.Time) string { return j.Drive }},
	"limit":      {"EXPAND_LIMIT", "the expand limit", func(j api.Job, _ time.Time) string { return j.ExpandLimit }},
	"claim":      {"CLAIM", "the nodes of --max-nodes, 0 for none", func(j api.Job, _ time.Time) string { return strconv.Itoa(j.Claim) }},
	"bounds":     {"BOUNDS", "of a malleable job the profile with its bounds, MIN-MAX@DURATION", func(j api.Job, _ time.Time) string { return j.Bounds }},
	"components": {"COMPONENTS", "of coupled codes, what each has now", func(j api.Job, _ time.Time) string { return componentsText(j) }},
	"lent":       {"LENT", "the nodes that a malleable job has beyond its profile", func(j api.Job, _ time.Time) string { return j.Lent }},
	"progress":   {"PROGRESS", "how far the application is, as it has reported", func(j api.Job, _ time.Time) string { return progressText(j) }},
	"next":       {"NEXT", "what changes next, and in how long", func(j api.Job, now time.Time) string { return next(j, now) }},
	"nextnodes":  {"NEXT_NODES", "the nodes after that", func(j api.Job, _ time.Time) string { return strconv.Itoa(j.NextNodes) }},
	"nexttime":   {"NEXT_TIME", "when", func(j api.Job, now time.Time) string { return slurmTime(j.NextChange, now) }},
	"nodes":      {"EVO_NODES", "allocated now, with companions", func(j api.Job, _ time.Time) string { return strconv.Itoa(j.Nodes) }},
	"nodelist":   {"EVO_NODELIST", "these by name", func(j api.Job, _ time.Time) string { return j.NodeList }},
	"start":      {"START_TIME", "the start, actual or planned", func(j api.Job, now time.Time) string { return slurmTime(j.Start, now) }},
	"end":        {"END_TIME", "the end, actual or planned", func(j api.Job, now time.Time) string { return slurmTime(j.End, now) }},
	"reason":     {"EVO_REASON", "why the job is where it is", func(j api.Job, _ time.Time) string { return j.Reason }},
}

// componentsText returns the components of a job with their nodes: ocean=n[1-2],atm=n3.
func componentsText(j api.Job) string {
	words := make([]string, len(j.Components))
	for i, c := range j.Components {
		words[i] = c.Name + "=" + c.NodeList
	}
	return strings.Join(words, ",")
}

// fieldNamed returns a field by its name, with or without the prefix.
func fieldNamed(name string) field {
	name = strings.ToLower(name)
	if f, known := fields[name]; known {
		return f
	}
	return fields[strings.TrimPrefix(name, fieldPrefix)]
}

func fieldNames() []string { return slices.Sorted(maps.Keys(fields)) }

// slurmTime returns a time as squeue shows it to the user; none is N/A.
func slurmTime(t, now time.Time) string {
	if t.IsZero() {
		return "N/A"
	}
	return display.SlurmTime(t, now, os.Getenv("SLURM_TIME_FORMAT"))
}
