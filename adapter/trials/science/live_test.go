//go:build science

package science

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

var (
	seeds = flag.String("science.seeds", "1,2", "seeds of the streams, one after another")
	out   = flag.String("science.out", "", "folder for figures, the page, and the figures' numbers")
	only  = flag.String("science.only", "", "the one way to try")
	most  = flag.Duration("science.most", 45*time.Minute, "how long a stream may take")
)

const (
	cluster  = 12
	level    = 7
	perNode  = 400    // cells
	cellTime = 0.0012 // seconds that a cell takes per iteration, by the model
	waits    = "45m"  // how long a growth on demand may wait
	soon     = 30     // seconds until the case is submitted
)

var bin string

func TestMain(m *testing.M) {
	rig.Main(func(dir string) int {
		bin = dir
		if err := rig.AtOnce(4); err != nil {
			panic(err)
		}
		return m.Run()
	})
}

// TestScience runs the case in each way, all at once, for each stream.
func TestScience(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	must(t, os.Symlink("evosctl", bin+"/evolaunch"))
	run(t, dir, "mpicc", "-O2", "-Wall", "-Werror", "-o", bin+"/amr", "../../../contrib/examples/amr/amr.c", "-lp4est", "-lsc", "-lm")
	c := measure(t, dir)
	var found Result
	var loads []string
	for _, seed := range strings.Split(*seeds, ",") {
		n, err := strconv.ParseUint(seed, 10, 64)
		must(t, err)
		trial := Trial{Seed: n, Nodes: cluster, Steps: c.steps}
		load := rig.Load()
		t.Run("stream "+seed, func(t *testing.T) { trial.Ways = c.all(t, n) })
		for _, w := range trial.Ways {
			t.Log(strings.Join(trial.Fields(w), " | "))
			if !Same(w, trial.Ways[0]) {
				t.Errorf("%s: mass %g, error %g, and %g, %g in %s", w.Name, w.Mass, w.Error, trial.Ways[0].Mass, trial.Ways[0].Error, trial.Ways[0].Name)
			}
		}
		loads = append(loads, fmt.Sprintf("%s to %s", load, rig.Load()))
		t.Logf("load %s", loads[len(loads)-1])
		if len(trial.Ways) > 0 {
			found.Trials = append(found.Trials, trial)
		}
	}
	if *out == "" || len(found.Trials) == 0 {
		return
	}
	must(t, os.MkdirAll(*out, 0o755))
	var text, page bytes.Buffer
	found.About = fmt.Sprintf("%s, on %d processors, load %s. The profile is %s, made by evosctl profile from a short run.", time.Now().Format("2006-01-02"), runtime.NumCPU(), strings.Join(loads, " and "), c.profile)
	must(t, Page(&page, found))
	must(t, os.WriteFile(*out+"/science.html", page.Bytes(), 0o644))
	must(t, json.NewEncoder(&text).Encode(found))
	must(t, os.WriteFile(*out+"/science.json", text.Bytes(), 0o644))
	must(t, os.WriteFile(*out+"/science.md", []byte(Tables(found)), 0o644))
	for _, trial := range found.Trials {
		var figure, trace bytes.Buffer
		must(t, Figure(&figure, trial))
		must(t, Trace(&trace, found.About, trial, trial.Ways[0]))
		must(t, os.WriteFile(fmt.Sprintf("%s/%s-%d.txt", *out, strings.ReplaceAll(trial.Ways[0].Name, " ", "-"), trial.Seed), trace.Bytes(), 0o644))
		must(t, os.WriteFile(fmt.Sprintf("%s/science-%d.svg", *out, trial.Seed), figure.Bytes(), 0o644))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run runs a command of the test itself, and returns what it prints.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "OMPI_MCA_btl_tcp_if_include=lo", "OMPI_MCA_oob_tcp_if_include=lo")
	if dir != "" && name != "mpicc" {
		cmd.Dir = dir
	}
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, said)
	}
	return string(said)
}

// measured is the case with its profile.
type measured struct {
	steps   []Step
	profile string // with a margin
}

// measure makes the case's profile: a short run prints cells, the model gives each of them its time, and evosctl profile does the rest.
func measure(t *testing.T, dir string) (c measured) {
	var trace strings.Builder
	at, before := 0., 0
	for _, m := range meshLine.FindAllStringSubmatch(run(t, dir, bin+"/amr", "short", "100000", strconv.Itoa(level)), -1) {
		iteration, _ := strconv.Atoi(m[1])
		cells, _ := strconv.ParseFloat(m[2], 64)
		if before == 0 {
			fmt.Fprintf(&trace, "0 %g 0\n", cells)
		}
		at += cells * cellTime * float64(iteration-before)
		fmt.Fprintf(&trace, "%.3f %g %d\n", at, cells, iteration)
		before = iteration
	}
	must(t, os.WriteFile(dir+"/trace", []byte(trace.String()), 0o644))
	lines := strings.Split(trace.String(), "\n")
	how := []string{"profile", "--from=trace", fmt.Sprintf("--per-node=%d", perNode), "--shortest=8s"}
	table := run(t, dir, bin+"/evosctl", append(how, "--margin=0")...)
	t.Logf("the profile:\n%s", table)
	done := 0
	for _, m := range regexp.MustCompile(`(?m)^# +\d+ +(\d+) +(\S+) +\S+ +\S+ +(\d+)$`).FindAllStringSubmatch(table, -1) {
		nodes, _ := strconv.Atoi(m[1])
		seconds, err := planner.ParseDuration(m[2])
		must(t, err)
		line, _ := strconv.Atoi(m[3])
		iteration, _ := strconv.Atoi(strings.Fields(lines[line-1])[2])
		c.steps = append(c.steps, Step{nodes, iteration - done, float64(seconds)})
		done = iteration
	}
	c.profile = strings.TrimSpace(run(t, dir, bin+"/evosctl", append(how, "-q")...))
	return c
}

// all runs all ways on a stream, each on its own cluster.
func (c measured) all(t *testing.T, seed uint64) (ways []Way) {
	var mu sync.Mutex
	order := []string{"planned", "on demand", "rigid at peak", "a job per step"}
	found := map[string]Way{}
	t.Run("ways", func(t *testing.T) {
		for _, name := range order {
			if *only != "" && *only != name {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newRun(t, c, name).way(seed)
				mu.Lock()
				defer mu.Unlock()
				found[name] = w
			})
		}
	})
	for _, name := range order {
		if w, okay := found[name]; okay {
			ways = append(ways, w)
		}
	}
	return ways
}

// caseRun is a way under way.
type caseRun struct {
	*testing.T
	*rig.Rig
	measured
	name string
	ctx  context.Context
	up   time.Time
}

func newRun(t *testing.T, c measured, name string) *caseRun {
	ctx, cancel := context.WithTimeout(t.Context(), *most)
	t.Cleanup(cancel)
	r := &caseRun{T: t, measured: c, name: name, ctx: ctx}
	r.Rig = rig.In(t, slurmtest.Options{
		Nodes: cluster, Accounting: true, PermitJobExpansion: true,
		// Open MPI's daemons of several nodes cannot share a folder. With Slurm's own BatchStartTimeout, slurmctld requeues a job whose
		// first node by name is not that of its batch script, as after merges, when that node registers again.
		ExtraConf: "TaskProlog=@DIR@/own-tmp\nBatchStartTimeout=7200\n",
		Files:     map[string]string{"own-tmp": "#!/bin/sh\nmkdir -p @DIR@/tmp/$SLURM_JOB_USER-$SLURMD_NODENAME && echo export TMPDIR=@DIR@/tmp/$SLURM_JOB_USER-$SLURMD_NODENAME\n"},
	}, bin, "")
	must(t, os.Mkdir(r.Cluster.Dir()+"/tmp", 0o755))
	must(t, os.Chmod(r.Cluster.Dir()+"/tmp", 0o1777))
	return r
}

// way runs the case among the jobs of a stream.
func (r *caseRun) way(seed uint64) Way {
	if r.name == "planned" || r.name == "on demand" {
		r.StartIn(r.T, rig.Account{}) // otherwise stock Slurm is alone
	}
	r.up = time.Now()
	w := Way{Name: r.name, Fixed: r.name == "rigid at peak"}
	stream, stop := context.WithCancel(r.ctx)
	var others sync.WaitGroup
	others.Go(func() { r.others(stream, Stream(seed, most.Seconds())) })
	defer func() { stop(); others.Wait() }()
	for r.since() < soon {
		w.Polls = append(w.Polls, r.poll())
	}
	w.Submit = r.since()
	r.submit()
	for {
		w.Polls = append(w.Polls, r.poll())
		if left, err := r.Cluster.Run(r.ctx, slurmtest.Root, "squeue", "-h", "-u", r.Cluster.Users()[0].Name); err == nil && strings.TrimSpace(left) == "" {
			break
		}
		if r.ctx.Err() != nil {
			r.Fatalf("the case has not ended: %v\n%s\n%s", r.ctx.Err(), r.text("notes"), r.text("amr.out"))
		}
	}
	w.Polls = Thin(append(w.Polls, r.poll()))
	must(r.T, w.notes(r.text("notes"), float64(r.up.UnixNano())/1e9, len(r.steps)))
	must(r.T, w.read(r.text("amr.out")))
	if r.name == "planned" || r.name == "on demand" {
		said, errs, err := r.As(0, "evosctl", "report", "--format=json")
		var report api.Report
		if err == nil {
			err = json.Unmarshal([]byte(said), &report)
		}
		if err != nil {
			r.Fatalf("evosctl report: %v\n%s", err, errs)
		}
		w.Counted, w.HeldIdle = true, 3600*report.Total.HeldIdle
		w.Later, w.LaterBy = report.Total.Delayed.Jobs, float64(report.Total.Delayed.Seconds)
		r.Logf("promises: %+v, stock jobs delayed: %+v", report.Total.Promises, report.Total.Delayed)
	}
	return w
}

func (r *caseRun) since() float64 { return time.Since(r.up).Seconds() }

// text returns a file of the case, or what is wrong with it.
func (r *caseRun) text(name string) string {
	text, err := os.ReadFile(r.Dir + "/out/" + name)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// others submits the jobs of other users when their times come.
func (r *caseRun) others(ctx context.Context, jobs []Job) {
	for _, j := range jobs {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration((j.Submit - r.since()) * 1e9)):
		}
		args := []string{"--chdir=/", "--output=/dev/null", "--exclusive", fmt.Sprintf("--nodes=%d", j.Nodes), fmt.Sprintf("--time=%d", j.Minutes), fmt.Sprintf("--wrap=sleep %d", j.Seconds)}
		if _, err := r.Cluster.Run(ctx, r.Cluster.Users()[1], "sbatch", args...); err != nil && ctx.Err() == nil {
			r.Errorf("sbatch: %v", err)
		}
	}
}

// poll asks Slurm once, a second after the last time or later.
func (r *caseRun) poll() Poll {
	time.Sleep(time.Second)
	said, err := r.Cluster.Run(r.ctx, slurmtest.Root, "squeue", "-h", "-t", "R,PD", "-o", "%u %T %D")
	p := Poll{At: r.since()}
	if err != nil {
		if r.ctx.Err() == nil {
			r.Errorf("squeue: %v", err)
		}
		return p
	}
	for line := range strings.Lines(said) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		nodes, _ := strconv.Atoi(f[2])
		switch mine := f[0] == r.Cluster.Users()[0].Name; {
		case mine && f[1] == "RUNNING":
			p.Case += nodes
		case f[1] == "RUNNING":
			p.Others += nodes
		case !mine:
			p.Waiting++
		}
	}
	return p
}

// script is the head of each of the case's scripts.
const script = `#!/bin/bash
export PATH=%[1]s:$PATH OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent=%[2]s OMPI_MCA_rmaps_base_oversubscribe=1
note() { echo "$1 $2 $(date +%%s.%%N)" >>notes; }
# step NUMBER NODES ITERATIONS SECONDS runs the code on the first NODES hosts, and sleeps for the rest of SECONDS.
step() {
	note begun $1
	local begun=$(date +%%s%%N)
	mpiexec --hostfile hosts -n $2 %[1]s/amr amr $3 %[3]d >>amr.out 2>&1 || exit
	local left=$(($4 * 1000 - ($(date +%%s%%N) - begun) / 1000000))
	[ $left -le 0 ] || sleep $(printf '%%d.%%03d' $((left / 1000)) $((left %% 1000)))
	note done $1
}
`

// What the scripts of evolving jobs and of stock jobs do to know their hosts.
const (
	evolvingHosts = `evosctl hostfile --format=openmpi --slots=1 -o hosts`
	stockHosts    = `scontrol show hostnames | sed 's/$/ slots=1/' >hosts`
	// On nodes of stock jobs, srun starts Open MPI's daemons.
	agent = "#!/bin/sh\nhost=$1; shift\nexec srun --overlap -N1 -n1 -w $host --mpi=none sh -c \"$*\"\n"
)

// submit submits the case in its way.
func (r *caseRun) submit() {
	must(r.T, os.WriteFile(r.Dir+"/agent", []byte(agent), 0o755))
	launch := "evolaunch"
	if r.name == "rigid at peak" || r.name == "a job per step" {
		launch = r.Dir + "/agent"
	}
	head := fmt.Sprintf(script, bin, launch, level)
	peak, total := 0, 0.
	for _, s := range r.steps {
		peak, total = max(peak, s.Nodes), total+s.Seconds
	}
	minutes := func(seconds float64) string { return fmt.Sprintf("--time=%d", int(seconds*1.1/60)+1) }
	body := ""
	do := func(k int) string {
		return fmt.Sprintf("step %d %d %d %.0f", k+1, r.steps[k].Nodes, r.steps[k].Iterations, r.steps[k].Seconds)
	}
	switch r.name {
	case "planned", "on demand":
		for k, s := range r.steps {
			if k > 0 {
				more := s.Nodes - r.steps[k-1].Nodes
				change := fmt.Sprintf("evosctl grow %d --wait=%s", more, waits)
				if more < 0 {
					change = fmt.Sprintf("evosctl shrink %d", -more)
				}
				if r.name == "planned" {
					change = "evosctl next"
				}
				body += fmt.Sprintf("vars=$(%s) || { note failed %d; exit 1; }\neval \"$vars\"\n", change, k+1)
			}
			body += fmt.Sprintf("( eval \"$(evosctl env --no-slurm)\" && %s && %s ) || exit\n", evolvingHosts, do(k))
		}
		profile := r.profile
		if r.name == "on demand" {
			profile = fmt.Sprintf("%d@%s", r.steps[0].Nodes, waits)
		}
		r.sbatch("evosbatch", head+body, "--profile="+profile)
	case "rigid at peak":
		for k := range r.steps {
			body += do(k) + "\n"
		}
		r.sbatch("sbatch", head+stockHosts+"\n"+strings.ReplaceAll(body, "\n", " || exit\n"), fmt.Sprintf("--nodes=%d", peak), minutes(total))
	case "a job per step":
		before := ""
		for k, s := range r.steps {
			args := []string{fmt.Sprintf("--nodes=%d", s.Nodes), minutes(s.Seconds)}
			if k > 0 {
				args = append(args, "--dependency=afterok:"+before)
			}
			before = r.sbatch("sbatch", head+stockHosts+"\n"+do(k)+"\n", args...)
		}
	}
}

// sbatch submits a script of the case, and returns its job.
func (r *caseRun) sbatch(command, text string, args ...string) (id string) {
	name := fmt.Sprintf("%s/out/case-%d.sh", r.Dir, time.Now().UnixNano())
	must(r.T, os.WriteFile(name, []byte(text), 0o755))
	said, errs, err := r.As(0, command, append(args, "--parsable", "--exclusive", "--output=said-%j", name)...)
	if err != nil {
		r.Fatalf("%s: %v\n%s", command, err, errs)
	}
	return strings.Fields(said)[0]
}
