package simulate

import "time"

// SetLongest bounds experiments to d until undo is called.
func SetLongest(d time.Duration) (undo func()) {
	was := longest
	longest = d
	return func() { longest = was }
}
