package english

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestFolders checks that the page of adapter names all folders below each of its rows, and all rooms of the core.
func TestFolders(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	must.OK(t, err)
	rows := map[string]string{"sidecar/core": string(regexp.MustCompile(`(?s)The core is a stack of rooms.*?\.go\)`).Find(page))}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+)/` \\|(.*)$").FindAllStringSubmatch(string(page), -1) {
		rows[row[1]] = row[2]
	}
	if len(rows) != 9 {
		t.Errorf("%d rows were found", len(rows))
	}
	for folder, text := range rows {
		below, err := os.ReadDir("../../" + folder)
		must.OK(t, err)
		named := regexp.MustCompile(`[a-z0-9]+`).FindAllString(text, -1)
		for _, d := range below {
			if d.IsDir() && d.Name() != "internal" && d.Name() != "testdata" && !slices.Contains(named, d.Name()) {
				t.Errorf("adapter/README.md does not name %s/%s", folder, d.Name())
			}
		}
	}
}
