package place

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestStaging: each file that is not there comes from the cluster with the most bandwidth, one after the other.
func TestStaging(t *testing.T) {
	rates := map[string]float64{"a>b": 10, "c>b": 100, "a>c": 1, "b>c": 3}
	rate := func(from, to string) float64 { return rates[from+">"+to] }
	for _, c := range []struct {
		to    string
		files []File
		want  string
	}{
		{"b", nil, "[] 0"},
		{"b", []File{{"f", 1000, []string{"a", "b"}}}, "[] 0"},
		{"b", []File{{"f", 1000, []string{"a", "c"}}, {"g", 101, []string{"a"}}}, "[{f c 1000} {g a 101}] 21"},
		{"c", []File{{"f", 10, []string{"a", "b"}}}, "[{f b 10}] 4"},
		{"a", []File{{"f", 10, []string{"b"}}}, "error: no bandwidth"},
		{"b", []File{{"f", 10, nil}}, "error: no bandwidth"},
		{"c", []File{{"f", MostTransfer + 1, []string{"a"}}}, "error: more than 30 days"},
		{"c", []File{{"f", math.MaxInt64, []string{"a"}}, {"g", math.MaxInt64, []string{"a"}}}, "error: more than 30 days"},
		{"c", []File{{"f", MostTransfer, []string{"a"}}}, "[{f a 2592000}] 2592000"},
	} {
		moves, seconds, err := Staging(c.files, c.to, rate)
		if text, fails := strings.CutPrefix(c.want, "error: "); fails {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%v to %s: %v, want %q", c.files, c.to, err, text)
			}
		} else if got := fmt.Sprint(moves, seconds); err != nil || got != c.want {
			t.Errorf("%v to %s: %s, %v, want %s", c.files, c.to, got, err, c.want)
		}
	}
}
