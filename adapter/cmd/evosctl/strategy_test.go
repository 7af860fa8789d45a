package main

import "testing"

// TestWonWords checks the order in which strategies are listed whose plans were taken.
func TestWonWords(t *testing.T) {
	if got := won(map[string]int{"search": 3, "noX": 12, "klein": 3}); got != "noX 12; klein 3; search 3" {
		t.Errorf("got %q", got)
	}
}
