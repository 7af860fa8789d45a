package observed

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/recorder"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Watcher makes records of what the core gets. It belongs to the shell's loop, except Command.
//
// It holds what the last poll showed, which the core holds as well, and some words for each job. Predictions are
// remembered for as many jobs as the core plans, times histories.
type Watcher struct {
	out     *Writer
	names   *recorder.Names // nil: as they are
	version string
	cfg     config.Config

	mu    sync.Mutex
	calls map[string]int // since the last Load

	slurm      slurmctl.Config
	limits     *slurmctl.Limits
	nodes      []slurmctl.Node
	partitions []slurmctl.Partition
	site       Site

	begun        time.Time // of the first poll
	at           time.Time // of the last poll that worked
	turn         int       // its number
	failing      string    // why polls fail since
	jobs         map[slurmctl.JobID]*tracked
	down         map[string]string               // nodes that cannot be used, and why, as recorded
	reservations map[string]slurmctl.Reservation // as recorded
	predicted    map[slurmctl.JobID]*history

	load Load
	bare time.Duration // processor time of a command that asks for next to nothing
	cost time.Duration // processor time of polls beyond that, since the last Load

	of   map[uint32]int // records of each user today
	left Left
}

const (
	// silence is the time between two polls that counts as a gap.
	silence = 2 * time.Minute
	day     = 24 * time.Hour
	// loadEvery is the time between two Load records.
	loadEvery = time.Hour
	// mostStanding is how many waiting jobs of one user are recorded as they stand.
	mostStanding = 1000
)

// quota returns how many records of its jobs a user has a day. The folder then holds a month of a user who uses all.
func quota(mib int) int { return max(mostStanding, mib<<20/32/128) }

// NewWatcher returns a watcher that writes as the configuration says; now is the time by Slurm's clock.
func NewWatcher(cfg config.Config, version string, now time.Time) (*Watcher, error) {
	w := &Watcher{version: version, cfg: cfg.Discreet(), calls: map[string]int{}, load: Load{From: now.Unix()}, left: Left{From: now.Unix()}, of: map[uint32]int{},
		jobs: map[slurmctl.JobID]*tracked{}, predicted: map[slurmctl.JobID]*history{}}
	dir := cfg.ObserveDir()
	if cfg.Observe.Mask {
		var err error
		if w.names, err = recorder.LoadNames(dir + ".key"); err != nil {
			return nil, err
		}
		w.cfg = nameless(w.cfg)
	}
	w.out = NewWriter(dir, cfg.Observe.MiB, w.head)
	days, err := Days(dir)
	if err != nil {
		return nil, err
	}
	if len(days) > 0 {
		files := days[len(days)-1].Files
		if info, err := os.Stat(files[len(files)-1]); err == nil {
			w.at, w.failing = info.ModTime(), "the sidecar did not observe"
		}
	}
	return w, nil
}

// Warn sets where failures are reported.
func (w *Watcher) Warn(f func(error)) { w.out.Warn = f }

// Command counts a command of Slurm. It is safe for concurrent use.
func (w *Watcher) Command(name string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[name]++
}

// See takes an input before the core does, which may change it. A poll began at the time `begun` by Slurm's clock, and
// took that long.
func (w *Watcher) See(begun time.Time, took time.Duration, in msg.Input) {
	if w == nil {
		return
	}
	switch in := in.(type) {
	case msg.Observation:
		w.load.Wall += took.Seconds()
		w.poll(begun, in)
	case msg.Planned:
		w.planned(in.Stock)
	case msg.Outcome:
		if l, ok := in.Result.(*slurmctl.Limits); ok && in.Err == nil {
			w.limits = l
			w.describe()
		}
	}
}

// Close writes what stands.
func (w *Watcher) Close() error {
	if w == nil {
		return nil
	}
	if !w.begun.IsZero() {
		w.stand()
		w.loaded(w.at)
	}
	return w.out.Close()
}

func (w *Watcher) write(r Record) {
	r.At = w.at.Unix()
	w.out.Write(w.at, r)
}

// writeOf does what write does, within a user's quota.
func (w *Watcher) writeOf(uid uint32, r Record) {
	if w.of[uid] >= quota(w.cfg.Observe.MiB) {
		w.left.Jobs++
		return
	}
	w.of[uid]++
	w.write(r)
}

// poll takes a poll of Slurm.
func (w *Watcher) poll(at time.Time, o msg.Observation) {
	if o.Err != nil || len(o.Nodes) == 0 {
		if w.failing = "sinfo lists no nodes"; o.Err != nil {
			w.failing = clip(o.Err.Error(), 200)
		}
		return
	}
	first, before, gap := w.begun.IsZero(), w.at, w.failing
	if gap == "" && !first && at.Sub(before) > silence {
		gap = "there was no poll"
	}
	if !first && !at.Truncate(day).Equal(before.Truncate(day)) {
		w.newDay()
	}
	if w.slurm.Version == "" && o.Config != nil {
		w.slurm = *o.Config
	}
	w.nodes, w.partitions = o.Nodes, o.Partitions
	if first {
		w.begun, w.site = at, w.describeSite()
		w.load.From, w.left.From = at.Unix(), at.Unix()
	}
	w.at, w.failing = at, ""
	w.turn++
	if gap != "" && !before.IsZero() {
		w.write(Record{Gap: &Gap{before.Unix(), at.Unix(), gap}})
	}
	if o.Config != nil {
		w.slurm = *o.Config
		w.describe()
	}
	w.watchNodes(o.Nodes)
	w.watchReservations(o.Reservations)
	w.watchJobs(o, before, gap != "")
	w.count(o)
	w.out.Flush(at)
}

// newDay ends a day: the next file tells again what stands.
func (w *Watcher) newDay() {
	w.stand()
	w.down, w.reservations = nil, nil
	clear(w.of)
}

// stand records the jobs that have not ended.
func (w *Watcher) stand() {
	waiting := map[uint32]int{}
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		t := w.jobs[id]
		if t.start == 0 {
			if waiting[t.job.UID]++; waiting[t.job.UID] > mostStanding {
				w.left.Jobs++
				continue
			}
		}
		one := w.job(t)
		one.Standing = true
		w.write(Record{Job: one})
	}
	if w.left.Jobs > 0 {
		left := w.left
		w.write(Record{Left: &left})
	}
	w.left = Left{From: w.at.Unix()}
}

// count adds up what the poll cost.
func (w *Watcher) count(o msg.Observation) {
	if o.BareCPU > 0 {
		w.bare = o.BareCPU
	}
	w.cost += max(o.CPU-time.Duration(o.Commands)*w.bare, 0)
	l, waiting, busy := &w.load, 0, 0
	for i := range o.Jobs {
		if o.Jobs[i].State == slurmctl.Pending {
			waiting += max(o.Jobs[i].ArrayTasks, 1)
		}
	}
	for i := range o.Nodes {
		if o.Nodes[i].CPUsAlloc > 0 {
			busy++
		}
	}
	l.Polls++
	l.Queued, l.Busy = max(l.Queued, waiting), max(l.Busy, busy)
	if w.at.Sub(time.Unix(l.From, 0)) >= loadEvery {
		w.loaded(w.at)
	}
}

// loaded records the load since the last time.
func (w *Watcher) loaded(at time.Time) {
	l := w.load
	w.mu.Lock()
	l.Calls, w.calls = w.calls, map[string]int{}
	w.mu.Unlock()
	if passed := at.Sub(time.Unix(l.From, 0)); passed > 0 {
		l.Share = w.cost.Seconds() / passed.Seconds()
	}
	w.cost, w.load = 0, Load{From: at.Unix()}
	if l.Polls > 0 {
		w.write(Record{Load: &l})
	}
}

// watchNodes records which nodes can be used since, and which cannot.
func (w *Watcher) watchNodes(nodes []slurmctl.Node) {
	type state struct {
		text   string
		usable bool
	}
	changed, down := map[state][]string{}, map[string]string{}
	for i := range nodes {
		n := &nodes[i]
		was, now, usable := w.down[n.Name], n.State+n.Flags, n.Usable()
		if !usable {
			down[n.Name] = now
		}
		if usable != (was == "") || !usable && was != now {
			changed[state{now, usable}] = append(changed[state{now, usable}], n.Name)
		}
	}
	w.down = down
	for s, names := range changed {
		w.write(Record{Nodes: &NodeState{slurmctl.CompressNodes(names), s.text, s.usable}})
	}
}

// watchReservations records reservations that are new, differ, or are gone.
func (w *Watcher) watchReservations(all []slurmctl.Reservation) {
	now := make(map[string]slurmctl.Reservation, len(all))
	for _, r := range all {
		r.Active = false // it begins without a change
		if before, known := w.reservations[r.Name]; !known || !reflect.DeepEqual(before, r) {
			w.write(Record{Reservation: w.reservation(r)})
		}
		now[r.Name] = r
	}
	for name, r := range w.reservations {
		if _, there := now[name]; !there {
			one := w.reservation(r)
			one.Ended = true
			w.write(Record{Reservation: one})
		}
	}
	w.reservations = now
}

func (w *Watcher) reservation(r slurmctl.Reservation) *Reservation {
	return &Reservation{Name: w.names.Word("reservation", r.Name), Start: unix(r.Start), End: unix(r.End), Nodes: slurmctl.CompressNodes(r.Nodes),
		Users: w.words("user", r.Users), Accounts: w.words("account", r.Accounts), Partition: r.Partition, Flags: r.Flags}
}

// words replaces names.
func (w *Watcher) words(kind string, names []string) []string {
	if w.names == nil {
		return names
	}
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = w.names.Word(kind, name)
	}
	return all
}

// unix returns seconds; 0 for the zero time.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// clip shortens what a user wrote.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
