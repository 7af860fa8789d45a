// Command evosmatrix runs the operations that Evoslurm relies on on the Slurm of
// several Debian releases and prints the table of what works.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/evoslurm/evoslurm/adapter/trials/matrix"
	"github.com/evoslurm/evoslurm/adapter/trials/sites"
)

func main() {
	matrix.Entered()
	only := flag.String("only", "", "Slurm versions, by comma, e.g. 24.11,26.05; default: all")
	out := flag.String("out", "", "file that the table is written to, besides standard output")
	accounts := flag.Bool("accounts", false, "only the table of what works under which account")
	full := flag.Bool("full", false, "run the whole real-Slurm test suite, too")
	race := flag.Bool("race", false, "with the race detector; not for releases with an older C library than this machine's")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *only, *out, *accounts, *full, *race); err != nil {
		fmt.Fprintln(os.Stderr, "evosmatrix:", err)
		os.Exit(1)
	}
}

// tests names what runs on each release.
const tests = "-test.run=^(TestMatrix|TestMatrixStepMgr|TestMatrixBlocks|TestModel|TestAccounting|TestRights|TestRateLimit|TestExpedite|TestExternal)$"

// requests names the tests of the sidecar that run on each release besides: what jobs may ask for beside their profile.
const requests = "-test.run=^(TestOwnReservation|TestArray|TestLicenses|TestNear|TestGrowDelay)$"

// blockSites names the sites of the conformance suite that hold the model to a real topology/block, which 24.11 is the first to have.
const blockSites = "-test.run=^TestConformance$/^real$/^blocks"

// suite lists what -full runs: the packages whose tests use a real Slurm, except two tests of the
// installation, which mount an overlay: a root is already one.
var suite = []string{"./slurmctl/...", "./adapter/sidecar/controller/...", "./adapter/job/submit/...", "./adapter/cmd/...", "./adapter/trials/e2e",
	"-skip=^(TestReadmeAsWritten|TestUnderTheUnit)$"}

func run(ctx context.Context, only, out string, accounts, full, race bool) error {
	work, err := os.MkdirTemp("", "evosmatrix-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	program := filepath.Join(work, "matrix.test")
	sidecar := filepath.Join(work, "controller.test")
	if err := fill(ctx, work, program, sidecar, race); err != nil {
		return err
	}
	chosen := tests
	if accounts {
		chosen = "-test.run=^TestRights$"
	}
	var results []matrix.Result
	var failed []string
	for _, release := range matrix.Releases {
		if only != "" && !slices.Contains(strings.Split(only, ","), release.Slurm) {
			continue
		}
		begun := time.Now()
		t := trial{release: release, program: program, tests: chosen, sidecar: sidecar, results: filepath.Join(work, release.Suite+".json")}
		err := t.run(ctx, full)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, matrix.ErrUnavailable):
			fmt.Fprintf(os.Stderr, "Slurm %s: skipped: Debian %s %v\n", release.Slurm, release.Suite, err)
			continue
		case err != nil:
			failed = append(failed, release.Slurm)
			fmt.Fprintf(os.Stderr, "%s\nSlurm %s: failed: %v\n", &t.log, release.Slurm, err)
		}
		f, err := os.Open(t.results)
		if err != nil {
			continue
		}
		more, err := matrix.Read(f)
		f.Close()
		if err != nil {
			return err
		}
		results = append(results, more...)
		fmt.Fprintf(os.Stderr, "Slurm %s: %d operations in %d s\n", release.Slurm, len(more), int(time.Since(begun).Seconds()))
	}
	tables, err := written(results)
	if err != nil {
		return err
	}
	fmt.Print(strings.TrimSpace(tables[0]+"\n"+tables[1]) + "\n")
	if out != "" {
		if err := writeDocument(out, tables[0], tables[1]); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("not all is well on Slurm %s", strings.Join(failed, ", "))
	}
	return nil
}

// fill puts into the folder what all releases need: the guard, the test programs, and the commands for TestRights.
func fill(ctx context.Context, work, program, sidecar string, race bool) error {
	guard, err := os.ReadFile("contrib/job_submit.lua")
	if err := errors.Join(err, os.Chmod(work, 0o755), os.WriteFile(filepath.Join(work, "job_submit.lua"), guard, 0o644)); err != nil {
		return err
	}
	// One build for all: static, since a root's C library may be older.
	how := []string{"-tags=sqlite_omit_load_extension,osusergo,netgo", "-ldflags=-linkmode=external -extldflags=-static"}
	commands := how
	if race { // as `make test` builds them, so that most is built already
		how, commands = []string{"-race"}, nil
	}
	for _, args := range [][]string{
		slices.Concat([]string{"test", "-c", "-o", program}, how, []string{"./adapter/trials/matrix"}),
		slices.Concat([]string{"test", "-c", "-o", sidecar}, how, []string{"./adapter/sidecar/controller"}),
		slices.Concat([]string{"test", "-c", "-o", filepath.Join(work, "slurmsim.test")}, how, []string{"./slurmctl/slurmsim"}),
		slices.Concat([]string{"build", "-o", work}, commands, []string{"./adapter/cmd/..."}),
	} {
		if text, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("go %v: %w\n%s", args, err, text)
		}
	}
	return nil
}

// trial is one release's turn.
type trial struct {
	release matrix.Release
	program string
	tests   string
	sidecar string // the program with the tests of requests
	results string
	log     bytes.Buffer
}

func (t *trial) run(ctx context.Context, full bool) error {
	if t.release.Native(ctx) {
		cmd := exec.CommandContext(ctx, t.program, t.tests)
		cmd.Env = append(os.Environ(), "EVOSLURM_MATRIX="+t.results)
		cmd.Stdout, cmd.Stderr = &t.log, &t.log
		if err := cmd.Run(); err != nil || !full {
			return err
		}
		return t.command(exec.CommandContext(ctx, "go", append([]string{"test", "-p", "1"}, suite...)...))
	}
	more := []string{"gcc", "libc6-dev"} // for a cluster's own clock
	if full {
		more = matrix.BuildPackages
	}
	root, err := matrix.Root(ctx, t.release, more, &t.log)
	if err != nil {
		return err
	}
	t.log.Reset()
	work := filepath.Dir(t.program)
	cmd, err := matrix.Enter(ctx, root, []string{work}, t.program, t.tests)
	if err != nil {
		return err
	}
	cmd.Env = append(cmd.Env, "EVOSLURM_MATRIX="+t.results)
	if err := t.command(cmd); err != nil {
		return err
	}
	if full {
		return t.wholeSuite(ctx, root)
	}
	if t.tests != tests || t.release.Slurm < "22.05" {
		return nil
	}
	if cmd, err = matrix.Enter(ctx, root, []string{work}, t.sidecar, requests, "-test.parallel=3"); err != nil {
		return err
	}
	if err := t.command(cmd); err != nil || t.release.Slurm < "24.11" {
		return err
	}
	if cmd, err = matrix.Enter(ctx, root, []string{work}, filepath.Join(work, "slurmsim.test"), blockSites); err != nil {
		return err
	}
	return t.command(cmd)
}

// wholeSuite runs the tests inside of the root, built there by this machine's Go.
func (t *trial) wholeSuite(ctx context.Context, root string) error {
	text, err := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOMODCACHE").Output()
	if err != nil {
		return err
	}
	binds := strings.Fields(string(text))
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	args := append([]string{"test", "-p", "1", "-timeout", "20m"}, suite...)
	cmd, err := matrix.Enter(ctx, root, append(binds, here), binds[0]+"/bin/go", args...)
	if err != nil {
		return err
	}
	// what was built stays in the root, for the next time
	cmd.Env = append(cmd.Env, "PWD="+here, "GOFLAGS=-buildvcs=false -mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local",
		"GOCACHE=/var/cache/go-build", "GOMODCACHE="+binds[1], "PATH="+binds[0]+"/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	return t.command(cmd)
}

func (t *trial) command(cmd *exec.Cmd) error {
	cmd.Stdout, cmd.Stderr = &t.log, &t.log
	return cmd.Run()
}

// written returns the tables of operations and of accounts, each "" without results.
func written(results []matrix.Result) (tables [2]string, err error) {
	var parts [2][]matrix.Result
	for _, r := range results {
		at := 0
		if r.OfAccounts() {
			at = 1
		}
		parts[at] = append(parts[at], r)
	}
	for i, what := range []string{"operation", "the sidecar runs as"} {
		var b strings.Builder
		if len(parts[i]) > 0 {
			err = errors.Join(err, matrix.WriteTable(&b, what, parts[i]))
		}
		tables[i] = b.String()
	}
	return tables, err
}

// accountsHeading begins the part of the document that is about accounts.
const accountsHeading = "## Accounts\n"

// writeDocument writes the dated tables. It keeps those that were not made, and the table of real sites.
func writeDocument(path, operations, accounts string) error {
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	rest, real, hasReal := strings.Cut(string(text), "\n"+sites.Heading)
	first, second, _ := strings.Cut(rest, "\n"+accountsHeading)
	today := time.Now().UTC().Format(time.DateOnly)
	if operations != "" {
		first = "# What works on which Slurm\n\n" +
			"Written by `make matrix` on " + today + ": every operation that Evoslurm relies on, on\n" +
			"private clusters of 8 nodes made of Debian's packages, with slurmdbd and `permit_job_expansion`.\n" +
			"*commands*: Slurm's commands alone; *merge*, *companion*, *chain*: by the sidecar, in that drive mode.\n" +
			"**refused**: Slurm said no, in the words below; **failed**: what was seen is not what was asked for.\n" +
			"*model*: the model of slurmctld in virtual time (slurmctl/slurmsim), by Slurm's commands alone.\n" +
			"*job_submit.lua*: contrib's guard of other people's jobs. *stepmgr*: every job has a step manager, without slurmdbd.\n" +
			"Evoslurm relies on all but these: `shrink by NumNodes after a merge`, `merge into an ended job does no\n" +
			"harm`, `a shrunk job runs nothing on another user's nodes`, `anybody expands anybody's job`, and resizing a second\n" +
			"time without slurmdbd. Where slurmdbd does not start (line 1) all that follows is without it.\n\n" + operations
	}
	if accounts != "" {
		second = "\nWritten by `make matrix` on " + today + ": one job in each drive mode, of 1, 3, and 2 nodes, beside a sidecar\n" +
			"that runs as *root*, as SlurmUser (*slurm*), or as an account with AdminLevel=Operator (*operator*).\n" +
			"*yes*: it had all its nodes, and nothing is left. The notes say what the account cannot do, why, and what comes of it.\n" +
			"[RIGHTS.md](../contrib/RIGHTS.md) says how to choose.\n\n" + accounts
	}
	if second != "" {
		first += "\n" + accountsHeading + second
	}
	if hasReal {
		first += "\n" + sites.Heading + real
	}
	return os.WriteFile(path, []byte(first), 0o644)
}
