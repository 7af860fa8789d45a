package english

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var shrink = flag.Bool("shrink", false, "lower the ceilings to the present findings")

// phrases are never needed: each has a plainer form.
var phrases = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\b(is|are|was|were|be|been) told\b`), "logs, prints, reports, returns, or rejects"},
	{regexp.MustCompile(`(?i)\b(anew|likewise|whoever|in vain|for ever|be it|but for)\b`), "again, also, any, never, forever, except"},
	{regexp.MustCompile(`(?i)\bsave (for|where|that)\b`), "except, unless"},
	{regexp.MustCompile(`(?i)\bof (which|whom)\b`), "a second sentence, or whose"},
	{regexp.MustCompile(`(?i)\b(is|are|was|were) to (be|come|go)\b`), "must, will, or should"},
	{regexp.MustCompile(`(?i)\b(for|by) (so|how) (long|many|much)\b`), "how long, how many, or a noun"},
	{regexp.MustCompile(`(?im)^\s*// \w+ (is|are) (that|those|what|when|whom?|of|as|for how)\b`), "a verb after the name: returns, holds, reports"},
	{regexp.MustCompile(`, that (is|are|has|have)\b`), "no comma before a restrictive that"},
}

const ceilings = "testdata/ceilings.txt"

// place is one finding.
type place struct{ area, text string }

func TestPhrases(t *testing.T) {
	places := search(t, filepath.Join("..", "..", ".."))
	found := map[string]int{}
	for _, p := range places {
		found[p.area]++
	}
	allowed := readCeilings(t)
	for name, n := range found {
		if n > allowed[name] {
			t.Errorf("%s has %d phrases that are hard to read, and may have %d", name, n, allowed[name])
		}
	}
	for _, p := range places {
		if found[p.area] > allowed[p.area] || testing.Verbose() {
			t.Log(p.text)
		}
	}
	t.Logf("%d places in all", len(places))
	switch {
	case t.Failed():
	case *shrink:
		writeCeilings(t, found)
	case !maps.Equal(found, allowed):
		t.Log("ceilings can be lowered: go test ./adapter/internal/english -shrink")
	}
}

// search returns every place below a folder.
func search(t *testing.T, root string) (all []place) {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			if d.Name() == "testdata" || slices.Contains([]string{".git", "bin", "dist", "adapter/internal/english"}, name) {
				return fs.SkipDir
			}
			return nil
		}
		if !isText(name) || !d.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, p := range phrases {
			for _, at := range p.pattern.FindAllIndex(content, -1) {
				line := 1 + bytes.Count(content[:at[1]], []byte("\n"))
				all = append(all, place{area(name), fmt.Sprintf("%s:%d: %q: write %s", name, line, bytes.TrimSpace(content[at[0]:at[1]]), p.instead)})
			}
		}
		return nil
	})
	must.OK(t, err)
	return all
}

func isText(name string) bool {
	if name == "Makefile" || strings.HasSuffix(name, "/Makefile") {
		return true
	}
	switch filepath.Ext(name) {
	case ".go":
		return !strings.HasSuffix(name, ".pb.go")
	case ".md", ".yaml", ".proto", ".service":
		return true
	case "":
		return strings.HasPrefix(name, "contrib/packages/") || strings.HasPrefix(name, ".ci/")
	case ".1", ".3", ".5", ".8":
		return strings.HasPrefix(name, "contrib/man/")
	}
	return false
}

// area returns the name that a ceiling is kept under: the top folder of a Go file (two levels below
// adapter/), so that a file may move between packages, and the file's own name otherwise.
func area(name string) string {
	parts := strings.Split(name, "/")
	switch {
	case filepath.Ext(name) != ".go" || len(parts) == 1:
		return name
	case parts[0] == "adapter" && len(parts) > 2:
		return "adapter/" + parts[1]
	}
	return parts[0]
}

func readCeilings(t *testing.T) map[string]int {
	content := must.Read(t, ceilings)
	allowed := map[string]int{}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, number, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			t.Fatalf("%s: invalid line %q", ceilings, line)
		}
		allowed[name] = n
	}
	return allowed
}

func writeCeilings(t *testing.T, found map[string]int) {
	var b strings.Builder
	b.WriteString("# How many phrases that are hard to read each folder or document may still have. Numbers only shrink.\n")
	for _, name := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&b, "%s %d\n", name, found[name])
	}
	must.OK(t, os.WriteFile(ceilings, []byte(b.String()), 0o644))
}
