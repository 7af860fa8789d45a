package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// scripted is a backend of jobs with three steps. Job 12 grows and shrinks by merges, job 14 by
// companions, at once, after it lost nodes; job 13 never gets its second step's nodes.
type scripted struct {
	api.Backend // whose other methods nobody calls
	mu          sync.Mutex
	step        map[uint32]int
	posts       []string
	drain       *api.Drain
}

func (b *scripted) known(id uint32) error {
	if id < 12 || id > 14 {
		return api.Errorf(api.ErrNotFound, "job %d is no evolving job", id)
	}
	return nil
}

func (b *scripted) Job(_ context.Context, id uint32) (api.Job, error) {
	return api.Job{ID: id, Offers: map[uint32][]api.Offer{12: {{ID: 6, State: "unanswered"}, {ID: 7, State: "open", Kind: "grow", Nodes: 3, NodeList: "n[3-5]"},
		{ID: 8, State: "open", Kind: "shrink", Mandatory: true, Nodes: 2, NodeList: "n[4-5]", Further: []string{"n3"}, Deadline: time.Now().Add(time.Hour)}}}[id]}, b.known(id)
}
func (b *scripted) Owner(_ context.Context, id uint32) (uint32, error) {
	return uint32(os.Getuid()), b.known(id)
}

// Jobs: job 12 is the task 20_3, as another job was before, and other tasks wait.
func (b *scripted) Jobs(context.Context, bool) ([]api.Job, error) {
	return []api.Job{{ID: 9, Array: 20, ArrayTask: 3, State: "ended", Submit: time.Unix(1, 0)},
		{ID: 12, Array: 20, ArrayTask: 3, State: "running", NodeList: "n[1-2]", Submit: time.Unix(2, 0)}, {ID: 13, State: "queued"},
		{ID: 20, Array: 20, ArrayRest: "6-99", Submit: time.Unix(2, 0)}}, nil
}

// History: job 14 was the task 20_4.
func (b *scripted) History(_ context.Context, q api.HistoryQuery) (api.History, error) {
	h := api.History{Jobs: []api.Job{}}
	if q.Tasks[0] == (api.JobName{ID: 20, Task: 4, One: true}) {
		h.Jobs = append(h.Jobs, api.Job{ID: 14, Array: 20, ArrayTask: 4})
	}
	return h, nil
}

func (b *scripted) Allocation(_ context.Context, id uint32) (api.Allocation, error) {
	if err := b.known(id); err != nil {
		return api.Allocation{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	step := max(1, b.step[id])
	a := api.Allocation{Ready: true, Job: id, Step: min(step, 3), Steps: 3, Drive: "merge", Done: step > 3}
	part := func(job uint32, nodes ...string) {
		p := api.Part{Job: job, NodeList: nodes}
		for range nodes {
			p.CPUs = append(p.CPUs, 4)
		}
		a.Parts = append(a.Parts, p)
		a.Nodes += len(nodes)
	}
	switch {
	case step == 1:
		part(id, "n1", "n2")
		a.Coming = &api.Coming{Step: 2, Nodes: 5, At: time.Unix(1795368509, 0), Arriving: []string{"n3", "n4", "n5"}}
		if id == 13 {
			a.Coming = &api.Coming{Step: 2, Nodes: 1, Leaving: []string{"n1; reboot"}}
		}
	case step == 2 && id == 14:
		a.Lost, a.Restarts = []string{"n4", "n7"}, 2
		part(id, "n1", "n2")
		part(20, "n3", "n4", "n5")
		a.Drive = "companion"
		a.Components = []api.Component{{Name: "ocean", NodeList: []string{"n1", "n5"}}, {Name: "atm", NodeList: []string{"n2", "n3", "n4"}}}
	case step == 2:
		part(id, "n1", "n2", "n3", "n4", "n5")
		a.Coming = &api.Coming{Step: 3, Nodes: 1, Leaving: []string{"n2", "n3", "n4", "n5"}}
	default:
		part(id, "n1")
	}
	if id == 14 {
		a.Demand = &api.Demand{Offer: 8, Nodes: 2, Leaving: []string{"n4", "n5"}, Deadline: time.Unix(1795368600, 0), Why: "stock job 7 waits"}
	}
	return a, nil
}

func (b *scripted) Next(ctx context.Context, id uint32, r api.NextRequest) (api.Allocation, error) {
	b.mu.Lock()
	b.posts = append(b.posts, strings.TrimSpace(fmt.Sprint(id, ":", r.From, " ", strings.Join(r.Release, ","))))
	if id != 13 && r.From == max(1, b.step[id]) {
		b.step[id] = r.From + 1
	}
	b.mu.Unlock()
	if id == 13 {
		<-ctx.Done()
		return api.Allocation{Job: id}, nil
	}
	return b.Allocation(ctx, id)
}

// Change: job 12 may grow to 4 nodes at once, and its profile may have 8.
func (b *scripted) Change(ctx context.Context, id uint32, r api.ChangeRequest) (api.Change, error) {
	if err := b.known(id); err != nil {
		return api.Change{}, err
	}
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.Local)
	refused := api.Change{Ready: true, Job: id, Step: 1, Profile: "2@10m", Why: "step 2 wants 9 nodes at 03:00:00, and 8 are free from then on for as long; in the way: job 7", Earliest: at}
	b.mu.Lock()
	b.posts = append(b.posts, fmt.Sprintf("%d:change", id))
	b.mu.Unlock()
	switch {
	case r.Update != nil && strings.HasPrefix(r.Update.Profile, "9@"), r.Grow != nil && r.Grow.Nodes > 3 && r.Grow.Min == 0:
		return refused, nil
	case r.Grow != nil && r.Grow.Nodes < 1:
		return api.Change{}, api.Errorf(api.ErrInvalid, "to grow by %d nodes: want at least 1", r.Grow.Nodes)
	}
	a := api.Change{Ready: true, Accepted: true, DryRun: r.DryRun, Job: id, Step: 1, Profile: "2@10m,8@5m", Plan: []api.Span{
		{Step: 1, Start: at, End: at.Add(10 * time.Minute), Nodes: 2}, {Step: 2, Start: at.Add(10 * time.Minute), End: at.Add(15 * time.Minute), Nodes: 8}}}
	if r.Shrink != nil && r.DryRun {
		a.Leaving = []string{"n4", "n5"}
	}
	if r.Update != nil || r.DryRun {
		return a, nil
	}
	b.mu.Lock()
	b.step[id] = max(1, b.step[id]) + 1
	b.mu.Unlock()
	has, err := b.Allocation(ctx, id)
	a.Has = &has
	return a, err
}

// Offer: job 12 is offered three nodes by offer 7, and asked for two by 8; job 13 is offered nothing.
func (b *scripted) Offer(ctx context.Context, id uint32, q api.OfferQuery) (api.Offer, error) {
	if id == 13 {
		<-ctx.Done()
		return api.Offer{Job: id}, nil
	}
	if id == 14 {
		return api.Offer{}, api.Errorf(api.ErrConflict, "job 14 is not malleable (evosbatch --malleable=MIN-MAX): it is offered nothing")
	}
	at := time.Now().Add(time.Hour)
	switch {
	case q.After < 7:
		return api.Offer{Ready: true, Job: id, ID: 7, Kind: "grow", Nodes: 3, NodeList: "n[3-5]", Has: 2, Deadline: at, Until: time.Unix(1795368700, 0)}, b.known(id)
	case q.After < 8:
		return api.Offer{Ready: true, Job: id, ID: 8, Kind: "shrink", Mandatory: true, Nodes: 2, NodeList: "n[4-5]", Further: []string{"n3"}, Has: 5, Deadline: at}, b.known(id)
	}
	return api.Offer{Ready: true, Job: id, ID: 9, Kind: "grow", Nodes: 1, NodeList: "n1; reboot", Deadline: at}, b.known(id)
}

func (b *scripted) Answer(ctx context.Context, id uint32, r api.AnswerRequest) (api.Answer, error) {
	b.mu.Lock()
	post := fmt.Sprintf("%d:%d=%d", id, r.Offer, r.Accept)
	if !r.Until.IsZero() {
		post += fmt.Sprintf("@%d", r.Until.Unix())
	}
	b.posts = append(b.posts, post)
	if r.Offer == 7 && r.Accept == 3 {
		b.step[id] = 2
	}
	b.mu.Unlock()
	a := api.Answer{Ready: true, Job: id, Offer: r.Offer, Accepted: r.Accept}
	switch {
	case r.Offer == 6:
		return api.Answer{}, api.Errorf(api.ErrConflict, "offer 6: it is over: no answer")
	case r.Accept == 0:
		a.Note = "it is mandatory"
		return a, b.known(id)
	}
	has, err := b.Allocation(ctx, id)
	a.Has = &has
	return a, err
}

// Progress: job 12 was at 0.3, job 13 never hears.
func (b *scripted) Progress(ctx context.Context, id uint32, r api.ProgressReport) (api.Progress, error) {
	switch {
	case id == 13:
		<-ctx.Done()
		return api.Progress{Job: id}, nil
	case r.Fraction < .3:
		return api.Progress{}, api.Errorf(api.ErrInvalid, "progress falls from 0.3 to %v", r.Fraction)
	}
	b.mu.Lock()
	b.posts = append(b.posts, fmt.Sprintf("%d:%v done", id, r.Fraction))
	b.mu.Unlock()
	return api.Progress{Ready: true, Job: id, Fraction: r.Fraction, Speedup: "amdahl:0.9"}, b.known(id)
}

// Events: one for each step that job 12 has begun.
func (b *scripted) Events(_ context.Context, q api.EventQuery) (events []api.Event, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := q.After + 1; id <= int64(max(1, b.step[12])); id++ {
		events = append(events, api.Event{ID: id, At: time.Unix(1795368509, 0), Job: 12, Text: fmt.Sprintf("step %d begun", id)})
	}
	return events, nil
}

// Report: there are data since 2026.
func (b *scripted) Report(_ context.Context, q api.ReportQuery) (api.Report, error) {
	r := api.Report{Start: q.Start, End: q.End, By: q.By, Rows: []api.ReportRow{}}
	if q.Start.Year() < 2026 {
		return r, nil
	}
	r.Total = api.ReportRow{Jobs: 3, Requested: 10, Planned: 11.5, Allocated: 12.25, Wasted: 1.5, Lent: .75, Held: 5, HeldIdle: 2.333, HeldIdleKWh: .42,
		Promises: api.ReportPromises{Made: 10, Kept: 6, Late: 2, Broken: 1, NotReached: 1, Average: 30, Latest: 45}, Delayed: api.ReportDelayed{Jobs: 2, Seconds: 600, Most: 540}}
	r.Idle = &api.ReportIdle{NodeHours: 800.04, KWh: 144.5}
	r.Causes = []api.ReportCause{{Outcome: "late", Cause: "node failed", Promises: 2}}
	if q.By != "" {
		row := r.Total
		row.Name, r.More = "al\nice", 7
		r.Rows = append(r.Rows, row)
	}
	return r, nil
}

// CancelHolds: a growth is held for job 12.
func (b *scripted) Settings(context.Context) (api.Settings, error) {
	return api.Settings{Settings: []api.Setting{{Key: "allow.users", Value: "alice", By: "root", At: time.Unix(1795368509, 0)}, {Key: "deny.users", Value: "", Configured: "bob"}},
		Warnings: []string{`allow.users names "alice", which does not exist`, `deny.qos names "x", which does not exist`}}, nil
}

// ChangeSettings answers with what was asked for.
func (b *scripted) ChangeSettings(_ context.Context, r api.SettingsRequest, caller string) (all api.Settings, err error) {
	for key, value := range r.Set {
		if value == "5" {
			return all, api.Errorf(api.ErrInvalid, "%s: \"5\"; want a length of time", key)
		}
		all.Settings = append(all.Settings, api.Setting{Key: key, Value: value, By: caller})
	}
	for _, lists := range []map[string][]string{r.Add, r.Remove} {
		for _, key := range slices.Sorted(maps.Keys(lists)) {
			all.Settings = append(all.Settings, api.Setting{Key: key, Value: strings.Join(lists[key], ",")})
		}
	}
	for _, key := range r.Configured {
		all.Settings = append(all.Settings, api.Setting{Key: key, Value: "c", Configured: "c"})
	}
	return all, nil
}

func (b *scripted) Power(context.Context) (api.Power, error) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	return api.Power{Mode: "advise", Watts: api.Watts{Busy: 350, Idle: 180, Off: 10, Booting: 250}, Boot: 610, Shutdown: 40, BreakEven: 252,
		States: api.PowerStates{Busy: 20, Idle: 9, Booting: 1, Off: 2, Unusable: 1}, Reserve: []api.PowerReserve{{Partition: "main", Nodes: 2, Today: learnt()}}, Nodes: 7, Saves: 1190,
		Naps: []api.PowerNap{{Nodes: 2, NodeList: "n[3-4]", Since: at, Until: at.Add(time.Hour)}, {Nodes: 5, NodeList: "n[5-9]", Since: at}}, KWh: 28.4, Boots: 3, Since: at}, nil
}

// learnt returns a reserve by hour that peaks at 9 h.
func learnt() []int {
	today := make([]int, 24)
	for hour := 8; hour < 18; hour++ {
		today[hour] = 12 - max(hour-9, 9-hour)
	}
	return today
}

// PowerHistory answers with a partition whose Mondays were watched, and an unknown one.
func (b *scripted) PowerHistory(context.Context) (api.PowerHistory, error) {
	h := api.PowerHistory{Mode: "act", Boot: 610, MaxWait: 30, Reserve: 1, Ahead: 660, LeastWeeks: 2, Hour: 33}
	for _, w := range []api.PowerWeek{{Partition: "debug", Nodes: 4}, {Partition: "main", Nodes: 40}} {
		w.Hours = make([]api.PowerHour, 168)
		for i := range w.Hours {
			w.Hours[i] = api.PowerHour{Weeks: 1, Reserve: w.Nodes / 4}
		}
		for i, n := range learnt() {
			if w.Partition == "main" {
				w.Hours[i] = api.PowerHour{Weeks: 5, Periods: 2 * n, Most: n, Reserve: max(n, 1)}
			}
		}
		h.Partitions = append(h.Partitions, w)
	}
	return h, nil
}

func (b *scripted) Budget(context.Context) (api.Budget, error) {
	return api.Budget{Limits: []api.Setting{{Key: "max_delay", Value: "30m0s", Configured: "1h0m0s"}}, Holds: 3, MostHolds: 100,
		Use:     []api.BudgetUse{{Scope: "user", Name: "alice", Partition: "main", Holds: 3, MostHolds: 50, Nodes: 2, MostNodes: 6, NodeHours: 1.25, MostNodeHours: 4}, {Scope: "partition", Partition: "main", Holds: 3, MostHolds: 100}},
		Delays:  []api.BudgetDelay{{Partition: "main", Budget: 1800, Jobs: 2, Longest: 61}},
		Growths: []api.BudgetGrowth{{UID: 1000, User: "alice", NodeSeconds: 1794, MostNodeSeconds: 4800, Until: time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)}},
		Moved:   []api.BudgetMoved{{Job: 9, User: "bob", Seconds: 299, Most: 600}}}, nil
}

func (b *scripted) CancelHolds(_ context.Context, id uint32, r api.CancelHolds) (api.Cancelled, error) {
	if id == 13 {
		return api.Cancelled{}, api.Errorf(api.ErrConflict, "nothing is held for coming steps of job 13")
	}
	return api.Cancelled{Job: id, Step: 1, Holds: []api.Span{{Step: 2, Start: time.Unix(0, 0), Nodes: 2, NodeList: "n[3-4]"}}}, b.known(id)
}

// Drain: with the largest step, a hold is left forever.
func (b *scripted) Drain(_ context.Context, r *api.DrainRequest, caller string) (api.Drain, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drain = nil; r == nil {
		return api.Drain{}, nil
	}
	b.drain = &api.Drain{DrainRequest: *r, By: caller, Words: "the sidecar is drained by " + caller}
	if r.As == "peak" {
		b.drain.Left.Holds = 1
	}
	return *b.drain, nil
}

func (b *scripted) Status(context.Context) (api.Status, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return api.Status{Version: "v1", Cluster: "paper", LastCycle: time.Now(), Drain: b.drain}, nil
}

func (b *scripted) Cluster(context.Context) (*api.Cluster, error) {
	return &api.Cluster{Reservations: []api.Reservation{{Name: "evo_12_2_1", Hold: true, Job: 12, NodeList: "n[3-4]"}, {Name: "maintenance", NodeList: "n9"}}}, nil
}

// sidecar is a server that a script starts and stops.
type sidecar struct {
	backend *scripted
	socket  string
	stop    func()
}

func (s *sidecar) start() error {
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	srv := &api.Server{Backend: s.backend, Log: log, Socket: s.socket, Reading: func() api.Reading { return api.Anybody }}
	if err := srv.Listen(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx) }()
	s.stop = func() {
		cancel()
		<-done
		s.stop = func() {}
	}
	return nil
}

// old starts a sidecar that does not know the requests, like an older release.
func (s *sidecar) old() error {
	l, err := net.Listen("unix", s.socket)
	if err != nil {
		return err
	}
	srv := http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"error": "there is no %s in this API"}`, r.URL.Path)
	})}
	go srv.Serve(l)
	s.stop = func() {
		srv.Close()
		s.stop = func() {}
	}
	return nil
}

func TestScripts(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "bin")
	commands(t, bin)
	library, err := filepath.Abs("../../../contrib/python")
	if err != nil {
		t.Fatal(err)
	}
	c := filepath.Join(t.TempDir(), "c")
	if out, err := exec.Command("make", "-s", "-C", "../../../contrib/c", "OUT="+c, "CFLAGS=-g -Wall -Wextra -Wpedantic -Werror -fsanitize=address,undefined -fno-sanitize-recover").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	type key struct{}
	of := func(ts *testscript.TestScript) *sidecar { return ts.Value(key{}).(*sidecar) }
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			dir, err := os.MkdirTemp("", "evo") // a socket's path is short
			if err != nil {
				return err
			}
			s := &sidecar{backend: &scripted{step: make(map[uint32]int)}, socket: filepath.Join(dir, "s"), stop: func() {}}
			e.Values[key{}] = s
			e.Defer(func() { s.stop(); os.RemoveAll(dir) })
			e.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			e.Setenv("EVOSLURM_API", "unix://"+s.socket)
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			e.Setenv("TZ", "UTC")
			e.Setenv("PYTHONPATH", library)
			e.Setenv("PYTHONDONTWRITEBYTECODE", "1") // the library is the one that install is tested with
			e.Setenv("HEADERS", filepath.Join(library, "../c"))
			e.Setenv("LIBRARY", filepath.Join(c, "libevoslurm.a"))
			return s.start()
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// sidecar start|stop|old|fresh: its jobs are in their first step again
			"sidecar": func(ts *testscript.TestScript, _ bool, args []string) {
				switch args[0] {
				case "stop":
					of(ts).stop()
				case "fresh":
					b := of(ts).backend
					b.mu.Lock()
					clear(b.step)
					b.mu.Unlock()
				case "old":
					of(ts).stop()
					ts.Check(of(ts).old())
				default:
					ts.Check(of(ts).start())
				}
			},
			// posted WANT...: the next requests so far, in order
			"posted": func(ts *testscript.TestScript, _ bool, args []string) {
				b := of(ts).backend
				b.mu.Lock()
				defer b.mu.Unlock()
				if got, want := fmt.Sprintf("%q", b.posts), fmt.Sprintf("%q", args); got != want {
					ts.Fatalf("posted %s, want %s", got, want)
				}
			},
			// asked N: waits for the Nth next request
			"asked": func(ts *testscript.TestScript, _ bool, args []string) {
				b := of(ts).backend
				for range 3000 {
					b.mu.Lock()
					n := len(b.posts)
					b.mu.Unlock()
					if fmt.Sprint(n) >= args[0] {
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
				ts.Fatalf("nobody asked")
			},
			// grows FILE TEXT: waits until the file has the text
			"grows": func(ts *testscript.TestScript, _ bool, args []string) {
				for range 3000 {
					if text, err := os.ReadFile(ts.MkAbs(args[0])); err == nil && strings.Contains(string(text), args[1]) {
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
				ts.Fatalf("%s has no %q", args[0], args[1])
			},
		},
	})
}

// TestReport checks that doctor's table is the same with and without colour, apart from the colour.
func TestReport(t *testing.T) {
	r := report{Drive: "merge", Reasons: []string{"a", "b"}}
	r.add("one", ok, "fine", "")
	r.add("longer", warn, "so so", "do this")
	if r.failed() {
		t.Error("a warning is no failure")
	}
	r.add("x", fail, "bad", "do that")
	if !r.failed() {
		t.Error("a failure is not told")
	}
	var plain, colour strings.Builder
	r.print(&plain, false)
	r.print(&colour, true)
	const want = `one     ok    fine
longer  warn  so so
              → do this
x       fail  bad
              → do that

Jobs grow by drive mode merge: a; b.
`
	if plain.String() != want {
		t.Errorf("got\n%s\nwant\n%s", plain.String(), want)
	}
	if !strings.Contains(colour.String(), "\x1b[31mfail\x1b[0m") {
		t.Errorf("no colour: %q", colour.String())
	}
	if strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[0m", "").Replace(colour.String()) != want {
		t.Errorf("colour changes the text: %q", colour.String())
	}
}
