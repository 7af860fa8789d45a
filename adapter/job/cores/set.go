package cores

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxCPUs bounds the numbers of CPUs, as unix.CPUSet does.
const maxCPUs = 1024

// set holds the numbers of CPUs in ascending order.
type set []int

// parseSet reads a list as Linux writes it: 0-3,8.
func parseSet(text string) (set, error) {
	var has [maxCPUs]bool
	for _, part := range strings.Split(strings.TrimSpace(text), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.ParseUint(first, 10, 16)
		to, err2 := strconv.ParseUint(last, 10, 16)
		if err1 != nil || err2 != nil || from > to || to >= maxCPUs {
			return nil, fmt.Errorf("invalid list of CPUs %.80q", text)
		}
		for cpu := from; cpu <= to; cpu++ {
			has[cpu] = true
		}
	}
	var s set
	for cpu, yes := range has {
		if yes {
			s = append(s, cpu)
		}
	}
	return s, nil
}

// String returns the list as Linux writes it.
func (s set) String() string {
	var b strings.Builder
	for i := 0; i < len(s); {
		j := i
		for j+1 < len(s) && s[j+1] == s[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(s[i]))
		if j > i {
			b.WriteString("-" + strconv.Itoa(s[j]))
		}
		i = j + 1
	}
	return b.String()
}

// MarshalText implements encoding.TextMarshaler.
func (s set) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *set) UnmarshalText(text []byte) (err error) {
	*s, err = parseSet(string(text))
	return err
}

func (s set) has(cpu int) bool {
	_, found := slices.BinarySearch(s, cpu)
	return found
}

// and returns the CPUs in both.
func (s set) and(o set) set {
	return slices.DeleteFunc(slices.Clone(s), func(cpu int) bool { return !o.has(cpu) })
}

// affinity returns the CPUs that a thread may run on.
func affinity(tid int) (set, error) {
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(tid, &mask); err != nil {
		return nil, err
	}
	var s set
	for cpu := range maxCPUs {
		if mask.IsSet(cpu) {
			s = append(s, cpu)
		}
	}
	return s, nil
}

func setAffinity(tid int, s set) error {
	var mask unix.CPUSet
	for _, cpu := range s {
		mask.Set(cpu)
	}
	return unix.SchedSetaffinity(tid, &mask)
}
