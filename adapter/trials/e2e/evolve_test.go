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
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var evolveBlock = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// What the pages of docs/evolve say is done as they say it, and prints what they say.
func TestEvolvePages(t *testing.T) {
	t.Parallel()
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
			text := must.Read(s.t, path)
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
	t.Run("using", func(t *testing.T) {
		s.t = t
		s.usingPage()
	})
	s.t = t
	s.eventually("all jobs have ended", func() bool { out, _, _ := s.As(0, "squeue", "-h"); return strings.TrimSpace(out) == "" })
	s.stop(syscall.SIGTERM)
}

// usingPage types what docs/using.md says of a first job, one line after another.
func (s *site) usingPage() {
	t := s.t
	text := must.Read(s.t, "../../../docs/using.md")
	blocks := map[string]string{} // the first ones
	for _, m := range evolveBlock.FindAllStringSubmatch(string(text), -1) {
		if blocks[m[1]] == "" {
			blocks[m[1]] = m[2]
		}
	}
	s.must(os.WriteFile(s.Dir+"/out/amr", []byte("#!/bin/sh\necho \"$*\"\n[ \"$1\" = --phase=3 ] && exec sleep 600\n"), 0o755))
	script, id := s.script("amr.sh", blocks["bash"]), ""
	for _, line := range strings.Split(strings.TrimSpace(blocks["sh"]), "\n") {
		command, _, _ := strings.Cut(line, "#")
		words := strings.Fields(strings.NewReplacer("amr.sh", script, "4711", id).Replace(command))
		if slices.Equal(words, []string{"evosctl", "web"}) {
			continue // it serves until it is interrupted; it has a test of its own
		}
		out, errs, err := s.As(0, words[0], words[1:]...)
		if err != nil {
			t.Fatalf("%s: %v: %s", command, err, errs)
		}
		switch words[0] {
		case "evosbatch":
			id = strings.TrimSpace(strings.TrimPrefix(out, "Submitted batch job "))
			s.eventually("the job is in its last step, on one node", func() bool {
				printed, _ := os.ReadFile(s.Dir + "/out/amr-" + id + ".out")
				j := s.job(id)
				return j.Step == 3 && j.Nodes == 1 && strings.Contains(string(printed), "--phase=3\n")
			})
		case "scancel":
			s.eventually("it is cancelled", func() bool { return s.job(id).State == "ended" })
		default:
			if !strings.Contains(out, id) && !strings.Contains(out, "step 3") {
				t.Errorf("%s says nothing of job %s:\n%s", command, id, out)
			}
		}
	}
	out := must.Read(s.t, s.Dir+"/out/amr-"+id+".out")
	for phase, times := range map[string]int{"--phase=coarse": 2, "--phase=2": 5, "--phase=3": 1} {
		if n := strings.Count(string(out), phase+"\n"); n != times {
			t.Errorf("%s ran %d times, want %d\n%s", phase, n, times, out)
		}
	}
}
