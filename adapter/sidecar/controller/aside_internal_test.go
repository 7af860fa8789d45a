package controller

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

const asideEnv = "EVOSLURM_TEST_ASIDE" // a database, beside which a process of the test handles a job

// init has a process of the test be a sidecar that ends while it handles a job.
func init() {
	database, stage, is := strings.Cut(os.Getenv(asideEnv), "|")
	if !is {
		return
	}
	h, err := openHandling(database)
	if err != nil {
		panic(err)
	}
	h.begin()
	h.note().Note(7, time.Unix(1_700_000_000, 0), msg.Stage(stage[0]-'0'))
	if strings.HasSuffix(stage, "panic") {
		h.panicked()
		os.Exit(2)
	}
	p, _ := os.FindProcess(os.Getpid())
	_ = p.Kill() // as the kernel does where memory is short
	select {}
}

// TestHandlingOutlivesKills checks that the next life knows whose handling ended the last one, and
// sets that job aside: at once if that proves something, otherwise the second time.
func TestHandlingOutlivesKills(t *testing.T) {
	for _, c := range []struct {
		name, stage string
		lives       int // until it is set aside
		why         string
	}{
		{"killed at the first handling", "1", 1, "killed"},
		{"panicked at the first handling", "1panic", 1, "panicked"},
		{"panicked later", "0panic", 1, "panicked"},
		{"killed later", "0", 2, "killed"},
		{"panicked as all were planned", "2panic", 2, "panicked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			database := filepath.Join(t.TempDir(), "db")
			for life := 1; life <= c.lives; life++ {
				child := exec.Command(os.Args[0])
				child.Env = append(os.Environ(), asideEnv+"="+database+"|"+c.stage)
				if err := child.Run(); err == nil {
					t.Fatal("the process did not end as it should")
				}
				aside, doubt := nextLife(t, database, "v1")
				switch {
				case life < c.lives && (len(aside) > 0 || doubt != 7):
					t.Errorf("life %d: %v are set aside, %d is in doubt", life, aside, doubt)
				case life == c.lives && (len(aside) != 1 || aside[0].Job != 7 || !strings.Contains(aside[0].Why, c.why) || doubt != 0):
					t.Errorf("life %d: %v are set aside, %d is in doubt", life, aside, doubt)
				}
			}
			if aside, doubt := nextLife(t, database, "v1"); len(aside) != 1 || doubt != 0 {
				t.Errorf("after an orderly end: %v, %d", aside, doubt)
			}
			if aside, _ := nextLife(t, database, "v2"); len(aside) != 0 {
				t.Errorf("another version sets aside %v", aside)
			}
		})
	}
}

// nextLife begins a life of the sidecar, and ends it in order.
func nextLife(t *testing.T, database, version string) ([]msg.Aside, slurmctl.JobID) {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	h, err := openHandling(database)
	must.OK(t, err)
	aside, doubt, err := h.ended(version, time.Now(), log)
	must.OK(t, err)
	h.begin()
	h.close()
	return aside, doubt
}

// TestHandlingOfAnotherBoot checks that a machine crash blames no job: the file may be old.
func TestHandlingOfAnotherBoot(t *testing.T) {
	database := filepath.Join(t.TempDir(), "db")
	h, err := openHandling(database)
	must.OK(t, err)
	h.begin()
	h.note().Note(7, time.Now(), msg.First)
	copy(h.memory[bootAt:], "another boot")
	if aside, doubt := nextLife(t, database, "v1"); len(aside) > 0 || doubt != 0 {
		t.Errorf("%v, %d", aside, doubt)
	}
}
