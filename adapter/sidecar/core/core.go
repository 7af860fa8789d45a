package core

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Site is what the core is told once of where it works.
type Site struct {
	Version string // of the sidecar
	User    string // that it runs as
	Host    string // on which it runs, without its domain
	Root    bool   // it may submit jobs in everybody's name
}

// Core is all state. It is not safe for concurrent use.
type Core struct {
	site    Site
	cfg     config.Config
	now     time.Time     // of the present step, by the core's own clock
	skew    time.Duration // of the machine's clock from that, see clock.go
	effects []Effect      // of the present step, so far
	log     note

	cluster
	jobs
	holds
	prices prices
	underway

	strategy Strategy
	planning bool      // a plan was asked for, and act waits for it
	looking  *managing // a malleability policy was asked, and act waits for it; nil: none

	handling  *Handling // never nil
	faultTold time.Time // a fault of a policy is told again then
	stopping  bool
	started   time.Time

	quiet   quiet
	tick    time.Time     // of the last step
	wait    time.Duration // after which the next one was to come at the latest
	awake   time.Time     // since when there was no pause
	stepped time.Time     // when the clock was, last
}

// cluster is Slurm as it was last seen.
type cluster struct {
	slurmConfig slurmctl.Config
	slurmUser   uint32
	configRead  time.Time
	facts       siteFacts
	ageing      slurmctl.Ageing
	calculated  time.Time      // Slurm's priorities, as far as was seen
	accrualRead time.Time      // see readAccrual
	drive       drivemode.Mode // what Auto gets here
	driveReason string

	snapshot   *snapshot
	survey     *api.Cluster // of surveyOf, as it is shown
	surveyOf   *snapshot
	lastErr    error // of the last poll; nil: it worked
	twin       error // another sidecar drives the cluster; nil: none was seen
	cycleCalls int   // Slurm's commands in the last cycle and since the one before
	calls      uint64
	countsFrom time.Time // see countsStand

	suspect map[string]time.Time // nodes on which Slurm starts nothing, until when
	doubts  map[uint32]int       // expanders in a row that Slurm did not start, by user
	leaks   map[string]time.Time // since when nodes are allocated to nobody
	leaked  []string             // those of them that were told of
	healed  time.Time            // when that was last tried
	rules   ruleBook             // limits of accounts, QOS and partitions
	parksIn map[parksKey]bool    // whose expanders the site's plugins want parked
	power   power
}

// jobs are the evolving ones.
type jobs struct {
	active  []*job                       // not ended, oldest first
	ended   []*job                       // the last ones
	byID    map[slurmctl.JobID]*job      // by base jobs, companions and links of chains
	coming  map[slurmctl.JobID]uint32    // users of jobs that are to be adopted, or are by now
	refused map[slurmctl.JobID]refused   // jobs with a marker that are not adopted
	known   map[slurmctl.JobID]row.Known // all that were ever adopted, as the database has them
	lastRow int64                        // the highest ID of these
	scripts map[slurmctl.JobID]*script   // read, or being read, for adopt
	asked   map[slurmctl.JobID]*asked    // the same of requests
	unsaved map[*job]bool                // whose plans are to be written
	aside   map[slurmctl.JobID]Aside     // whose handling ended the sidecar

	eventsOf map[uint32]quota // events that users have caused by asking
}

// holds are our reservations, and those of others.
type holds struct {
	reservations map[string]slurmctl.Reservation // as of the snapshot, and what was done since
	stuckHolds   map[string]slurmctl.Reservation // holds that a job runs in and cannot be taken out of: none of reservations
	heldSince    map[string]time.Time            // when a hold was made or got its nodes
	ours         []ownHold                       // of them our holds, by name
	holdNames    map[holdKey]string              // of reservations
	holdChanged  map[string]time.Time            // when a hold was last made, changed or given up here
	unwilling    map[string]bool                 // holds that Slurm refuses to change: made anew
	holdsOpen    bool                            // see cannotClose
	intruders    map[slurmctl.JobID]intrusion    // jobs in holds that are for others
	fits         int64                           // Unix second before which the shares allow no further hold, unless one is over; 0: not known
	delays       delays                          // stock jobs that holds keep from starting
}

// underway is what was asked for and has not come out yet, and when to poll again.
type underway struct {
	work      work
	pace      pace
	nextCycle time.Time       // the next poll of Slurm is wanted then
	mirrored  int             // where mirror goes on
	calling   []*call         // scripts that wait for their next step
	tries     tries           // of the changes among them
	movedUp   int64           // the row of the job that was last moved up
	last      []*planner.Last // how the batches of the queue were planned
	made      []*made         // and what came of it
	pressing  set             // nodes that pending stock jobs could use, which are not lent
}

// Strategy is what the core goes by of the strategy in use.
type Strategy struct {
	ExpandLimit planner.ExpandLimit
	Policy      string // of malleable jobs, in use; "": the configuration's
	Plugin      bool   // that is one
}

// Books are what the database has at the start.
type Books struct {
	Active     []BookedJob // not ended, oldest first
	Ended      []BookedJob // the last ones, in the order of their ends
	Known      []row.Known
	LastRow    int64
	Intents    []row.Intent // never settled
	LastIntent int64
	Aside      []Aside        // jobs that are to be set aside
	Doubt      slurmctl.JobID // the one that was handled as the life before ended, if that proves nothing; 0: none
}

// BookedJob is a job with all that was written down of it.
type BookedJob struct {
	Job   row.Job
	Plan  []row.Span
	Past  []row.Span
	Parts []row.Part
	Bound string // the nodes that it may have, as the user listed them
}

// New makes a core that knows nothing yet but its configuration.
func New(site Site, cfg config.Config, strategy Strategy, now time.Time) *Core {
	c := &Core{site: site, cfg: cfg, now: now, started: now, strategy: strategy, handling: &Handling{},
		cluster: cluster{suspect: map[string]time.Time{}, doubts: map[uint32]int{}, leaks: map[string]time.Time{}, parksIn: map[parksKey]bool{}},
		jobs: jobs{byID: map[slurmctl.JobID]*job{}, coming: map[slurmctl.JobID]uint32{}, refused: map[slurmctl.JobID]refused{},
			known: map[slurmctl.JobID]row.Known{}, scripts: map[slurmctl.JobID]*script{}, asked: map[slurmctl.JobID]*asked{}, unsaved: map[*job]bool{}, aside: map[slurmctl.JobID]Aside{}},
		holds: holds{reservations: map[string]slurmctl.Reservation{}, stuckHolds: map[string]slurmctl.Reservation{}, heldSince: map[string]time.Time{}, holdNames: map[holdKey]string{},
			holdChanged: map[string]time.Time{}, unwilling: map[string]bool{}, intruders: map[slurmctl.JobID]intrusion{},
			delays: delays{jobs: map[slurmctl.JobID]*heldUp{}, distrusted: map[uint32]time.Time{}}},
	}
	c.log.c = c
	c.power.setSaving(slurmctl.Config{})
	c.work = newWork()
	return c
}

// Step takes over what has happened, decides, and says what is to be done: in this order,
// rows before tasks. The shell calls it again with whatever comes, and at the time of
// [Wake] at the latest. Now is by a clock that is never set, see [ClockSet].
func (c *Core) Step(now time.Time, inputs ...Input) []Effect {
	c.now = now
	c.watchStill(now)
	for _, in := range inputs {
		switch in := in.(type) {
		case Books:
			c.restore(in)
		case Observation:
			c.observed(in) // observe → adopt → follow → plan
		case Planned:
			c.planned(in) // decided below
		case Resized:
			c.resized(in) // the same
		case Outcome:
			c.settled(in)
		case NodesSeen:
			c.nodesSeen(in)
		case Call:
			c.called(in)
		case Tried:
			c.takeTried(in)
		case Withdrawal:
			c.withdrawn(in)
		case Configuration:
			c.configured(in)
		case ClockSet:
			c.clockSet(in.By)
		case Stop:
			c.stopping = true
			c.savePrices()
		case Tick:
		}
	}
	if !c.planning && c.looking == nil && !c.stopping {
		c.decide()
		c.startPolls()
	}
	c.savePlans()
	if c.handling.Done(); c.planning {
		c.plans()
	}
	at := c.wakeAt()
	c.wait = max(at.Sub(now), time.Millisecond)
	c.quiet.note(now, c.effects)
	effects := append(c.effects, Wake{at})
	c.effects = nil
	return effects
}

// cycle is one round of observe, adopt, follow and plan; what comes of it is decided once
// the plan is there.
func (c *Core) cycle(s *snapshot) {
	if c.lastErr != nil {
		c.log.Info("Slurm can be observed again")
		c.lastErr = nil
	}
	c.watchPriorities(c.snapshot, s)
	c.unread(s)
	c.disown(s)
	c.snapshot, c.quiet.refitted = s, false
	c.nextTries()
	c.unmuteAll()
	c.takeReservations(s)
	c.charge(s.taken)
	c.watchPower(s)
	c.adopt(s)
	c.leaveRefused(s)
	c.learnAll(s)
	c.follow(s)
	c.followKept(s)
	c.followPlans(s)
	c.watchDelays(s)
	c.price(s)
	c.plan(s)
}

// planned takes over what the strategy has planned.
func (c *Core) planned(in Planned) {
	if !c.planning {
		return
	}
	c.planning, c.quiet.drifts = false, in.Drifts
	s := c.snapshot
	c.takePlans(in)
	c.manage(s)
	c.clean(s)
	c.watchIntruders(s)
	c.watchLeaks(s)
	c.readAccrual()
	c.settle()
}

// decide does what is due by the present state: after a cycle, and after everything that
// happens between two.
func (c *Core) decide() {
	c.pace.urgent, c.pace.waiting, c.pace.growing, c.quiet.putOff = false, -1, false, false
	if c.snapshot != nil && c.lastErr == nil {
		c.act(c.snapshot)
		c.syncHolds(c.snapshot)
		c.switchNodes(c.snapshot)
		c.mirror(c.snapshot)
	}
	c.answerCalls()
}

// configured takes over another configuration, or strategy.
func (c *Core) configured(in Configuration) {
	if in.Config != nil {
		c.cfg = *in.Config
		c.configRead = time.Time{} // read Slurm's configuration again, too
	}
	c.strategy = in.Strategy
	c.last, c.made = nil, nil // another strategy, or other parameters of it
	c.nextCycle = c.now
}

// takeConfig is called when Slurm's configuration was read.
func (c *Core) takeConfig(cfg slurmctl.Config) (err error) {
	merge, reasons := slurmctl.Capabilities(cfg)
	if cfg.Boot() != c.slurmConfig.Boot() {
		c.countsFrom = time.Time{}
	}
	c.slurmConfig, c.configRead, c.ageing = cfg, c.now, cfg.Ageing()
	stepMgrs, _ := slurmctl.StepMgr(cfg)
	c.setFacts(siteFacts{updatesNeedAccount: c.facts.updatesNeedAccount, resizesOnce: slurmctl.ResizesOnce(cfg), stepManagers: stepMgrs})
	c.power.setSaving(cfg)
	if _, c.slurmUser, err = cfg.SlurmUser(); err != nil {
		return err
	}
	before := c.drive
	c.drive, c.driveReason = drivemode.Companion, strings.Join(reasons, "; ")
	if merge {
		c.drive = drivemode.Merge
	}
	if c.drive != before {
		c.log.WithField("drive", c.drive).WithField("slurm", cfg.Version).Info("drive mode chosen: " + c.driveReason)
	}
	return nil
}

func (c *Core) logJob(j *job) note {
	return c.log.WithField("job", j.SlurmID).WithField("user", j.User).WithField("step", j.Step)
}

// owner is the evolving job that a Slurm job belongs to, nil for a stock job.
func (c *Core) owner(id slurmctl.JobID) *job { return c.byID[id] }

func sortedKeys[V any](m map[string]V) []string {
	keys := slices.AppendSeq(make([]string, 0, len(m)), maps.Keys(m))
	slices.Sort(keys)
	return keys
}
