package request

import (
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/planner"
)

// TestAimTravels: what a job wants of its own placement is in its marker and on #EVO lines.
func TestAimTravels(t *testing.T) {
	for i, name := range AimOptions {
		r, err := FromScript([]byte("#!/bin/sh\n#EVO --profile=2@10m --" + name + " --drive=merge\n"))
		if err != nil || r.Aim != planner.Aim(i+1) || r.Drive != "merge" {
			t.Fatalf("--%s: %+v, %v", name, r, err)
		}
		text, fits := r.Marker()
		got, found, err := ParseMarker(text)
		if !fits || !found || err != nil || got.Aim != r.Aim || !strings.Contains(text, ";a="+r.Aim.String()) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		short, _ := r.ScriptMarker()
		if got, _, err = ParseMarker(short); err != nil || got.Aim != r.Aim {
			t.Errorf("%s: %+v, %v", short, got, err)
		}
	}
}

// TestAimRefused: what cannot be meant is refused by name.
func TestAimRefused(t *testing.T) {
	for script, want := range map[string]string{
		"--profile=2@10m --prefer-near --prefer-start": "--prefer-near and --prefer-start exclude each other",
		"--profile=2@10m --prefer-near=2":              "option --prefer-near has no value",
		"--profile=2@10m --prefer-far":                 "unknown #EVO option",
	} {
		if _, err := FromScript([]byte("#EVO " + script + "\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", script, err)
		}
	}
	for marker, want := range map[string]string{
		"evo:v2;p=2@10m;a=far;;":              "unknown aim",
		"evo:v2;p=2@10m|4@5m;a=near;;":        "--moldable",
		"evo:v2;p=2@10m;a=near;a=start;;":     "repeated",
		"evo:v2;p=2@10m;i=1;a=near;d=chain;;": "out of order",
	} {
		if _, _, err := ParseMarker(marker); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", marker, err)
		}
	}
}
