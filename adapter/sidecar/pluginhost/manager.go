package pluginhost

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/plugins/builtin"
	sdk "github.com/evoslurm/evoslurm/plugins/strategy"
)

// fallback plans where a plugin cannot.
var fallback, _ = planner.StrategyByName("noX")

// Manager knows all strategies and which one is in use. It is safe for concurrent
// use; its plans are made through Begin, one cycle at a time.
type Manager struct {
	log *logrus.Logger

	looking sync.Mutex // one look at all plugins at a time
	work    sync.WaitGroup
	ctx     context.Context // of whatever runs plugins
	stop    context.CancelFunc

	mu         sync.Mutex
	cfg        config.Strategies
	files      []file
	known      map[string]sdk.Description // of plugins, with their defaults
	trouble    map[string]string          // why a plugin is not known
	current    *selection
	configured Chosen  // by the configuration
	policy     *policy // of malleable jobs
	records    map[string]*record
	events     []Event

	configuredPolicy Chosen
}

// selection is a strategy with its parameters.
type selection struct {
	name    string
	given   map[string]string
	since   time.Time
	by      string
	values  sdk.Values
	builtin planner.Strategy // nil: a plugin
	file    file             // of the plugin
	process *process         // nil: not at present
	version string
	ours    bool // a restart is under way
	ended   bool // it is no longer in use
}

// Event is something for the event log.
type Event struct {
	Kind   string
	Detail map[string]any
}

// New looks for plugins and takes a strategy in use: the one that was put in use
// before (kept), if there is one, else the configuration's. An error is a name or a
// parameter in the configuration that does not exist; a plugin that does not start
// at present is a fault, and planning falls back.
func New(cfg config.Strategies, name string, kept *Chosen, log *logrus.Logger) (*Manager, error) {
	m := &Manager{log: log, cfg: cfg, known: map[string]sdk.Description{}, trouble: map[string]string{}, records: map[string]*record{}}
	m.ctx, m.stop = context.WithCancel(context.Background())
	if err := m.rescan(); err != nil {
		log.WithError(err).Error("strategies.dir is not used")
	}
	m.policy = &policy{Chosen: Chosen{Name: core.FallbackPolicy.Name(), By: byConfiguration}, builtin: core.FallbackPolicy} // until BeginPolicy
	err := m.begin(cfg, name, kept)
	if err != nil {
		m.Close()
		return nil, err
	}
	m.work.Go(m.look)
	return m, nil
}

// begin takes the first strategy in use.
func (m *Manager) begin(cfg config.Strategies, name string, kept *Chosen) error {
	values, err := cfg.Values()
	if err != nil {
		return err
	}
	m.configured = Chosen{Name: name, Parameters: values, By: byConfiguration}
	if kept != nil {
		detail := map[string]any{"strategy": kept.Name, "parameters": kept.Parameters, "by": kept.By, "since": kept.Since, "configured": name}
		if m.current, err = m.sure(m.ctx, *kept); err == nil {
			m.current.since = kept.Since
			m.event("strategy kept", detail)
			m.log.WithFields(logrus.Fields{"strategy": kept.Name, "parameters": kept.Parameters, "by": kept.By}).Info("the strategy that was put in use is kept; the configuration has " + name)
			return nil
		}
		detail["error"] = err.Error()
		m.event("strategy not kept", detail)
		m.log.WithError(err).Errorf("the strategy that was put in use is not available, the configured %s plans", name)
	}
	m.current, err = m.sure(m.ctx, m.configured)
	return err
}

// sure prepares a strategy, even if it has no process for now.
func (m *Manager) sure(ctx context.Context, c Chosen) (*selection, error) {
	s, err := m.prepare(ctx, c.Name, c.Parameters)
	if err == nil {
		s.by = c.By
		return s, nil
	}
	f, ok := m.file(c.Name)
	if !ok {
		return nil, err
	}
	s = &selection{name: c.Name, given: c.Parameters, file: f, since: time.Now(), by: c.By}
	m.mu.Lock()
	m.fault(s, err)
	m.mu.Unlock()
	return s, nil
}

// Close ends all plugins. Nothing may be planned afterwards.
func (m *Manager) Close() {
	m.stop()
	m.work.Wait()
	m.mu.Lock()
	s := m.current // none, if New has failed
	m.current = nil
	p := m.policy.process
	m.policy.process, m.policy.ended = nil, true
	m.mu.Unlock()
	if p != nil {
		p.end()
	}
	if s != nil && s.process != nil {
		s.process.end()
	}
}

// prepare makes a selection: a plugin of that name, else a built-in strategy.
func (m *Manager) prepare(ctx context.Context, name string, given map[string]string) (*selection, error) {
	s := &selection{name: name, given: maps.Clone(given), since: time.Now()}
	f, ok := m.file(name)
	if !ok {
		return s, s.build()
	}
	s.file = f
	p, err := m.startPlanner(ctx, f, given)
	if err != nil {
		return nil, err
	}
	s.process, s.values, s.version = p, p.values, p.description.Version
	return s, nil
}

func (m *Manager) startPlugin(ctx context.Context, f file, given map[string]string) (*process, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.ctx, cancel)()
	m.mu.Lock()
	cfg := m.cfg
	m.mu.Unlock()
	p, err := start(ctx, cfg, f, given, m.log)
	if err == nil && len(given) == 0 {
		m.mu.Lock()
		m.known[f.name] = p.description
		delete(m.trouble, f.name)
		m.mu.Unlock()
	}
	return p, err
}

// startPlanner starts a plugin that is to plan.
func (m *Manager) startPlanner(ctx context.Context, f file, given map[string]string) (*process, error) {
	p, err := m.startPlugin(ctx, f, given)
	if err == nil && !p.description.Plans {
		p.end()
		return nil, fmt.Errorf("strategy %s: %w", f.name, sdk.ErrNoPlan)
	}
	return p, err
}

// build makes the built-in strategy of the selection's name: one with a
// definition, or a member of the paper's family by its own name.
func (s *selection) build() error {
	d, ok := builtin.Find(s.name)
	if !ok {
		st, err := planner.StrategyByName(s.name)
		if err != nil {
			return fmt.Errorf("there is no strategy %q; evosctl strategy list tells which there are", sdk.Clean(s.name, 63))
		}
		d = sdk.Definition{Name: s.name, New: func(sdk.Values) (planner.Strategy, error) { return st, nil }}
	}
	values, err := d.Values(s.given)
	if err != nil {
		return err
	}
	s.values, s.version = values, d.Version
	s.builtin, err = d.New(values)
	return err
}

// rescan looks into the folder of strategies.
func (m *Manager) rescan() error {
	m.mu.Lock()
	dir := m.cfg.Dir
	m.mu.Unlock()
	files, err := scan(dir)
	if err != nil {
		return fmt.Errorf("strategies.dir: %w", err)
	}
	m.mu.Lock()
	m.files = files
	m.mu.Unlock()
	return nil
}

// file is the plugin of that name.
func (m *Manager) file(name string) (file, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.files, func(f file) bool { return f.name == name })
	if i < 0 {
		return file{}, false
	}
	return m.files[i], true
}

// look starts every plugin once, to tell what it is.
func (m *Manager) look() {
	m.looking.Lock()
	defer m.looking.Unlock()
	m.mu.Lock()
	files := slices.Clone(m.files)
	m.mu.Unlock()
	for _, f := range files {
		if f.refused != "" {
			continue
		}
		p, err := m.startPlugin(m.ctx, f, nil)
		if err == nil {
			p.end()
			continue
		}
		m.mu.Lock()
		m.trouble[f.name] = err.Error()
		m.mu.Unlock()
	}
}

// event notes something for the event log; mu is held.
func (m *Manager) event(kind string, detail map[string]any) {
	const most = 1000 // should nobody fetch them
	if len(m.events) < most {
		m.events = append(m.events, Event{kind, detail})
	}
}

// Events are the events since the last call.
func (m *Manager) Events() []Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	events := m.events
	m.events = nil
	return events
}

// Name is that of the strategy in use.
func (m *Manager) Name() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current.name
}
