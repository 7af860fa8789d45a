package request

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/planner"
)

func TestParseDirectives(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   []Directive
	}{
		"none":            {"#!/bin/sh\necho hi\n", nil},
		"empty":           {"", nil},
		"one":             {"#!/bin/sh\n#EVO --profile=2@10m\n", []Directive{{2, "profile", "2@10m"}}},
		"apart":           {"#EVO --profile 2@10m", []Directive{{1, "profile", "2@10m"}}},
		"several":         {"#!/bin/sh\n\n  # words\n#SBATCH -J x\n#EVO --drive=merge --expand-limit=2 # --drive=no\n#EVO\t--profile=1@1m\necho\n", []Directive{{5, "drive", "merge"}, {5, "expand-limit", "2"}, {6, "profile", "1@1m"}}},
		"quotes":          {`#EVO --profile="2@10m",'3@5m'` + "\n", []Directive{{1, "profile", "2@10m,3@5m"}}},
		"DOS line ends":   {"#!/bin/sh\r\n#EVO --profile=2@10m\r\n\r\necho\r\n", []Directive{{2, "profile", "2@10m"}}},
		"no option":       {"#EVO\n#EVO   \n", nil},
		"other words":     {"#EVOLUTION is fun\n#EVO_x\n ##EVO --no\n#evo --no\n", nil},
		"indented is not": {"  #EVO --what\n", nil},
		"empty value":     {"#EVO --drive=\n", []Directive{{1, "drive", ""}}},
	} {
		got, err := ParseDirectives([]byte(c.script))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestParseDirectivesRefuses(t *testing.T) {
	for script, want := range map[string]string{
		"#EVO --profiles=2@10m":              "line 1: unknown #EVO option",
		"\n#EVO -N2":                         "line 2: unknown #EVO option",
		"#EVO words":                         "line 1: unknown #EVO option",
		"#EVO --nodes=2":                     "line 1: unknown #EVO option",
		"#EVO --profile":                     "line 1: option --profile needs a value",
		"#EVO --profile='2@10m":              "line 1: unmatched '",
		"#!/bin/sh\necho\n#EVO --drive=auto": "line 3: #EVO after the first command",
		"echo\n#EVO":                         "line 2: #EVO after the first command",
	} {
		_, err := ParseDirectives([]byte(script))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", script, err, want)
		}
		if _, ok := errors.AsType[*DirectiveError](err); !ok {
			t.Errorf("%q: %T", script, err)
		}
	}
}

func TestFromScript(t *testing.T) {
	got, err := FromScript([]byte("#EVO --profile=9@1m --expand-limit=inf\n#EVO --profile=2@10m,5@30m --drive=companion\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Request{Profile: profile, ExpandLimit: planner.Infinite, Drive: drivemode.Companion}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = FromScript([]byte("#!/bin/sh\n#EVO --profile=2@10m,x@30m\n"))
	var bad *planner.ParseError
	if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), "line 2: ") {
		t.Errorf("a bad profile: %v", err)
	}
	for _, script := range []string{"#EVO --expand-limit=0", "#EVO --drive=fast"} {
		if _, err := FromScript([]byte(script)); err == nil || !strings.HasPrefix(err.Error(), "line 1: ") {
			t.Errorf("%q: %v", script, err)
		}
	}
}

// complete returns the request of a job with such a marker and script.
func complete(s Request, script string) (Request, error) {
	given, _, err := FromStored([]byte(script))
	if err != nil {
		return Request{}, err
	}
	return s.Join(given)
}

func TestJoin(t *testing.T) {
	const script = "#EVO --profile=9@1m --expand-limit=inf --drive=merge\n"
	got, err := complete(Request{ExpandLimit: 2, Drive: drivemode.Auto}, script)
	want := Request{Profile: planner.Profile{{Duration: 60, Nodes: 9}}, ExpandLimit: 2, Drive: drivemode.Auto}
	if err != nil || !cmp.Equal(want, got) {
		t.Errorf("the marker's word is not kept: %+v, %v", got, err)
	}
	got, err = complete(Request{}, "#EVO --profile=9@1m\n")
	if err != nil || got.Drive != "" || got.ExpandLimit != 0 {
		t.Errorf("defaults: %+v, %v", got, err)
	}
	if _, err = complete(Request{}, "#!/bin/sh\n"); err == nil {
		t.Errorf("a request without a profile is complete")
	}
	if _, err = complete(Request{Drive: drivemode.Chain, Chain: &ChainLink{Step: 2}}, script); err == nil {
		t.Errorf("step 2 of a profile with one step is complete")
	}
}

func FuzzParseDirectives(f *testing.F) {
	for _, seed := range []string{
		"", "#!/bin/sh\n#EVO --profile=2@10m\necho\n", "#EVO --drive 'merge' # x\n", "#EVO \\", "#EVO \\ \\\n#EVO \"\\\"", "a\n#EVO",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		found, err := ParseDirectives(script)
		if err != nil {
			return
		}
		lines := strings.Count(string(script), "\n") + 1
		for _, d := range found {
			if !isOption(d.Name) || d.Line < 1 || d.Line > lines {
				t.Fatalf("%+v of %d lines", d, lines)
			}
		}
		if s, err := FromScript(script); err == nil && s.Profile != nil && s.Profile.String() == "" {
			t.Fatalf("%+v", s)
		}
	})
}

// What sbatch 22.05 makes of the same words after #SBATCH was looked at on a
// real one.
func TestSplitDirective(t *testing.T) {
	for text, want := range map[string][]string{
		``:                        nil,
		` -N 2`:                   {"-N", "2"},
		` --comment="a b"'c d' x`: {`--comment=a bc d`, "x"},
		` a\ b`:                   {"a b"},
		" a\\\tb":                 {"a", "b"},
		` "a\ b"`:                 {"a b"},
		` \"a`:                    {`"a`},
		` a#b c`:                  {"a"},
		` a\#b c`:                 {"a#b", "c"},
		` "a#b" c`:                {"a#b", "c"},
		` '' --nodes=2`:           nil,
		` a ''b`:                  {"a", "b"},
		` a\`:                     {"a"},
	} {
		got, err := SplitDirective(text)
		if err != nil || !cmp.Equal(want, got) {
			t.Errorf("SplitDirective(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
}
