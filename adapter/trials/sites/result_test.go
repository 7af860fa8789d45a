package sites

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func TestWords(t *testing.T) {
	for command, want := range map[string][]string{
		"":                                   nil,
		"srun  -N2 hostname":                 {"srun", "-N2", "hostname"},
		"sbatch --wrap='sleep 5' -t1":        {"sbatch", "--wrap=sleep 5", "-t1"},
		"sh -c 'a | b; echo \"x y\"' '' end": {"sh", "-c", "a | b; echo \"x y\"", "", "end"},
	} {
		if got := words(command); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

func TestDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "MATRIX.md")
	const before = "# What works\n\n| a |\n|---|\n| b |\n\n1. note\n"
	must.OK(t, os.WriteFile(path, []byte(before), 0o600))
	day := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	first, second := deepops().Name, ugent().Name
	for range 2 { // the second time takes the place of the first
		if err := WriteDocument(path, []Result{
			{Site: second, Slurm: "22.05.8", Case: "1→3→1", Outcome: Failed, Text: "a|b"},
			{Site: first, Slurm: "22.05.8", Case: "1→3→1", Drive: "companion", Outcome: Passed},
			{Site: stepMgr().Name, Slurm: "24.11.5", Case: "all", Outcome: Skipped, Text: "no mirror"},
			{Site: first, Slurm: "22.05.8", Case: "too large", Outcome: Refused, Text: "MaxNodes=6"},
		}, day); err != nil {
			t.Fatal(err)
		}
	}
	text := must.Read(t, path)
	got, ok := strings.CutPrefix(string(text), before+"\n"+Heading+"\nWritten by `make sites` on 2026-11-22, on Slurm 22.05.8 unless a row names another:")
	if !ok || strings.Count(got, Heading) != 0 {
		t.Errorf("the document is\n%s", text)
	}
	want := "| " + first + " | 1→3→1 | companion | passed |\n|  | too large |  | refused: MaxNodes=6 |\n| " + second + " | 1→3→1 |  | **failed**: a\\|b |\n| stepmgr (Slurm 24.11.5) | all |  | skipped: no mirror |\n"
	if !strings.Contains(got, want) || !strings.Contains(got, "- **"+second+"**: ") {
		t.Errorf("the table is\n%s\nwant in it\n%s", got, want)
	}
}

// TestMissingDocument checks that a missing document is created before the sites are tried, or refused then.
func TestMissingDocument(t *testing.T) {
	dir := t.TempDir()
	if err := OpenDocument(dir + "/missing/MATRIX.md"); err == nil {
		t.Error("a document in a missing folder is not refused")
	}
	if err := errors.Join(OpenDocument(dir+"/MATRIX.md"), WriteDocument(dir+"/MATRIX.md", nil, time.Now())); err != nil {
		t.Error(err)
	}
}

func TestParseNode(t *testing.T) {
	name, has := parseNode("NodeName=n3 Arch=x86_64 CoresPerSocket=2 Gres=gpu:8 GresDrain=N/A GresUsed=gpu:(null):8(IDX:0-7),nic:0 NodeAddr=127.0.0.1 RealMemory=1500 AllocMem=800 FreeMem=1 ")
	if want := (share{Memory: "800", GRES: "gpu:8"}); name != "n3" || has != want {
		t.Errorf("%s has %+v, want %+v", name, has, want)
	}
}
