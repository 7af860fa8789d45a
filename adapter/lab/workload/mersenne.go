package workload

import (
	"crypto/sha512"
	"math"
	"math/bits"
)

// mersenne is MT19937 (Matsumoto and Nishimura 1998), used as in CPython's module random. So
// workloads match those of generators in Python, number for number.
type mersenne struct {
	state [624]uint32
	next  int
}

// seedText seeds as random.seed does for a text (version 2).
func (r *mersenne) seedText(text string) {
	sum := sha512.Sum512([]byte(text))
	number := append([]byte(text), sum[:]...) // big endian
	var key []uint32
	for end := len(number); end > 0; end -= 4 {
		var word uint32
		for _, b := range number[max(end-4, 0):end] {
			word = word<<8 | uint32(b)
		}
		key = append(key, word)
	}
	for len(key) > 1 && key[len(key)-1] == 0 {
		key = key[:len(key)-1]
	}
	r.seedKey(key)
}

// seedKey is the generator's init_by_array.
func (r *mersenne) seedKey(key []uint32) {
	s := &r.state
	s[0] = 19650218
	for i := uint32(1); i < 624; i++ {
		s[i] = 1812433253*(s[i-1]^s[i-1]>>30) + i
	}
	i, j := 1, 0
	mix := func(factor uint32, add uint32) {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*factor) + add
		if i++; i == 624 {
			s[0], i = s[623], 1
		}
	}
	for range max(624, len(key)) {
		mix(1664525, key[j]+uint32(j))
		j = (j + 1) % len(key)
	}
	for range 623 {
		mix(1566083941, -uint32(i))
	}
	s[0] = 1 << 31
	r.next = 624
}

// word returns 32 bits.
func (r *mersenne) word() uint32 {
	s := &r.state
	if r.next == 624 {
		for i := range s {
			y := s[i]&(1<<31) | s[(i+1)%624]&(1<<31-1)
			s[i] = s[(i+397)%624] ^ y>>1
			if y&1 == 1 {
				s[i] ^= 0x9908b0df
			}
		}
		r.next = 0
	}
	y := s[r.next]
	r.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// float is random(): 0 ≤ x < 1 in 53 bits.
func (r *mersenne) float() float64 {
	a, b := r.word()>>5, r.word()>>6
	return (float64(a)*(1<<26) + float64(b)) / (1 << 53)
}

// below returns what choice picks of n things, 0 < n < 2^32.
func (r *mersenne) below(n uint32) uint32 {
	k := bits.Len32(n)
	for {
		if x := r.word() >> (32 - k); x < n {
			return x
		}
	}
}

// gauss returns the first normal number after seeding.
func (r *mersenne) gauss(mean, deviation float64) float64 {
	angle := r.float() * 2 * math.Pi
	radius := math.Sqrt(-2 * math.Log(1-r.float()))
	return mean + float64(math.Cos(angle)*radius*deviation)
}
