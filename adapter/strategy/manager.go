package strategy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/config"
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

	mu      sync.Mutex
	cfg     config.Strategies
	files   []file
	known   map[string]sdk.Description // of plugins, with their defaults
	trouble map[string]string          // why a plugin is not known
	current *selection
	records map[string]*record
	events  []Event
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

// New looks for plugins and takes a strategy in use. An error is a name or a
// parameter that does not exist; a plugin that does not start at present is a
// fault, and planning falls back.
func New(cfg config.Strategies, name string, log *logrus.Logger) (*Manager, error) {
	m := &Manager{log: log, cfg: cfg, known: map[string]sdk.Description{}, trouble: map[string]string{}, records: map[string]*record{}}
	m.ctx, m.stop = context.WithCancel(context.Background())
	if err := m.rescan(); err != nil {
		log.WithError(err).Error("strategies.dir is not used")
	}
	s, err := m.configured(m.ctx, cfg, name)
	if err != nil {
		m.Close()
		return nil, err
	}
	m.current = s
	m.work.Go(m.look)
	return m, nil
}

// configured prepares the strategy that the configuration names.
func (m *Manager) configured(ctx context.Context, cfg config.Strategies, name string) (*selection, error) {
	values, err := cfg.Values()
	if err != nil {
		return nil, err
	}
	s, err := m.prepare(ctx, name, values)
	if err == nil {
		s.by = "configuration"
		return s, nil
	}
	f, ok := m.file(name)
	if !ok {
		return nil, err
	}
	s = &selection{name: name, given: values, file: f, since: time.Now(), by: "configuration"}
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
	s := m.current
	m.current = nil
	m.mu.Unlock()
	if s != nil && s.process != nil {
		s.process.end()
	}
}

// Configure takes another configuration: the strategy it names, if that or its
// parameters are others than in the configuration before, and the limits from the
// next start of a plugin on. Like Use it does the work beforehand; swap is to be
// called between two cycles.
func (m *Manager) Configure(ctx context.Context, cfg config.Strategies, name, before string) (swap func(), err error) {
	m.mu.Lock()
	old := m.cfg
	m.cfg = cfg
	m.mu.Unlock()
	if err := m.rescan(); err != nil {
		m.log.WithError(err).Error("strategies.dir is not used")
	}
	if name == before && slices.Equal(cfg.Parameters, old.Parameters) {
		return func() {}, nil
	}
	s, err := m.configured(ctx, cfg, name)
	if err != nil {
		m.mu.Lock()
		m.cfg = old
		m.mu.Unlock()
		return nil, err
	}
	return func() { m.swap(s, "strategy") }, nil
}

// Use prepares a strategy for use: a plugin is started and tried. Nothing has
// changed if it fails. swap puts it in use; it is to be called between two cycles.
func (m *Manager) Use(ctx context.Context, name string, parameters map[string]string, by string) (swap func(), err error) {
	if err := m.rescan(); err != nil {
		return nil, err
	}
	s, err := m.prepare(ctx, name, parameters)
	if err != nil {
		return nil, err
	}
	s.by = by
	return func() {
		m.mu.Lock()
		m.record(name).forgive()
		m.mu.Unlock()
		m.swap(s, "strategy")
	}, nil
}

// Reload looks for plugins again, forgives all faults and starts the plugin in use
// anew, so that an upgraded executable takes over: the old process plans until the
// new one has proved itself. On an error the old one goes on.
func (m *Manager) Reload(ctx context.Context, by string) (swap func(), err error) {
	if err := m.rescan(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	for _, r := range m.records {
		r.forgive()
	}
	old := m.current
	m.mu.Unlock()
	m.work.Go(m.look)
	if old.builtin != nil {
		if _, ok := m.file(old.name); !ok {
			return func() {}, nil
		}
	}
	s, err := m.prepare(ctx, old.name, old.given)
	if err != nil {
		return nil, err
	}
	s.by = by
	return func() { m.swap(s, "strategy reloaded") }, nil
}

// swap puts a prepared selection in use and ends the process of the one before.
func (m *Manager) swap(s *selection, kind string) {
	m.mu.Lock()
	old := m.current
	if old == nil { // closed meanwhile
		m.mu.Unlock()
		if s.process != nil {
			s.process.end()
		}
		return
	}
	old.ended = true
	p := old.process
	old.process = nil
	s.since = time.Now()
	m.current = s
	m.event(kind, map[string]any{"from": old.name, "from_parameters": old.given, "from_version": old.version,
		"to": s.name, "to_parameters": s.given, "to_version": s.version, "by": s.by})
	m.mu.Unlock()
	m.log.WithFields(logrus.Fields{"from": old.name, "to": s.name, "parameters": s.given, "by": s.by}).Info(kind)
	if p != nil {
		m.work.Go(p.end)
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
	p, err := m.startPlugin(ctx, f, given)
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
