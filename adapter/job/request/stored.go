package request

import (
	"strings"
)

// linePrefix begins the script line that holds the job's whole request. For sbatch and shells, it
// is a comment.
const linePrefix = "#EVO: "

// ScriptLine returns the line that carries r in a job's script, including a profile of any length.
func (r Request) ScriptLine() string { return linePrefix + r.marker(false) + "\n" }

// FromStored returns the request in a Slurm job's script, and whether there is one. The first
// ScriptLine holds all of it; without one, the #EVO lines do.
func FromStored(script []byte) (Request, bool, error) { return FromStoredText(string(script)) }

// FromStoredText does what FromStored does, and copies only what it returns.
func FromStoredText(script string) (Request, bool, error) {
	for line := range strings.SplitSeq(script, "\n") {
		if text, ok := strings.CutPrefix(line, linePrefix); ok {
			return ParseMarker(strings.Clone(text)) // the request must not keep the whole script in memory
		}
		if isCommand(line) {
			break
		}
	}
	s, err := fromScript(script)
	if m := s.Moldable; m != nil && len(m.Alternatives) == 0 {
		s.Moldable = nil // only a preference
	}
	if m := s.Malleable; m != nil && m.SpeedupFile() != "" {
		s.malleability().Speedup = "" // read at submission, or not at all
	}
	if err == nil && s.Profile != nil {
		err = s.Settle()
	}
	return s, err != nil || s.Profile != nil, err
}

// HasLine reports whether a script has a ScriptLine, as one that was read back from Slurm
// may.
func HasLine(script []byte) bool {
	return strings.Contains("\n"+string(script), "\n"+linePrefix)
}

// Same reports whether both ask for the same; their users' own comments do not count.
func (r Request) Same(other Request) bool {
	r.Comment, other.Comment = "", ""
	return r.marker(false) == other.marker(false)
}
