package drive

import (
	"errors"
	"reflect"
	"slices"
	"testing"
)

// TestReadOnly checks that every method of Slurm that is not known to read only is refused, and reported.
func TestReadOnly(t *testing.T) {
	reads := []string{"AccrueTimes", "Backfill", "Calls", "Config", "Federation", "Glance", "Named", "InGroups", "Jobs", "Licenses", "Limits", "LookupUser", "Nodes", "Reservations", "ScriptNode", "Slurmdbd", "TimeUsed", "Topology", "WantsAccount"}
	refused := 0
	v := reflect.ValueOf(ReadOnly(nil, func(string) { refused++ }))
	changes := 0
	for i := range v.NumMethod() {
		m := v.Type().Method(i)
		if slices.Contains(reads, m.Name) || !m.IsExported() {
			continue
		}
		changes++
		var args []reflect.Value
		for k := range v.Method(i).Type().NumIn() {
			if in := v.Method(i).Type().In(k); k+1 < v.Method(i).Type().NumIn() || !v.Method(i).Type().IsVariadic() {
				args = append(args, reflect.Zero(in))
			}
		}
		out := v.Method(i).Call(args) // a method that is not wrapped calls a nil Slurm
		if err, _ := out[len(out)-1].Interface().(error); !errors.Is(err, ErrReadOnly) || refused != changes {
			t.Errorf("%s: %v, %d refusals of %d", m.Name, err, refused, changes)
		}
	}
	if all := reflect.TypeFor[Slurm]().NumMethod(); changes+len(reads) != all {
		t.Errorf("%d changes and %d reads of %d methods", changes, len(reads), all)
	}
}
