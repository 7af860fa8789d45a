package profile

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
)

// ExpandLimit bounds how long a step may hold its nodes while it waits for the next step's, as a
// multiple of its duration (paper, section 4.2): 1 is never longer, Infinite has no bound. Values
// below 1 are invalid, except that 0 means "not given" where a type says so. Limits are exact to a
// millionth.
type ExpandLimit float64

// Infinite is the expand limit without bound.
var Infinite = ExpandLimit(math.Inf(1))

// maxLimit is the largest finite limit: limit × MaxDuration is then about 10^18.
const maxLimit = 1e9

// ParseExpandLimit reads 1, 2, 1.5 or inf. The error is a *ParseError.
func ParseExpandLimit(text string) (ExpandLimit, error) {
	fail := func(reason string) (ExpandLimit, error) {
		return 0, &ParseError{Input: text, Reason: reason}
	}
	if text == "" {
		return fail("expand limit missing")
	}
	if text == "inf" {
		return Infinite, nil
	}
	whole, fraction, dot := strings.Cut(text, ".")
	if !digits(whole) || dot && !digits(fraction) {
		return fail(`expand limit is neither a number (like 1.5) nor "inf"`)
	}
	if len(fraction) > 6 {
		return fail("expand limit has more than 6 decimals")
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fail("expand limit is too large")
	}
	if err := ExpandLimit(f).Validate(); err != nil {
		return fail(err.Error())
	}
	return ExpandLimit(f), nil
}

// Validate returns what is wrong with l; 0 is also invalid.
func (l ExpandLimit) Validate() error {
	switch {
	case math.IsNaN(float64(l)):
		return fmt.Errorf("expand limit is not a number")
	case l < 1:
		return fmt.Errorf("expand limit %s is below 1", l)
	case l > maxLimit && l != Infinite:
		return fmt.Errorf(`expand limit %s is above %d ("inf" has no bound)`, l, int64(maxLimit))
	}
	return nil
}

// String returns the form that ParseExpandLimit reads: "1", "1.5", "inf".
func (l ExpandLimit) String() string {
	if math.IsInf(float64(l), 1) {
		return "inf"
	}
	return strconv.FormatFloat(float64(l), 'f', -1, 64)
}

// MarshalJSON writes a number, "inf" for Infinite and null for 0, not given.
func (l ExpandLimit) MarshalJSON() ([]byte, error) {
	switch {
	case l == 0:
		return []byte("null"), nil
	case l == Infinite:
		return []byte(`"inf"`), nil
	}
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return []byte(l.String()), nil
}

// UnmarshalJSON reads a number ≥ 1 or "inf"; null leaves l unchanged.
func (l *ExpandLimit) UnmarshalJSON(data []byte) error {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	var limit ExpandLimit
	switch v := v.(type) {
	case nil:
		return nil
	case float64:
		limit = ExpandLimit(v)
	case string:
		if v != "inf" {
			return fmt.Errorf("expand limit %s is neither a number nor \"inf\"", quoteShort(v))
		}
		limit = Infinite
	default:
		return fmt.Errorf("expand limit is neither a number nor \"inf\"")
	}
	if err := limit.Validate(); err != nil {
		return err
	}
	*l = limit
	return nil
}

// Stretch returns the longest time in seconds that a step of d seconds may last: limit × d, rounded
// down; Forever if infinite. It is exact for limits of up to six decimals (1.15 × 100 is 115) and
// never below d.
func (l ExpandLimit) Stretch(d int64) int64 {
	if l > maxLimit {
		return exact.Forever
	}
	millionths := uint64(math.Round(float64(l) * 1e6))
	hi, lo := bits.Mul64(uint64(d), millionths)
	if hi >= 1e6 {
		return exact.Forever
	}
	product, _ := bits.Div64(hi, lo, 1e6)
	if product > math.MaxInt64 {
		return exact.Forever
	}
	return max(int64(product), d)
}
