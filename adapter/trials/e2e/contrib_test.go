package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// programs are the commands that people type, with the section of their manual.
var programs = map[string]string{
	"evosbatch": "1", "evosqueue": "1", "evosacct": "1", "evosctl": "1", "evosrun": "1", "evosim": "1",
	"evostop": "1", "evosdemo": "1", "strategytest": "1", "evoslurmd": "8",
}

// elsewhere are the packages of those that are not built for every test of this package.
var elsewhere = map[string]string{"evosdemo": "../demo/evosdemo", "strategytest": "../../../plugins/cmd/strategytest"}

var helpOption = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z][a-z0-9-]+)`)

// helpOf returns a command's help; without a configuration, and without Slurm.
func helpOf(t *testing.T, args ...string) string {
	t.Helper()
	path := filepath.Join(bin, args[0])
	if of := elsewhere[args[0]]; of != "" {
		if out, err := exec.Command("go", "build", "-o", path, of).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		delete(elsewhere, args[0])
	}
	cmd := exec.Command(path, args[1:]...)
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// completions returns a folder with all completions: the generated ones and those of contrib.
func completions(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	must.OK(t, os.CopyFS(folder, os.DirFS("../../../contrib/completions")))
	if out, err := exec.Command("go", "run", "../../internal/completions", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return folder
}

// TestContrib: every command has a manual, and completions for bash, zsh and fish, and both have every
// option of its help.
func TestContrib(t *testing.T) {
	folder := completions(t)
	for name, section := range programs {
		manual, err := os.ReadFile("../../../contrib/man/" + name + "." + section)
		if err != nil {
			t.Error(err)
		}
		plain := strings.ReplaceAll(string(manual), `\-`, "-")
		options := []string{"help", "usage", "version"}
		for _, m := range helpOption.FindAllStringSubmatch(helpOf(t, name, "--help"), -1) {
			options = append(options, m[1])
		}
		asked := ""
		for shell, file := range map[string]string{"bash": "bash/" + name, "zsh": "zsh/_" + name, "fish": "fish/" + name + ".fish"} {
			text, err := os.ReadFile(filepath.Join(folder, file))
			if err != nil {
				t.Error(err)
				continue
			}
			offered := string(text)
			if strings.Contains(offered, "__complete") { // it asks the command
				if asked == "" {
					asked = helpOf(t, name, "__complete", "--")
				}
				offered = asked
			}
			for _, o := range options {
				if shell == "fish" && !strings.Contains(string(text), "__complete") {
					if !strings.Contains(offered, "-l "+o+" ") {
						t.Errorf("%s lacks --%s", file, o)
					}
				} else if !strings.Contains(offered, "--"+o) {
					t.Errorf("%s lacks --%s", file, o)
				}
			}
		}
		for _, o := range options {
			if !slices.Contains([]string{"help", "usage"}, o) && !strings.Contains(plain, "--"+o) {
				t.Errorf("contrib/man/%s.%s lacks --%s", name, section, o)
			}
		}
	}
	// Scripts that their shells can read.
	for _, shell := range []string{"bash", "zsh", "fish"} {
		path, err := exec.LookPath(shell)
		must.OK(t, err)
		files, err := filepath.Glob(filepath.Join(folder, shell, "*"))
		if err != nil || len(files) != len(programs) {
			t.Errorf("%d completions for %s, want %d (%v)", len(files), shell, len(programs), err)
		}
		for _, f := range files {
			if out, err := exec.Command(path, "-n", f).CombinedOutput(); err != nil {
				t.Errorf("%s -n %s: %v\n%s", shell, f, err, out)
			}
		}
	}
}

// TestPackageScripts: their shells can read what packages run, and what makes and tries them.
func TestPackageScripts(t *testing.T) {
	for script, shell := range map[string]string{
		"postinstall": "sh", "preremove": "sh", "postremove": "sh", "python-preremove": "sh", "version": "sh", "build": "bash", "try": "bash",
		"clean": "bash", "try-docs": "bash",
	} {
		if out, err := exec.Command(shell, "-n", "../../../contrib/packages/"+script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
}
