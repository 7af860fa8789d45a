package request

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestLetGo: the comment of a job that is let go has no marker, keeps what the user wrote, fits, and stays as it is.
func TestLetGo(t *testing.T) {
	r := Request{Comment: "my; own"}
	if err := r.setProfile("2@10m,4@5m"); err != nil {
		t.Fatal(err)
	}
	marker, _ := r.Marker()
	for in, want := range map[string]string{
		"": letGoMark, marker: "my; own; " + letGoMark, "plain": "plain; " + letGoMark, "evo:v2;p=damaged": "evo v2;p=damaged; " + letGoMark, "evo:v9;x": "evo v9;x; " + letGoMark,
	} {
		if got := LetGo(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{marker, letGoMark, strings.Repeat("é", 600), marker + letGoMark + "evo:vevo:v2;"})).Draw(t, "comment")
		got := LetGo(text)
		if _, marked, _ := ParseMarker(got); marked || !IsLetGo(got) || len(got) > MaxComment || LetGo(got) != got {
			t.Fatalf("%q: %q", text, got)
		}
	})
}
