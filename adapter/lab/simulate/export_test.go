package simulate

import "time"

// Sample returns how many of n cases to try. Under the race detector, which takes seven times as long and has little to
// find in one goroutine, it is an eighth: `make test` also runs these tests without it.
func Sample(n int) int {
	if race {
		return (n + 7) / 8
	}
	return n
}

// SetLongest bounds experiments to d until undo is called.
func SetLongest(d time.Duration) (undo func()) {
	was := longest
	longest = d
	return func() { longest = was }
}
