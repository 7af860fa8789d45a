package observed

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Figure is a statistic with its 95 % confidence interval; without one, all observations are in one
// block.
type Figure struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

// Method says how confidence intervals were made: blocks of time are drawn with replacement, and
// the interval holds the middle 95 % of the drawn statistics.
type Method struct {
	Block     string `json:"block"` // of blocks
	Resamples int    `json:"resamples"`
	Seed      uint64 `json:"seed"`
}

// fewBlocks is the number of blocks below which shorter ones are taken.
const fewBlocks = 3

// blocks are the lengths of blocks in seconds, by name.
var blocks = map[string]int64{"day": 24 * 3600, "hour": 3600, "five minutes": 300}

// newMethod returns the method for a record of that length: blocks of days, of hours, or of five minutes.
func newMethod(seconds int64) Method {
	m := Method{Block: "day", Resamples: 500, Seed: 26}
	switch {
	case seconds < fewBlocks*blocks["hour"]:
		m.Block = "five minutes"
	case seconds < fewBlocks*blocks["day"]:
		m.Block = "hour"
	}
	return m
}

// block returns the block of an instant, in UTC.
func (m Method) block(at time.Time) int64 { return at.Unix() / blocks[m.Block] }

// observation is one value and its block.
type observation struct {
	value float64
	block int64
}

// quantiles returns the smallest values with at least those parts of the observations at or below them.
func (m Method) quantiles(x []observation, parts ...float64) []Figure {
	x = slices.Clone(x)
	slices.SortFunc(x, func(a, b observation) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.block, b.block))
	})
	return m.estimate(number(x), len(parts), func(drawn []int, values []float64) {
		n := 0
		for i := range x {
			n += drawn[x[i].block]
		}
		for k, part := range parts {
			rank := max(int(math.Ceil(part*float64(n))), 1)
			for i := range x {
				if rank -= drawn[x[i].block]; rank <= 0 {
					values[k] = x[i].value
					break
				}
			}
		}
	})
}

// mean returns the mean of observations.
func (m Method) mean(x []observation) Figure {
	x = slices.Clone(x)
	sums, counts := make([]float64, number(x)), make([]float64, len(x))
	for i := range x {
		sums[x[i].block] += x[i].value
		counts[x[i].block]++
	}
	return m.estimate(len(sums), 1, func(drawn []int, values []float64) {
		sum, n := 0., 0.
		for block, times := range drawn {
			n += float64(times) * counts[block]
			sum += float64(float64(times) * sums[block]) // no fused multiply-add: the same on every processor
		}
		values[0] = sum / n
	})[0]
}

// number numbers the blocks of observations from 0 on, in order, and returns how many there are.
func number(x []observation) int {
	index := map[int64]int64{}
	for i := range x {
		index[x[i].block] = 0
	}
	for i, block := range slices.Sorted(maps.Keys(index)) {
		index[block] = int64(i)
	}
	for i := range x {
		x[i].block = index[x[i].block]
	}
	return len(index)
}

// estimate computes statistics with their intervals. compute gets how often each block was drawn.
func (m Method) estimate(blocks, statistics int, compute func(drawn []int, values []float64)) []Figure {
	drawn, values := slices.Repeat([]int{1}, blocks), make([]float64, statistics)
	figures, all := make([]Figure, statistics), make([][]float64, statistics)
	compute(drawn, values)
	for k, v := range values {
		figures[k].Value = v
	}
	if blocks < 2 {
		return figures
	}
	chance := rand.New(rand.NewPCG(m.Seed, 0))
	for range m.Resamples {
		clear(drawn)
		for range drawn {
			drawn[chance.IntN(blocks)]++
		}
		compute(drawn, values)
		for k, v := range values {
			all[k] = append(all[k], v)
		}
	}
	for k, values := range all {
		slices.Sort(values)
		at := func(part float64) *float64 { return &values[max(int(math.Ceil(part*float64(len(values))))-1, 0)] }
		figures[k].Low, figures[k].High = at(.025), at(.975)
	}
	return figures
}
