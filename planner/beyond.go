package planner

import "strings"

// Strategies are the names of all strategies worth comparing: the paper's, then
// ours. The last two say what a fair search gains without and with expansion.
func Strategies() []string {
	return append(PaperStrategies(), "minwaste", "search", "search+fair", "search+fair+infX")
}

// beyondPaper gives the strategies that the paper does not have:
//
//   - minwaste and <limit>X+m: FitMinWaste in place of Fit, without bound on
//     expansion (as infX+c) or with;
//   - search, search+fair, and both with +<limit>X: Search with its default
//     budget.
//
// ok is false for any other name.
func beyondPaper(name string) (s Strategy, ok bool, err error) {
	if name == "minwaste" {
		return list{name: name, limit: Infinite, compact: true, minWaste: true}, true, nil
	}
	if text, found := strings.CutSuffix(name, "X+m"); found {
		limit, err := ParseExpandLimit(text)
		return list{name: name, limit: limit, compact: true, minWaste: true}, true, err
	}
	rest, found := strings.CutPrefix(name, "search")
	if !found {
		return nil, false, nil
	}
	var search Search
	rest, search.Fair = strings.CutPrefix(rest, "+fair")
	if rest == "" {
		return search, true, nil
	}
	text, plus := strings.CutPrefix(rest, "+")
	text, x := strings.CutSuffix(text, "X")
	if !plus || !x {
		return nil, false, nil
	}
	search.Limit, err = ParseExpandLimit(text)
	return search, true, err
}
