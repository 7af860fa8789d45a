package crash_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/evoslurm/evoslurm/adapter/trials/crash"
)

// faults is a plan of what goes wrong, drawn from a seed. What becomes of a
// command depends on the seed, the kind of command and how many of that kind came
// before, not on how commands of different kinds interleave: the same seed does
// much the same again.
type faults struct {
	seed uint64
	left int            // how many are still to come, at most
	seen map[string]int // by kind
}

func newFaults(seed uint64, most int) *faults {
	return &faults{seed: seed, left: most, seen: map[string]int{}}
}

// draw returns the random numbers for the coming event of a kind.
func (f *faults) draw(kind string) *rand.Rand {
	f.seen[kind]++
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", kind, f.seen[kind])
	return rand.New(rand.NewPCG(f.seed, h.Sum64()))
}

var (
	changeFaults = []crash.Action{crash.Refuse, crash.Refuse, crash.TimedOut, crash.TimedOut, crash.Late, crash.Hang, crash.Lose}
	lookFaults   = []crash.Action{crash.Refuse, crash.TimedOut, crash.Late, crash.Hang, crash.Truncate, crash.Truncate, crash.Garble, crash.Garble}
)

// next returns what becomes of a command.
func (f *faults) next(args []string) crash.Answer {
	kind, actions, chance := args[0], lookFaults, 0.04
	if changes(args) {
		actions, chance = changeFaults, 0.2
		if args[0] == "scontrol" && len(args) > 2 {
			kind += " " + args[1]
		}
	}
	r := f.draw(kind)
	if f.left <= 0 || r.Float64() >= chance {
		return crash.Answer{}
	}
	f.left--
	return crash.Answer{Action: actions[r.IntN(len(actions))], Delay: time.Duration(r.IntN(1500)) * time.Millisecond, Seed: r.Uint64()}
}

// kills reports whether the sidecar is killed at this moment.
func (f *faults) kills(q crash.Question) bool {
	if q.Moment != crash.Commit && !changes(q.Args) {
		return false
	}
	r := f.draw("kill " + string(q.Moment))
	if f.left <= 0 || r.Float64() >= 0.02 {
		return false
	}
	f.left--
	return true
}
