package malleable

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/planner/profile"
)

// Sizes are the node counts that an application can use: any (the zero value), powers of
// two, or the multiples of a number.
type Sizes int

// The named sizes; Sizes(k) for k > 0 are the multiples of k.
const (
	Any  Sizes = 0
	Pow2 Sizes = -1
)

// ParseSizes reads any, pow2 or multiple:K. The error is a *profile.ParseError.
func ParseSizes(text string) (Sizes, error) {
	number, multiple := strings.CutPrefix(text, "multiple:")
	switch {
	case text == "any":
		return Any, nil
	case text == "pow2":
		return Pow2, nil
	case !multiple:
		return Any, &profile.ParseError{Input: text, Reason: "sizes are neither any nor pow2 nor multiple:K"}
	}
	k, err := profile.ParseNodes(number)
	if err != nil {
		return Any, &profile.ParseError{Input: text, Offset: len(text) - len(number), Reason: err.Error()}
	}
	return Sizes(k), nil
}

// String returns the form that ParseSizes reads.
func (s Sizes) String() string {
	switch {
	case s == Any:
		return "any"
	case s == Pow2:
		return "pow2"
	}
	return "multiple:" + strconv.Itoa(int(s))
}

// MarshalText returns String.
func (s Sizes) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what ParseSizes reads.
func (s *Sizes) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSizes(string(text))
	return err
}

// words names the sizes within a sentence: "no power of two".
func (s Sizes) words() string {
	switch {
	case s == Any:
		return "number"
	case s == Pow2:
		return "power of two"
	}
	return fmt.Sprintf("multiple of %d", int(s))
}

// Floor returns the largest size that is at most n, or 0.
func (s Sizes) Floor(n int) int {
	switch {
	case n < 1:
		return 0
	case s == Pow2:
		return 1 << (bits.Len(uint(n)) - 1)
	case s > 0:
		return n - n%int(s)
	}
	return n
}

// Ceil returns the smallest size that is at least n, and at least 1.
func (s Sizes) Ceil(n int) int {
	n = max(n, 1)
	switch {
	case n > math.MaxInt/2: // no cluster is that large
		return n
	case s == Pow2:
		return 1 << bits.Len(uint(n-1))
	case s > 0:
		return (n + int(s) - 1) / int(s) * int(s)
	}
	return n
}

// Has reports whether n is one of the sizes.
func (s Sizes) Has(n int) bool { return n >= 1 && s.Floor(n) == n }

// Bounds is the range of a malleable job: it runs on Min to Max nodes.
type Bounds struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// ParseBounds reads MIN-MAX. The error is a *profile.ParseError.
func ParseBounds(text string) (Bounds, error) {
	fail := func(offset int, reason string) (Bounds, error) {
		return Bounds{}, &profile.ParseError{Input: text, Offset: offset, Reason: reason}
	}
	low, high, found := strings.Cut(text, "-")
	least, err := profile.ParseNodes(low)
	switch {
	case text == "":
		return fail(0, "MIN-MAX expected")
	case err != nil:
		return fail(0, "minimum: "+err.Error())
	case !found:
		return fail(len(text), "-MAX missing")
	}
	most, err := profile.ParseNodes(high)
	if err != nil {
		return fail(len(low)+1, "maximum: "+err.Error())
	}
	if least > most {
		return fail(0, fmt.Sprintf("the minimum %d is above the maximum %d", least, most))
	}
	return Bounds{least, most}, nil
}

// String returns the form that ParseBounds reads.
func (b Bounds) String() string { return fmt.Sprintf("%d-%d", b.Min, b.Max) }

// Least returns the smallest size within the bounds, or 0.
func (b Bounds) Least(s Sizes) int {
	if n := s.Ceil(b.Min); n <= b.Max {
		return n
	}
	return 0
}

// Most returns the largest size within the bounds, or 0.
func (b Bounds) Most(s Sizes) int {
	if n := s.Floor(b.Max); n >= b.Min {
		return n
	}
	return 0
}

// Validate returns why a job with these bounds cannot use such sizes.
func (b Bounds) Validate(s Sizes) error {
	switch {
	case b.Min < 1:
		return fmt.Errorf("the minimum is %d, must be at least 1", b.Min)
	case b.Max > profile.MaxNodes:
		return fmt.Errorf("the maximum is %d, must be at most %d", b.Max, profile.MaxNodes)
	case b.Min > b.Max:
		return fmt.Errorf("the minimum %d is above the maximum %d", b.Min, b.Max)
	case b.Least(s) == 0:
		return fmt.Errorf("there is no %s within %s", s.words(), b)
	}
	return nil
}
