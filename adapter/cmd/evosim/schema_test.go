package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/internal/schematest"
	"github.com/evoslurm/evoslurm/adapter/lab/evosim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var rewriteSchema = flag.Bool("schema", false, "add what is new to docs/schema/evosim-v1.json")

// samples are small calls that print JSON, by command; their output is the same each time except
// for times of the machine.
var samples = []struct{ command, args string }{
	{"generate", "--tests=2"},
	{"schedule", "workload.json"},
	{"compare", "--format=json workload.json"},
	{"paper", "--tests=2 --format=json"},
	{"koala", "--runs=1 --format=json"},
	{"koala-placement", "--runs=1 --jobs=20 --format=json"},
	{"koala-placement", "--runs=2 --jobs=20 --format=json"},
	{"oar-malleable", "--tests=2 --format=json"},
	{"green", "--tests=1 --format=json"},
	{"cigri", "--tests=2 --format=json"},
	{"cigri", "--tests=1 --load=0 --format=json"},
	{"pecs23", "--seeds=1 --days=1 --shares=0,50 --schedulers=easy --format=json"},
	{"run", "--evolving=0.5 --beside=slurm,easy --watts=busy=300,idle=200 --fill=1m --format=json trace.swf"},
	{"run", "--config=types.yaml --watts=config --format=json trace.swf"},
	{"observed", "--format=json --shape=pulse observed"},
	{"baseline", "--format=json --output=easy.swf trace.swf"},
	{"baseline", "--format=json --scheduler=fcfs --output=fcfs.swf trace.swf"},
	{"trace stat", "--by=size --format=json trace.swf"},
	{"trace stat", "--by=size --format=json silent.swf"},
	{"trace diff", "--format=json easy.swf fcfs.swf"},
}

// TestSchemas checks docs/schema/evosim-v1.json against the JSON that the commands print. Output
// may hold more, which -schema adds to the file; nothing is ever removed.
func TestSchemas(t *testing.T) {
	const file = "../../../docs/schema/evosim-v1.json"
	have, err := os.ReadFile(file)
	if err != nil && !*rewriteSchema {
		t.Fatal(err)
	}
	path, err := os.Getwd()
	must.OK(t, err)
	dir := t.TempDir()
	must.OK(t, observedDay(dir+"/observed"))
	t.Chdir(dir)
	trace := "; MaxNodes: 4\n; MaxProcs: 4\n"
	for _, job := range []string{"1 60 0 360 2", "2 120 0 420 3", "3 180 0 480 1", "4 240 0 540 2", "5 300 0 600 3", "6 360 0 660 1"} {
		trace += job + " -1 -1 " + job[len(job)-1:] + " 1200 -1 1 1 1 1 1 1 -1 -1\n"
	}
	silent := "1 0 -1 60 2 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n" // it tells neither its machine, nor starts, nor users
	for name, text := range map[string]string{"trace.swf": trace, "silent.swf": silent,
		"types.yaml": "power: {watts: {busy: 300, idle: 200, off: 10, booting: 300}, types: [{nodes: n1, watts: {busy: 600, idle: 400, off: 10, booting: 300}}]}",
		"workload.json": `{"nodes": 8, "busy": [{"start": 0, "duration": 300, "nodes": 2}], "jobs": [
		{"id": "a", "submit": 0, "profile": [{"duration": 300, "nodes": 2}, {"duration": 600, "nodes": 5}], "expand_limit": 2}, {"id": "b", "submit": 10, "profile": [{"duration": 300, "nodes": 3}]}]}`} {
		must.OK(t, os.WriteFile(name, []byte(text), 0o644))
	}
	defs, tried := map[string]any{}, map[string]bool{"evosim esp": true}
	var rows any // a run of ESP takes ten seconds
	if text, err := json.Marshal(espRows()[:1]); err != nil || json.Unmarshal(text, &rows) != nil {
		t.Fatal(err)
	}
	defs["evosim esp"] = shape(rows, nil)
	for _, s := range samples {
		var out, errs bytes.Buffer
		words := append(strings.Fields(s.command), strings.Fields(s.args)...)
		if status := evosim.Run(t.Context(), newCommand(), words, strings.NewReader(""), &out, &errs); status != 0 {
			t.Fatalf("%s: %d: %s", s, status, errs.String())
		}
		key := "evosim " + s.command
		for in := json.NewDecoder(&out); ; {
			var v any
			if err := in.Decode(&v); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", s, err)
			}
			defs[key] = shape(v, defs[key])
		}
		tried[key] = true
	}
	everyJSON(newCommand(), func(command string) {
		if !tried[command] {
			t.Errorf("%s --format=json has no schema", command)
		}
	})
	is := map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:evoslurm:schema:evosim-v1", "title": "The JSON that evosim's commands print", "$defs": defs}
	if *rewriteSchema {
		text, err := json.MarshalIndent(is, "", " ")
		must.OK(t, err)
		t.Chdir(path)
		must.OK(t, os.WriteFile(file, append(text, '\n'), 0o644))
		return
	}
	var promised any
	must.OK(t, json.Unmarshal(have, &promised))
	for _, text := range schematest.Broken(promised, is) {
		t.Error(text)
	}
}

// everyJSON calls for each command that can print JSON.
func everyJSON(c *cobra.Command, call func(command string)) {
	if f := c.Flags().Lookup("format"); f != nil && strings.Contains(f.Value.Type()+f.Usage, "json") {
		call(c.CommandPath())
	}
	for _, sub := range c.Commands() {
		everyJSON(sub, call)
	}
}

// shape returns the schema of a value, merged with what was seen in its place before.
func shape(v any, before any) map[string]any {
	is := map[string]any{}
	if was, ok := before.(map[string]any); ok {
		is = maps.Clone(was)
	}
	switch v := v.(type) {
	case map[string]any:
		properties, _ := is["properties"].(map[string]any)
		if properties == nil {
			properties = map[string]any{}
		}
		for name, value := range v {
			properties[name] = shape(value, properties[name])
		}
		is["properties"], is["type"] = properties, either(is["type"], "object")
	case []any:
		for _, value := range v {
			is["items"] = shape(value, is["items"])
		}
		is["type"] = either(is["type"], "array")
	case string:
		is["type"] = either(is["type"], "string")
	case bool:
		is["type"] = either(is["type"], "boolean")
	case nil:
		is["type"] = either(is["type"], "null")
	default:
		is["type"] = either(is["type"], "number")
	}
	return is
}

// either adds a type to those seen before: a name, or a list of names.
func either(before any, name string) any {
	switch before := before.(type) {
	case string:
		if before != name {
			return []any{before, name}
		}
	case []any:
		if slices.Contains(before, any(name)) {
			return before
		}
		return append(before, name)
	}
	return name
}
