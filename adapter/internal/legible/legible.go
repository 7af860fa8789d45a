// Package legible makes the texts of others fit for terminals and messages: printable,
// measured in columns, and no longer than there is room.
package legible

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Printable makes a user's text safe for a terminal: unprintable characters become '?', and without
// UTF-8 all non-ASCII characters.
func Printable(text string, ascii bool) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) || ascii && r > unicode.MaxASCII {
			return '?'
		}
		return r
	}, text)
}

// Columns returns how many columns of a terminal a text takes once it is printable.
func Columns(text string) int {
	n := 0
	for _, r := range Printable(text, false) {
		n += columns(r)
	}
	return n
}

// columns returns the number of columns that a terminal gives a character.
func columns(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1F300 && r <= 0x1FAFF:
		return 2
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut returns the text or, if it is too wide, the part of its beginning that fits into the columns
// with the mark.
func Cut(text string, room int, mark string) string {
	most := 4 * room // characters: there may be any number without a width
	kept, used := 0, 0
	for i := 0; i < len(text); most-- {
		r, size := utf8.DecodeRuneInString(text[i:])
		used += columns(r)
		if used > room || most == 0 {
			return text[:kept] + mark
		}
		i += size
		if used <= room-Columns(mark) {
			kept = i
		}
	}
	return text
}

// Brief bounds how much of a text a message repeats.
func Brief(text string) string { return Cut(text, 60, "…") }
