//go:build fidelity

package fidelity_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

var (
	workloads = flag.Uint64("fidelity.workloads", 10, "how many workloads TestFidelityRecord runs on each of its two clusters")
	firstSeed = flag.Uint64("fidelity.first", 0, "seed of the first")
	again     = flag.Uint64("fidelity.again", 5, "how many of them it runs twice")
)

var bin string

func TestMain(m *testing.M) {
	rig.Main(func(dir string) int {
		bin = dir
		return m.Run()
	})
}

// TestFidelityRecord plays random workloads on real clusters of 8 and of 16 nodes with a
// sidecar, and writes what became of them into -fidelity.recordings.
func TestFidelityRecord(t *testing.T) {
	for _, nodes := range []int{8, 16} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nodes)
			for seed := *firstSeed; seed < *firstSeed+*workloads; seed++ {
				for _, run := range []string{"a", "b"} {
					if run == "b" && seed >= *firstSeed+*again {
						break
					}
					p := s.play(seed, nodes)
					text, err := json.Marshal(p)
					s.must(err)
					s.must(os.WriteFile(filepath.Join(*recordings, fmt.Sprintf("%d-%d%s.json", nodes, seed, run)), text, 0o644))
				}
			}
		})
	}
}

// site is a real cluster with a sidecar.
type site struct {
	*testing.T
	*rig.Rig
}

func newSite(t *testing.T, nodes int) *site {
	s := &site{t, rig.In(t, slurmtest.Options{Nodes: nodes, Accounting: true, PermitJobExpansion: true}, bin, "strategy: noX\n")}
	s.StartIn(t, rig.Account{})
	return s
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// play submits a workload and waits for its end.
func (s *site) play(seed uint64, nodes int) played {
	s.Helper()
	stem := fmt.Sprintf("%s/out/%d-%d", s.Dir, seed, time.Now().UnixNano())
	p := played{Seed: seed, Nodes: nodes, Load: rig.Load(), Begun: time.Now()}
	jobs := workload(seed, nodes)
	for i, a := range jobs {
		time.Sleep(time.Until(p.Begun.Add(a.After)))
		trace := fmt.Sprintf("%s-%d", stem, i)
		tell := func(step string) string {
			return fmt.Sprintf("echo %s $(date +%%s.%%N) ${EVO_NODES:-$SLURM_JOB_NUM_NODES} >>%s; ", step, trace)
		}
		args := []string{"--parsable", "--output=/dev/null", "--exclusive", fmt.Sprintf("--time=%d", int(a.Limit.Minutes()))}
		name, user, script := "sbatch", 1, ""
		switch {
		case !a.evolves():
			args = append(args, fmt.Sprintf("--nodes=%d", a.Profile[0].Nodes))
			script = tell("1") + fmt.Sprintf("sleep %d; ", a.Profile[0].Duration) + tell("end")
		case a.Drive == drivemode.Chain:
			name, user = "evosbatch", 0
			args = append(args[:len(args)-1], "--drive=chain", "--profile="+a.Profile.String()) // a limit for each step
			script = tell("$EVO_STEP") + "case $EVO_STEP in "
			for k, step := range a.Profile {
				script += fmt.Sprintf("%d) sleep %d;; ", k+1, step.Duration)
			}
			script += "esac; " + tell("end")
		default:
			name, user = "evosbatch", 0
			args = append(args, "--drive="+string(a.Drive), "--profile="+a.Profile.String())
			script = tell("1")
			for k, step := range a.Profile {
				script += fmt.Sprintf("sleep %d; ", step.Duration)
				if k == len(a.Profile)-1 {
					script += tell("end")
				}
				script += `eval "$(evosctl next)"; `
				if k < len(a.Profile)-1 {
					script += tell(strconv.Itoa(k + 2))
				}
			}
		}
		if out, errs, err := s.As(user, name, append(args, "--wrap="+script)...); err != nil {
			s.Fatalf("%s %q: %v\n%s%s", name, args, err, out, errs)
		}
		p.Jobs = append(p.Jobs, playedJob{Submitted: seconds(time.Since(p.Begun))})
	}
	for end := time.Now().Add(10 * time.Minute); ; time.Sleep(500 * time.Millisecond) {
		left, err := s.Cluster.Leftovers(context.Background())
		if err == nil && left.None() {
			break
		}
		if time.Now().After(end) {
			s.Fatalf("Slurm is not clean: %s (%v)", left, err)
		}
	}
	for i := range p.Jobs {
		s.read(&p.Jobs[i], fmt.Sprintf("%s-%d", stem, i), p.Begun)
	}
	p.Load += " " + rig.Load()
	s.Logf("workload %d on %d nodes: %.0f s", seed, nodes, time.Since(p.Begun).Seconds())
	return p
}

// read reads what a job's script wrote.
func (s *site) read(j *playedJob, trace string, begun time.Time) {
	s.Helper()
	text, err := os.ReadFile(trace)
	s.must(err)
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			s.Fatalf("%s: %q", trace, line)
		}
		at, err := strconv.ParseFloat(f[1], 64)
		s.must(err)
		when := seconds(time.UnixMicro(int64(at * 1e6)).Sub(begun))
		if f[0] == "end" {
			j.End = when
			continue
		}
		n, err := strconv.Atoi(f[2])
		s.must(err)
		j.Steps, j.Nodes = append(j.Steps, when), append(j.Nodes, n)
	}
}
