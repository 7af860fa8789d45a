package e2e_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var (
	anyFence   = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	indented   = regexp.MustCompile("(?m)^    (.*)$")
	inlineCode = regexp.MustCompile("`([^`\n]+(?:\n[^`\n]+)?)`")
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	shellWord  = regexp.MustCompile(`^-{1,2}[a-zA-Z][a-zA-Z0-9-]*`)
)

// pages returns all that are read: of the repository's top, docs, plugins and examples.
func pages(t *testing.T) (paths []string) {
	t.Helper()
	for _, root := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "docs", "plugins", "contrib", "planner/README.md"} {
		err := filepath.WalkDir("../../../"+root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(path, ".md") {
				paths = append(paths, path)
			}
			return err
		})
		must.OK(t, err)
	}
	return paths
}

// commandsIn returns the command lines of a page: of its fences, indented lines and inline code.
func commandsIn(text string) (lines []string) {
	var blocks []string
	for _, m := range anyFence.FindAllStringSubmatch(text, -1) {
		if m[1] != "text" { // what commands print
			blocks = append(blocks, m[2])
		}
	}
	text = anyFence.ReplaceAllString(text, "")
	for _, m := range indented.FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, m[1])
	}
	for _, m := range inlineCode.FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, strings.ReplaceAll(m[1], "\n", " "))
	}
	for _, b := range blocks {
		lines = append(lines, strings.Split(strings.ReplaceAll(b, "\\\n", " "), "\n")...)
	}
	return lines
}

// asked remembers what commands complete.
type asked map[string][]string

// completions returns the first words of what a command offers at its end.
func (a asked) completions(t *testing.T, args ...string) []string {
	t.Helper()
	key := strings.Join(args, " ")
	if got, known := a[key]; known {
		return got
	}
	var offered []string
	if out := helpOf(t, slices.Insert(slices.Clone(args), 1, "__complete")...); out != "" {
		for _, line := range strings.Split(out, "\n") {
			word, _, _ := strings.Cut(line, "\t")
			offered = append(offered, strings.TrimSuffix(word, "="))
		}
	}
	a[key] = offered
	return offered
}

// TestCommandsInDocs: every command line in what people read names a command that there is, a subcommand and
// options that it has.
func TestCommandsInDocs(t *testing.T) {
	a, helps := asked{}, map[string]string{}
	checked := 0
	for _, path := range pages(t) {
		text := must.Read(t, path)
		for _, line := range commandsIn(string(text)) {
			for _, c := range split(line) {
				if checkCommand(t, a, helps, path, c) {
					checked++
				}
			}
		}
	}
	if checked < 150 {
		t.Errorf("%d commands found, want some 150 at least: what reads them does not", checked)
	}
}

// split divides a line into the words of the commands in it, roughly as a shell does.
func split(line string) (commands [][]string) {
	line, _, _ = strings.Cut(line, " # ")
	var now []string
	for _, w := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t()\"'", r) }) {
		switch {
		case w == "|" || w == "&&" || w == "||" || w == ";" || w == "do" || w == "if" || w == "while" || w == "--":
			commands, now = append(commands, now), nil
			continue
		case programs[filepath.Base(w)] != "" && now != nil:
			commands, now = append(commands, now), nil
		}
		end := strings.HasSuffix(w, ";")
		now = append(now, strings.TrimRight(w, ";,:$"))
		if end {
			commands, now = append(commands, now), nil
		}
	}
	return append(commands, now)
}

// checkCommand reports whether it was one of ours.
func checkCommand(t *testing.T, a asked, helps map[string]string, path string, words []string) bool {
	t.Helper()
	for len(words) > 0 && (strings.Contains(words[0], "=") || words[0] == "$" || words[0] == "#" || words[0] == "sudo" || words[0] == "eval") {
		words = words[1:]
	}
	if len(words) == 0 || programs[filepath.Base(words[0])] == "" {
		return false
	}
	args := []string{filepath.Base(words[0])}
	words = words[1:]
	if args[0] == "evosrun" || args[0] == "strategytest" { // these take their own help
		if _, known := helps[args[0]]; !known {
			text := must.Read(t, "../../../contrib/completions/bash/"+args[0])
			helps[args[0]] = string(text)
		}
		for _, w := range words {
			o := shellWord.FindString(w)
			if o == "" {
				break // the command that it runs
			}
			if strings.HasPrefix(o, "--") && !strings.Contains(helps[args[0]], o) {
				t.Errorf("%s: %s %v: %s has no %s", path, args[0], words, args[0], o)
			}
		}
		return true
	}
	for len(words) > 0 && slices.Contains([]string{"evosctl", "evosim", "evosdemo"}, args[0]) {
		subs := a.completions(t, append(slices.Clone(args), "")...)
		i := slices.IndexFunc(words, func(w string) bool { return !strings.HasPrefix(w, "-") })
		if i < 0 || !slices.Contains(subs, words[i]) {
			if i == 0 && words[0] == "…" { // any of them
				return true
			}
			if i == 0 && len(args) == 1 {
				t.Errorf("%s: %s has no command %q: %v", path, args[0], words[i], words)
			}
			break
		}
		if words[i] == "help" {
			return true
		}
		args, words = append(args, words[i]), slices.Delete(slices.Clone(words), i, i+1)
	}
	key := strings.Join(args, " ")
	if _, known := helps[key]; !known {
		helps[key] = helpOf(t, append(slices.Clone(args), "--help")...)
	}
	for _, w := range words {
		o := shellWord.FindString(w)
		switch {
		case strings.HasPrefix(o, "--"):
			if !slices.Contains(a.completions(t, append(slices.Clone(args), "--")...), o) && !strings.Contains(helps[key], o) {
				t.Errorf("%s: %s %v: %s has no %s", path, key, words, key, o)
			}
		case o != "" && args[0] != "evosbatch": // which takes sbatch's letters
			if !strings.Contains(helps[key], o[:2]+",") {
				t.Errorf("%s: %s %v: %s has no %s", path, key, words, key, o[:2])
			}
		}
	}
	return true
}

// TestLinksInDocs: what pages link to within the repository is there.
func TestLinksInDocs(t *testing.T) {
	for _, path := range append(pages(t), "../../../CHANGELOG.md") {
		text := must.Read(t, path)
		for _, m := range link.FindAllStringSubmatch(anyFence.ReplaceAllString(string(text), ""), -1) {
			target, section, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			to := path
			if target != "" {
				to = filepath.Join(filepath.Dir(path), target)
			}
			there, err := os.ReadFile(to)
			if err != nil {
				if st, statErr := os.Stat(to); statErr != nil || !st.IsDir() {
					t.Errorf("%s links to %s: %v", path, m[1], err)
				}
				continue
			}
			if section != "" && !slices.Contains(sections(string(there)), section) {
				t.Errorf("%s links to %s: there is no such section", path, m[1])
			}
		}
	}
}

var (
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	dropped = regexp.MustCompile("[^a-z0-9 _-]")
)

// sections returns the names of a page's headings, as in links.
func sections(text string) (names []string) {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		names = append(names, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return names
}

// A page of docs is in the index.
func TestDocsIndex(t *testing.T) {
	index := must.Read(t, "../../../docs/README.md")
	files, err := filepath.Glob("../../../docs/*.md")
	must.OK(t, err)
	for _, path := range files {
		name := filepath.Base(path)
		if name != "README.md" && !strings.Contains(string(index), "("+name+")") {
			t.Errorf("docs/README.md has no link to %s", name)
		}
	}
}

// The CHANGELOG begins with the version of the file VERSION.
func TestChangelogHasTheVersion(t *testing.T) {
	version := must.Read(t, "../../../VERSION")
	log := must.Read(t, "../../../CHANGELOG.md")
	_, first, _ := strings.Cut(string(log), "\n## ")
	if v := strings.TrimSpace(string(version)); !strings.HasPrefix(first, v+", ") && !strings.HasPrefix(first, v+"\n") {
		t.Errorf("CHANGELOG.md begins with %.30q, VERSION is %s", first, v)
	}
}
