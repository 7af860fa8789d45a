package api

import (
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/schematest"
	"github.com/evoslurm/evoslurm/adapter/job/bag"
)

var rewriteSchema = flag.Bool("schema", false, "rewrite docs/schema/v1.json")

// TestSchema checks docs/schema/v1.json against the types of version 1 of the API, which the
// commands also print as JSON. An answer may hold more, which -schema adds to the file; nothing is
// ever removed or changed.
func TestSchema(t *testing.T) {
	defs := map[string]any{}
	for _, v := range []any{Job{}, Status{}, Allocation{}, Event{}, Strategy{}, Trial{}, Change{}, Cancelled{}, Cluster{}, Drain{}, Progress{}, Offer{}, Report{}, History{}, Error{}, Settings{}, Access{}, Budget{}, Power{}, PowerHistory{}} {
		schemaOf(reflect.TypeOf(v), defs)
	}
	list := func(name string) map[string]any {
		return map[string]any{"type": "array", "items": map[string]any{"$ref": "#/$defs/" + name}}
	}
	for command, name := range map[string]string{"evosqueue --json=evoslurm": "Job", "evosacct --json": "Job", "evosctl strategy list --json": "Strategy", "evosctl strategy policies, reload --json": "Strategy"} {
		defs[command] = list(name)
	}
	for command, name := range map[string]string{"evosctl events --json, each line": "Event", "evosctl update, grow, shrink --json": "Change", "evosctl cancel-holds --json": "Cancelled", "evosctl report --json": "Report",
		"evosctl next, env --json": "Allocation", "evosctl accept --json": "Allocation", "evosctl progress --json": "Progress", "evosctl allow, deny --json": "Settings", "evosctl budget set --json": "Settings", "evosctl budget --json": "Budget", "evosctl power --json": "Power", "evosctl power --history --json": "PowerHistory", "evosctl power set --json": "Settings", "evosctl strategy show, use, use-policy --json": "Strategy",
		"evosctl strategy try --json": "Trial"} {
		defs[command] = map[string]any{"$ref": "#/$defs/" + name}
	}
	defs["evosctl next, env, accept --json, beside the allocation"] = map[string]any{"type": "object", "required": []string{"environ"}, "properties": map[string]any{
		"environ": map[string]any{"description": "The same as for a shell; null: to be unset.", "type": "object", "additionalProperties": map[string]any{"type": []string{"string", "null"}}}}}
	offer := maps.Clone(defs["Offer"].(map[string]any)["properties"].(map[string]any))
	offer["names"] = map[string]any{"description": "Of node_list.", "type": []string{"array", "null"}, "items": map[string]any{"type": "string"}}
	defs["evosctl wait-event"] = map[string]any{"type": "object", "properties": offer}
	defs["evosctl doctor --json"] = doctor
	defs["evosctl tasks --json"] = schemaOf(reflect.TypeFor[bag.Summary](), defs)
	defs["evosctl drain --json"], defs["evosctl resume --json"] = map[string]any{"$ref": "#/$defs/Drain"}, map[string]any{"$ref": "#/$defs/Status"}
	defs["evosctl release-all --json"] = releaseAll
	peek := maps.Clone(defs["Coming"].(map[string]any)["properties"].(map[string]any))
	peek["demand"] = schemaOf(reflect.TypeFor[Demand](), defs)
	defs["evosctl peek --json"] = map[string]any{"description": "null where there is neither a next step nor a demand.", "type": "object", "properties": peek}
	defs["evosqueue --json"] = map[string]any{
		"description": "As squeue --json of the installed Slurm, and more.",
		"type":        "object", "required": []string{"jobs", "evoslurm"},
		"properties": map[string]any{
			"evoslurm": map[string]any{"type": "object", "required": []string{"version"}, "properties": map[string]any{"version": map[string]any{"const": 1}}},
			"jobs": map[string]any{"type": "array", "items": map[string]any{"type": "object", "required": []string{"job_id", "evoslurm"},
				"properties": map[string]any{"job_id": map[string]any{"type": "integer"}, "evoslurm": map[string]any{"$ref": "#/$defs/Job"}}}},
		},
	}
	text, err := json.MarshalIndent(map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:evoslurm:schema:v1",
		"title": "Evoslurm's API, /v1, and the JSON that its commands print", "$defs": defs}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	const file = "../../docs/schema/v1.json"
	if *rewriteSchema {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var promised, is any
	if err := errors.Join(json.Unmarshal(have, &promised), json.Unmarshal(text, &is)); err != nil {
		t.Fatal(err)
	}
	for _, text := range schematest.Broken(promised, is) {
		t.Error(text)
	}
}

// doctor is the output of evosctl doctor; a test of evosctl compares its type.
var doctor = map[string]any{"type": "object", "required": []string{"checks"}, "properties": map[string]any{
	"checks": map[string]any{"type": "array", "items": map[string]any{"type": "object", "required": []string{"check", "result", "detail"}, "properties": map[string]any{
		"check": map[string]any{"type": "string"}, "result": map[string]any{"enum": []string{"ok", "warn", "fail"}}, "detail": map[string]any{"type": "string"}, "remedy": map[string]any{"type": "string"}}}},
	"drive":   map[string]any{"description": "What drive mode auto gets; missing if Slurm could not be asked.", "type": "string"},
	"reasons": map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
}}

// releaseAll is the output of evosctl release-all.
var releaseAll = map[string]any{"type": "object", "required": []string{"things"}, "properties": map[string]any{
	"left": map[string]any{"$ref": "#/$defs/Left"},
	"things": map[string]any{"type": "array", "items": map[string]any{"type": "object", "required": []string{"kind", "does"}, "properties": map[string]any{
		"kind": map[string]any{"enum": []string{"hold", "queued", "running", "companion"}}, "job": map[string]any{"type": "integer"}, "name": map[string]any{"type": "string"},
		"user": map[string]any{"type": "string"}, "nodes": map[string]any{"type": "string"}, "does": map[string]any{"type": "string"}, "error": map[string]any{"type": "string"}}}}}}

// schemaOf returns the schema of a type; structures are put into defs.
func schemaOf(t reflect.Type, defs map[string]any) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), defs)
	case reflect.Slice:
		return map[string]any{"type": []string{"array", "null"}, "items": schemaOf(t.Elem(), defs)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem(), defs)}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Struct:
		ref := map[string]any{"$ref": "#/$defs/" + t.Name()}
		if defs[t.Name()] != nil {
			return ref
		}
		properties, required := map[string]any{}, []string{}
		defs[t.Name()] = map[string]any{}
		for f := range t.Fields() {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || name == "-" {
				continue
			}
			properties[name] = schemaOf(f.Type, defs)
			if !strings.Contains(options, "omit") {
				required = append(required, name)
			}
		}
		defs[t.Name()] = map[string]any{"type": "object", "properties": properties, "required": required}
		return ref
	}
	return map[string]any{"type": "integer"}
}
