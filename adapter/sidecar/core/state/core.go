package state

import (
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/mode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Core holds all state. It is not safe for concurrent use.
type Core struct {
	msg.Clock
	Site    msg.Site
	Config  config.Config
	Now     time.Time    // of the current step, by the core's own clock
	Effects []msg.Effect `codec:"-"` // of the current step, so far
	Log     note         `codec:"-"`

	Observed
	Jobs
	Holds
	Prices prices
	underway

	Strategy msg.Strategy
	Planning bool      // a plan was asked for, and act waits for it
	Looking  *Managing // a malleability policy was asked, and act waits for it; nil if none was

	Handling  *msg.Handling `codec:"-"` // never nil
	FaultTold time.Time     // when to log a fault of a policy again
	Stopping  bool
	Started   time.Time

	msg.Moments
	Quiet   quiet
	Tick    time.Time     // of the last step
	Wait    time.Duration // after which the next step was due at the latest
	Awake   time.Time     // since when there was no pause
	Stepped time.Time     // when Slurm's clock was last set
}

// Observed holds what was last seen of Slurm.
type Observed struct {
	SlurmConfig slurmctl.Config
	SlurmUser   uint32
	ConfigRead  time.Time
	Topology    slurmctl.Topology // as of ConfigRead
	Facts       mode.Facts
	Ageing      slurmctl.Ageing
	Calculated  time.Time      // last known calculation of Slurm's priorities
	AccrualRead time.Time      // see ReadAccrual
	Drive       drivemode.Mode // the drive mode that Auto selects here
	DriveReason string

	Snapshot   *Snapshot
	Survey     *api.Cluster  `codec:"-"` // SurveyOf, as it is shown
	SurveyOf   *Snapshot     `codec:"-"`
	Lead       time.Duration // of slurmctld's clock over this host's; 0 if both agree
	LastErr    error         // of the last poll; nil if it worked
	Twin       error         // another sidecar drives the cluster; nil if none was seen
	CycleCalls int           // number of Slurm commands in the last cycle and since the one before
	Calls      uint64
	CountsFrom time.Time // see CountsStand

	Suspect map[string]time.Time // nodes on which Slurm starts nothing, until when
	Doubts  map[uint32]int       // expanders in a row that Slurm did not start, by user
	Leaks   map[string]time.Time // since when nodes are allocated to no job
	Leaked  []string             // leaked nodes already logged
	Healed  time.Time            // when healing leaks was last tried
	Shrunk  map[string]Miscount  // nodes from which jobs were shrunk

	ContactAgain time.Time         // when nodes may be contacted again; zero: the last contact did not fail
	Rules        RuleBook          // limits of accounts, QOS and partitions
	Licenses     LicenseBook       // as of when a job last waited for some
	ParksIn      map[ParksKey]bool // keys of expanders that the site's plugins want parked
	Power        Power
	Epilogs      map[string]*Epilog // by partition
}

// Miscount holds what happened to a node since a job was shrunk from it: Slurm counts that job there for good.
type Miscount struct {
	Used        bool      // a job has used it since the last answer
	Asked, Told time.Time // when Slurm was last to be made to ask it, and when it had been, or that had failed
}

// Jobs holds the evolving jobs.
type Jobs struct {
	Active    []*Job                          // not ended, oldest first
	Ended     []*Job                          // the last ones
	ByID      map[slurmctl.JobID]*Job         // by base jobs, companions and links of chains
	Coming    map[slurmctl.JobID]uint32       // users of jobs that will be adopted, or now are
	Refused   map[slurmctl.JobID]Refused      // jobs with a marker that are not adopted
	Known     map[slurmctl.JobID]row.Known    // all jobs ever adopted, as the database has them
	LastRow   int64                           // highest ID of the known jobs
	Scripts   map[slurmctl.JobID]*Script      // scripts read or being read, for adopt
	Asked     map[slurmctl.JobID]*RequestRead // requests read or being read
	Unsaved   map[*Job]bool                   `codec:"-"` // jobs whose plans must be written
	Aside     map[slurmctl.JobID]msg.Aside    // jobs whose handling ended the sidecar
	Arrays    map[slurmctl.JobID]Array        // those that are there
	Prospects []*Prospect                     // jobs that are not submitted yet
	Turns     map[slurmctl.JobID]*Prospect    // of waiting jobs that came while their place was kept. Owner: talk
	EventsOf  map[uint32]msg.Quota            // events that users caused
	MutedOf   map[uint32]muted                // last unwritten events of jobs that are not adopted, by user

	Requests map[slurmctl.JobID]Bounded `codec:"-"` // of jobs that are not adopted
	Links    *AllLinks                  `codec:"-"` // of this cycle; nil until needed
}

// Array holds what is known of an array of evolving jobs.
type Array struct {
	Again time.Time // when its tasks may get records of their own again, after a failure
	Ours  bool      // its tasks evolve: they get records of their own
	Most  int       // tasks that may run at once, as its record of several tasks last said; 0: all
}

// Holds contains our reservations, and those of others.
type Holds struct {
	Reservations map[string]slurmctl.Reservation // as of the snapshot, with changes made since
	StuckHolds   map[string]slurmctl.Reservation // holds occupied by a job that we cannot move; not in reservations
	HeldSince    map[string]time.Time            // when a hold was made or got its nodes
	Ours         []OwnHold                       // our holds among the reservations, by name
	HoldNames    map[HoldKey]string              // names of our holds in reservations
	HoldChanged  map[string]time.Time            // when the sidecar last made, changed or gave up a hold
	Unwilling    map[string]bool                 // holds that Slurm refuses to change, to be recreated
	HoldsOpen    bool                            // see cannotClose
	Intruders    map[slurmctl.JobID]Intrusion    // jobs in holds that are for other jobs
	Opened       map[string]Opening              // by the name of the expander to come, until a poll has shown who came in
	Delays       delays                          // stock jobs that holds keep from starting
	Ledger       map[string]*Booked              // rows of the holds that are there, by name
	LastHold     int64                           // highest ID of a row
}

// underway holds requests without an outcome yet, and when to poll again.
type underway struct {
	Work      work
	Pace      Pace
	NextCycle time.Time       // when the next poll of Slurm is due
	Mirrored  int             // where mirror continues
	Calling   []*OpenCall     // scripts that wait for their next step
	Tries     tries           // attempts at the changes among the calls
	MovedUp   int64           // the row of the job that was last moved up
	Last      []*planner.Last // how the batches of the queue were planned
	Made      []*msg.Made     `codec:"-"` // results of the batches
	Pressing  msg.Set         // nodes that pending stock jobs could use; they are not lent
}

// New returns a core that knows only its site, configuration and strategy.
func New(site msg.Site, cfg config.Config, strategy msg.Strategy, now time.Time) *Core {
	c := &Core{Site: site, Config: cfg, Now: now, Started: now, Strategy: strategy, Handling: &msg.Handling{},
		Observed: Observed{Suspect: map[string]time.Time{}, Doubts: map[uint32]int{}, Leaks: map[string]time.Time{}, Shrunk: map[string]Miscount{}, ParksIn: map[ParksKey]bool{}, Epilogs: map[string]*Epilog{}},
		Jobs: Jobs{ByID: map[slurmctl.JobID]*Job{}, Coming: map[slurmctl.JobID]uint32{}, Refused: map[slurmctl.JobID]Refused{},
			Known: map[slurmctl.JobID]row.Known{}, Scripts: map[slurmctl.JobID]*Script{}, Asked: map[slurmctl.JobID]*RequestRead{}, Unsaved: map[*Job]bool{}, Aside: map[slurmctl.JobID]msg.Aside{},
			Arrays: map[slurmctl.JobID]Array{}, Turns: map[slurmctl.JobID]*Prospect{}},
		Holds: Holds{Reservations: map[string]slurmctl.Reservation{}, StuckHolds: map[string]slurmctl.Reservation{}, HeldSince: map[string]time.Time{}, HoldNames: map[HoldKey]string{},
			HoldChanged: map[string]time.Time{}, Ledger: map[string]*Booked{}, Unwilling: map[string]bool{}, Intruders: map[slurmctl.JobID]Intrusion{}, Opened: map[string]Opening{},
			Delays: delays{Jobs: map[slurmctl.JobID]*HeldUp{}, Distrusted: map[uint32]time.Time{}, Late: map[slurmctl.JobID]*row.Delay{}, Grown: map[row.GrowDelayOf]row.GrowDelay{}}},
	}
	c.Log.C = c
	c.Power.SetSaving(slurmctl.Config{})
	c.Work = NewWork()
	return c
}

func (c *Core) LogJob(j *Job) note {
	return c.Log.WithField("job", j.SlurmID).WithField("user", j.User).WithField("step", j.Step)
}

// Owner returns the evolving job that a Slurm job belongs to, or nil for a stock job.
func (c *Core) Owner(id slurmctl.JobID) *Job { return c.ByID[id] }

func SortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

// quiet holds facts about the last cycle for [core.still].
type quiet struct {
	Acted    time.Time // the last step that heard of, or asked for, more than polls, plans, and measured delays
	Refitted bool      // the cycle replanned a running job from its time on
	PutOff   bool      // a chore had no allowance
}
