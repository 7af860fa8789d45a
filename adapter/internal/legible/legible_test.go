package legible

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		room int
		mark string
		want string
	}{
		{"", 3, "…", ""},
		{"abc", 3, "…", "abc"},
		{"abcd", 3, "…", "ab…"},
		{"abcd", 3, "", "abc"},
		{"abcd", 0, "", ""},
		{"größer", 4, "+", "grö+"},
		{"計算機", 6, "…", "計算機"},
		{"計算機", 5, "…", "計算…"},
		{"計算機", 4, "…", "計…"},
		{"e\u0301e\u0301", 2, "…", "e\u0301e\u0301"},
		{"a\xff\xffb", 2, "…", "a…"},
		{"a" + strings.Repeat("\u0301", 100), 2, "…", "a" + strings.Repeat("\u0301", 7) + "…"},
	} {
		if got := Cut(c.text, c.room, c.mark); got != c.want {
			t.Errorf("Cut(%q, %d, %q) = %q, want %q", c.text, c.room, c.mark, got, c.want)
		}
	}
}

func TestCutProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		room := rapid.IntRange(1, 30).Draw(t, "room")
		got := Cut(text, room, "…")
		switch rest, cut := strings.CutSuffix(got, "…"); {
		case got == text:
		case !cut || !strings.HasPrefix(text, rest):
			t.Fatalf("%q is no beginning of %q", got, text)
		case len([]rune(got)) > 4*room+1 || !utf8.ValidString(got):
			t.Fatalf("%q is too long, or not valid", got)
		}
		if safe := Printable(text, false); Columns(Cut(safe, room, "…")) > room {
			t.Fatalf("%q takes more than %d columns", Cut(safe, room, "…"), room)
		}
	})
}

func TestPrintable(t *testing.T) {
	for _, c := range []struct {
		text  string
		ascii bool
		want  string
	}{
		{"a\x1b[31mb\xff\u200b", false, "a?[31mb??"},
		{"größer", false, "größer"},
		{"größer", true, "gr??er"},
	} {
		if got := Printable(c.text, c.ascii); got != c.want {
			t.Errorf("Printable(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}
