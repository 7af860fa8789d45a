package release

import (
	"fmt"
	"regexp"
)

var times = regexp.MustCompile(`stays with .*`)

// Text returns the line about a thing, without times, and its command.
func (t Thing) Text() string {
	text := times.ReplaceAllString(t.String(), "stays")
	if t.do != nil {
		text += ": " + fmt.Sprint(t.do)
	}
	return text
}
