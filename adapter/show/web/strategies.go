package web

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// actTimeout bounds an action on a strategy: a plugin may have to start.
const actTimeout = 45 * time.Second

const (
	mostForm   = 64 << 10 // bytes
	mostShifts = 100      // jobs that are shown of a trial
)

// Chooser is a Reader that shows strategies and, to operators, tries them and puts one in use.
type Chooser interface {
	Strategies(ctx context.Context) ([]api.Strategy, error)
	TryStrategy(ctx context.Context, name string, q api.StrategyRequest) (api.Trial, error)
	UseStrategy(ctx context.Context, name string, q api.StrategyRequest) (api.Strategy, error)
}

// strategiesPage holds the strategies, and what a tried one would change.
type strategiesPage struct {
	Strategies []api.Strategy
	Now        time.Time
	Form       string // what forms carry to show that they are of this page
	Tried      string
	Given      string
	Trial      *api.Trial
	Shifts     []shift
	More       int // further jobs of the trial
}

// shift is a job in two plans.
type shift struct {
	api.TrialJob
	By string // how much later it would end
}

func (p *Page) strategies(ctx context.Context, v visit) (any, error) {
	c, ok := v.Reader.(Chooser)
	if !ok {
		return nil, api.Errorf(api.ErrNotFound, "there are no strategies to choose from")
	}
	all, err := c.Strategies(ctx)
	return &strategiesPage{Strategies: all, Now: v.now, Form: p.forms.sign(v.Reader)}, err
}

// try shows what a strategy would change, beside the current plan.
func (p *Page) try(ctx context.Context, v visit) (any, error) {
	name, q, err := p.form(v)
	if err != nil {
		return nil, err
	}
	body, err := p.strategies(ctx, v)
	if err != nil {
		return nil, err
	}
	page := body.(*strategiesPage)
	t, err := v.Reader.(Chooser).TryStrategy(ctx, name, q)
	if err != nil {
		return nil, err
	}
	page.Tried, page.Given, page.Trial = name, v.PostForm.Get("parameters"), &t
	for _, j := range t.Jobs {
		if len(page.Shifts) == mostShifts {
			page.More = len(t.Jobs) - mostShifts
			break
		}
		s := shift{TrialJob: j}
		if by := j.TriedEnd.Sub(j.End); !j.End.IsZero() && !j.TriedEnd.IsZero() && by.Abs() >= time.Second {
			s.By = span(by)
			if by > 0 {
				s.By = "+" + s.By
			}
		}
		page.Shifts = append(page.Shifts, s)
	}
	return page, nil
}

// use puts a strategy in use.
func (p *Page) use(ctx context.Context, v visit) (any, error) {
	name, q, err := p.form(v)
	if err != nil {
		return nil, err
	}
	c, ok := v.Reader.(Chooser)
	if !ok {
		return nil, api.Errorf(api.ErrNotFound, "there are no strategies to choose from")
	}
	if _, err := c.UseStrategy(ctx, name, q); err != nil {
		return nil, err
	}
	return redirect("strategies"), nil
}

// redirect is where to go after an action, so that reloading does not repeat it.
type redirect string

// form reads a form of this page: its strategy with its parameters, name=value.
func (p *Page) form(v visit) (string, api.StrategyRequest, error) {
	var q api.StrategyRequest
	if err := p.signed(v); err != nil {
		return "", q, err
	}
	name := v.PostForm.Get("strategy")
	if name == "" {
		return "", q, api.Errorf(api.ErrInvalid, "no strategy is named")
	}
	for _, word := range strings.Fields(v.PostForm.Get("parameters")) {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" {
			return "", q, api.Errorf(api.ErrInvalid, "parameters: %q; want name=value", text(word))
		}
		if q.Parameters == nil {
			q.Parameters = map[string]string{}
		}
		q.Parameters[key] = value
	}
	return name, q, nil
}

// signed reports whether a form is of this page.
func (p *Page) signed(v visit) error {
	if err := v.ParseForm(); err != nil {
		return api.Errorf(api.ErrInvalid, "the form: %v", err)
	}
	if !hmac.Equal([]byte(v.PostForm.Get("form")), []byte(p.forms.sign(v.Reader))) {
		return api.Errorf(api.ErrForbidden, "this form is from another page, or from before the sidecar was started: reload the page and try again")
	}
	return nil
}

// forms signs each reader's forms: another site can send one in a reader's name, but cannot know
// the signature.
type forms struct{ key [32]byte }

func newForms() *forms {
	f := &forms{}
	rand.Read(f.key[:])
	return f
}

func (f *forms) sign(reader Reader) string {
	mac := hmac.New(sha256.New, f.key[:])
	if w, ok := reader.(interface{ Who() string }); ok {
		mac.Write([]byte(w.Who()))
	}
	return hex.EncodeToString(mac.Sum(nil))
}
