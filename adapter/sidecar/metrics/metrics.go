// Package metrics reports the sidecar's state to machines: Prometheus metrics, health, and
// readiness. A scrape reads what the sidecar has published and counted; it runs no command of Slurm
// and queries no database. No label names a job or a user, and there are never more than MostSeries
// series.
package metrics

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// MostSeries bounds the series of one sidecar.
const MostSeries = 200

// Sight is the published part of the sidecar's state.
type Sight struct {
	Status     api.Status
	Jobs       []api.Job // not ended
	Strategies []api.Strategy
	Holds      int // reservations of ours
	HeldNodes  int // in these
	IdleNodes  int // of these, idle and withheld from waiting jobs
	Writable   bool
}

// states lists the states of jobs in the API; there is a series for each.
var states = []string{"queued", "starting", "running", "waiting", api.Suspended}

// commands lists the Slurm commands that are counted separately.
var commands = []string{"squeue", "sinfo", "scontrol", "salloc", "sbatch", "scancel", "sacctmgr", "sdiag", "sacct", "srun"}

// kinds lists the events that are counted separately; see the core's.
var kinds = []string{"overrun", "enforced", "given up", "lapsed", "refused", "requeued", "intruder", "leak", "failed", "delayed", "kept back",
	"nodes did not come up", "nodes drained", "power left to Slurm", "not held", "clock stepped", "stood still", "change refused", "changed"}

// ends are Slurm's states of ended jobs that are counted apart.
var ends = []string{"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "PREEMPTED"}

// other counts everything that is not in a list.
const other = "other"

func among(list []string, word string) string {
	if slices.Contains(list, word) {
		return word
	}
	return other
}

// lateBuckets, in seconds: beyond ten a promise counts as broken in the alert rules.
var lateBuckets = []float64{1, 2, 5, 10, 30, 60, 300, 1800}

// Metrics counts. Its methods are safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	source   func() Sight

	cycle                            *prometheus.HistogramVec
	commands, commandTime            *prometheus.CounterVec
	events, ended                    *prometheus.CounterVec
	growthLate, growthWait, startLag prometheus.Histogram
	idleTime, gaveWay                prometheus.Counter
	promises                         *prometheus.CounterVec
	delayed, delayedTime             prometheus.Counter
	planned                          prometheus.Gauge

	mu    sync.Mutex
	steps map[int64]step // of jobs that run, by their rows
	idle  int
	since time.Time // since when this many nodes were held idle
}

// step holds what is remembered about a job between two events.
type step struct {
	nodes    int
	ended    time.Time // zero while it continues
	promised int64     // when the next growth was planned before it was delayed; 0: it was not
}

// New makes metrics of what source publishes; each scrape calls it.
func New(source func() Sight) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "evoslurm", Name: name, Help: help}, labels)
	}
	late := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "evoslurm", Name: name, Help: help, Buckets: lateBuckets})
	}
	m := &Metrics{
		registry: prometheus.NewRegistry(), source: source, steps: map[int64]step{},
		cycle: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "evoslurm", Name: "cycle_seconds", Help: "Time of the parts of a cycle.",
			Buckets: []float64{.001, .01, .1, .5, 1, 5, 30}}, []string{"part"}),
		commands:    counter("slurm_commands_total", "Commands of Slurm that were run.", "command", "outcome"),
		commandTime: counter("slurm_command_seconds_total", "Time that these took.", "command"),
		events:      counter("events_total", "Events that an administrator may want to know of, by kind.", "kind"),
		ended:       counter("jobs_ended_total", "Evolving jobs that have ended, by Slurm's state.", "state"),
		growthLate:  late("growth_late_seconds", "How much later than planned, before anything delayed it, and asked for, a growth had its nodes."),
		growthWait:  late("growth_wait_seconds", "From the end of a step until the nodes of a larger one were there."),
		startLag:    late("start_late_seconds", "How much later than planned jobs were started."),
		idleTime:    prometheus.NewCounter(prometheus.CounterOpts{Namespace: "evoslurm", Name: "held_idle_node_seconds_total", Help: "Node-seconds of idle nodes that holds kept from jobs that waited, from the moment of holding on."}),
		gaveWay:     prometheus.NewCounter(prometheus.CounterOpts{Namespace: "evoslurm", Name: "promises_gave_way_total", Help: "Promises of growths that lapsed for stock jobs which would have started later than max_delay allows."}),
		promises:    counter("promises_total", "Promises of growths that were decided, by outcome: kept, late by 10 s or more, broken, or not reached by the job.", "outcome"),
		delayed:     prometheus.NewCounter(prometheus.CounterOpts{Namespace: "evoslurm", Name: "stock_jobs_delayed_total", Help: "Stock jobs that started later because of holds."}),
		delayedTime: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "evoslurm", Name: "stock_jobs_delayed_seconds_total", Help: "Delays of these jobs, added up."}),
		planned:     prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "evoslurm", Name: "last_plan_timestamp_seconds", Help: "When the last plan was made; 0: never."}),
	}
	m.registry.MustRegister(m, m.cycle, m.commands, m.commandTime, m.events, m.ended, m.growthLate, m.growthWait, m.startLag, m.idleTime, m.gaveWay, m.planned, m.promises, m.delayed, m.delayedTime)
	for _, kind := range kinds { // a counter that is not there cannot be seen to rise
		m.events.WithLabelValues(kind)
	}
	for _, state := range ends {
		m.ended.WithLabelValues(state)
	}
	for _, outcome := range []string{row.PromiseKept, row.PromiseLate, row.PromiseBroken, row.PromiseNotReached} {
		m.promises.WithLabelValues(outcome)
	}
	return m
}

// Promise counts a promise once it is decided.
func (m *Metrics) Promise(p row.Promise) {
	if p.Outcome != "" {
		m.promises.WithLabelValues(p.Outcome).Inc()
	}
}

// Delay counts a stock job that started later because of holds, once it has started.
func (m *Metrics) Delay(d row.Delay) {
	if !d.Settled.IsZero() && d.Seconds > 0 {
		m.delayed.Inc()
		m.delayedTime.Add(float64(d.Seconds))
	}
}

// Command counts a command of Slurm.
func (m *Metrics) Command(r slurmctl.Ran) {
	name, outcome := other, "ok"
	if len(r.Args) > 0 {
		name = among(commands, r.Args[0])
	}
	if r.Err != nil {
		outcome = "failed"
	}
	m.commands.WithLabelValues(name, outcome).Inc()
	m.commandTime.WithLabelValues(name).Add(max(r.Took.Seconds(), 0))
}

// Cycle counts a cycle by its parts, in seconds.
func (m *Metrics) Cycle(parts map[string]any) {
	for _, part := range []string{"observe", "step", "plan", "save", "publish"} {
		if seconds, ok := parts[part].(float64); ok {
			m.cycle.WithLabelValues(part).Observe(seconds)
		}
	}
}

// Planned says that a plan was made.
func (m *Metrics) Planned(at time.Time) { m.planned.Set(float64(at.Unix())) }

// Holding sets how many idle nodes holds keep from jobs that wait, from now on.
func (m *Metrics) Holding(idle int, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if passed := now.Sub(m.since); !m.since.IsZero() && passed > 0 {
		m.idleTime.Add(float64(m.idle) * passed.Seconds())
	}
	m.idle, m.since = idle, now
}

// Event counts an event of a job (by its row; 0 for none) from the event log, and those of a kind that were left out
// before it.
func (m *Metrics) Event(job int64, at time.Time, kind string, detail any) {
	d, _ := detail.(map[string]any)
	if slices.Contains(kinds, kind) {
		more, _ := d["suppressed"].(int)
		m.events.WithLabelValues(kind).Add(float64(1 + more))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.steps[job]
	planned, _ := d["planned"].(int64)
	list, _ := d["nodes"].(string)
	nodes := 0
	if names, err := slurmctl.ExpandNodes(list); err == nil {
		nodes = len(names)
	}
	switch kind {
	case "started":
		m.steps[job] = step{nodes: nodes}
		if planned > 0 {
			m.startLag.Observe(seconds(at.Sub(time.Unix(planned, 0))))
		}
	case "step ended":
		if before.ended.IsZero() {
			before.ended = at
		}
		m.steps[job] = before
	case "delayed":
		if was, _ := d["was"].(int64); known && before.promised == 0 {
			before.promised = was
			m.steps[job] = before
		}
	case "lapsed": // later plans are not promises that were delayed
		if _, budget := d["budget"]; budget {
			m.gaveWay.Inc()
		}
		if known {
			before.promised = 0
			m.steps[job] = before
		}
	case "step begun":
		if before.promised > 0 {
			planned = before.promised
		}
		if known && before.nodes > 0 && nodes > before.nodes && planned > 0 {
			due := time.Unix(planned, 0)
			if before.ended.After(due) {
				due = before.ended
			}
			m.growthLate.Observe(seconds(at.Sub(due)))
			if !before.ended.IsZero() {
				m.growthWait.Observe(seconds(at.Sub(before.ended)))
			}
		}
		m.steps[job] = step{nodes: nodes}
	case "ended":
		delete(m.steps, job)
		state, _ := d["state"].(string)
		m.ended.WithLabelValues(among(ends, state)).Inc()
	}
}

func seconds(d time.Duration) float64 { return max(d, 0).Seconds() }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("evoslurm_"+name, help, labels, nil)
}

var (
	infoDesc      = desc("info", "Always 1; what the sidecar is and drives.", "version", "slurm", "drive", "strategy")
	jobsDesc      = desc("jobs", "Evolving jobs by state.", "state")
	nodesDesc     = desc("nodes", "Nodes of the cluster.")
	allocDesc     = desc("allocated_nodes", "Nodes allocated to evolving jobs.")
	unplannedDesc = desc("unplanned_jobs", "Queued evolving jobs that have no plan.")
	startDesc     = desc("start_timestamp_seconds", "When the sidecar began.")
	cycleDesc     = desc("last_cycle_timestamp_seconds", "When Slurm was polled last; 0: never.")
	callsDesc     = desc("cycle_slurm_commands", "Commands of Slurm in the last cycle.")
	apartDesc     = desc("polls_apart_seconds", "Longest time between two polls, after an urgent one: so long may a new job wait.")
	pauseDesc     = desc("poll_pause_seconds", "Pause between two polls that keeps to slurm.share; 0: polls come every poll_interval.")
	failingDesc   = desc("failing", "1 while Slurm cannot be polled, or something else is wrong that evosctl doctor tells.")
	writableDesc  = desc("database_writable", "1 while the database takes entries.")
	holdsDesc     = desc("holds", "Reservations that hold nodes for growths and starts to come.")
	heldDesc      = desc("held_nodes", "Nodes in holds, those to come as well.")
	idleDesc      = desc("held_idle_nodes", "Of these, idle ones that are kept from jobs that wait.")
	plansDesc     = desc("strategy_plans_total", "Cycles that strategies have planned.")
	faultsDesc    = desc("strategy_faults_total", "Answers of plugins that were wrong, late or missing.")
	fallenDesc    = desc("strategy_fallbacks_total", "Cycles that the built-in default planned in a strategy's place.")
	answerDesc    = desc("strategy_seconds", "Time that the plugin in use took of the last cycle.")
	napsDesc      = desc("power_nodes", "Nodes that are off by plan (power.mode: act), or could be (advise).")
	wattsDesc     = desc("power_saves_watts", "What these nodes draw less than idle ones, or would.")
	kwhDesc       = desc("power_saved_kwh", "Energy saved since power.mode was set, or that would have been saved; a boot costs some.")
	descs         = []*prometheus.Desc{infoDesc, jobsDesc, nodesDesc, allocDesc, unplannedDesc, startDesc, cycleDesc, callsDesc, pauseDesc, apartDesc, failingDesc, writableDesc,
		holdsDesc, heldDesc, idleDesc, plansDesc, faultsDesc, fallenDesc, answerDesc, napsDesc, wattsDesc, kwhDesc}
)

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range descs {
		out <- d
	}
}

// Collect implements prometheus.Collector. O(jobs).
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	s := m.source()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v int) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v))
	}
	gauge(infoDesc, 1, s.Status.Version, s.Status.SlurmVersion, s.Status.Drive, s.Status.Strategy)
	by, allocated, unplanned := map[string]int{}, 0, 0
	for _, j := range s.Jobs {
		by[among(states, j.State)]++
		allocated += j.Nodes
		if j.State == "queued" && len(j.Plan) == 0 {
			unplanned++
		}
	}
	for _, state := range append([]string{other}, states...) {
		gauge(jobsDesc, float64(by[state]), state)
	}
	gauge(nodesDesc, float64(s.Status.Nodes))
	gauge(allocDesc, float64(allocated))
	gauge(unplannedDesc, float64(unplanned))
	gauge(startDesc, timestamp(s.Status.Started))
	gauge(cycleDesc, timestamp(s.Status.LastCycle))
	gauge(callsDesc, float64(s.Status.SlurmCalls))
	gauge(pauseDesc, s.Status.PollPause)
	gauge(apartDesc, s.Status.PollsApart)
	gauge(failingDesc, is(s.Status.LastError != ""))
	gauge(writableDesc, is(s.Writable))
	gauge(holdsDesc, float64(s.Holds))
	gauge(heldDesc, float64(s.HeldNodes))
	gauge(idleDesc, float64(s.IdleNodes))
	plans, faults, fallen, took := 0, 0, 0, 0.0
	for _, t := range s.Strategies {
		plans, faults, fallen = plans+t.Plans, faults+t.Faults, fallen+t.Fallen
		if t.InUse {
			took = t.Seconds
		}
	}
	if p := s.Status.Power; p != nil {
		gauge(napsDesc, float64(p.Nodes))
		gauge(wattsDesc, p.Saves)
		gauge(kwhDesc, p.KWh)
	}
	count(plansDesc, plans)
	count(faultsDesc, faults)
	count(fallenDesc, fallen)
	gauge(answerDesc, took)
}

func is(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func timestamp(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

// stale is how old the last look at Slurm may be of a sidecar that is ready.
const stale = 2 * time.Minute

// Ready returns why the sidecar currently cannot make decisions, or nil. All callers see the
// reason.
func (m *Metrics) Ready(now time.Time) error {
	switch s := m.source(); {
	case s.Status.LastCycle.IsZero():
		return errors.New("Slurm was not polled yet")
	case now.Sub(s.Status.LastCycle) > stale+time.Duration(s.Status.PollsApart*float64(time.Second)):
		return fmt.Errorf("Slurm was polled last %v ago", now.Sub(s.Status.LastCycle).Round(time.Second))
	case !s.Writable:
		return errors.New("the database takes no entries")
	}
	return nil
}

// Handler serves GET /metrics.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	return mux
}
