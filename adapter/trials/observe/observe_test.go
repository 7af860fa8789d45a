package observe_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

var (
	lasts = flag.Duration("observe.for", 75*time.Second, "how long the workload is observed")
	out   = flag.String("observe.out", "", "folder for the report as text, JSON, and HTML, and for the record")
	seed  = flag.Uint64("observe.seed", 26, "random seed of the workload")
)

var bin string

func TestMain(m *testing.M) {
	flag.Parse()
	rig.Main(func(dir string) int {
		bin = dir
		return m.Run()
	})
}

// observer is the account that the sidecar runs as. Slurm knows nothing of it.
const observer = "news"

// trial is a cluster with a workload and an observer.
type trial struct {
	*testing.T
	*rig.Rig
	ctx    context.Context
	chance *rand.Rand
	begin  time.Time
	did    map[string]int // requests of the trial itself, by sdiag's names
	last   string         // job ID
}

// changing lists the requests that change something, of those that a sidecar could make.
var changing = strings.Fields(`REQUEST_SUBMIT_BATCH_JOB REQUEST_RESOURCE_ALLOCATION REQUEST_UPDATE_JOB REQUEST_UPDATE_NODE REQUEST_CREATE_RESERVATION
	REQUEST_UPDATE_RESERVATION REQUEST_DELETE_RESERVATION REQUEST_KILL_JOB REQUEST_CANCEL_JOB_STEP REQUEST_JOB_REQUEUE REQUEST_SUSPEND
	REQUEST_RECONFIGURE REQUEST_JOB_NOTIFY REQUEST_JOB_WILL_RUN`)

// TestObserve: an observer without rights predicts a live workload, changes nothing, and its record can be played.
func TestObserve(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), *lasts+8*time.Minute)
	defer cancel()
	options := slurmtest.Options{SlurmIntervals: true, Partitions: []slurmtest.Partition{
		{Name: "main", Default: true}, {Name: "short", Nodes: "n[1-6]", MaxTime: "5", Extra: "PriorityTier=2"}}}
	o := &trial{T: t, Rig: rig.In(t, options, bin, "mode: observe\n"), ctx: ctx, chance: rand.New(rand.NewPCG(*seed, 0)), did: map[string]int{}}
	stop := o.startObserver()
	before := o.calls(changing...)
	o.begin = time.Now()
	o.workload()
	t.Log(o.load())
	stop()
	for name, n := range o.calls(changing...) {
		if n -= before[name]; n != o.did[name] {
			t.Errorf("slurmctld got %d %s, and the trial made %d of them", n, name, o.did[name])
		}
	}
	o.report()
}

func (o *trial) must(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

// asks runs a command, and counts its request. Slurm may refuse it, as it does a site's users.
func (o *trial) asks(user slurmtest.User, request string, args ...string) string {
	o.did[request]++
	text, err := o.Cluster.Run(o.ctx, user, args[0], args[1:]...)
	if err != nil {
		o.Logf("%q: %v", args, err)
	}
	return strings.TrimSpace(text)
}

// startObserver starts the sidecar under its account.
func (o *trial) startObserver() (stop func()) {
	account, err := rig.Lookup(observer)
	o.must(err)
	o.must(account.Own(o.Dir+"/db", o.Dir+"/run"))
	end := o.StartIn(o.T, account, "--log-level=info")
	stop = func() {
		end()
		if text, _ := os.ReadFile(o.LogFile()); bytes.Contains(text, []byte("level=error")) {
			o.Error("evoslurmd logged an error")
		}
	}
	for range 100 {
		if text, err := os.ReadFile(o.LogFile()); err == nil && bytes.Contains(text, []byte("observing")) {
			return stop
		}
		time.Sleep(100 * time.Millisecond)
	}
	o.Fatal("the sidecar does not observe")
	return stop
}

// workload submits jobs until the time is over. A node fails, and a reservation is made.
func (o *trial) workload() {
	happens := []struct {
		at float64 // part of the time
		do func()
	}{
		{.3, func() {
			start := time.Now().Add(*lasts / 5)
			o.asks(slurmtest.Root, "REQUEST_CREATE_RESERVATION", "scontrol", "create", "reservation", "ReservationName=service", "Users=root", "Nodes=n[1-2]", "Flags=MAINT,IGNORE_JOBS",
				"StartTime="+start.Format("2006-01-02T15:04:05"), fmt.Sprintf("Duration=%d", max(int(lasts.Minutes()/10), 1)))
		}},
		{.4, func() {
			o.asks(slurmtest.Root, "REQUEST_UPDATE_NODE", "scontrol", "update", "NodeName=n8", "State=DOWN", "Reason=trial")
		}},
		{.55, func() {
			o.asks(slurmtest.Root, "REQUEST_UPDATE_NODE", "scontrol", "update", "NodeName=n8", "State=RESUME")
		}},
	}
	next, shown := o.begin, o.begin
	for submitted := 0; time.Since(o.begin) < *lasts; {
		for len(happens) > 0 && time.Since(o.begin) > time.Duration(happens[0].at*float64(*lasts)) {
			happens[0].do()
			happens = happens[1:]
		}
		if !time.Now().Before(next) {
			next = next.Add(time.Duration(o.chance.ExpFloat64() * float64(11*time.Second)))
			o.submit()
			submitted++
		}
		if time.Since(shown) > time.Minute {
			shown = time.Now()
			fmt.Fprintf(os.Stderr, "observing: %v of %v, %d jobs submitted\n", time.Since(o.begin).Round(time.Second), *lasts, submitted)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// submit submits a job. Its time limit is longer than it runs, as with real users.
func (o *trial) submit() {
	seconds := 15 + o.chance.IntN(75)
	nodes := []int{1, 1, 1, 2, 2, 3, 4, 6}[o.chance.IntN(8)]
	limit := (seconds*(150+o.chance.IntN(250))/100 + 59) / 60
	args := []string{"--parsable", "--chdir=/", "--output=/dev/null", fmt.Sprintf("--wrap=sleep %d", seconds), fmt.Sprintf("--nodes=%d", nodes), fmt.Sprintf("--time=%d", limit)}
	if o.chance.IntN(4) > 0 {
		args = append(args, "--exclusive")
	} else {
		args = append(args, "--ntasks-per-node=2")
	}
	switch {
	case nodes <= 2 && limit <= 5 && o.chance.IntN(3) == 0:
		args = append(args, "--partition=short")
	case o.chance.IntN(5) == 0:
		args = append(args, "--nice=100")
	case o.chance.IntN(12) == 0:
		args = append(args, "--begin=now+60")
	case o.chance.IntN(12) == 0 && o.last != "":
		args = append(args, "--dependency=afterany:"+o.last)
	}
	user := o.Cluster.Users()[o.chance.IntN(len(o.Cluster.Users()))]
	o.last = o.asks(user, "REQUEST_SUBMIT_BATCH_JOB", append([]string{"sbatch"}, args...)...)
	if o.chance.IntN(30) == 0 && o.last != "" {
		o.asks(user, "REQUEST_KILL_JOB", "scancel", o.last)
	}
}

// calls returns how often slurmctld got requests.
func (o *trial) calls(names ...string) map[string]int {
	o.Helper()
	text, err := o.Cluster.Run(o.ctx, slurmtest.Root, "sdiag")
	o.must(err)
	all := map[string]int{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(strings.ReplaceAll(line, "(", " ( "))
		for i, f := range fields {
			if n, is := strings.CutPrefix(f, "count:"); is && i > 0 {
				all[fields[0]], _ = strconv.Atoi(n)
			}
		}
	}
	some := map[string]int{}
	for _, name := range names {
		some[name] = all[name]
	}
	return some
}

// load returns what slurmctld did for the observer, and for all by type.
func (o *trial) load() string {
	text, err := o.Cluster.Run(o.ctx, slurmtest.Root, "sdiag")
	o.must(err)
	_, rpcs, _ := strings.Cut(text, "Remote Procedure Call statistics by message type")
	rpcs, _, _ = strings.Cut(rpcs, "Pending RPC")
	return fmt.Sprintf("after %v, requests to slurmctld by type and by user (%s observes):\n%s", time.Since(o.begin).Round(time.Second), observer, rpcs)
}

// report plays what was observed, and shows the report.
func (o *trial) report() {
	dir := *out
	if dir == "" {
		dir = o.TempDir()
	}
	dir, err := filepath.Abs(dir)
	o.must(err)
	o.must(os.MkdirAll(dir, 0o755))
	record := o.Dir + "/db/observed"
	o.must(os.RemoveAll(dir + "/observed"))
	o.must(os.CopyFS(dir+"/observed", os.DirFS(record)))
	run := func(args ...string) []byte {
		cmd := exec.CommandContext(o.ctx, bin+"/evosim", append([]string{"observed", "--shortest=15", record}, args...)...)
		var text, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &text, &errs
		if err := cmd.Run(); err != nil || errs.Len() > 0 {
			o.Fatalf("evosim observed: %v\n%s", err, errs.String())
		}
		return text.Bytes()
	}
	table, encoded := run("--html="+dir+"/report.html"), run("--format=json")
	o.Logf("\n%s", table)
	o.must(os.WriteFile(dir+"/report.txt", table, 0o644))
	o.must(os.WriteFile(dir+"/report.json", encoded, 0o644))
	var r struct {
		Starts, Samples int
		Gain            []json.RawMessage
		Cost            struct{ Share *struct{ Value float64 } }
		Days            []struct{ Jobs int }
		Calibration     []struct{ Ours *struct{ Promised int } }
	}
	o.must(json.Unmarshal(encoded, &r))
	if r.Starts == 0 || r.Samples == 0 || r.Cost.Share == nil || len(r.Days) == 0 {
		o.Errorf("%+v", r)
	}
}
