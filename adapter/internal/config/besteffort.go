package config

import "fmt"

// BestEffort says how best-effort jobs run.
type BestEffort struct {
	Enabled   bool   `mapstructure:"enabled"`
	QOS       string `mapstructure:"qos"`       // that they must have; "": any
	Account   string `mapstructure:"account"`   // the same
	Partition string `mapstructure:"partition"` // the same
	MaxNodes  int    `mapstructure:"max_nodes"` // of all best-effort jobs of a user; 0: no bound
}

// NoBestEffort is the reason for which a site runs no best-effort jobs.
const NoBestEffort = "this site runs no best-effort jobs (best_effort.enabled)"

// Charge is an option of sbatch that the site sets for best-effort jobs.
type Charge struct{ Name, Value string }

// Charged returns the options of sbatch that every best-effort job must have.
func (b BestEffort) Charged() (all []Charge) {
	for _, c := range []Charge{{"qos", b.QOS}, {"account", b.Account}, {"partition", b.Partition}} {
		if c.Value != "" {
			all = append(all, c)
		}
	}
	return all
}

// TooFew returns why no best-effort job that needs so many nodes can run here, or "".
func (b BestEffort) TooFew(nodes int) string {
	if b.MaxNodes == 0 || nodes <= b.MaxNodes {
		return ""
	}
	return fmt.Sprintf("this site gives the best-effort jobs of a user %d nodes at most (best_effort.max_nodes), and the job needs %d: give --nodes=MIN-MAX with MIN at most %d", b.MaxNodes, nodes, b.MaxNodes)
}

func (b BestEffort) validate(check func(ok bool, key, format string, args ...any)) {
	check(b.MaxNodes >= 0, "best_effort.max_nodes", "%d; want 0 (no bound) or more", b.MaxNodes)
	for _, c := range b.Charged() {
		check(isName(c.Value), "best_effort."+c.Name, "%q; want the name of one %s", c.Value, c.Name)
	}
}

// isName reports whether a text may name something of Slurm, and is no option or list.
func isName(text string) bool {
	for i, r := range text {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
		if !letter && (i == 0 || r != '-' && r != '.') {
			return false
		}
	}
	return text != ""
}
