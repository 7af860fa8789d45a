package main

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestSchemas checks that every command with --json has a schema in docs/schema, which TestSchema
// of package api compares with the API's types; doctor's own type is compared here.
func TestSchemas(t *testing.T) {
	text := must.Read(t, "../../../docs/schema/v1.json")
	var schema struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	must.OK(t, json.Unmarshal(text, &schema))
	// The keys are "evosctl update, grow, shrink --json": commands that print the same.
	has := map[string]bool{}
	for key := range schema.Defs {
		commands, _, _ := strings.Cut(key, " --json")
		first, more, _ := strings.Cut(commands, ", ")
		parent := first[:max(0, strings.LastIndex(first, " "))]
		has[first] = true
		for _, name := range strings.Split(more, ", ") {
			has[parent+" "+name] = true
		}
	}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Flag("json") != nil && !c.HasSubCommands() && !has[c.CommandPath()] {
			t.Errorf("%s --json has no schema", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())

	var doctor struct {
		Properties map[string]struct {
			Items struct{ Properties map[string]any }
		}
	}
	must.OK(t, json.Unmarshal(schema.Defs["evosctl doctor --json"], &doctor))
	for _, c := range []struct {
		of   reflect.Type
		want []string
	}{{reflect.TypeFor[report](), slices.Collect(maps.Keys(doctor.Properties))}, {reflect.TypeFor[check](), slices.Collect(maps.Keys(doctor.Properties["checks"].Items.Properties))}} {
		var names []string
		for f := range c.of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.IsExported() {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		slices.Sort(c.want)
		if !slices.Equal(names, c.want) {
			t.Errorf("%v has %q, its schema %q", c.of, names, c.want)
		}
	}
}
