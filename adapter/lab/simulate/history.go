package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/recorder"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// A history is a script of what happens on a cluster, one thing a line, and what the
// sidecar does about it:
//
//	# what it shows
//	cluster nodes=4 accounting merge
//	partition main n[1-4] default
//	power suspend=1m boot=30s resume=1m off=n[3-4]
//	config grace=30s
//	rest                      (polls without effect are skipped)
//	hosts 7 skew=0s,-2m       (two hosts with a sidecar each; chance, and how far their clocks are ahead)
//	learnt main 72 3,1        (earlier: nodes of unplanned jobs in an hour of the week)
//	operator                  (the sidecar's account is no root, but an operator)
//	0s    submit amr 2@10m,4@10m
//	5m    down n3
//	30m   end
//	----
//	0:00.072  event "adopted" …
//
// The result is below the line: changes of Slurm, events, warnings, replies. site.go has the words
// for the site, happens the words for events.
type history struct {
	*stage
	checks checks

	fault   map[string][]slurmsim.Fault // coming ones, by command; "": any change
	hosts   *hosts                      // two with a sidecar each; nil: one
	seat    *seat                       // among two clusters; nil: there is one
	twin    *Sidecar                    // a second sidecar, started by mistake
	shipped *Database                   // copy of the database on a second host; nil: none
	began   map[string]time.Duration    // of stock jobs; nil if not needed
	plugin  plugin                      // of the site
	asked   string                      // last question to a malleability policy
	bounds  []slurmsim.Bound
	promise promise
	denied  map[string]*denied // by user
	awaited map[growing]awaits // nodes that are held for growths
}

// Play plays a script and writes the result. The error says what is wrong with the result, or with
// the script (ErrScript).
func Play(script string, out io.Writer) error {
	_, err := play(script, out, playing{})
	return err
}

// playing says how to play a script.
type playing struct {
	record func(recorder.Start) *recorder.Recorder // returns the flight recorder for each life of the sidecar, if set
	began  map[string]time.Duration                // receives the starts of stock jobs
	rough  bool                                    // skip the checks after every step, which take time quadratic in the steps
	encode func(*core.Core) *core.Core             // returns the core that takes the next step, if set
	mutant string                                  // of two hosts: see there
	took   *[]time.Duration                        // receives how long takeovers between them took, if set
	left   *Database                               // receives the database as it is at the end, if set
	other  *Database                               // that the sidecar begins with; nil: an empty one
	start  time.Time                               // of the cluster's clock, as in slurmsim.Options
	skip   bool                                    // skip polls without effect, like the script's word rest
	seat   *seat                                   // among two clusters; nil: there is one
}

// play plays a script in that way. It returns how much virtual time has passed.
func play(script string, out io.Writer, how playing) (lasted time.Duration, err error) {
	h := newHistory(out)
	h.began = how.began
	set := setting{config: config.Default(), options: slurmsim.Options{Faults: h.faults}}
	set.config.PollInterval, set.options.Start = time.Second, how.start
	if strings.Contains(script, " plugin ") { // where there is one, jobs are seen to be taken by it
		set.options.Plugin = h.plugin.asks()
	}
	if err := set.read(script); err != nil {
		return 0, err
	}
	noX, _ := planner.StrategyByName("noX")
	cluster := slurmsim.New(set.options)
	defer cluster.Close()
	defer func() {
		lasted = cluster.Elapsed()
		if r := recover(); r != nil {
			err = errors.Join(h.wrong(), fmt.Errorf("%v", r))
		}
	}()
	if set.hosts != nil {
		set.config.Takeover, set.config.API = takeover, "host1,host2"
	}
	one := func() *Sidecar {
		s := &Sidecar{Cluster: cluster, Database: cmp.Or(how.other, NewDatabase()), Config: set.config, Strategy: noX, Policy: set.policy, Watch: h.watch, After: h.checks.checkStep, Record: how.record, between: how.encode,
			Skip: (how.skip || set.rest) && set.hosts == nil, Operator: set.account}
		s.Hands = func(job uint32) *hands {
			if a := h.appOf(job); a != nil {
				return &a.Hands
			}
			return &hands{}
		}
		if how.rough {
			s.After = nil
		}
		return s
	}
	h.seat = how.seat.in(h)
	h.s = one()
	h.s.Database.Arrivals = append(h.s.Database.Arrivals, set.learnt...)
	if set.hosts == nil {
		h.s.Start()
	} else if err := h.two(set.hosts, how.mutant, one); err != nil {
		return 0, err
	}
	if how.left != nil {
		defer func() { *how.left = *h.s.Database }()
	}
	if how.took != nil && h.hosts != nil {
		defer func() { *how.took = append(*how.took, h.hosts.took...) }()
	}
	if err := h.playAll(set.events); err != nil {
		return 0, err
	}
	h.sum()
	h.checks.checkApps()
	h.seat.checkKept()
	h.hosts.checkCalls()
	return 0, h.wrong()
}

func newHistory(out io.Writer) *history {
	st := newStage(out)
	return &history{stage: st, checks: checks{stage: st, texts: map[*string]nodesText{}}, fault: map[string][]slurmsim.Fault{}, denied: map[string]*denied{}}
}

// playAll plays the events of a script until its end.
func (h *history) playAll(events []line) error {
	c := h.s.Cluster
	for _, e := range events {
		clean := e.words[0] == "end" && len(e.words) > 1 && e.words[1] == "clean"
		for clean && c.Elapsed() < e.at && !h.over() { // for as long as there is something
			h.checks.checkAlive()
			h.s.Sleep(min(5*time.Minute, e.at-c.Elapsed()))
		}
		if clean {
			h.checks.checkEnd()
			return nil
		}
		h.s.Sleep(e.at - c.Elapsed())
		if e.words[0] == "end" {
			return nil
		}
		h.say("> " + strings.Join(e.words, " "))
		if err := h.happens(e.words); err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrScript, e.number, err)
		}
	}
	return nil
}

// sum writes what became of the applications.
func (h *history) sum() {
	for _, name := range h.order {
		a := h.apps[name]
		text := name + ":"
		for _, b := range a.Steps {
			text += fmt.Sprintf(" step %d on %d nodes at %s,", b.Step, b.Nodes, stamp(b.At))
		}
		if a.Err != nil {
			text += " next failed: " + a.Err.Error()
		}
		h.say(strings.TrimSuffix(text, ","))
	}
}

// watch writes what the core has done.
func (h *history) watch(_ time.Time, inputs []msg.Input, effects []msg.Effect) {
	if h.mayCheckPromise() {
		h.checkPromise(h.s.now(), inputs, effects)
	} else {
		h.promise = promise{}
	}
	h.checks.asks, h.checks.still = onlyAsks(effects), h.promise.kept
	h.checks.checkThreshold(effects)
	h.checks.held.count(h.s.Cluster.Elapsed(), h.s.Cluster.Reserved("evo_"))
	h.follow(effects)
	h.checkAccess(inputs, effects)
	h.checkPower(effects)
	h.checkAwake()
	h.checks.checkBestEffort(effects)
	if h.out == io.Discard {
		return
	}
	for _, e := range effects {
		switch e := e.(type) {
		case msg.Task:
			switch e.Command.(type) {
			case msg.Ask, msg.ReadAccrual, msg.ReadLicenses, msg.ReadLimits, msg.ReadRequest, msg.ReadScript, msg.ReadTimeUsed:
			default:
				h.say(e.String())
			}
		case msg.AddEvent:
			h.say(e.String())
		case msg.Resize:
			if text := e.String(); text != h.asked { // once, not in every cycle
				h.say(text)
				h.asked = text
			}
		case msg.Reply:
			if e.Offer == nil || e.Offer.Ready { // who waits for an offer goes on waiting
				h.say(e.String())
			}
		case msg.Log:
			if e.Level == "warning" || e.Level == "error" {
				h.say(e.String())
			}
		}
	}
}
