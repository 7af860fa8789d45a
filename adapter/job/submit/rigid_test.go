package submit

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRigid checks the job that evosbatch --rigid submits, and that no evolving one is submitted where none is driven.
func TestRigid(t *testing.T) {
	never := errors.New("only observes: add --rigid")
	run := func(words string) (string, error) {
		var out, errs bytes.Buffer
		c := Command{Args: strings.Fields(words), Environ: []string{"EVO_RIGID=9"}, Stdin: os.Stdin, Stdout: &out, Stderr: &errs, Sbatch: "sbatch",
			Refuses: func(context.Context) error { return never },
			Exec: func(_ string, argv, environ []string, _ *os.File) error {
				out.WriteString(strings.Join(append(environ, argv[1:]...), " "))
				return errors.New("replaced")
			}}
		_, err := c.run(t.Context())
		return strings.TrimSpace(out.String()), err
	}
	for _, c := range []struct{ words, want string }{
		{"--rigid --profile=2@10m,5@30m --comment=mine --wrap=x", "EVO_RIGID=2 --comment=mine --wrap=x --nodes=5 --exclusive --time=41"},
		{"--rigid --profile=2@10m,5@30m --time=50 --begin=now+1hour --wrap=x", "EVO_RIGID=2 --time=50 --begin=now+1hour --wrap=x --nodes=5 --exclusive"},
		{"--rigid --profile=2@10m,5@30m --reservation=course --wrap=x", "EVO_RIGID=2 --reservation=course --wrap=x --nodes=5 --exclusive --time=41"},
		{"--rigid --malleable=2-8 --wrap=x", "EVO_RIGID=1 --wrap=x --nodes=2 --exclusive"},
		{"--rigid --moldable=4@2h,8@70m --wrap=x", "EVO_RIGID=1 --wrap=x --nodes=4 --exclusive --time=121"},
		{"--rigid --profile=1@1m --export=HOME --wrap=x", "EVO_RIGID=1 --export=HOME --wrap=x --nodes=1 --exclusive --time=2 --export=HOME,EVO_RIGID"},
		{"--rigid --dry-run --profile=1@1m,2@1m --wrap=x", "EVO_RIGID=2 sbatch --wrap=x --nodes=2 --exclusive --time=3"},
	} {
		got, _ := run(c.words)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.words, diff)
		}
	}
	for words, want := range map[string]string{
		"--profile=2@10m --wrap=x": never.Error(), "--rigid --drive=chain --profile=1@1m,2@1m --wrap=x": "--rigid does not go with --drive=chain", "--rigid --wrap=x": "no evolution profile",
	} {
		if got, err := run(words); got != "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v", words, got, err)
		}
	}
	if got, err := run("--dry-run --profile=2@10m --wrap=x"); err != nil || !strings.Contains(got, "--comment=evo:v2") {
		t.Errorf("a dry run: %q, %v", got, err)
	}
}
