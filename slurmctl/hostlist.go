package slurmctl

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxNodes bounds the length of a list from ExpandNodes. Slurm's own bound is 65,533 nodes per
// cluster.
const MaxNodes = 1 << 17

// ExpandNodes lists the nodes of a hostlist expression in its order: "n[1-3,7],m[01-10]x". A name
// may have several brackets. "", "(null)", and "None" mean no nodes. A malformed expression, or one
// with more than MaxNodes names, is an error. O(length of the result).
func ExpandNodes(expr string) ([]string, error) {
	if none(expr) {
		return nil, nil
	}
	if len(expr) > 64*MaxNodes {
		return nil, fmt.Errorf("hostlist of %d bytes is too long", len(expr))
	}
	var nodes []string
	for rest := expr; ; {
		name, tail, more := cutHost(rest)
		if name == "" {
			return nil, hostlistError(expr, "an empty name")
		}
		var err error
		if nodes, err = expandName(nodes, name); err != nil {
			return nil, hostlistError(expr, err.Error())
		}
		if !more {
			return nodes, nil
		}
		rest = tail
	}
}

// CountNodes returns how many nodes ExpandNodes would list, or its error, without listing them.
// O(length of the expression).
func CountNodes(expr string) (int, error) {
	if none(expr) {
		return 0, nil
	}
	total := 0
	for rest, more := expr, true; more; {
		var name string
		if name, rest, more = cutHost(rest); name == "" {
			return 0, hostlistError(expr, "an empty name")
		}
		n, err := countName(name)
		if err != nil {
			return 0, hostlistError(expr, err.Error())
		}
		if total += n; total > MaxNodes {
			return 0, hostlistError(expr, fmt.Sprintf("more than %d nodes", MaxNodes))
		}
	}
	return total, nil
}

// countName returns how many nodes one name with any number of brackets stands for.
func countName(name string) (int, error) {
	total := 1
	for {
		_, inside, after, bracket, err := cutBracket(name)
		if err != nil || !bracket {
			return total, err
		}
		count := 0
		for part := range strings.SplitSeq(inside, ",") {
			r, err := parseRange(part)
			if err != nil {
				return 0, err
			}
			if count += r.count(); count > MaxNodes/total {
				return 0, fmt.Errorf("more than %d nodes", MaxNodes)
			}
		}
		total, name = total*count, after
	}
}

func hostlistError(expr, why string) error {
	return fmt.Errorf("hostlist %q: %s", oneLine(expr, 80), why)
}

// cutHost cuts a list at the first comma outside brackets.
func cutHost(s string) (name, rest string, more bool) {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth <= 0 {
				return s[:i], s[i+1:], true
			}
		}
	}
	return s, "", false
}

// expandName appends the nodes of a name with any number of brackets. The rightmost bracket changes
// fastest.
func expandName(nodes []string, name string) ([]string, error) {
	made := []string{""}
	for name != "" {
		literal, inside, after, bracket, err := cutBracket(name)
		if err != nil {
			return nil, err
		}
		for i := range made {
			made[i] += literal
		}
		if !bracket {
			break
		}
		numbers, err := expandRanges(inside, MaxNodes/len(made))
		if err != nil {
			return nil, err
		}
		next := make([]string, 0, len(made)*len(numbers))
		for _, m := range made {
			for _, n := range numbers {
				next = append(next, m+n)
			}
		}
		made, name = next, after
	}
	if len(nodes)+len(made) > MaxNodes {
		return nil, fmt.Errorf("more than %d nodes", MaxNodes)
	}
	return append(nodes, made...), nil
}

// cutBracket splits a name at its first bracket into the text before, inside, and after the
// bracket.
func cutBracket(name string) (literal, inside, after string, bracket bool, err error) {
	literal, rest, bracket := strings.Cut(name, "[")
	if strings.ContainsAny(literal, "] \t\n") {
		return "", "", "", false, fmt.Errorf("a stray %q", "]")
	}
	if !bracket {
		return literal, "", "", false, nil
	}
	inside, after, closed := strings.Cut(rest, "]")
	if !closed {
		return "", "", "", false, fmt.Errorf("a bracket is not closed")
	}
	return literal, inside, after, true, nil
}

// numberRange is one range in a bracket; its numbers are padded with zeros to a width.
type numberRange struct {
	first, last uint64
	width       int
}

// count returns how many numbers the range has, at most one more than MaxNodes.
func (r numberRange) count() int { return int(min(r.last-r.first, MaxNodes)) + 1 }

func parseRange(part string) (numberRange, error) {
	low, high, isRange := strings.Cut(part, "-")
	if !isRange {
		high = low
	}
	if !digits(low) || !digits(high) || len(low) > maxDigits || len(high) > maxDigits {
		return numberRange{}, fmt.Errorf("range %q is not understood", part)
	}
	a, _ := strconv.ParseUint(low, 10, 64) // at most maxDigits digits: cannot fail
	b, _ := strconv.ParseUint(high, 10, 64)
	if b < a {
		return numberRange{}, fmt.Errorf("range %q runs backwards", part)
	}
	return numberRange{a, b, len(low)}, nil
}

// expandRanges lists "1-3,007,9". It pads each range with zeros like its first number.
func expandRanges(s string, limit int) ([]string, error) {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		r, err := parseRange(part)
		if err != nil {
			return nil, err
		}
		if r.count() > limit-len(out) {
			return nil, fmt.Errorf("more than %d nodes", MaxNodes)
		}
		for n := r.first; n <= r.last; n++ {
			out = append(out, pad(n, r.width))
		}
	}
	return out, nil
}

// maxDigits is the largest number of digits that are read as a number; longer digit strings are
// text.
const maxDigits = 15

func pad(n uint64, width int) string {
	s := strconv.FormatUint(n, 10)
	if len(s) < width {
		return strings.Repeat("0", width-len(s)) + s
	}
	return s
}

// CompressNodes writes nodes as one expression, each node once, sorted by name and number: n1 n2 n3
// n10 is "n[1-3,10]". ExpandNodes reverses it. It folds only the digits at the end of a name. O(n
// log n).
func CompressNodes(nodes []string) string {
	hosts := make([]host, len(nodes))
	for i, n := range nodes {
		hosts[i] = splitHost(n)
	}
	slices.SortFunc(hosts, compareHosts)
	hosts = slices.Compact(hosts)

	var b strings.Builder
	for i := 0; i < len(hosts); {
		j := i + 1
		for hosts[i].digits != "" && j < len(hosts) && hosts[j].prefix == hosts[i].prefix && hosts[j].digits != "" {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(hosts[i].prefix)
		if j-i == 1 {
			b.WriteString(hosts[i].digits)
		} else {
			b.WriteString("[" + compressRanges(hosts[i:j]) + "]")
		}
		i = j
	}
	return b.String()
}

// compressRanges folds the sorted numbers of one prefix.
func compressRanges(hosts []host) string {
	var b strings.Builder
	for i := 0; i < len(hosts); {
		first, last := hosts[i], hosts[i]
		for i++; i < len(hosts) && hosts[i].number == last.number+1 &&
			hosts[i].digits == pad(hosts[i].number, len(first.digits)); i++ {
			last = hosts[i]
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(first.digits)
		if last != first {
			b.WriteString("-" + last.digits)
		}
	}
	return b.String()
}

// SortNodes sorts names in place in the order of CompressNodes: n2 before n10.
func SortNodes(nodes []string) {
	slices.SortFunc(nodes, func(a, b string) int { return compareHosts(splitHost(a), splitHost(b)) })
}

// host is a name, split before its final digits.
type host struct {
	prefix, digits string
	number         uint64
}

func splitHost(name string) host {
	i := len(name)
	for i > 0 && name[i-1] >= '0' && name[i-1] <= '9' {
		i--
	}
	if len(name)-i > maxDigits {
		return host{prefix: name}
	}
	n, _ := strconv.ParseUint(name[i:], 10, 64)
	return host{name[:i], name[i:], n}
}

func compareHosts(a, b host) int {
	return cmp.Or(cmp.Compare(a.prefix, b.prefix), cmp.Compare(a.number, b.number),
		cmp.Compare(len(a.digits), len(b.digits)))
}
