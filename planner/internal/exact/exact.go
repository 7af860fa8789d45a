package exact

import (
	"cmp"
	"math"
	"math/bits"
)

// Seconds that mark something.
const (
	Forever int64 = math.MaxInt64 // the end of an unbounded interval, and the answer "never"
	Horizon int64 = 1 << 60       // the last second at which a plan may end: beyond it, sums of times could overflow
	Dawn    int64 = math.MinInt64 // before everything
)

// AddTime returns a + b for b ≥ 0, at most Forever.
func AddTime(a, b int64) int64 {
	if a > 0 && b > Forever-a {
		return Forever
	}
	return a + b
}

// Wide is a sum of node-seconds in 128 bits.
type Wide struct{ Hi, Lo uint64 }

// Add adds nodes × seconds.
func (w *Wide) Add(nodes, seconds int64) {
	hi, lo := bits.Mul64(uint64(nodes), uint64(seconds))
	w.Plus(Wide{hi, lo})
}

// Plus adds another sum.
func (w *Wide) Plus(v Wide) {
	var carry uint64
	w.Lo, carry = bits.Add64(w.Lo, v.Lo, 0)
	w.Hi, _ = bits.Add64(w.Hi, v.Hi, carry)
}

// Minus subtracts a sum that is not larger than w.
func (w *Wide) Minus(v Wide) {
	var borrow uint64
	w.Lo, borrow = bits.Sub64(w.Lo, v.Lo, 0)
	w.Hi, _ = bits.Sub64(w.Hi, v.Hi, borrow)
}

// Less reports whether w is smaller.
func (w Wide) Less(v Wide) bool { return w.Hi < v.Hi || w.Hi == v.Hi && w.Lo < v.Lo }

// Compare returns a negative number if w is smaller, and 0 if both are equal.
func (w Wide) Compare(v Wide) int {
	if w.Hi != v.Hi {
		return cmp.Compare(w.Hi, v.Hi)
	}
	return cmp.Compare(w.Lo, v.Lo)
}

// Float returns w, rounded. The larger of two sums never rounds to less.
func (w Wide) Float() float64 { return float64(w.Hi)*(1<<64) + float64(w.Lo) }
