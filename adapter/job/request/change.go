package request

import (
	"errors"
	"fmt"
	"strings"

	"github.com/evoslurm/evoslurm/planner"
)

// Reached is where a job was when its request was changed during its run. The marker omits past
// steps, so that no number of changes makes it too long.
type Reached struct {
	Step  int   // 1-based, with which the profile begins
	After int64 // seconds from the job's start to that step's
	First int   // nodes of the first step
	Peak  int   // and of the largest past step; 0 if unknown
	Began int64 // Unix second at which the job had begun: requeued, it has begun at another; 0: not known
}

// text returns its form in the marker.
func (r Reached) text() string {
	text := fmt.Sprintf("%d@%d@%d", r.Step, r.After, r.First)
	if r.Peak > 0 {
		text += fmt.Sprintf("@%d@%d", r.Peak, r.Began)
	}
	return text
}

// CheckChange reports whether text may name a change of a request: as many as 16
// hexadecimal digits.
func CheckChange(text string) error {
	if text == "" || len(text) > 16 || strings.Trim(text, "0123456789abcdef") != "" {
		return errors.New("a change is named by 1 to 16 hexadecimal digits")
	}
	return nil
}

func parseReached(value string) (*Reached, error) {
	var r Reached
	if n, err := fmt.Sscanf(value, "%d@%d@%d@%d@%d", &r.Step, &r.After, &r.First, &r.Peak, &r.Began); n != 3 && (err != nil || n != 5) {
		return nil, errors.New("want STEP@SECONDS@NODES@PEAK@BEGAN")
	}
	switch {
	case r.Step < 1 || r.Step > MaxSteps, r.First < 1 || r.First > planner.MaxNodes, r.After < 0 || r.After > planner.MaxDuration,
		r.Peak != 0 && r.Peak < r.First, r.Peak > planner.MaxNodes, r.Began < 0:
		return nil, errors.New("out of bounds")
	case r.text() != value:
		return nil, errors.New("not as it is written")
	}
	return &r, nil
}

// Whole returns the profile with a stand-in for the omitted past steps. The stand-in has as many
// nodes as the largest of them, so that a requeued job has enough in each, and lasts as long as all
// of them.
func (r Request) Whole() planner.Profile {
	if r.Reached == nil || r.Reached.Step < 2 {
		return r.Profile
	}
	over := make(planner.Profile, r.Reached.Step-1, r.Reached.Step-1+len(r.Profile))
	for i := range over {
		over[i] = planner.Step{Duration: 1, Nodes: max(r.Reached.First, r.Reached.Peak)}
	}
	over[0].Nodes = r.Reached.First
	over[0].Duration = max(r.Reached.After-int64(len(over)-1), 1)
	return append(over, r.Profile...)
}

// Rewrite replaces the first intact marker in a job's comment; change makes the new request from
// the old one. Surrounding text stays. It fails if there is no marker or the comment becomes too
// long.
func Rewrite(comment string, change func(Request) Request) (string, error) {
	for at := 0; ; {
		i := strings.Index(comment[at:], prefixAny)
		if i < 0 {
			return "", ErrNoMarker
		}
		at += i
		r, ok, err := parseAt(comment[at:], at == 0)
		if !ok || err != nil {
			at += len(prefixAny)
			continue
		}
		end := len(comment) // version 1
		if version, _ := markerVersion(comment[at:]); version == "2" {
			end = at + strings.Index(comment[at:], markerEnd) + len(markerEnd)
		}
		text := comment[:at] + change(r).marker(false) + comment[end:]
		if len(text) > MaxComment {
			return "", fmt.Errorf("what is still to come does not fit into the job's comment (%d bytes, Slurm takes %d): say it in fewer steps", len(text), MaxComment)
		}
		return text, nil
	}
}

// ErrNoMarker says that a comment has no marker that is intact.
var ErrNoMarker = errors.New("the job's Slurm comment no longer has its request: something on this site writes over comments, and a change would not outlive a loss of the sidecar's database")
