package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
)

// Events implements api.Backend.
func (c *Controller) Events(ctx context.Context, q api.EventQuery) ([]api.Event, error) {
	id := q.Job
	if base, known := c.view.Load().Base[id]; known {
		id = base
	}
	rows, err := c.store.ReadEvents(ctx, store.EventFilter{SlurmID: id, Owner: q.Owner, Sidecar: q.Sidecar, After: q.After, Since: q.Since, Limit: q.Limit})
	if err != nil {
		return nil, err
	}
	owners := c.view.Load().Owners
	own := func(job uint32) bool { uid, known := owners[job]; return known && uid == *q.Owner }
	events := make([]api.Event, len(rows))
	for i, r := range rows {
		if q.Owner != nil {
			r.Detail = discreet(r.Detail, own)
		}
		events[i] = api.Event{ID: r.ID, At: r.At, Job: r.SlurmID, User: r.User, Kind: r.Kind, Detail: r.Detail, Text: eventText(r)}
	}
	return events, nil
}

// others lists the keys of details that may name other users and their jobs.
var others = []string{"rival", "user", "slurm_id"}

// discreet returns a detail for a reader who may not read other users' jobs.
func discreet(detail json.RawMessage, own func(job uint32) bool) json.RawMessage {
	var values map[string]json.RawMessage
	if json.Unmarshal(detail, &values) != nil || values == nil {
		return detail
	}
	for _, key := range others {
		delete(values, key)
	}
	var before uint32 // a job that is planned first
	if json.Unmarshal(values["for"], &before) == nil && !own(before) {
		values["for"] = json.RawMessage(`"of another user"`)
	}
	text, err := json.Marshal(values)
	if err != nil {
		return detail
	}
	return text
}

// eventTexts holds templates for kinds of events: {key} is a value of the detail. A part in
// brackets is omitted if its value is missing. Other kinds are written with all their values.
var eventTexts = map[string]string{
	"sidecar started":      "the sidecar {version} started with {jobs} evolving jobs",
	"database replaced":    "the database was malformed ({why}): a new one was begun, the old one is {kept}",
	"twin":                 "another evoslurmd drives this cluster, it made the hold {hold}: the one on {host} changes nothing until it is restarted",
	"stood still":          "the machine stood still for {seconds} s",
	"clock stepped":        "the clock was set by {seconds} s",
	"leak":                 "{nodes} allocated to no job",
	"leak healed":          "{nodes} free again",
	"refused":              "[job {slurm_id} of {user} ]refused: {error}[; {suppressed} more before it]",
	"left":                 "job {slurm_id} of {user} {what}: {why}[; {suppressed} more before it]",
	"adopted":              "adopted, profile {profile}",
	"adopted again":        "adopted again, profile {profile}",
	"chosen":               "gets {profile}, alternative {choice}, by {by}[: {gives}][; {others}]",
	"choice fixed":         "starts as {profile}, alternative {choice}, by {by}[: {gives}][; {others}]",
	"started":              "started on {nodes}[, in step {step}]",
	"step begun":           "step {step} begun on {nodes}",
	"step ended":           "step {step} ended",
	"step corrected":       "it is in step {step}",
	"nodes changed":        "nodes {from} became {to}[: {lost} failed]",
	"nodes failed":         "{lost} failed, which had left it before",
	"ended":                "ended {state} in step {step} of {steps}",
	"requeued":             "requeued in step {step}: it starts over[; {lost} failed]",
	"nodes left alone":     "Slurm does not start it on idle nodes {nodes}, which are left alone from now on: {why}[; {suppressed} more before it]",
	"parked again":         "parked again: {reason}[; {suppressed} more before it]",
	"delayed":              "step {step} late: {why}[; {suppressed} more before it]",
	"limit raised":         "time limit raised to {minutes} min[; {suppressed} more before it]",
	"overrun":              "step {step} lasts {seconds} s longer than the profile says",
	"failed":               "{action} failed[ ({detail})]: {error}[; {suppressed} more before it]",
	"repair":               "gives {surplus} back, which it was not to have",
	"cleaned":              "expander {expander} cancelled",
	"drive changed":        "drive mode {to} from now on: {why}",
	"kept back":            "kept back by {limit}",
	"intruder":             "job {slurm_id} of {user} in its hold {hold}",
	"suspended":            "suspended by Slurm in step {step}",
	"resumed":              "resumed in step {step}, after {seconds} s",
	"lapsed":               "[step {step} lasts too long: the holds of the coming ones are given up][{by} has cancelled the holds of the steps after {after}: they are planned again when it ends][job {for}, which began before it, is planned first: the holds of the steps after {in} are given up][a stock job would have started later because of its holds than its budget of {budget} s allows: the holds from step {before} on are given up]",
	"given up":             "growth to {nodes} nodes given up after {failures} failures: {error}[; the profile is {profile} again]",
	"changed":              "{asked}: the profile is {to}[; {suppressed} more before it]",
	"change refused":       "{asked}: refused: {why}[; {suppressed} more before it]",
	"offered":              "offered {nodes} nodes for {seconds} s: {list}",
	"asked for":            "asked for {nodes} nodes within {seconds} s: {list}: {why}",
	"demanded":             "{nodes} nodes demanded back within {seconds} s: {list}: {why}",
	"offer accepted":       "accepts to {kind} by {nodes} nodes: {list}",
	"offer declined":       "declines to {kind} by {nodes} nodes: {list}",
	"offer withdrawn":      "is not to {kind} by {nodes} nodes any more: {why}",
	"offer failed":         "could not {kind} by {nodes} nodes: {why}",
	"lent":                 "has {nodes} nodes more: {list}",
	"given back":           "has given {nodes} nodes back: {list}",
	"taken":                "{nodes} nodes are taken from it: {list}: {why}",
	"measured":             "was measured on {sizes} sizes: {speedup}",
	"time limit too short": "time limit too short: {why}",
	"setting":              "{key} is \"{to}\", no longer \"{from}\"[, by {by}]",
	"strategy fault":       "strategy {strategy}[ failed: {fault}]",

	"malleability policy fault":     "malleability policy {policy} failed, {instead} decides in its place: {fault}",
	"malleability policy put aside": "malleability policy {policy} is put aside for {seconds} s, after {faults_in_a_row} faults in a row",
	"malleability policy back":      "malleability policy {policy} is back",
}

// eventText returns an event in words.
func eventText(e store.ReadEvent) string {
	values := map[string]any{}
	dec := json.NewDecoder(strings.NewReader(string(e.Detail)))
	dec.UseNumber()
	if dec.Decode(&values) != nil {
		return e.Kind
	}
	text := e.Kind
	if template, known := eventTexts[e.Kind]; known {
		if words, whole := fill(template, values); whole {
			return words + lateness("planned", values, e.At) + lateness("expected", values, e.At)
		}
	}
	var words []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		words = append(words, key+" "+plainValue(values[key]))
	}
	if len(words) > 0 {
		text += ": " + strings.Join(words, ", ")
	}
	return text
}

// lateness returns how far from its planned second something happened.
func lateness(key string, values map[string]any, at time.Time) string {
	n, ok := values[key].(json.Number)
	if !ok {
		return ""
	}
	planned, err := n.Int64()
	if err != nil || planned <= 0 {
		return ""
	}
	switch late := at.Unix() - planned; {
	case late > 1:
		return fmt.Sprintf(", %s later than %s", time.Duration(late)*time.Second, key)
	case late < -1:
		return fmt.Sprintf(", %s sooner than %s", time.Duration(-late)*time.Second, key)
	}
	return ", as " + key
}

// fill inserts values into a template; false if one outside of brackets is missing.
func fill(template string, values map[string]any) (string, bool) {
	var b strings.Builder
	for rest := template; rest != ""; {
		i := strings.IndexAny(rest, "{[")
		if i < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:i])
		closing := map[byte]string{'{': "}", '[': "]"}[rest[i]]
		inner, after, _ := strings.Cut(rest[i+1:], closing)
		if rest[i] == '[' {
			if words, whole := fill(inner, values); whole {
				b.WriteString(words)
			}
		} else {
			v, ok := values[inner]
			if !ok || plainValue(v) == "" {
				return "", false
			}
			b.WriteString(plainValue(v))
		}
		rest = after
	}
	return b.String(), true
}

// plainValue returns a value of a detail without quotes.
func plainValue(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case nil:
		return ""
	case []any:
		words := make([]string, len(v))
		for i, one := range v {
			words[i] = plainValue(one)
		}
		return strings.Join(words, ",")
	case map[string]any:
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(text)
	}
	return fmt.Sprint(v)
}
