package e2e_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestVersionOfTree: a commit with a tag has the tag's version, one without the file's with the commit, and a
// tree that git knows nothing of the file's; packages of what is not released sort before the release.
func TestVersionOfTree(t *testing.T) {
	tree := t.TempDir()
	script := must.Read(t, "../../../contrib/packages/version")
	must.OK(t, os.MkdirAll(tree+"/contrib/packages", 0o755))
	for name, text := range map[string]string{"VERSION": "0.2.0\n", "contrib/packages/version": string(script)} {
		must.OK(t, os.WriteFile(tree+"/"+name, []byte(text), 0o755))
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = tree
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+tree+"/..", "GIT_CONFIG_NOSYSTEM=1", "HOME="+tree,
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	versions := func() (string, string) {
		return run("contrib/packages/version"), run("contrib/packages/version", "package")
	}
	if v, p := versions(); v != "v0.2.0" || p != "0.2.0" {
		t.Errorf("without git: %s, %s", v, p)
	}
	run("git", "init", "-q")
	run("git", "add", ".")
	run("git", "commit", "-q", "-m", "one")
	commit := run("git", "describe", "--always")
	if v, p := versions(); v != "v0.2.0-dev+"+commit || p != "0.2.0~dev1."+commit {
		t.Errorf("without a tag: %s, %s", v, p)
	}
	run("git", "tag", "v0.3.0")
	if v, p := versions(); v != "v0.3.0" || p != "0.3.0" {
		t.Errorf("of a tag: %s, %s", v, p)
	}
	must.OK(t, os.WriteFile(tree+"/VERSION", []byte("0.4.0\n"), 0o644))
	if v, p := versions(); v != "v0.4.0-dev+"+commit+"-dirty" || p != "0.4.0~dev1."+commit+".dirty" {
		t.Errorf("with changes: %s, %s", v, p)
	}
}
