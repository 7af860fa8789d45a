package crash

import (
	"encoding/json"
	"net"
	"time"
)

// SocketName is the test's socket, in the folder of the shims.
const SocketName = "control.sock"

// SocketVariable names the socket for the sidecar itself, whose store knows both.
const SocketVariable = "EVOSLURM_CRASHTEST"

// Moment identifies a hook point.
type Moment string

// The moments.
const (
	Before Moment = "before" // a command
	After  Moment = "after"  // the same
	Commit Moment = "commit" // before it
)

// Question describes a shim's or the sidecar's current point to the test.
type Question struct {
	Moment Moment
	Args   []string `json:",omitempty"` // the command, by its base name
	Exit   int      `json:",omitempty"` // how it ended
}

// Action says what a command does instead of its work.
type Action string

// The actions. Those that run the real command change only its output.
const (
	Run      Action = ""          // all as it should be
	Refuse   Action = "refuse"    // is not run; exit status 1
	Hang     Action = "hang"      // is not run; never ends
	Lose     Action = "lose"      // is run; never ends
	TimedOut Action = "timed out" // is run; "Socket timed out", exit status 1
	Late     Action = "late"      // is run; reports after Delay
	Truncate Action = "truncate"  // is run; half of the output is missing
	Garble   Action = "garble"    // is run; bytes of the output are others
)

// Answer is the test's decision.
type Answer struct {
	Action Action
	Delay  time.Duration `json:",omitempty"`
	Seed   uint64        `json:",omitempty"` // of what is garbled
	Env    []string      `json:",omitempty"` // added to the real command's: the sidecar passes a clean one on
}

// Ask asks the test and waits for its answer. Without a test there is none to
// obey: the error says so.
func Ask(socket string, q Question) (Answer, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return Answer{}, err
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(q); err != nil {
		return Answer{}, err
	}
	var a Answer
	err = json.NewDecoder(conn).Decode(&a)
	return a, err
}
