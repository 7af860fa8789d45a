package request

import (
	"strings"
)

// linePrefix begins the line of a script that has the whole request of its job. To
// sbatch and to shells it is a comment.
const linePrefix = "#EVO: "

// ScriptLine is the line that carries r in a job's script, with the profile however
// long it is.
func (r Request) ScriptLine() string { return linePrefix + r.marker(false) + "\n" }

// FromStored returns what the script of a Slurm job asks for, and whether it asks for
// anything at all. The first ScriptLine has the whole of it; without one the #EVO lines
// have.
func FromStored(script []byte) (Request, bool, error) {
	for line := range strings.SplitSeq(string(script), "\n") {
		if text, ok := strings.CutPrefix(line, linePrefix); ok {
			return ParseMarker(text)
		}
		if isCommand(line) {
			break
		}
	}
	s, err := FromScript(script)
	if m := s.Moldable; m != nil && len(m.Alternatives) == 0 {
		s.Moldable = nil // a preference alone
	}
	if m := s.Malleable; m != nil && m.SpeedupFile() != "" {
		s.malleability().Speedup = "" // read when the job was submitted, or by nobody
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
