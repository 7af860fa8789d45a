package bag

import "time"

// Kind says what happened to a task.
type Kind string

// The kinds of records.
const (
	Run   Kind = "run"   // it was leased to a node
	Done  Kind = "done"  // it ended well
	Fail  Kind = "fail"  // it failed, and does not run again
	Retry Kind = "retry" // it failed, and runs again
	Back  Kind = "back"  // it was ended because its node is wanted, and runs again
	Lost  Kind = "lost"  // its worker was lost, and it runs again
	Void  Kind = "void"  // it could not go on from its checkpoint, and runs again from its beginning
	Slots Kind = "slots" // of the bag: how many tasks may run at once
	Left  Kind = "left"  // of a share: its leader gives it back
)

// Record is a line of a journal: what happened to a task, or to the bag.
type Record struct {
	Kind    Kind    `json:"k"`
	Task    int     `json:"i"`           // index
	At      int64   `json:"t,omitempty"` // Unix time
	Node    string  `json:"n,omitempty"` // of a run
	Status  int     `json:"s,omitempty"` // exit status
	Signal  int     `json:"g,omitempty"` // that ended it; 0: none
	Seconds float64 `json:"d,omitempty"` // how long the run took
	Saved   bool    `json:"c,omitempty"` // it has a checkpoint to go on from
	Why     string  `json:"w,omitempty"`
	Slots   int     `json:"z,omitempty"`
}

// header is the first line of a journal.
type header struct {
	Bag   int   `json:"evobag"` // version of the format
	Epoch int   `json:"epoch"`
	After int   `json:"after,omitempty"` // epoch that it takes over from
	Bytes int64 `json:"bytes,omitempty"` // of that epoch's journal; what lies beyond does not count
	At    int64 `json:"t"`
	Job   int   `json:"job,omitempty"`
	Lease       // of a share
	List
}

const format = 1

// Lease says which leader of a campaign has a share.
type Lease struct {
	Cluster string `json:"cluster,omitempty"`
	Leader  string `json:"leader,omitempty"` // its name, which no other leader has; "": the bag is no share
}

// seconds returns a time's seconds since 1970.
func seconds(t time.Time) int64 { return t.Unix() }
