package request

import (
	"strings"
	"unicode/utf8"
)

// letGoMark is in the comment of a job that Evoslurm drove and let go for good. Only that job's user, and who may
// change all jobs, can write it.
const letGoMark = "Evoslurm let this job go: it is an ordinary job now"

// LetGo returns the comment of a job that is let go: the user's own one and a mark, without the marker. So no later
// sidecar takes the job for an evolving one, and evosctl next knows without a sidecar that nothing more comes.
func LetGo(comment string) string {
	own := comment
	if r, marked, err := ParseMarker(comment); marked && err == nil {
		own = r.Comment
	}
	own = strings.ReplaceAll(strings.ReplaceAll(own, prefixAny, "evo v"), letGoMark, "")
	if own = strings.Trim(own, "; "); own == "" {
		return letGoMark
	}
	if most := MaxComment - len(letGoMark) - 2; len(own) > most {
		for own = own[:most]; !utf8.ValidString(own); {
			own = own[:len(own)-1]
		}
	}
	return own + "; " + letGoMark
}

// IsLetGo reports whether a comment says that Evoslurm let the job go.
func IsLetGo(comment string) bool { return strings.Contains(comment, letGoMark) }

// ExpanderMark is the text in the comment of every expander, unless a site's plugins have
// overwritten the comment.
const ExpanderMark = "evox:v1"

// MergeMark ends the comment of an expander that will be merged. Without it, the expander is a companion.
const MergeMark = ", to merge"
