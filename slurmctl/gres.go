package slurmctl

import (
	"fmt"
	"slices"
	"strings"
)

// GRES is an amount of a generic resource.
type GRES struct {
	Name  string // "gpu"
	Type  string // "a100"; "" for any, or none
	Count int64
}

func (g GRES) String() string {
	if g.Type != "" {
		return fmt.Sprintf("%s:%s:%d", g.Name, g.Type, g.Count)
	}
	return fmt.Sprintf("%s:%d", g.Name, g.Count)
}

// ParseGRES reads what sinfo prints for a node ("gpu:a100:4(S:0-1),nvme:1"), what squeue prints for
// a request ("gres:gpu:2", "gres/gpu:a100=2"), and what users write ("gpu" means one).
func ParseGRES(s string) ([]GRES, error) {
	if s = strings.TrimSpace(s); none(s) || strings.EqualFold(s, "none") {
		return nil, nil
	}
	var all []GRES
	for _, item := range splitOutside(s) {
		g, err := parseOneGRES(item)
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

// splitOutside splits at commas outside brackets: "gpu:2(S:0,2),nvme:1".
func splitOutside(s string) []string {
	var items []string
	depth, from := 0, 0
	for i, c := range s {
		switch c {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ',':
			if depth == 0 {
				items, from = append(items, s[from:i]), i+1
			}
		}
	}
	return append(items, s[from:])
}

func parseOneGRES(item string) (GRES, error) {
	text := strings.TrimSpace(item)
	for _, prefix := range []string{"gres:", "gres/"} {
		text = strings.TrimPrefix(text, prefix)
	}
	text = strings.Replace(text, "=", ":", 1)
	text = strings.ReplaceAll(text, "(null)", "")
	if i := strings.IndexByte(text, '('); i >= 0 {
		text = text[:i] // the sockets of the GPU
	}
	parts := slices.DeleteFunc(strings.Split(text, ":"), func(p string) bool { return p == "" || p == "no_consume" })
	bad := fmt.Errorf("generic resource %q is not understood", oneLine(item, 40))
	if len(parts) == 0 || len(parts) > 3 {
		return GRES{}, bad
	}
	g := GRES{Name: parts[0], Count: 1}
	rest := parts[1:]
	if len(rest) > 0 {
		if n, err := scaled(rest[len(rest)-1], 1024, "KMGTP"); err == nil {
			g.Count, rest = n, rest[:len(rest)-1]
		}
	}
	switch len(rest) {
	case 0:
	case 1:
		g.Type = rest[0]
	default:
		return GRES{}, bad
	}
	if checkWord(g.Name) != nil || g.Type != "" && checkWord(g.Type) != nil {
		return GRES{}, bad
	}
	return g, nil
}

// CheckWhole rejects parts of GPUs (gres/shard, gres/mps). A job with whole nodes gets all of their
// resources, both GPUs and parts of GPUs, but Slurm allocates only one of the two kinds. Such a job
// never starts (22.05, shard: measured).
func CheckWhole(wanted []GRES) error {
	for _, g := range wanted {
		if g.Name == "shard" || g.Name == "mps" {
			return fmt.Errorf("%s is part of a GPU, which Slurm gives no job that has whole nodes: ask for GPUs, as --gpus-per-node=1", g)
		}
	}
	return nil
}

// HasGRES reports whether a node's resources meet a request per node.
func HasGRES(node, wanted []GRES) bool {
	left := slices.Clone(node)
	take := func(w GRES, typed bool) bool {
		if (w.Type != "") != typed {
			return true
		}
		for i := range left {
			if left[i].Name == w.Name && (w.Type == "" || left[i].Type == w.Type) {
				n := min(left[i].Count, w.Count)
				left[i].Count -= n
				w.Count -= n
			}
		}
		return w.Count == 0
	}
	for _, typed := range []bool{true, false} { // untyped requests take what is left
		for _, w := range wanted {
			if !take(w, typed) {
				return false
			}
		}
	}
	return true
}

// JoinGRES writes resources in the form of --gres.
func JoinGRES(all []GRES) string {
	texts := make([]string, len(all))
	for i, g := range all {
		texts[i] = g.String()
	}
	return strings.Join(texts, ",")
}
