package profile

import (
	"fmt"
	"math/big"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// TestGoDuration checks that durations with units are exact unless they have parts below a
// nanosecond.
func TestGoDuration(t *testing.T) {
	units := map[string]int64{"h": 3600e9, "m": 60e9, "s": 1e9, "ms": 1e6, "us": 1e3, "µs": 1e3, "μs": 1e3, "ns": 1}
	decimals := map[string]int{"ms": 6, "us": 3, "µs": 3, "μs": 3, "ns": 0}
	rapid.Check(t, func(t *rapid.T) {
		text, exact := "", new(big.Rat)
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			unit := rapid.SampledFrom([]string{"h", "m", "s", "ms", "us", "µs", "μs", "ns"}).Draw(t, "unit")
			most, some := decimals[unit]
			if !some {
				most = 9
			}
			number := strconv.Itoa(rapid.IntRange(0, 9999).Draw(t, "number"))
			if digits := rapid.StringMatching(fmt.Sprintf("[0-9]{0,%d}|[05]", most)).Draw(t, "decimals"); len(digits) <= most {
				number += "." + digits
			}
			text += number + unit
			n, ok := new(big.Rat).SetString(number)
			if !ok {
				t.Fatal(number)
			}
			exact.Add(exact, n.Mul(n, big.NewRat(units[unit], 1e9)))
		}
		got, err := parseGoDuration(text)
		if exact.IsInt() != (err == nil) || err == nil && exact.Cmp(big.NewRat(got, 1)) != 0 {
			t.Fatalf("%q: %d, %v; it is %v", text, got, err, exact)
		}
	})
	for _, text := range []string{"1h30", ".h", "1..5h", "1e5s", "1/2h", "0x1h", "1_0m", "9999999h"} {
		if got, err := parseGoDuration(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}
