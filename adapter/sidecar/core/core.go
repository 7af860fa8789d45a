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

// Site holds what the core learns at startup about where it runs.
type Site struct {
	Version string // of the sidecar
	User    string // user that the sidecar runs as
	Host    string // host on which the sidecar runs, without its domain
	Root    bool   // the sidecar may submit jobs in the name of any user
}

// Core holds all state. It is not safe for concurrent use.
type Core struct {
	site    Site
	cfg     config.Config
	now     time.Time     // of the current step, by the core's own clock
	skew    time.Duration // how far the machine's clock is ahead of the core's, see clock.go
	effects []Effect      // of the current step, so far
	log     note

	cluster
	jobs
	holds
	prices prices
	underway

	strategy Strategy
	planning bool      // a plan was asked for, and act waits for it
	looking  *managing // a malleability policy was asked, and act waits for it; nil if none was

	handling  *Handling // never nil
	faultTold time.Time // when to log a fault of a policy again
	stopping  bool
	started   time.Time

	quiet   quiet
	tick    time.Time     // of the last step
	wait    time.Duration // after which the next step was due at the latest
	awake   time.Time     // since when there was no pause
	stepped time.Time     // when the machine's clock was last set
}

// cluster holds what was last seen of Slurm.
type cluster struct {
	slurmConfig slurmctl.Config
	slurmUser   uint32
	configRead  time.Time
	facts       siteFacts
	ageing      slurmctl.Ageing
	calculated  time.Time      // last known calculation of Slurm's priorities
	accrualRead time.Time      // see readAccrual
	drive       drivemode.Mode // the drive mode that Auto selects here
	driveReason string

	snapshot   *snapshot
	survey     *api.Cluster // surveyOf, as it is shown
	surveyOf   *snapshot
	lastErr    error // of the last poll; nil if it worked
	twin       error // another sidecar drives the cluster; nil if none was seen
	cycleCalls int   // number of Slurm commands in the last cycle and since the one before
	calls      uint64
	countsFrom time.Time // see countsStand

	suspect map[string]time.Time // nodes on which Slurm starts nothing, until when
	doubts  map[uint32]int       // expanders in a row that Slurm did not start, by user
	leaks   map[string]time.Time // since when nodes are allocated to no job
	leaked  []string             // leaked nodes already logged
	healed  time.Time            // when healing leaks was last tried
	rules   ruleBook             // limits of accounts, QOS and partitions
	parksIn map[parksKey]bool    // keys of expanders that the site's plugins want parked
	power   power
}

// jobs holds the evolving jobs.
type jobs struct {
	active  []*job                       // not ended, oldest first
	ended   []*job                       // the last ones
	byID    map[slurmctl.JobID]*job      // by base jobs, companions and links of chains
	coming  map[slurmctl.JobID]uint32    // users of jobs that will be adopted, or now are
	refused map[slurmctl.JobID]refused   // jobs with a marker that are not adopted
	known   map[slurmctl.JobID]row.Known // all jobs ever adopted, as the database has them
	lastRow int64                        // highest ID of the known jobs
	scripts map[slurmctl.JobID]*script   // scripts read or being read, for adopt
	asked   map[slurmctl.JobID]*asked    // requests read or being read
	unsaved map[*job]bool                // jobs whose plans must be written
	aside   map[slurmctl.JobID]Aside     // jobs whose handling ended the sidecar

	eventsOf map[uint32]quota // events that users caused by asking
}

// holds contains our reservations, and those of others.
type holds struct {
	reservations map[string]slurmctl.Reservation // as of the snapshot, with changes made since
	stuckHolds   map[string]slurmctl.Reservation // holds occupied by a job that we cannot move; not in reservations
	heldSince    map[string]time.Time            // when a hold was made or got its nodes
	ours         []ownHold                       // our holds among the reservations, by name
	holdNames    map[holdKey]string              // names of our holds in reservations
	holdChanged  map[string]time.Time            // when the sidecar last made, changed or gave up a hold
	unwilling    map[string]bool                 // holds that Slurm refuses to change, to be recreated
	holdsOpen    bool                            // see cannotClose
	intruders    map[slurmctl.JobID]intrusion    // jobs in holds that are for other jobs
	fits         int64                           // Unix second before which the shares allow no further hold, unless a hold ends; 0 if not known
	delays       delays                          // stock jobs that holds keep from starting
}

// underway holds requests without an outcome yet, and when to poll again.
type underway struct {
	work      work
	pace      pace
	nextCycle time.Time       // when the next poll of Slurm is due
	mirrored  int             // where mirror continues
	calling   []*call         // scripts that wait for their next step
	tries     tries           // attempts at the changes among the calls
	movedUp   int64           // the row of the job that was last moved up
	last      []*planner.Last // how the batches of the queue were planned
	made      []*made         // results of the batches
	pressing  set             // nodes that pending stock jobs could use; they are not lent
}

// Strategy holds what the core needs to know about the strategy in use.
type Strategy struct {
	ExpandLimit planner.ExpandLimit
	Policy      string // policy in use for malleable jobs; "" if it is the configured one
	Plugin      bool   // the policy is a plugin
}

// Books holds the contents of the database at startup.
type Books struct {
	Active     []BookedJob // not ended, oldest first
	Ended      []BookedJob // the last ones, in the order of their ends
	Known      []row.Known
	LastRow    int64
	Intents    []row.Intent // never settled
	LastIntent int64
	Aside      []Aside        // jobs to set aside
	Doubt      slurmctl.JobID // job being handled when the previous process ended, if that proves nothing; 0 if none
}

// BookedJob holds a job with everything that the database records about it.
type BookedJob struct {
	Job   row.Job
	Plan  []row.Span
	Past  []row.Span
	Parts []row.Part
	Bound string // the nodes that the job may have, as the user listed them
}

// New returns a core that knows only its site, configuration and strategy.
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

// Step takes over the inputs, decides, and returns the effects in the order in which the shell must
// carry them out: rows before tasks. The shell calls Step again when an input arrives, and at the
// time of [Wake] at the latest. Now is by a clock that is never set, see [ClockSet].
func (c *Core) Step(now time.Time, inputs ...Input) []Effect {
	c.now = now
	c.watchStill(now)
	for _, in := range inputs {
		c.take(in)
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

// take takes over an input. Step decides afterwards.
func (c *Core) take(in Input) {
	switch in := in.(type) {
	case Books:
		c.restore(in)
	case Observation:
		c.observed(in) // observe → adopt → follow → plan
	case Planned:
		c.planned(in)
	case Resized:
		c.resized(in)
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

// cycle runs one round of observe, adopt, follow and plan. The decisions follow once the plan is
// there.
func (c *Core) cycle(s *snapshot) {
	if c.lastErr != nil {
		c.log.Info("Slurm can be polled again")
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

// planned takes over the plans that the strategy made.
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

// decide carries out what is due in the current state. Step calls it after each cycle, and after
// all other inputs.
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

// configured takes over a changed configuration or strategy.
func (c *Core) configured(in Configuration) {
	if in.Config != nil {
		c.cfg = *in.Config
		c.configRead = time.Time{} // also read Slurm's configuration again
	}
	c.strategy = in.Strategy
	c.last, c.made = nil, nil // the strategy or its parameters may differ
	c.nextCycle = c.now
}

// takeConfig takes over Slurm's configuration.
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

// owner returns the evolving job that a Slurm job belongs to, or nil for a stock job.
func (c *Core) owner(id slurmctl.JobID) *job { return c.byID[id] }

func sortedKeys[V any](m map[string]V) []string {
	keys := slices.AppendSeq(make([]string, 0, len(m)), maps.Keys(m))
	slices.Sort(keys)
	return keys
}
