package planner

import (
	"strings"

	"github.com/evoslurm/evoslurm/planner/paper"
	"github.com/evoslurm/evoslurm/planner/search"
)

// StrategyByName returns rigid, noX, 2X, 2X+c, infX, infX+c, or any other
// <limit>X or <limit>X+c, e.g. 1.5X+c (paper, section 5.1); minwaste or
// <limit>X+m (FitMinWaste); search or search+fair, also with +<limit>X (Search);
// energy or energy+<duration> (Energy).
func StrategyByName(name string) (Strategy, error) {
	switch {
	case strings.HasPrefix(name, "search"):
		return search.ByName(name)
	case strings.HasPrefix(name, "energy"):
		return search.EnergyByName(name)
	}
	return paper.ByName(name)
}

// Strategies returns the names of all strategies worth comparing: the paper's, then
// ours. The last two say what a fair search gains without and with expansion.
func Strategies() []string {
	return append(PaperStrategies(), "minwaste", "search", "search+fair", "search+fair+infX")
}
