package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

var evolveBlock = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// What the pages of docs/evolve say is done as they say it, and prints what they say.
func TestEvolvePages(t *testing.T) {
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, nil)
	library, err := filepath.Abs("../../../contrib/python")
	s.must(err)
	pages, err := filepath.Glob("../../../docs/evolve/*.md")
	s.must(err)
	if len(pages) != 5 {
		t.Fatalf("pages: %v", pages)
	}
	for _, path := range pages {
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		t.Run(name, func(t *testing.T) {
			s.t = t
			text, err := os.ReadFile(path)
			s.must(err)
			blocks := map[string]string{}
			for _, m := range evolveBlock.FindAllStringSubmatch(string(text), -1) {
				blocks[m[1]] = m[2]
			}
			job := blocks["bash"]
			if python := blocks["python"]; python != "" {
				job = strings.Replace(job, "python3 steps.py", "PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="+library+" python3 "+s.script("steps-of-page.py", python), 1)
			}
			words := strings.Fields(blocks["sh"])
			if want := []string{"evosbatch", "--parsable", "job.sh"}; !slices.Equal(words, want) {
				t.Fatalf("it is submitted by %q", words)
			}
			out, errs, err := s.As(0, "evosbatch", "--parsable", "--output=page-%j", s.script(name+"-job.sh", job))
			if err != nil {
				t.Fatalf("%v: %s", err, errs)
			}
			id := strings.Fields(out)[0]
			got := ""
			file := s.Dir + "/out/page-" + id
			if strings.Contains(job, ">>steps.txt") {
				file = s.Dir + "/out/steps.txt"
			}
			enough := func() bool {
				b, _ := os.ReadFile(file)
				got = strings.Join(messages(strings.Split(string(b), "\n")), "\n")
				return strings.Count(got, "\n") >= strings.Count(blocks["text"], "\n")
			}
			s.eventually("the job of "+name+" has printed all", enough)
			if got != blocks["text"] {
				t.Errorf("it printed\n%s\nwant\n%s", got, blocks["text"])
			}
		})
	}
	s.t = t
	s.eventually("all jobs have ended", func() bool { out, _, _ := s.As(0, "squeue", "-h"); return strings.TrimSpace(out) == "" })
	s.stop(syscall.SIGTERM)
}
