package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/version"
	"github.com/evoslurm/evoslurm/adapter/lab/evosim"
	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/adapter/sidecar/recorder"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"evosim": func() {
			os.Exit(evosim.Run(context.Background(), newCommand(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// TestScripts runs the command as a user does. $WORK/whole holds a recording of a sidecar that saw
// a job grow, $WORK/cut.evorec its truncated file, $WORK/changed.evorec a modified one,
// $WORK/other.evorec one of another version. $WORK/experiments is docs/experiments, $WORK/observed a
// day that a sidecar has observed.
func TestScripts(t *testing.T) {
	whole := t.TempDir()
	record(t, whole, version.Of(linked))
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true, Setup: func(env *testscript.Env) error {
		dir := filepath.Join(env.WorkDir, "whole")
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			return err
		}
		files, err := recorder.Files(dir)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			return err
		}
		changed := append([]byte(nil), text...)
		changed[len(changed)-3] ^= 1
		for name, b := range map[string][]byte{"cut": text[:len(text)-3], "changed": changed} {
			if err := os.WriteFile(filepath.Join(env.WorkDir, name+".evorec"), b, 0o600); err != nil {
				return err
			}
		}
		other := filepath.Join(env.WorkDir, "other")
		record(t, other, "v9.9")
		if err := observedDay(filepath.Join(env.WorkDir, "observed")); err != nil {
			return err
		}
		return os.CopyFS(filepath.Join(env.WorkDir, "experiments"), os.DirFS("../../../docs/experiments"))
	}})
}

// record has a sidecar see a job through, whose name would change a terminal.
func record(t *testing.T, dir, version string) {
	t.Helper()
	cluster := slurmsim.New(slurmsim.Options{Nodes: 4, Accounting: true, PermitJobExpansion: true})
	defer cluster.Close()
	noX, err := planner.StrategyByName("noX")
	must.OK(t, err)
	cfg := config.Default()
	var r *recorder.Recorder
	s := &simulate.Sidecar{Cluster: cluster, Database: simulate.NewDatabase(), Config: cfg, Strategy: noX,
		Record: func(start recorder.Start) *recorder.Recorder {
			r = recorder.New(dir, 4, version, start)
			r.Warn = func(err error) { t.Error(err) }
			return r
		}}
	s.Start()
	profile, err := planner.ParseProfile("1@5m,3@5m")
	must.OK(t, err)
	if _, err := s.Submit(&simulate.App{User: simulate.Alice, Name: "amr\x1b[2J\u202e", Profile: profile}); err != nil {
		t.Fatal(err)
	}
	cluster.Run(cluster.Now().Add(20 * time.Minute))
	must.OK(t, r.Close())
}

// TestSubmission: --submission says of every row how jobs come.
func TestSubmission(t *testing.T) {
	for _, burst := range []bool{true, false} {
		for _, of := range [][2]bool{{}, {true, false}, {false, true}} {
			rows, _ := espTables(of[0], of[1], burst)
			for _, r := range rows {
				if jobs := r.esp.Jobs(); (jobs[49].Submit == 0) != burst {
					t.Errorf("burst %v: %s: job 50 comes after %d s", burst, r.Jobs, jobs[49].Submit)
				}
			}
		}
	}
}

// TestBadInput: bad input is exit status 2.
func TestBadInput(t *testing.T) {
	if got := evosim.Run(context.Background(), newCommand(), []string{"replay", filepath.Join(t.TempDir(), "none")}, os.Stdin, os.Stdout, os.Stderr); got != 2 {
		t.Errorf("exit status %d", got)
	}
}

// observedDay makes a folder with the observed day that package lab/observed keeps.
func observedDay(dir string) error {
	const day = "2026-03-01.jsonl"
	text, err := os.ReadFile("../../lab/observed/testdata/" + day)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err = z.Write(text)
	return errors.Join(err, z.Close(), os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, day+".gz"), b.Bytes(), 0o600))
}
