package observed

import (
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Format is the version of the lines. A reader rejects a larger one.
const Format = 1

// Times are Unix seconds by Slurm's clock, and durations are seconds; 0 means not known. Lists of nodes are hostlists.

// Heading is the first line of a file.
type Heading struct {
	Format   int    `json:"format"`
	Evoslurm string `json:"evoslurm"` // version
	At       int64  `json:"at"`       // when the file began
	Masked   bool   `json:"masked,omitempty"`
	Site     Site   `json:"site"`
}

// Site describes the cluster and the sidecar. It is in the heading, and in a record when it changes.
type Site struct {
	Cluster    string            `json:"cluster"`
	Slurm      string            `json:"slurm"` // version
	Nodes      []NodeKind        `json:"nodes"`
	Partitions []Partition       `json:"partitions"`
	Settings   map[string]string `json:"settings"` // of slurm.conf, those that scheduling depends on
	Config     config.Config     `json:"config"`   // the sidecar's, without secrets; without names if masked
}

// NodeKind describes nodes that are alike.
type NodeKind struct {
	Nodes    string   `json:"nodes"`
	CPUs     int      `json:"cpus"`
	Memory   int64    `json:"memory,omitempty"` // MiB
	Features []string `json:"features,omitempty"`
	GRES     string   `json:"gres,omitempty"`
	Weight   int      `json:"weight,omitempty"`
}

// Partition describes a partition.
type Partition struct {
	Name          string `json:"name"`
	Nodes         string `json:"nodes"`
	Default       bool   `json:"default,omitempty"`
	Up            bool   `json:"up"`
	MaxTime       int64  `json:"max_time"`     // -1: unlimited
	DefaultTime   int64  `json:"default_time"` // -1: unlimited
	MinNodes      int    `json:"min_nodes,omitempty"`
	MaxNodes      int    `json:"max_nodes,omitempty"` // 0: no bound
	OverSubscribe string `json:"over_subscribe,omitempty"`
	Tier          int    `json:"tier,omitempty"` // PriorityTier; 0: not known
}

// Record is a line: when, and one of the others.
type Record struct {
	At          int64        `json:"at"`
	Site        *Site        `json:"site,omitempty"`
	Job         *Job         `json:"job,omitempty"`
	Nodes       *NodeState   `json:"nodes,omitempty"`
	Reservation *Reservation `json:"reservation,omitempty"`
	Start       *Start       `json:"start,omitempty"`
	Sample      *Sample      `json:"sample,omitempty"`
	Load        *Load        `json:"load,omitempty"`
	Gap         *Gap         `json:"gap,omitempty"`
	Left        *Left        `json:"left,omitempty"`
}

// Job is a job that has ended, or as it stands at the end of a day or of a run of the sidecar (Standing). The same
// job can stand several times; the last record of an ID and submit time counts. A task of an array has its own record
// once it has started; Tasks > 1 is the part of an array that waits.
type Job struct {
	ID        slurmctl.JobID `json:"id"`
	Array     slurmctl.JobID `json:"array,omitempty"` // the array's ID
	Tasks     int            `json:"tasks,omitempty"` // tasks in this record, if more than one
	User      string         `json:"user"`
	Account   string         `json:"account,omitempty"`
	QOS       string         `json:"qos,omitempty"`
	Partition string         `json:"partition"` // a list while pending
	Name      string         `json:"name,omitempty"`

	Nodes     int      `json:"nodes"`
	NodeList  string   `json:"nodelist,omitempty"` // the last that it had
	CPUs      int      `json:"cpus"`
	Exclusive bool     `json:"exclusive,omitempty"`
	MinCPUs   int      `json:"min_cpus,omitempty"`   // per node
	MinMemory int64    `json:"min_memory,omitempty"` // MiB per node
	Features  string   `json:"features,omitempty"`
	TRES      string   `json:"tres,omitempty"`
	ReqNodes  string   `json:"req_nodes,omitempty"`
	ExcNodes  string   `json:"exc_nodes,omitempty"`
	Limit     int64    `json:"limit"` // -1: unlimited
	Priority  uint64   `json:"priority,omitempty"`
	Nice      int      `json:"nice,omitempty"`
	Submit    int64    `json:"submit"`
	Eligible  int64    `json:"eligible,omitempty"` // when Slurm was first seen to consider it; 0: never
	Begin     int64    `json:"begin,omitempty"`    // begin time that it was seen to wait for
	Start     int64    `json:"start,omitempty"`    // 0: not started
	End       int64    `json:"end,omitempty"`      // 0: not ended
	State     string   `json:"state"`              // the last that was seen; Slurm's reason follows if it waits: "PENDING Priority"
	Reserved  string   `json:"reservation,omitempty"`
	Depends   string   `json:"dependency,omitempty"` // as it was first seen
	Evolving  bool     `json:"evolving,omitempty"`   // it has Evoslurm's marker
	Standing  bool     `json:"standing,omitempty"`   // it has not ended
	Sizes     []Resize `json:"sizes,omitempty"`      // changes of its nodes since the start, the first ones
	Missed    bool     `json:"missed,omitempty"`     // it ended, or started and ended, while nothing was seen: End is the end of the gap
}

// Resize is a size that a running job changed to.
type Resize struct {
	At    int64 `json:"at"`
	Nodes int   `json:"nodes"`
}

// NodeState says that nodes changed between usable and not, or why they are not usable.
type NodeState struct {
	Nodes  string `json:"nodes"`
	State  string `json:"state"` // Slurm's base state, and flags
	Usable bool   `json:"usable"`
}

// Reservation is a reservation that was made, changed, or has ended (Ended).
type Reservation struct {
	Name      string   `json:"name"`
	Start     int64    `json:"start"`
	End       int64    `json:"end"`
	Nodes     string   `json:"nodes"`
	Users     []string `json:"users,omitempty"`
	Accounts  []string `json:"accounts,omitempty"`
	Partition string   `json:"partition,omitempty"`
	Flags     []string `json:"flags,omitempty"`
	Ended     bool     `json:"ended,omitempty"`
}

// Leads lists how long before a job's start predictions count, in seconds.
var Leads = [...]int64{60, 3600 / 6, 3600, 6 * 3600}

// Prediction is a start that was predicted at some time, by the sidecar and by Slurm (squeue's StartTime).
type Prediction struct {
	At    int64 `json:"at"`
	Ours  int64 `json:"ours,omitempty"`  // 0: none
	Slurm int64 `json:"slurm,omitempty"` // 0: none
}

// Start says that a stock job started, and what had been predicted for it. For a task of an array, the predictions are
// for the tasks that still waited at that time.
type Start struct {
	Job       slurmctl.JobID `json:"id"`
	Array     slurmctl.JobID `json:"array,omitempty"`
	Tasks     int            `json:"tasks,omitempty"` // tasks that waited together, if more than one
	Partition string         `json:"partition"`
	Nodes     int            `json:"nodes"`
	Limit     int64          `json:"limit"`
	Submit    int64          `json:"submit"`
	Start     int64          `json:"start"`
	Before    []Lead         `json:"before,omitempty"` // by ascending lead; none: never predicted that early
}

// Lead is the prediction that was made closest to a time of one of the Leads before the start.
type Lead struct {
	Lead int64 `json:"lead"` // one of Leads; At tells the real one
	Prediction
}

// Sample is a prediction as it was made: at the first plan, and at each doubling of its age since (from a minute on).
// Whether it came true is in the job's Start, if it has started.
type Sample struct {
	Job slurmctl.JobID `json:"id"`
	Age int64          `json:"age"` // since the first prediction
	Prediction
}

// Load says what the sidecar cost slurmctld until At.
type Load struct {
	From   int64          `json:"from"`
	Calls  map[string]int `json:"calls"`  // commands of Slurm by name
	Share  float64        `json:"share"`  // of slurmctld's time, as the sidecar counts it: 0.01 is one percent
	Polls  int            `json:"polls"`  // whole polls
	Wall   float64        `json:"wall"`   // seconds that these polls took
	Queued int            `json:"queued"` // most pending jobs (tasks) in a poll
	Busy   int            `json:"busy"`   // most nodes in use in a poll
}

// Gap is a time in which nothing was seen.
type Gap struct {
	From  int64  `json:"from"`
	Until int64  `json:"until"`
	Why   string `json:"why"`
}

// Left counts records that were left out since From, because one user had too many.
type Left struct {
	From int64 `json:"from"`
	Jobs int   `json:"jobs"`
}
