package matrix

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestAccountsTable keeps the table of docs/accounting.md as it was measured.
func TestAccountsTable(t *testing.T) {
	text, err := os.ReadFile("../../../docs/accounting.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := AccountsTable(); !strings.Contains(string(text), want) {
		t.Errorf("docs/accounting.md lacks this table:\n%s", want)
	}
}

// accountedStep is how long a step of the jobs takes. Together, the steps are longer than PriorityCalcPeriod.
const accountedStep = 30 * time.Second

// accounts is a cluster with a job in each drive mode, each charged to an account named after the mode.
type accounts struct {
	driven
	jobs  map[drivemode.Mode][]slurmctl.JobID
	truth map[string]float64 // node-seconds by account, as squeue shows them
}

// TestAccounting runs the same evolving job in each drive mode, and compares what Slurm's accounting says with what the
// job held. It takes four minutes, so only `make matrix` runs it, on the releases in [Accounted].
func TestAccounting(t *testing.T) {
	text, err := exec.CommandContext(t.Context(), "slurmctld", "-V").Output() // it needs no slurm.conf
	if err != nil {
		t.Fatal(err)
	}
	release := strings.Join(strings.FieldsFunc(string(text), func(r rune) bool { return r < '0' || r > '9' })[:2], ".")
	if os.Getenv(fileVariable) == "" || Accounted[release] == nil {
		return
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 12, Accounting: true, PermitJobExpansion: true, OwnClock: true,
		PriorityType: "multifactor", ExtraConf: "PriorityWeightFairshare=1000\nPriorityCalcPeriod=1\nAccountingStorageEnforce=associations,limits"})
	a := &accounts{jobs: map[drivemode.Mode][]slurmctl.JobID{}, truth: map[string]float64{}}
	a.bench = newBench(t, cluster, "accounting", "")
	a.startSidecar()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	modes := []drivemode.Mode{drivemode.Merge, drivemode.Companion, drivemode.Chain}
	for _, mode := range modes {
		a.ask(ctx, "sacctmgr", "-i", "add", "account", string(mode))
		a.ask(ctx, "sacctmgr", "-i", "add", "user", cluster.Users()[0].Name, "account="+string(mode))
	}
	watched, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() { defer close(over); a.watch(watched) }()
	a.play(ctx, modes)
	stop()
	<-over
	got := a.measure(ctx, modes)
	version := a.on.version()
	for _, mode := range modes {
		truth := a.truth[string(mode)]
		for _, q := range append(slices.Clone(Queries), Fairshare) {
			percent := int(100*got[mode][q]/truth + 0.5)
			t.Logf("%s %s %s: %.0f of %.0f node-seconds, %d %%", version, mode, q, got[mode][q], truth, percent)
			if q == Fairshare { // each of two resizes may count all of a PriorityCalcPeriod once more
				if resizes := 2 * 60 * 4.0; got[mode][q] < 0.9*truth || got[mode][q] > 1.1*truth+resizes || mode == drivemode.Chain && got[mode][q] > 1.1*truth {
					t.Errorf("Slurm %s, drive mode %s: fair share counts %d %%", version, mode, percent)
				}
				continue
			}
			if want := Accounted[release][mode][q]; percent < want-accountedFor || percent > want+accountedFor {
				t.Errorf("Slurm %s, drive mode %s, %s: %d %% of what the job held, want %d %%", version, mode, q, percent, want)
			}
		}
	}
}

func (a *accounts) ask(ctx context.Context, name string, args ...string) string {
	out, err := a.cluster.Run(ctx, a.root(), name, args...)
	if err != nil {
		a.t.Fatal(err)
	}
	return out
}

// watch adds up what jobs hold.
func (a *accounts) watch(ctx context.Context) {
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(200 * time.Millisecond):
		}
		jobs, err := a.slurm.Jobs(ctx)
		now := time.Now()
		for _, j := range jobs {
			if err == nil && j.State == slurmctl.Running {
				a.truth[j.Account] += float64(len(j.NodeList)) * now.Sub(last).Seconds()
			}
		}
		last = now
	}
}

// play runs the jobs: 1 node, then 4, then 2, for the same time each. Their scripts end by themselves.
func (a *accounts) play(ctx context.Context, modes []drivemode.Mode) {
	must := func(err error) {
		if err != nil {
			a.t.Fatal(err)
		}
	}
	dir := a.cluster.Dir() + "/steps" // which jobs of other users can read
	must(os.Mkdir(dir, 0o755))
	file := func(mode drivemode.Mode, step int) string { return filepath.Join(dir, fmt.Sprint(mode, step)) }
	for _, mode := range modes {
		links := 1
		if mode == drivemode.Chain {
			links = 3
		}
		for step := 1; step <= links; step++ {
			more := []string{"--account=" + string(mode)}
			last, link := 3, (*request.ChainLink)(nil)
			if mode == drivemode.Chain {
				last, link = step, &request.ChainLink{Step: step}
				if step > 1 {
					link.First = uint32(a.jobs[mode][0])
					more = append(more, fmt.Sprintf("--dependency=afterok:%d", a.jobs[mode][step-2]), "--kill-on-invalid-dep=yes")
				}
			}
			id, err := a.park(ctx, mode, "1@30s,4@30s,2@30s", "until [ -e "+file(mode, last)+" ]; do sleep 0.2; done", link, more...)
			must(err)
			a.jobs[mode] = append(a.jobs[mode], id)
		}
	}
	for _, mode := range modes {
		must(a.is(ctx, a.jobs[mode][0], 1))
	}
	for step := 1; step <= 3; step++ {
		time.Sleep(accountedStep)
		for _, mode := range modes {
			must(os.WriteFile(file(mode, step), nil, 0o644))
			if step < 3 && mode != drivemode.Chain {
				answer, err := a.sidecar.Next(ctx, uint32(a.jobs[mode][0]), api.NextRequest{From: step})
				must(err)
				if !answer.Ready {
					a.t.Fatalf("%s: step %d's nodes never came: %s", mode, step+1, answer.Note)
				}
			}
		}
	}
	must(a.clean(ctx))
}

// sacctRow is a line of sacct.
type sacctRow struct {
	id, name, state, end string
	nodeSeconds          float64
}

func (a *accounts) rows(ctx context.Context, account string, more ...string) (all []sacctRow) {
	out := a.ask(ctx, "sacct", append([]string{"-X", "-a", "-P", "-n", "-S", "now-2hours", "-A", account, "-o", "JobIDRaw,JobName,State,End,ElapsedRaw,NNodes"}, more...)...)
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "|")
		seconds, _ := strconv.ParseFloat(f[4], 64)
		nodes, _ := strconv.ParseFloat(f[5], 64)
		all = append(all, sacctRow{f[0], f[1], f[2], f[3], seconds * nodes})
	}
	return all
}

// measure returns the node-seconds that the queries count.
func (a *accounts) measure(ctx context.Context, modes []drivemode.Mode) map[drivemode.Mode]map[Query]float64 {
	got := map[drivemode.Mode]map[Query]float64{}
	for _, mode := range modes {
		of := map[Query]float64{}
		for _, r := range a.rows(ctx, string(mode)) {
			of[Sacct] += r.nodeSeconds
			if strings.HasPrefix(r.state, "CANCELLED") {
				a.t.Errorf("%s: %+v", mode, r)
			}
		}
		seen := map[string]bool{}
		for _, r := range a.rows(ctx, string(mode), "-D") {
			if r.end != "Unknown" && !slices.Contains([]string{"RESIZING", "REQUEUED", "PENDING", "RUNNING", "SUSPENDED"}, r.state) {
				of[XDMoD] += r.nodeSeconds
			}
			if !seen[r.id] {
				seen[r.id] = true
				of[Seff] += r.nodeSeconds
			}
		}
		got[mode] = of
	}
	cpus := float64(a.cluster.Options().CPUs)
	time.Sleep(70 * time.Second) // PriorityCalcPeriod
	for _, mode := range modes {
		line, _, _ := strings.Cut(strings.TrimSpace(a.ask(ctx, "sshare", "-P", "-n", "-A", string(mode), "-o", "RawUsage")), "\n")
		used, _ := strconv.ParseFloat(strings.TrimSpace(line), 64)
		got[mode][Fairshare] = used / cpus
	}
	if err := a.cluster.StepClock(time.Hour); err != nil { // slurmdbd adds up whole hours
		a.t.Fatal(err)
	}
	if err := a.cluster.StopSlurmdbd(ctx); err != nil {
		a.t.Fatal(err)
	}
	if err := a.on.until(ctx, func() error { return a.cluster.StartSlurmdbd(ctx) }); err != nil { // its port may still be in use
		a.t.Fatal(err)
	}
	for _, mode := range modes {
		if err := a.on.until(ctx, func() error {
			out := a.ask(ctx, "sreport", "-P", "-n", "-t", "Seconds", "-T", "node", "cluster", "AccountUtilizationByUser",
				"start=now-3hours", "end=now", "accounts="+string(mode), "format=Login,Used")
			for line := range strings.Lines(out) {
				if login, used, _ := strings.Cut(strings.TrimSpace(line), "|"); login == a.on.user().Name {
					got[mode][Sreport], _ = strconv.ParseFloat(used, 64)
					return nil
				}
			}
			return fmt.Errorf("sreport has nothing of account %s: %q", mode, out)
		}); err != nil {
			a.t.Error(err)
		}
	}
	return got
}
