package injob

import (
	"fmt"
	"strings"
)

// Shell is a kind of shell that Exports can be written for.
type Shell struct {
	Name       string
	set, unset string // formats: name, quoted value; name
	quote      func(string) string
	separator  string
}

// Shells by the value of --shell.
var shells = []Shell{
	{Name: "sh", set: "export %s=%s", unset: "unset %s", quote: quotePOSIX, separator: "\n"},
	// One line: csh's `…` makes words of lines.
	{Name: "csh", set: "setenv %s %s", unset: "unsetenv %s", quote: quoteCsh, separator: "; "},
	// Erasing an unset variable fails, and set keeps the status.
	{Name: "fish", set: "set -gx %s %s", unset: "set -e %s; or true", quote: quoteFish, separator: "\n"},
}

// ParseShell finds a shell: sh (also bash, dash, ksh, zsh), csh (tcsh) or fish.
func ParseShell(name string) (Shell, error) {
	alias := map[string]string{"bash": "sh", "dash": "sh", "ksh": "sh", "zsh": "sh", "tcsh": "csh"}
	if a, ok := alias[name]; ok {
		name = a
	}
	for _, s := range shells {
		if s.Name == name {
			return s, nil
		}
	}
	return Shell{}, fmt.Errorf("unknown shell %q: want sh, csh, or fish", name)
}

// Exports writes the exports as commands for the shell's eval.
func (s Shell) Exports(e Exports) string {
	lines := make([]string, 0, len(e.Unset)+len(e.Set))
	for _, name := range e.Unset {
		lines = append(lines, fmt.Sprintf(s.unset, name))
	}
	for _, v := range e.Set {
		lines = append(lines, fmt.Sprintf(s.set, v.Name, s.quote(v.Value)))
	}
	return strings.Join(lines, s.separator) + "\n"
}

// Failure writes what makes the eval of a failed command fail: EVO_ERROR holds the reason. If
// asking again is pointless, EVO_DONE is set, so that no loop over steps runs forever.
func (s Shell) Failure(reason string, final bool) string {
	e := Exports{Set: []Var{{VarError, printable(reason)}}}
	if final {
		e.Set = append(e.Set, Var{VarDone, "1"})
	}
	return strings.TrimSuffix(s.Exports(e), "\n") + s.separator + "false\n"
}

// printable keeps a message on one line.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

func quotePOSIX(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// quoteCsh: an exclamation mark is history even within quotes, a newline must be escaped.
func quoteCsh(text string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `\!`, "\n", "\\\n").Replace(text) + "'"
}

// quoteFish: within single quotes only \ and ' are special.
func quoteFish(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
