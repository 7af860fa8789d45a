package controller_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// powerPrograms holds the programs that Slurm runs to power nodes down and up: it records their names for
// powerHouse, which is root.
const powerPrograms = `#!/bin/sh
export SLURM_CONF=@DIR@/slurm.conf
mkdir -p @DIR@/state/power
for node in $(scontrol show hostnames "$1"); do : >@DIR@/state/power/$(basename "$0" .sh)-$node; done
`

// powerHouse switches nodes off and on as Slurm asks; one that is broken stays off.
type powerHouse struct {
	cluster *slurmtest.Cluster
	mu      sync.Mutex
	broken  string
	asked   []string // to come up
}

func (p *powerHouse) run(ctx context.Context) {
	var starting sync.WaitGroup
	defer starting.Wait()
	for ctx.Err() == nil {
		wishes, _ := filepath.Glob(p.cluster.Dir() + "/state/power/*-n*")
		for _, wish := range wishes {
			what, node, _ := strings.Cut(filepath.Base(wish), "-")
			_ = os.Remove(wish)
			if what == "suspend" {
				_ = p.cluster.StopNode(ctx, node) // it may be off already
				continue
			}
			p.mu.Lock()
			p.asked = append(p.asked, node)
			broken := p.broken == node
			p.mu.Unlock()
			if broken {
				continue
			}
			starting.Go(func() {
				time.Sleep(2 * time.Second)
				_ = p.cluster.StopNode(ctx, node)
				_ = p.cluster.StartNode(ctx, node, "-b")
			})
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// powerLab returns a cluster whose nodes n3 to n8 are switched off after some seconds without a job.
func powerLab(t *testing.T, suspend int, change ...func(*config.Config)) (*lab, *powerHouse) {
	t.Helper()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true,
		Files: map[string]string{"resume.sh": powerPrograms, "suspend.sh": powerPrograms},
		ExtraConf: fmt.Sprintf(`
PrivateData=cloud
SlurmdTimeout=300
SlurmctldParameters=idle_on_node_suspend,power_save_interval=1
ResumeProgram=@DIR@/resume.sh
SuspendProgram=@DIR@/suspend.sh
ResumeRate=0
SuspendRate=0
ResumeTimeout=20
SuspendTimeout=2
SuspendTime=%d
SuspendExcNodes=n[1-2]
`, suspend)}, change...)
	house := &powerHouse{cluster: l.cluster}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); house.run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return l, house
}

// allOff waits until all nodes are off that may be.
func (l *lab) allOff() {
	l.t.Helper()
	l.scontrol("update", "NodeName=n[3-8]", "State=POWER_DOWN")
	l.eventually("all nodes off", func() error {
		if off := l.withPower(slurmctl.PoweredDown); len(off) != 6 {
			return fmt.Errorf("off: %v", off)
		}
		return nil
	})
}

func (l *lab) withPower(p slurmctl.Power) []string {
	l.t.Helper()
	nodes, _, err := l.slurm.Nodes(l.ctx())
	l.must(err)
	var names []string
	for _, n := range nodes {
		if n.Power() == p {
			names = append(names, n.Name)
		}
	}
	return names
}

// TestPowerSaving: nodes that are switched off are as good as others, later.
func TestPowerSaving(t *testing.T) {
	t.Parallel()
	l, house := powerLab(t, 12)
	l.run("starts and grows onto nodes that are off", func(l *lab) {
		l.allOff()
		id := l.submit("4@10s,7@10s,1@10s")
		l.running(id, 1)
		l.has(l.next(id, 1), 7)
		l.has(l.next(id, 2), 1)
		l.end(id)
	})
	l.run("nodes held for a growth that is near stay on", func(l *lab) {
		id := l.submit("1@30s,5@10s")
		job := l.running(id, 1)
		for time.Until(job.Plan[1].Start) > 0 { // twice SuspendTime and more
			if off := l.withPower(slurmctl.PowerDown); slices.ContainsFunc(off, func(n string) bool {
				nodes, err := slurmctl.ExpandNodes(job.Plan[1].NodeList)
				return err != nil || slices.Contains(nodes, n)
			}) {
				t.Fatalf("%v of %s are switched off", off, job.Plan[1].NodeList)
			}
			time.Sleep(time.Second)
			var err error
			job, err = l.Job(l.ctx(), id)
			l.must(err)
		}
		l.has(l.next(id, 1), 5)
		l.end(id)
	})
	l.run("one that does not come up is replaced", func(l *lab) {
		l.allOff()
		id := l.submit("1@10s,4@10s")
		var broken string
		l.eventually("the growth's nodes are asked for", func() error {
			job, err := l.Job(l.ctx(), id)
			if err != nil || len(job.Plan) < 2 {
				return fmt.Errorf("no plan: %v", err)
			}
			nodes, err := slurmctl.ExpandNodes(job.Plan[1].NodeList)
			l.must(err)
			broken = nodes[len(nodes)-1]
			return nil
		})
		house.mu.Lock()
		house.broken, house.asked = broken, nil
		house.mu.Unlock()
		l.running(id, 1)
		a := l.next(id, 1)
		l.has(a, 4)
		for _, p := range a.Parts {
			if slices.Contains(p.NodeList, broken) {
				t.Errorf("the job has %s, which never came up", broken)
			}
		}
		l.end(id)
		house.mu.Lock()
		house.broken = ""
		house.mu.Unlock()
		l.scontrol("update", "NodeName="+broken, "State=POWER_DOWN")
	})
}

// TestPowerLeftToSlurm checks a sidecar that may not power up nodes, so that Slurm does so: jobs
// and expanders are CONFIGURING for a while, which is no failure.
func TestPowerLeftToSlurm(t *testing.T) {
	t.Parallel()
	l, _ := powerLab(t, 12)
	l.stop()
	l.slurm.Dir = refusing(t, "POWER_UP")
	l.start()
	for _, drive := range []drivemode.Mode{drivemode.Merge, drivemode.Companion} {
		l.run(string(drive), func(l *lab) {
			l.allOff()
			id := l.submitSpec(request.Request{Drive: drive}, "3@10s,6@10s,1@10s")
			job := l.running(id, 1)
			if late := time.Since(job.Start); late > 8*time.Second {
				t.Errorf("its first step began %v ago: when Slurm gave it nodes, not when they were up", late)
			}
			l.has(l.next(id, 1), 6)
			l.has(l.next(id, 2), 1)
			events, err := l.store.Events(l.ctx(), 0, 0, 10000)
			l.must(err)
			for _, e := range events {
				if e.Kind == "failed" && !strings.Contains(string(e.Detail), "POWER_UP") {
					t.Errorf("a failure: %s", e.Detail)
				}
			}
			l.end(id)
		})
	}
}

// refusing returns a folder of Slurm's commands in which scontrol refuses arguments with that word,
// as it does to users who are not administrators.
func refusing(t *testing.T, word string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"squeue", "sinfo", "sbatch", "salloc", "scancel", "srun", "sacctmgr", "sdiag", "scontrol"} {
		path, err := exec.LookPath(name)
		if errors.Is(err, exec.ErrNotFound) {
			continue
		}
		must.OK(t, err)
		script := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\"\n", path)
		if name == "scontrol" {
			script = fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *%s*) echo 'slurm_update error: Invalid user id' >&2; exit 1;; esac\nexec %s \"$@\"\n", word, path)
		}
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	must.OK(t, os.Chmod(dir, 0o755))
	for d := dir; d != "/"; d = filepath.Dir(d) { // users' commands need it as well
		_ = os.Chmod(d, 0o755)
		if d == os.TempDir() || filepath.Dir(d) == os.TempDir() {
			break
		}
	}
	return dir
}

// TestPowerByPlan: with power.mode: act, nodes go off although Slurm would keep them on for an hour, except the reserve and the
// nodes that slurm.conf keeps on. They are up before a growth, which is not late. The energy is counted every second.
func TestPowerByPlan(t *testing.T) {
	t.Parallel()
	watts := config.Watts{Busy: 300, Idle: 200, Off: 10, Booting: 250}
	l, house := powerLab(t, 3600, func(c *config.Config) {
		c.Power = config.Power{Mode: config.PowerAct, MaxWait: time.Hour, Watts: watts}
	})
	const first = 4 * time.Minute
	id := l.submit("1@4m,6@10s")
	job := l.running(id, 1)
	var slept time.Duration // of all nodes
	var booted int
	for last := time.Now(); time.Until(job.Plan[1].Start) > 0; time.Sleep(time.Second) {
		off := len(l.withPower(slurmctl.PoweredDown))
		slept, last = slept+time.Since(last)*time.Duration(off), time.Now()
		var err error
		job, err = l.Job(l.ctx(), id)
		l.must(err)
	}
	house.mu.Lock()
	booted = len(house.asked)
	house.mu.Unlock()
	if slept < 6*time.Minute { // six nodes for three minutes, less what is needed to go off and come up
		t.Errorf("nodes were off for %v in all", slept)
	}
	if p, err := l.Power(l.ctx()); err != nil || p.Why != "" || p.Boots < 4 || p.KWh <= 0 {
		t.Errorf("%+v: %v", p, err)
	}
	began := time.Now()
	l.has(l.next(id, 1), 6)
	if late := time.Since(began); late > 5*time.Second {
		t.Errorf("the growth was late by %v", late)
	}
	p, err := l.Power(l.ctx())
	l.must(err)
	all := first.Hours() * (7*watts.Idle + watts.Busy) / 1000
	t.Logf("nodes were off for %v in all, %d boots: %.3f kWh less than %.3f; the sidecar says %.3f", slept.Round(time.Second), booted,
		slept.Hours()*(watts.Idle-watts.Off)/1000-float64(booted)*2*(watts.Booting-watts.Idle)/3.6e6, all, p.KWh)
	for _, name := range []string{"n1", "n2"} {
		if slices.Contains(l.withPower(slurmctl.PoweredDown), name) {
			t.Errorf("%s is off", name)
		}
	}
	l.end(id)

	// one that does not come up is drained, and the event says what to do
	l.eventually("all nodes off again", func() error {
		if off := l.withPower(slurmctl.PoweredDown); len(off) != 6 {
			return fmt.Errorf("off: %v", off)
		}
		return nil
	})
	house.mu.Lock()
	house.broken = "n3"
	house.mu.Unlock()
	id = l.submit("4@10s")
	l.eventually("n3 is drained", func() error {
		nodes, _, err := l.slurm.Nodes(l.ctx())
		l.must(err)
		if i := slices.IndexFunc(nodes, func(n slurmctl.Node) bool { return n.Name == "n3" }); !strings.HasPrefix(nodes[i].State, "drain") {
			return fmt.Errorf("it is %s%s", nodes[i].State, nodes[i].Flags)
		}
		return nil
	})
	l.running(id, 1)
	l.eventually("the event", func() error {
		events, err := l.store.Events(l.ctx(), 0, 0, 10000)
		l.must(err)
		for _, e := range events {
			if e.Kind == "nodes drained" && strings.Contains(string(e.Detail), "State=RESUME NodeName=n3") {
				return nil
			}
		}
		return errors.New("there is none")
	})
	l.end(id)
	l.scontrol("update", "NodeName=n3", "State=RESUME")
}
