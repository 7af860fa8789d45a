package simulate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/lease"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

const (
	restarts   = 5 * time.Second // after which systemd starts a sidecar again that has lost its lease
	shipsEvery = time.Minute     // copies of the database
	onItsWay   = 2 * time.Second // longest time from a command's start to its effect, without faults
)

// hosts is two hosts with a sidecar each before one Slurm. The lease (package lease) says which of them may act.
type hosts struct {
	*history
	*rand.Rand
	all  []*host
	none *Sidecar // that clients reach where no sidecar may act

	calm    bool          // no more mishaps by chance
	late    time.Duration // longest delay of a lease's command on its way
	mishaps int           // so far
	last    time.Duration // the last mishap was over
	gone    time.Duration // when the sidecar that acts was last ended in quiet weather; 0: never, or another acts
	alone   int           // the mishaps by then
	turns   int           // how often one began to act
	changed int           // the last turn in which a command changed Slurm
	mutant  string        // "fence" or "lease": what is missing
	took    []time.Duration
}

// host is a host with a sidecar, which has a core only while it believes that it may act.
type host struct {
	*Sidecar
	of      *hosts
	rate    float64             // of its clock, which is never set
	offset  time.Duration       // of that
	keeps   *slurmsim.Client    // for the lease
	runs    []*slurmsim.Process // the keeper of the lease, and what copies the other's database
	self    int64
	machine *lease.Machine
	until   time.Duration // the right to act ends, by the cluster's time; commands may be under way until then
	cut     time.Duration // until then its commands do not arrive
	thaws   time.Duration // until then it is stopped
	turn    int
}

// two makes the two hosts that a script describes: hosts SEED [late=DURATION] [skew=DURATION,DURATION].
func (h *history) two(words []string, mutant string, make func() *Sidecar) error {
	seed, err := strconv.ParseUint(first(words), 10, 64)
	if err != nil {
		return fmt.Errorf("%w: hosts SEED: %w", ErrScript, err)
	}
	o := options(words[1:])
	t := &hosts{history: h, Rand: rand.New(rand.NewPCG(seed, 27)), none: &Sidecar{Cluster: h.s.Cluster}, late: 20 * time.Second, mutant: mutant}
	if err := given(o, "late", &t.late, time.ParseDuration); err != nil {
		return fmt.Errorf("%w: hosts: %w", ErrScript, err)
	}
	for i, skew := range strings.Split(o["skew"]+",,", ",")[:2] {
		x := &host{Sidecar: make(), of: t, rate: 0.98 + 0.04*t.Float64(), offset: t.upTo(time.Hour)}
		x.Host = fmt.Sprintf("host%d", i+1)
		x.Life, x.Changes = 1000*(i+1), uint64(i)<<32 // no number of theirs is equal
		if x.Skewed, err = time.ParseDuration(skew + "0s"); err != nil {
			return fmt.Errorf("%w: hosts: %w", ErrScript, err)
		}
		x.keeps = h.s.Cluster.Client(slurmsim.User{Name: "lease", Account: x.Host})
		x.front = t.front
		watch, after := x.Watch, x.After
		x.Watch = func(now time.Time, inputs []msg.Input, effects []msg.Effect) {
			if h.s == x.Sidecar {
				watch(now, inputs, effects)
			}
		}
		x.After = func() {
			if h.s == x.Sidecar && after != nil {
				after()
			}
		}
		t.all = append(t.all, x)
	}
	h.hosts, h.s = t, t.all[0].Sidecar
	for _, x := range t.all {
		x.begin()
	}
	return nil
}

func (t *hosts) now() time.Duration { return t.s.Cluster.Elapsed() }

func (t *hosts) upTo(most time.Duration) time.Duration {
	return time.Duration(t.Int64N(int64(most) + 1))
}

// front returns the sidecar that answers clients.
func (t *hosts) front() *Sidecar {
	for _, x := range t.all {
		if x.acts() {
			return x.Sidecar
		}
	}
	return t.none
}

// named returns the hosts that a word means.
func (t *hosts) named(word string) []*host {
	i := max(0, slices.IndexFunc(t.all, (*host).acts))
	switch word {
	case "1", "2":
		i = int(word[0] - '1')
	case "waits":
		i = 1 - i
	case "both":
		return t.all
	}
	return t.all[i : i+1]
}

// words returns the words for what befalls hosts: die HOST, again, freeze HOST FOR, cut HOST FOR, calm. HOST is acts,
// waits, both, 1, or 2.
func (t *hosts) words() map[string]doing {
	to := func(do func(x *host, d time.Duration)) doing {
		return func(words []string) (err error) {
			d := takeover
			if len(words) > 1 {
				d, err = time.ParseDuration(words[1])
			}
			for _, x := range t.named(first(words)) {
				quiet := t.now() >= t.last+takeover
				t.mishap(d)
				if x.acts() && quiet && d >= takeover {
					t.expect(x)
				}
				do(x, d)
			}
			return err
		}
	}
	each := func(do func(x *host)) doing {
		return func([]string) error {
			for _, x := range t.all {
				do(x)
			}
			return nil
		}
	}
	return map[string]doing{
		"die":    to(func(x *host, _ time.Duration) { x.end() }),
		"freeze": to((*host).freeze),
		"cut":    to(func(x *host, d time.Duration) { x.cut = max(x.cut, t.now()+d) }),
		"again":  each((*host).begin),
		"calm": each(func(x *host) {
			t.calm, x.cut, x.thaws = true, 0, 0
			x.thaw()
		}),
	}
}

// mishap counts what goes wrong, and notes that stock jobs may be late until that is over and the next sidecar acts.
func (t *hosts) mishap(lasts time.Duration) {
	if t != nil {
		t.mishaps++
		t.last = max(t.last, t.now()+lasts)
		t.calmFrom = max(t.calmFrom, t.last+takeover+5*time.Minute)
	}
}

// expect checks that the other sidecar takes over in time if the one that acts is gone, and nothing else happens.
func (t *hosts) expect(x *host) {
	if slices.ContainsFunc(t.all, func(o *host) bool { return o.machine == nil }) || t.had != nil {
		return
	}
	t.gone, t.alone = t.now(), t.mishaps
	before := t.mishaps
	t.s.Cluster.After(takeover, func() {
		if t.mishaps == before && t.front() == t.none {
			t.blame(fmt.Errorf("no sidecar acts %v after that of %s was ended, stopped, or cut off", takeover, x.Host))
		}
	})
}

// checkCalls checks that a sidecar which takes over knows the step that an application ends, unless slurmctld forgot it.
func (t *hosts) checkCalls() {
	if t == nil || t.crashed {
		return
	}
	for _, name := range t.order {
		if err := t.apps[name].Err; err != nil && strings.Contains(err.Error(), "has not begun") {
			t.blame(fmt.Errorf("%s ends a step, and gets an error: %w", name, err))
		}
	}
}

// clock returns the time by the host's own clock.
func (x *host) clock() time.Duration {
	return time.Duration(float64(x.of.now())*x.rate) + x.offset
}

// acts reports whether the sidecar has a core and the right to act.
func (x *host) acts() bool { return x.core != nil && x.until > x.of.now() }

// begin starts the process, unless it runs.
func (x *host) begin() {
	if x.machine != nil {
		return
	}
	x.self = x.of.Int64N(1 << 28)
	x.machine = lease.New(x.self, lease.TermsOf(takeover))
	c := x.Cluster
	x.runs = []*slurmsim.Process{c.Go(x.keep), c.Go(x.copies)}
}

// end ends the process, as kill -9 does. Its commands under way go on.
func (x *host) end() {
	x.Stop()
	x.machine, x.thaws, x.frozen, x.late = nil, 0, false, nil
	for _, p := range x.runs {
		p.Kill()
	}
}

// freeze stops the process, as kill -STOP does. Its commands under way go on.
func (x *host) freeze(d time.Duration) {
	x.thaws, x.frozen = max(x.thaws, x.of.now()+d), true
	x.Cluster.After(d, x.thaw)
}

func (x *host) thaw() {
	if x.frozen && x.thaws <= x.of.now() {
		x.frozen = false
		late := x.late
		x.late, x.of.promise = nil, promise{}
		x.give(late...)
	}
}

// awake waits until the process is not stopped.
func (x *host) awake(p *slurmsim.Process) {
	for x.thaws > x.of.now() {
		p.Sleep(min(x.thaws-x.of.now(), time.Second))
	}
}

// copies copies the database of the sidecar that acts, as keeper.Follower does.
func (x *host) copies(p *slurmsim.Process) {
	for x.core == nil {
		wait := 2 * time.Second
		s := x.of.front()
		for _, from := range x.of.all {
			if from.Sidecar == s && from != x && from.thaws <= x.of.now() && max(from.cut, x.cut) <= x.of.now() {
				x.Database, wait = s.Database.clone(), shipsEvery
			}
		}
		p.Sleep(wait)
		x.awake(p)
	}
}

// keep gets the lease, begins to act, and keeps the lease until it is lost, as keeper.Keeper does.
func (x *host) keep(p *slurmsim.Process) {
	m, terms := x.machine, lease.TermsOf(takeover)
	for {
		a, at := m.Next()
		p.Sleep(max(0, time.Duration(float64(at-x.clock())/x.rate)))
		x.awake(p)
		sent := x.clock()
		claims, err := x.run(a)
		x.awake(p)
		m.Done(a, sent, x.clock(), claims, err != nil)
		if m.Until() > 0 {
			x.right(time.Duration(float64(m.Until()-x.offset) / x.rate))
		}
		switch holds := m.Phase() == lease.Holding; {
		case holds && x.core == nil:
			x.turnBegins()
		case x.core != nil && (!holds || a.Kind == lease.Read && x.clock() > m.Until()+terms.Take):
			x.of.mishap(0)
			x.Cluster.After(restarts, x.begin)
			x.end()
			return
		}
	}
}

// right notes until when commands may be sent, and checks that no other sidecar may meanwhile.
func (x *host) right(until time.Duration) {
	x.until = max(x.until, until)
	for _, o := range x.of.all {
		if o != x && min(x.until, o.until) > x.of.now() {
			x.of.blame(fmt.Errorf("%s may act until %s, and %s until %s", x.Host, stamp(x.until), o.Host, stamp(o.until)))
		}
	}
}

// turnBegins starts the core, which checks follow from now on.
func (x *host) turnBegins() {
	t := x.of
	h := t.history
	t.turns++
	x.turn = t.turns
	if t.gone > 0 && t.mishaps == t.alone {
		t.took = append(t.took, t.now()-t.gone)
	}
	t.gone = 0
	h.say(fmt.Sprintf("%s begins to act: turn %d, lease %d", x.Host, x.turn, x.machine.Epoch()))
	h.keepExcuses()
	x.Config, x.Policy = h.s.Config, h.s.Policy // the follower has copied the settings
	h.s, h.promise, h.checks.heldBack = x.Sidecar, promise{}, heldBack{}
	h.calmFrom = max(h.calmFrom, t.now()+5*time.Minute)
	x.Start()
}

// claimsFrom is the start of the claim of holder 0, and shortestClaim its duration without beats: as package keeper has it.
var claimsFrom = time.Date(2060, 1, 1, 0, 0, 0, 0, time.UTC)

const shortestClaim = time.Minute

// run carries a command of the lease out.
func (x *host) run(a lease.Action) (claims []lease.Claim, err error) {
	ctx, done := x.Cluster.WithTimeout(context.Background(), lease.TermsOf(takeover).Gap)
	defer done()
	name, start := fmt.Sprintf("%s%d", lease.Prefix, a.Epoch), claimsFrom.Add(time.Duration(x.self)*time.Second)
	end := start.Add(shortestClaim + time.Duration(a.Beat)*time.Second)
	switch a.Kind {
	case lease.Create:
		if x.clock() >= a.Before {
			return nil, errLapsed
		}
		return nil, x.keeps.CreateReservation(ctx, slurmctl.ReservationRequest{Name: name, Start: start, End: end, Nodes: []string{"n1"},
			Users: []string{slurmctl.Nobody}, Flags: []string{"OVERLAP", "IGNORE_JOBS"}})
	case lease.Renew:
		return nil, x.keeps.UpdateReservation(ctx, name, slurmctl.ReservationUpdate{End: end})
	case lease.Delete:
		return nil, x.keeps.DeleteReservation(ctx, name)
	}
	all, err := x.keeps.Reservations(ctx)
	for _, r := range all {
		if epoch, ours := strings.CutPrefix(r.Name, lease.Prefix); ours {
			n, _ := strconv.ParseInt(epoch, 10, 64)
			claims = append(claims, lease.Claim{Epoch: n, Holder: int64(r.Start.Sub(claimsFrom) / time.Second), Beat: int64((r.End.Sub(r.Start) - shortestClaim) / time.Second)})
		}
	}
	return claims, err
}

// What a command's sender sees of the lease and of the fence.
var (
	errNoLease = &slurmctl.CommandError{Args: []string{"slurmsim"}, ExitCode: -1, Err: fmt.Errorf("%w: this sidecar has no lease at present: another may act", slurmctl.ErrFenced)}
	errLapsed  = &slurmctl.CommandError{Args: []string{"slurmsim"}, ExitCode: -1, Err: slurmctl.ErrFenced}
)

// befalls returns what befalls a command of a host besides what befalls it anyway. A command that changes Slurm needs
// the right to act when it begins, and is ended when that has run out, even if it was stopped in between.
func (t *hosts) befalls(q slurmsim.Command, f slurmsim.Fault) slurmsim.Fault {
	if t == nil {
		return f
	}
	i := slices.IndexFunc(t.all, func(x *host) bool { return x.Host == q.User.Account })
	if i < 0 {
		return f
	}
	x, now := t.all[i], t.now()
	if x.cut > now {
		return slurmsim.Fault{Drop: true}
	}
	if q.User.Name == "lease" {
		return t.befallsLease(f)
	}
	begins := max(x.thaws, now) - now
	f.Before += begins
	if !q.Changes() {
		return f
	}
	if !t.calm && t.IntN(12) == 0 {
		f.Before += t.upTo(2 * takeover) // it is stopped after the check
	}
	switch left := x.until - now; {
	case t.mutant == "lease":
	case begins >= left:
		return slurmsim.Fault{Before: begins, Drop: true, Err: errNoLease}
	case f.Before >= left && t.mutant != "fence":
		return slurmsim.Fault{Before: left, Drop: true, Err: errLapsed}
	}
	if turn := x.turn; !f.Drop {
		t.s.Cluster.After(f.Before, func() { t.changed = max(t.changed, turn) })
		t.s.Cluster.After(f.Before+onItsWay, func() {
			if turn < t.changed {
				t.blame(fmt.Errorf("%v of %s, begun at %s in turn %d, arrives after a command of turn %d", q, x.Host, stamp(now), turn, t.changed))
			}
		})
	}
	return f
}

// befallsLease returns what befalls a command of the lease.
func (t *hosts) befallsLease(f slurmsim.Fault) slurmsim.Fault {
	if t.calm {
		return f
	}
	switch t.IntN(100) {
	case 0:
		f.Drop = true
	case 1:
		f.Err = errLapsed
	case 2:
		f.Before = t.upTo(t.late)
	default:
		return f
	}
	t.mishap(f.Before)
	return f
}
