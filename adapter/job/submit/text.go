package submit

import (
	"fmt"
	"strings"

	"github.com/evoslurm/evoslurm/planner"
)

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func orNone(name string) string {
	if name == "" {
		return "(none)"
	}
	return name
}

// brief returns a profile that may be long.
func brief(p planner.Profile) string {
	if text := p.String(); len(text) <= 60 {
		return text
	}
	return p[:1].String() + ",…"
}

const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./,:@%"

// quote writes a word as a POSIX shell reads it.
func quote(word string) string {
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
