package simulate

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
	"github.com/evoslurm/evoslurm/adapter/sidecar/recorder"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
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
//	0s    submit amr 2@10m,4@10m
//	5m    down n3
//	30m   end
//	----
//	0:00.072  event "adopted" …
//
// The result is below the line: changes of Slurm, events, warnings, replies. site.go has the words
// for the site, happens the words for events.
type history struct {
	s     *Sidecar
	out   io.Writer
	jobs  map[string]slurmctl.JobID
	apps  map[string]*App
	order []string
	fault map[string][]slurmsim.Fault // coming ones, by command; "": any change
	slow  sluggish                    // slurmctld
	twin  *Sidecar                    // a second sidecar, started by mistake

	evolving map[slurmctl.JobID]bool // with all links of chains
	forged   map[slurmctl.JobID]bool
	stocks   map[slurmctl.JobID]bool // that may have any nodes
	heldBack heldBack
	blamed   map[string]bool
	beyond   time.Duration            // when a user last exceeded the shares of holds
	lossy    bool                     // jobs may have lost nodes
	crashed  bool                     // slurmctld has crashed and may have forgotten changes of jobs
	stopped  map[string]bool          // users who stop every salloc that runs in their name
	calmFrom time.Duration            // until then stock jobs may be late: something failed, or the clock was set
	began    map[string]time.Duration // of stock jobs; nil if not needed
	had      map[string]int           // nodes of applications as slurmctld crashed; nil: it is up
	told     map[slurmctl.JobID]bool  // jobs excused by the event log of a lost database
	plugin   plugin                   // of the site
	asked    string                   // last question to a malleability policy
	bounds   []slurmsim.Bound
	alive    alive
	reserved time.Time // until then administrators keep nodes
	errs     []error

	texts map[*string]nodesText // of lists of nodes, by where they are
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
	skip   bool                                    // skip polls without effect, like the script's word rest
}

// play plays a script in that way. It returns how much virtual time has passed.
func play(script string, out io.Writer, how playing) (lasted time.Duration, err error) {
	h := &history{out: out, jobs: map[string]slurmctl.JobID{}, apps: map[string]*App{}, fault: map[string][]slurmsim.Fault{},
		evolving: map[slurmctl.JobID]bool{}, forged: map[slurmctl.JobID]bool{}, stopped: map[string]bool{}, stocks: map[slurmctl.JobID]bool{}, told: map[slurmctl.JobID]bool{}, blamed: map[string]bool{}, texts: map[*string]nodesText{}, began: how.began}
	cfg := config.Default()
	cfg.PollInterval = time.Second
	options := slurmsim.Options{Faults: h.faults}
	if strings.Contains(script, " plugin ") { // where there is one, jobs are seen to be taken by it
		options.Plugin = h.plugin.asks()
	}
	var events []line
	var theirs *Policy
	number := 0
	for lines := bufio.NewScanner(strings.NewReader(script)); lines.Scan(); {
		number++
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		var err error
		switch words[0] {
		case "cluster":
			err = clusterOptions(&options, words[1:])
		case "partition":
			err = partition(&options, words[1:])
		case "power":
			err = powerSaving(&options, words[1:])
		case "config":
			err = configure(&cfg, &theirs, words[1:])
		case "random": // beside the latencies, which are then by chance, too
			err = chance(&options, words[1:])
		case "rest":
			how.skip = true
		default:
			var at time.Duration
			if at, err = time.ParseDuration(words[0]); err == nil && len(words) < 2 {
				err = fmt.Errorf("what happens at %v?", at)
			}
			events = append(events, line{number, at, words[1:]})
		}
		if err != nil {
			return 0, fmt.Errorf("%w: line %d: %w", ErrScript, number, err)
		}
	}
	noX, _ := planner.StrategyByName("noX")
	cluster := slurmsim.New(options)
	defer cluster.Close()
	defer func() {
		lasted = cluster.Elapsed()
		if r := recover(); r != nil {
			err = errors.Join(h.wrong(), fmt.Errorf("%v", r))
		}
	}()
	h.s = &Sidecar{Cluster: cluster, Database: NewDatabase(), Config: cfg, Strategy: noX, Policy: theirs, Watch: h.watch, After: h.checkStep, Record: how.record,
		Skip: how.skip && !strings.Contains(script, " answers ")} // where a poll takes long, none is without effect
	if how.rough {
		h.s.After = nil
	}
	h.s.Start()
	for _, e := range events {
		clean := e.words[0] == "end" && len(e.words) > 1 && e.words[1] == "clean"
		for clean && cluster.Elapsed() < e.at && !h.over() { // for as long as there is something
			h.checkAlive()
			h.s.Sleep(min(5*time.Minute, e.at-cluster.Elapsed()))
		}
		if clean {
			h.checkEnd()
			break
		}
		h.s.Sleep(e.at - cluster.Elapsed())
		if e.words[0] == "end" {
			break
		}
		h.say("> " + strings.Join(e.words, " "))
		if err := h.happens(e.words); err != nil {
			return 0, fmt.Errorf("%w: line %d: %w", ErrScript, e.number, err)
		}
	}
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
	h.checkApps()
	return 0, h.wrong()
}

// ErrScript means that a script is invalid.
var ErrScript = errors.New("not a history")

type line struct {
	number int
	at     time.Duration
	words  []string
}

func stamp(d time.Duration) string {
	d = d.Round(time.Millisecond)
	return fmt.Sprintf("%d:%02d.%03d", int(d.Minutes()), int(d.Seconds())%60, d.Milliseconds()%1000)
}

func (h *history) say(text string) {
	fmt.Fprintf(h.out, "%9s  %s\n", stamp(h.s.Cluster.Elapsed()), text)
}

// watch writes what the core has done.
func (h *history) watch(_ time.Time, _ []core.Input, effects []core.Effect) {
	h.checkThreshold(effects)
	h.follow(effects)
	if h.out == io.Discard {
		return
	}
	for _, e := range effects {
		switch e := e.(type) {
		case core.Task:
			switch e.Command.(type) {
			case core.Ask, core.ReadAccrual, core.ReadLimits, core.ReadRequest, core.ReadScript, core.ReadTimeUsed:
			default:
				h.say(e.String())
			}
		case core.AddEvent:
			h.say(e.String())
		case core.Resize:
			if text := e.String(); text != h.asked { // once, not in every cycle
				h.say(text)
				h.asked = text
			}
		case core.Reply:
			if e.Offer == nil || e.Offer.Ready { // who waits for an offer goes on waiting
				h.say(e.String())
			}
		case core.Log:
			if e.Level == "warning" || e.Level == "error" {
				h.say(e.String())
			}
		}
	}
}

// faults returns what befalls commands.
func (h *history) faults(q slurmsim.Command) slurmsim.Fault {
	h.mayChange(q)
	if q.User.Name != slurmsim.Root.Name {
		return slurmsim.Fault{}
	}
	if q.Name == "Allocate" && h.stopped[h.growsFor(q)] {
		return slurmsim.Fault{Before: time.Hour, Drop: true}
	}
	for _, name := range []string{q.Name, ""} {
		if coming := h.fault[name]; len(coming) > 0 && (name != "" || q.Changes()) {
			h.fault[name] = coming[1:]
			return coming[0]
		}
	}
	return h.slows(q)
}

// growsFor returns the user for whose job an allocation is.
func (h *history) growsFor(q slurmsim.Command) string {
	var base slurmctl.JobID
	if _, err := fmt.Sscanf(q.About, "evo_%d_", &base); err != nil {
		return ""
	}
	j, _ := h.s.Cluster.Record(base)
	return j.User
}

// happens does what a line says.
func (h *history) happens(words []string) error {
	c, name := h.s.Cluster, ""
	if len(words) > 1 {
		name = words[1]
	}
	root := c.Client(admin)
	job := func(do func(context.Context, slurmctl.JobID) error) error {
		id, ok := h.jobOf(name)
		if !ok {
			h.say("there is no such job")
			return nil
		}
		c.Go(func(*slurmsim.Process) {
			if err := do(context.Background(), id); err != nil {
				h.say(fmt.Sprintf("%s: %v", words[0], err))
			}
		})
		return nil
	}
	switch words[0] {
	case "submit":
		return h.submit(words[1:])
	case "change":
		return h.change(words[1:])
	case "cancelholds":
		return h.cancelHolds(words[1:])
	case "progress":
		return h.progress(words[1:])
	case "stock":
		return h.stock(words[1:])
	case "cancel":
		return job(func(ctx context.Context, id slurmctl.JobID) error { return root.Cancel(ctx, id) })
	case "requeue":
		return job(root.Requeue)
	case "suspend":
		return job(root.Suspend)
	case "resume":
		return job(root.Resume)
	case "hold":
		return job(root.Hold)
	case "release":
		return job(root.Release)
	case "limit": // an administrator gives a job another one
		if len(words) < 3 {
			return errors.New("limit JOB DURATION")
		}
		limit, err := time.ParseDuration(words[2])
		if err != nil {
			return err
		}
		return job(func(ctx context.Context, id slurmctl.JobID) error {
			return root.UpdateJob(ctx, id, slurmctl.JobUpdate{TimeLimit: limit})
		})
	case "aside": // its handling is found to have ended the life of the sidecar before the next
		if r, ok := c.Record(h.jobs[name]); ok {
			h.s.Database.Aside = append(h.s.Database.Aside, core.Aside{Job: r.ID, Submitted: r.SubmitTime, Why: "the sidecar was killed while it handled it"})
		}
	case "tell": // what evosqueue says of it
		h.tell(name)
	case "price": // what evosacct shows of it
		h.price(name)
	case "peek": // the answer to evosctl peek
		if id, ok := h.jobOf(name); ok {
			c.Go(func(p *slurmsim.Process) { h.s.call(p, core.Call{Job: uint32(id)}) })
		}
	case "plugin":
		return h.plugin.set(words[1:])
	case "bound":
		return h.bound(words[1:])
	case "reserve":
		return h.reserve(root, words[1:])
	case "unreserve":
		c.Go(func(*slurmsim.Process) {
			if err := root.DeleteReservation(context.Background(), name); err != nil {
				h.say(fmt.Sprintf("unreserve: %v", err))
			}
		})
	case "broken": // it does not come up
		c.SetBoots(name, false)
	case "down":
		h.lossy = true
		h.fails(name)
		c.SetNode(name, true, false)
	case "drain":
		c.SetNode(name, false, true)
	case "up":
		c.SetNode(name, false, false)
	case "clock":
		by, err := time.ParseDuration(name)
		if err != nil {
			return err
		}
		h.calmFrom = math.MaxInt64 // slurmctld may start nothing
		c.StepClock(by)
		h.s.poke()
	case "twin": // a sidecar on another host, with a database of its own
		h.twin = &Sidecar{Cluster: c, Database: NewDatabase(), Config: h.s.Config, Strategy: h.s.Strategy}
		h.twin.Start()
	case "untwin":
		h.twin.Stop()
	case "kill":
		h.s.Stop()
	case "start":
		h.calmFrom = max(h.calmFrom, h.s.Cluster.Elapsed()+time.Minute)
		h.s.Start()
	case "lose": // the database
		h.lose()
	case "crash":
		h.crash()
	case "boot":
		h.boot()
	case "fail": // the next commands of that name, in these words
		h.fault[name] = append(h.fault[name], slurmsim.Fault{Drop: true, Err: slurmsim.Refusal(strings.Join(words[2:], " "))})
	case "fault": // of the next change, whatever it is
		h.calmFrom = h.s.Cluster.Elapsed() + 5*time.Minute
		return h.faulty(words[1:])
	case "answers": // how fast slurmctld does
		return h.answers(words[1:])
	case "stop": // a user stops every salloc that runs in the user's name
		h.stopped[name] = true
	case "forge": // a job of another user's that is named as an expander
		return h.forge(words[1:])
	default:
		return fmt.Errorf("unknown command %q", words[0])
	}
	return nil
}

// options are words of the form key=value, or key.
func options(words []string) map[string]string {
	all := map[string]string{}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		all[key] = value
	}
	return all
}

func userNamed(name string) slurmsim.User {
	switch name {
	case "bob":
		return Bob
	case "mallory":
		return Mallory
	}
	return Alice
}

// submit NAME PROFILE[/PROFILE…] [by=PREFERENCE] [limit=] [user=] [drive=] [expand=] [begin=] [lasts=STEP:FOR,…] [deaf] [abrupt=STEP]
// [partition=] [qos=] [mem=MIB] [gres=] [stored] [acts=AFTER:WHAT,…] [claim=NODES]
// [size=] [grace=] [says=ANSWER,…]
func (h *history) submit(words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("submit NAME PROFILE")
	}
	all, err := request.ParseAlternatives(strings.ReplaceAll(words[1], "/", "|"))
	o := options(words[2:])
	a := &App{User: userNamed(o["user"]), Name: words[0], Alternatives: all, Drive: drivemode.Mode(o["drive"]), Partition: o["partition"]}
	if !strings.Contains(words[1], "/") {
		a.Alternatives = nil
		err = a.bounded(words[1], o)
	}
	if err != nil {
		return err
	}
	if err := asks(&a.Asks, o); err != nil {
		return err
	}
	_, a.Stored = o["stored"]
	if text := o["by"]; text != "" {
		if a.By, err = planner.ParsePreference(text); err != nil {
			return err
		}
	}
	if text := o["expand"]; text != "" {
		if a.ExpandLimit, err = planner.ParseExpandLimit(text); err != nil {
			return err
		}
	}
	if text := o["limit"]; text != "" {
		if a.Limit, err = time.ParseDuration(text); err != nil {
			return err
		}
	}
	if text := o["begin"]; text != "" {
		in, err := time.ParseDuration(text)
		if err != nil {
			return err
		}
		a.Begin = h.s.Cluster.Now().Add(in)
	}
	lasts := map[int]time.Duration{}
	for one := range strings.SplitSeq(o["lasts"], ",") {
		if one == "" {
			continue
		}
		step, text, _ := strings.Cut(one, ":")
		k, err := strconv.Atoi(step)
		if err != nil {
			return err
		}
		if lasts[k], err = time.ParseDuration(text); err != nil {
			return err
		}
	}
	a.Lasts = func(step int) time.Duration {
		if d, ok := lasts[step]; ok {
			return d
		}
		return a.says(step)
	}
	if text := o["claim"]; text != "" {
		if a.Claim, err = strconv.Atoi(text); err != nil {
			return err
		}
	}
	if text := o["acts"]; text != "" {
		if a.Acts, err = parseActs(text); err != nil {
			return err
		}
	}
	_, a.Deaf = o["deaf"]
	if text := o["abrupt"]; text != "" {
		if a.Abrupt, err = strconv.Atoi(text); err != nil {
			return err
		}
	}
	id, err := h.s.Submit(a)
	if err != nil {
		return err
	}
	for i := range a.Profile {
		if h.evolving[id+slurmctl.JobID(i)] = true; a.Drive != drivemode.Chain {
			break
		}
	}
	h.jobs[a.Name], h.apps[a.Name] = id, a
	h.order = append(h.order, a.Name)
	return nil
}

// stock NAME NODES LIMIT LASTS [user=] [on=NODES] [partition=] [qos=] [mem=MIB] [gres=] [cpus=]
// [in=RESERVATION] [comment=] [hexcomment=] [hexscript=] [held] [parked]
func (h *history) stock(words []string) error {
	if len(words) < 4 {
		return fmt.Errorf("stock NAME NODES LIMIT LASTS")
	}
	nodes, err1 := strconv.Atoi(words[1])
	limit, err2 := time.ParseDuration(words[2])
	lasts, err3 := time.ParseDuration(words[3])
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			return err
		}
	}
	o, begin := options(words[4:]), time.Time{}
	_, held := o["held"]
	if _, parked := o["parked"]; parked {
		begin = h.s.Cluster.Now().Add(parkedFor)
	}
	comment, err1 := hex.DecodeString(o["hexcomment"])
	script, err2 := hex.DecodeString(o["hexscript"])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	q := slurmsim.Job{User: userNamed(o["user"]), Name: words[0], Script: "#!/bin/bash\n" + string(script) + "\n", Nodes: nodes, TimeLimit: limit, Lasts: lasts,
		Partition: o["partition"], Reservation: o["in"], Comment: o["comment"] + string(comment), Held: held, Begin: begin}
	if err := asks(&q, o); err != nil {
		return err
	}
	if on := o["on"]; on != "" {
		list, err := slurmctl.ExpandNodes(on)
		if err != nil {
			return err
		}
		q.NodeList = list
	}
	if h.began != nil {
		q.Program = func(p *slurmsim.Process) {
			h.began[q.Name] = h.s.Cluster.Elapsed()
			p.Sleep(lasts)
		}
	}
	id, err := h.s.Cluster.Submit(q)
	if err != nil {
		h.say(fmt.Sprintf("stock: %v", err))
		return nil
	}
	h.jobs[words[0]], h.evolving[id] = id, q.Comment != "" || len(script) > 0
	h.stocks[id] = len(o) == 0 || len(o) == 1 && o["user"] != ""
	return nil
}

// forge NAME JOB: bob names a job as the sidecar names JOB's expanders.
func (h *history) forge(words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("forge NAME JOB")
	}
	id, err := h.s.Cluster.Submit(slurmsim.Job{User: Bob, Name: fmt.Sprintf("evo_%d_2_7", h.jobs[words[1]]), Comment: "evox:v1",
		Script: "#!/bin/bash\n", Nodes: 1, TimeLimit: time.Hour, Lasts: time.Hour})
	h.jobs[words[0]], h.forged[id] = id, true
	return err
}

// admin is an administrator, whom the checks do not take for the sidecar.
var admin = slurmsim.User{Name: "admin"}

// fault drop | lost | late=DURATION | slow=DURATION: the next change never reaches
// slurmctld, works without an answer, is answered late, or reaches it late.
func (h *history) faulty(words []string) error {
	if len(words) == 0 {
		return errors.New("which fault?")
	}
	key, value, _ := strings.Cut(words[0], "=")
	var f slurmsim.Fault
	var err error
	switch key {
	case "drop":
		f.Drop = true
	case "lost":
		f.Err = slurmsim.Refusal("Socket timed out on send/recv operation")
	case "late":
		f.After, err = time.ParseDuration(value)
	case "slow":
		f.Before, err = time.ParseDuration(value)
	default:
		err = fmt.Errorf("fault: %q", words[0])
	}
	h.fault[""] = append(h.fault[""], f)
	return err
}
