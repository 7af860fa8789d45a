package slurmctl

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSteps(t *testing.T) {
	const out = "12.batch n1 batch\n12.extern n1 extern\n12.0 n[1-2] a.out\n12.14 n3 work er@9\n12.15 \n12.16 n[ x\n12_3.1 n1 array\n"
	want := []Step{{ID: "12.0", Name: "a.out", Nodes: []string{"n1", "n2"}}, {ID: "12.14", Name: "work", Nodes: []string{"n3"}},
		{ID: "12_3.1", Name: "array", Nodes: []string{"n1"}}}
	if d := cmp.Diff(want, parseSteps(out)); d != "" {
		t.Error(d)
	}
}

func TestParseScriptNode(t *testing.T) {
	for out, want := range map[string]string{
		"12.0 n[1-2]\n12.batch n2\n":       "n2",
		"12.extern n[1-3]\n12.0 n1\n":      "",
		"112.batch n1\n12.batch n3 more\n": "",
		"12.batch n[ \n12.batch n[1-2]\n":  "",
		"":                                 "",
	} {
		if got := parseScriptNode(out, "12"); got != want {
			t.Errorf("%q: %q, want %q", out, got, want)
		}
	}
}

func TestSignalStepsChecks(t *testing.T) {
	c := &Client{Dir: t.TempDir()}
	for _, bad := range []string{"", "12", "--all", "12.batch", "12.0 13", "-1.0"} {
		if err := c.SignalSteps(t.Context(), "TERM", bad); err == nil {
			t.Errorf("%q was signalled", bad)
		}
	}
	if err := c.SignalSteps(t.Context(), "TERM;x", "12.0"); err == nil {
		t.Error("a bad signal was sent")
	}
}
