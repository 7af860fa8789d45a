package simulate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// Policy is a malleability policy as a plugin: it answers like another policy, apart from the
// faults.
type Policy struct {
	malleable.Policy
	Faults int // one in this many answers is late or a lie, in turn; 0 for none
	asked  int
}

// parsePolicy reads NAME[/FAULTS].
func parsePolicy(text string) (*Policy, error) {
	name, faults, faulty := strings.Cut(text, "/")
	p := &Policy{}
	var err error
	if faulty {
		if p.Faults, err = strconv.Atoi(faults); err != nil {
			return nil, err
		}
	}
	p.Policy, err = malleable.PolicyByName(name)
	return p, err
}

// answer returns what it answers to a question.
func (p *Policy) answer(q msg.Question) msg.Resized {
	p.asked++
	if p.Faults > 0 && p.asked%p.Faults == 0 {
		if p.asked/p.Faults%2 == 0 {
			return msg.Resized{Changes: []malleable.Change{{Job: len(q.Jobs) - 1, Request: q.Asked, Accepted: q.Nodes + 1}}}
		}
		return msg.Resized{Fault: fmt.Sprintf("no answer in time to question %d", p.asked)}
	}
	return msg.Resized{Changes: malleable.Distribute(p.Policy, q.Jobs, q.Asked, malleable.Declared)}
}
