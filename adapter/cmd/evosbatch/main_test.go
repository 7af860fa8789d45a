package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"evosbatch": main})
}

// TestScripts runs testdata/script on a real Slurm of 8 nodes; n[1-3] have the feature big, and
// n[1-2] are in the partition small with a limit of one hour.
func TestScripts(t *testing.T) {
	cluster := slurmtest.Start(t, slurmtest.Options{
		Nodes: 8, ExtraConf: "Licenses=foo:2",
		NodeExtra: map[string]string{"n[1-3]": "Feature=big"},
		Partitions: []slurmtest.Partition{
			{Name: "main", Default: true},
			{Name: "small", Nodes: "n[1-2]", MaxTime: "1:00:00"},
		},
	})
	testscript.Run(t, testscript.Params{
		Dir:             "testdata/script",
		ContinueOnError: true,
		Setup: func(env *testscript.Env) error {
			keep := env.Getenv("PATH") // with the commands under test
			for _, assignment := range cluster.Env() {
				name, value, _ := strings.Cut(assignment, "=")
				env.Setenv(name, value)
			}
			env.Setenv("PATH", keep)
			env.Setenv("TZ", "UTC")
			env.Setenv("EVOSLURM_CONFIG", filepath.Join(env.WorkDir, "evoslurm.yaml"))
			return os.WriteFile(filepath.Join(env.WorkDir, "evoslurm.yaml"), nil, 0o644)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"jobid":  jobID,
			"fields": fields,
			// sidecar drain|release: runs one that is switched off
			"sidecar": func(ts *testscript.TestScript, _ bool, args []string) {
				server := &api.Server{Backend: &off{release: args[0] == "release"}, Log: logrus.New(), Socket: ts.MkAbs(args[0])}
				ts.Check(server.Listen())
				ctx, stop := context.WithCancel(context.Background())
				done := make(chan error, 1)
				go func() { done <- server.Serve(ctx) }()
				ts.Defer(func() { stop(); <-done })
				ts.Setenv("EVOSLURM_API", "unix://"+server.Socket)
			},
		},
	})
}

// off is a sidecar that is switched off, and counts the questions for its state.
type off struct {
	doorkeeper
	release bool
	asked   atomic.Int32
}

func (b *off) Status(context.Context) (api.Status, error) {
	return api.Status{Drain: &api.Drain{DrainRequest: api.DrainRequest{Release: b.release}, Words: fmt.Sprintf("off (question %d)", b.asked.Add(1))}}, nil
}

// jobID sets variables to the job IDs that the last command printed: the one on standard output,
// then those of a chain's further steps. (Other scripts submit to the same cluster, so IDs need not
// be consecutive.)
func jobID(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: jobid VARIABLE…")
	}
	out := strings.TrimSpace(ts.ReadFile("stdout"))
	ids := []string{strings.TrimPrefix(out, "Submitted batch job ")}
	if ids[0] == "" || strings.Trim(ids[0], "0123456789") != "" {
		ts.Fatalf("no job id: %q", out)
	}
	for _, step := range stepID.FindAllStringSubmatch(ts.ReadFile("stderr"), -1) {
		ids = append(ids, step[1])
	}
	if len(ids) < len(args) {
		ts.Fatalf("%d job ids for %d variables", len(ids), len(args))
	}
	for i, name := range args {
		ts.Setenv(name, ids[i])
	}
}

var stepID = regexp.MustCompile(`(?m)^evosbatch: step \d+ of \d+ is job (\d+)$`)

// fields checks that the last command's output, from scontrol show job -o, has all of these fields.
func fields(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: [!] fields NAME=VALUE…")
	}
	out := " " + strings.Join(strings.Fields(ts.ReadFile("stdout")), " ") + " "
	for _, want := range args {
		if strings.Contains(out, " "+want+" ") == neg {
			ts.Fatalf("field %q: there is %v in%s", want, neg, strings.ReplaceAll(out, " ", "\n  "))
		}
	}
}
