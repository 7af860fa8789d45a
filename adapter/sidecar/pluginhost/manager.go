package pluginhost

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/planner"
	sdk "github.com/evoslurm/evoslurm/plugins/strategy"
)

// fallback plans if a plugin cannot.
var fallback, _ = planner.StrategyByName("noX")

// Manager knows all strategies and the one in use. It is safe for concurrent use; plans are made
// through Begin, one cycle at a time.
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
	events  []Event

	Planning, Resizing *Slot
}

// slots returns both, in the order in which they are prepared.
func (m *Manager) slots() []*Slot { return []*Slot{m.Planning, m.Resizing} }

// Event is something for the event log.
type Event struct {
	Kind   string
	Detail map[string]any
}

// New looks for plugins and takes a strategy in use, as Slot.Take does. Malleable jobs are
// resized by the default until Resizing.Take. Planning falls back where a plugin does not start.
func New(cfg config.Strategies, name string, kept *Chosen, log *logrus.Logger) (*Manager, error) {
	m := &Manager{log: log, cfg: cfg, known: map[string]sdk.Description{}, trouble: map[string]string{}}
	m.Planning, m.Resizing = newSlot(m, &planning), newSlot(m, &resizing)
	m.ctx, m.stop = context.WithCancel(context.Background())
	if err := m.rescan(); err != nil {
		log.WithError(err).Error("strategies.dir is not used")
	}
	values, err := cfg.Values()
	if err == nil {
		err = m.Planning.Take(name, values, kept)
	}
	if err == nil {
		err = m.Resizing.Take(msg.FallbackPolicy.Name(), nil, nil)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	m.work.Go(m.look)
	return m, nil
}

// Close ends all plugins. Nothing may be planned afterwards.
func (m *Manager) Close() {
	m.stop()
	m.work.Wait()
	for _, u := range m.slots() {
		m.mu.Lock()
		var p *process
		if u.current != nil { // else New has failed
			p = u.current.retire()
		}
		m.mu.Unlock()
		if p != nil {
			p.end()
		}
	}
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

// file returns the plugin of that name.
func (m *Manager) file(name string) (file, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.files, func(f file) bool { return f.name == name })
	if i < 0 {
		return file{}, false
	}
	return m.files[i], true
}

// look starts every plugin once, to learn what it is.
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
	const most = 1000 // in case they are not fetched
	if len(m.events) < most {
		m.events = append(m.events, Event{kind, detail})
	}
}

// Events returns the events since the last call.
func (m *Manager) Events() []Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	events := m.events
	m.events = nil
	return events
}
