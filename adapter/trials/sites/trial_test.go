package sites

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// trial is a site's cluster with Evoslurm installed.
type trial struct {
	*rig.Rig
	t     *testing.T
	site  Site
	begun time.Time
	clean slurmtest.Leftovers // what the site itself has: its reservations, nodes that are no idle ones
	watch *watch

	tried  *int   // cases so far
	others []int  // stock jobs of the case
	now    Result // of the case at work
}

// boot boots the site and runs its probes; then it installs Evoslurm.
func boot(t *testing.T, s Site, config string) *trial {
	t.Helper()
	r := &trial{t: t, site: s, tried: new(int), Rig: rig.In(t, s.Boot(), bin, "poll_interval: 500ms\n"+config)}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r.must(s.SetUp(ctx, r.Cluster))
	if s.Helper != nil {
		helping, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- s.Helper(helping, r.Cluster) }()
		t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	var err error
	r.clean, err = r.Cluster.Leftovers(ctx)
	r.must(err)
	t.Run("stock", func(t *testing.T) {
		sub := *r
		sub.t = t
		for _, p := range s.Probes {
			sub.probe(p)
		}
		sub.tidy()
	})
	r.StartIn(t, rig.Account{})
	r.watch = startWatch(t, r.Cluster)
	return r
}

func (r *trial) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// probe sees that stock Slurm says what the site's trap makes it say.
func (r *trial) probe(p Probe) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	user := slurmtest.Root
	if p.User > 0 {
		user = r.Cluster.Users()[p.User-1]
	}
	argv := words(p.Command)
	text, err := r.Cluster.Run(ctx, user, argv[0], argv[1:]...)
	if p.Refused != (err != nil) {
		r.t.Errorf("probe %q as user %d: %s%v; refused should be %v", p.Command, p.User, text, err, p.Refused)
		return
	}
	if err != nil {
		text = err.Error()
	}
	if !strings.Contains(strings.ToLower(text), strings.ToLower(p.Says)) {
		r.t.Errorf("probe %q as user %d says %q, want %q in it", p.Command, p.User, text, p.Says)
	}
}

// run runs one case, which leaves the site as it was, and records its result. In make test, it runs
// only the first case.
func (r *trial) run(name string, try func(*trial)) {
	r.t.Helper()
	if *r.tried++; *r.tried > 1 && !*all {
		return
	}
	r.t.Run(name, func(t *testing.T) {
		sub := *r
		sub.t, sub.begun = t, time.Now()
		sub.now = Result{Site: r.site.Name, Slurm: r.Cluster.Version(), Case: name, Outcome: Passed}
		r.watch.forget()
		logged, _ := os.Stat(r.LogFile())
		defer func() {
			if t.Failed() {
				sub.now.Outcome = Failed
				sub.explain(logged.Size())
			}
			sub.now.Took = time.Since(sub.begun)
			record(sub.now)
			sub.tidy()
		}()
		try(&sub)
		sub.gone()
	})
}

// errorf also records the first error for the table.
func (r *trial) errorf(format string, args ...any) {
	r.t.Helper()
	text := fmt.Sprintf(format, args...)
	if !r.t.Failed() {
		first, _, _ := strings.Cut(text, "\n")
		r.now.Text = first
	}
	r.t.Error(text)
}

func (r *trial) fatalf(format string, args ...any) {
	r.t.Helper()
	r.errorf(format, args...)
	r.t.FailNow()
}

// explain prints what there is to see of a failed case.
func (r *trial) explain(from int64) {
	text, _ := os.ReadFile(r.LogFile())
	lines := strings.Split(string(text[min(from, int64(len(text))):]), "\n")
	if len(lines) > 250 {
		lines = append(lines[:100], append([]string{"…"}, lines[len(lines)-150:]...)...)
	}
	r.t.Logf("log of evoslurmd:\n%s", strings.Join(lines, "\n"))
	outs, _ := filepath.Glob(r.Dir + "/out/*")
	for _, name := range outs {
		text, _ := os.ReadFile(name)
		r.t.Logf("%s:\n%s", filepath.Base(name), text)
	}
	queue, _, _ := r.As(0, "evosqueue", "--states=all", "--long")
	jobs, _ := r.Cluster.Run(context.Background(), slurmtest.Root, "scontrol", "-d", "-o", "show", "job")
	r.t.Logf("evosqueue:\n%s\nSlurm:\n%s", queue, jobs)
}

// tidy cancels what is left and waits until the site is as at first.
func (r *trial) tidy() {
	r.t.Helper()
	outs, _ := filepath.Glob(r.Dir + "/out/*")
	for _, name := range outs {
		os.Remove(name)
	}
	for _, u := range r.Cluster.Users() {
		r.Cluster.Run(context.Background(), slurmtest.Root, "scancel", "--user="+u.Name)
	}
	if left := r.left(patience); left != "" {
		r.t.Errorf("%s is not as it was at first: %s", r.site.Name, left)
	}
}

// left waits until nothing is left that the site did not have at first, and gives what
// there still is after the time.
func (r *trial) left(within time.Duration) string {
	for deadline := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		l, err := r.Cluster.Leftovers(context.Background())
		if err != nil {
			return err.Error()
		}
		l.Reservations = slices.DeleteFunc(l.Reservations, func(n string) bool { return slices.Contains(r.clean.Reservations, n) })
		l.Nodes = slices.DeleteFunc(l.Nodes, func(n string) bool {
			return slices.Contains(r.clean.Nodes, n) || r.site.Helper != nil && powered(n) ||
				len(l.Reservations) == 0 && strings.HasSuffix(n, " reserved") // by one of the site's own
		})
		if l.None() {
			return ""
		}
		if time.Now().After(deadline) {
			return l.String()
		}
	}
}

// powered reports whether only power saving makes the node's state, "n3 idle~", differ from idle.
func powered(node string) bool {
	_, state, _ := strings.Cut(node, " ")
	return strings.HasPrefix(state, "idle") || state == "powering_down" || state == "powered_down"
}

// stock submits a stock job that sleeps for that long.
func (r *trial) stock(user int, d time.Duration, args ...string) int {
	r.t.Helper()
	text, errs, err := r.As(user, "sbatch", append(args, "--parsable", "--output=/dev/null", fmt.Sprintf("--wrap=exec sleep %d", int(d.Seconds())))...)
	if err != nil {
		r.fatalf("sbatch %q: %v %s", args, err, errs)
	}
	id, err := strconv.Atoi(strings.TrimSpace(text))
	r.must(err)
	r.others = append(r.others, id)
	return id
}

// inSlurm returns the job as Slurm has it.
func (r *trial) inSlurm(id int) (found seen) {
	for _, j := range look(r.Cluster) {
		if j.ID == id {
			found = j
		}
	}
	return found
}

// becomes waits until Slurm has the job in the state.
func (r *trial) becomes(id int, state string) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("job %d is %s", id, state), patience, func() error {
		if j := r.inSlurm(id); j.State != state {
			return fmt.Errorf("it is %s (%s)", j.State, j.Reason)
		}
		return nil
	})
}

func (r *trial) cancel(ids ...int) {
	r.t.Helper()
	for _, id := range ids {
		_, err := r.Cluster.Run(context.Background(), slurmtest.Root, "scancel", strconv.Itoa(id))
		r.must(err)
	}
}

// eventually waits until check has nothing to complain of.
func (r *trial) eventually(what string, within time.Duration, check func() error) {
	r.t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			r.fatalf("%s: %v", what, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// queued returns the job as evosqueue --json tells it to one of the users.
func (r *trial) queued(user, id int) (found api.Job) {
	r.t.Helper()
	jobs, err := r.Jobs(user)
	if err != nil {
		r.t.Log(err)
	}
	for _, j := range jobs {
		if int(j.ID) == id {
			found = j
		}
	}
	return found
}
