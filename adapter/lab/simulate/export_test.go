package simulate

import "time"

// SetLongest has experiments go on for d at most, until undo is called.
func SetLongest(d time.Duration) (undo func()) {
	was := longest
	longest = d
	return func() { longest = was }
}
