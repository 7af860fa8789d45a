package config

import (
	"time"

	"github.com/evoslurm/evoslurm/planner/malleable"
)

// Malleable is how malleable jobs are resized.
type Malleable struct {
	Policy    string        `mapstructure:"policy"`    // which jobs grow or shrink
	Approach  string        `mapstructure:"approach"`  // pwa or pra
	Threshold int           `mapstructure:"threshold"` // nodes that they never exceed together; 0: no bound
	Grace     time.Duration `mapstructure:"grace"`     // for jobs that set none
	MaxGrace  time.Duration `mapstructure:"max_grace"` // largest grace that a job may set
}

// Precedence returns the approach.
func (m Malleable) Precedence() malleable.Approach {
	a, _ := malleable.ParseApproach(m.Approach) // valid
	return a
}

// GraceOf returns how long a job has to give nodes back: the seconds that it requested, or the
// default for 0, within the site's maximum.
func (m Malleable) GraceOf(asked int) time.Duration {
	if asked == 0 {
		return m.Grace
	}
	return min(time.Duration(asked)*time.Second, m.MaxGrace)
}

func (m Malleable) validate(check func(ok bool, key, format string, args ...any)) {
	check(m.Policy != "", "malleable.policy", "empty; want a policy's name, such as egs")
	_, err := malleable.ParseApproach(m.Approach)
	check(err == nil, "malleable.approach", "%v", err)
	check(m.Threshold >= 0, "malleable.threshold", "%d; want 0 (no bound) or more", m.Threshold)
	check(m.Grace >= time.Second, "malleable.grace", "%v; want 1s or more", m.Grace)
	check(m.MaxGrace >= m.Grace, "malleable.max_grace", "%v; want as much as malleable.grace (%v) or more", m.MaxGrace, m.Grace)
}
