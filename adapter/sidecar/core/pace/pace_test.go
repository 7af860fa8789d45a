package pace

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
)

const ms = time.Millisecond

// TestSpare: polls that are dear one after another are spaced, one that was dear by chance
// is not.
func TestSpare(t *testing.T) {
	const commands, share, bare = 3, 0.05, 7 * ms
	p := state.Pace{Bare: bare}
	for i, c := range []struct{ cost, pause time.Duration }{
		{10 * ms, 0}, {10 * ms, 0}, {10 * ms, 0}, // not yet believed
		{10 * ms, 200 * ms},
		{500 * ms, 200 * ms}, {100 * ms, 200 * ms}, {500 * ms, 200 * ms}, // by chance
		{10 * ms, 200 * ms},
		{100 * ms, 200 * ms}, {100 * ms, 200 * ms}, {200 * ms, 200 * ms},
		{100 * ms, 2 * time.Second},
		{10 * time.Second, 2 * time.Second}, {10 * time.Second, 2 * time.Second}, {10 * time.Second, 2 * time.Second},
		{10 * time.Second, 200 * time.Second}, {time.Minute, 200 * time.Second}, {time.Minute, 200 * time.Second}, {time.Minute, 200 * time.Second},
		{time.Minute, 20 * time.Minute}, {4 * time.Minute, 20 * time.Minute}, {4 * time.Minute, 20 * time.Minute}, {4 * time.Minute, 20 * time.Minute},
		{4 * time.Minute, MostPause},
	} {
		Spare(&p, &msg.Observation{Commands: commands, CPU: c.cost + commands*bare}, share, time.Second)
		if p.Pause != c.pause || p.Gated != (c.pause > time.Second) {
			t.Errorf("poll %d: a pause of %v (gated: %v), want %v", i, p.Pause, p.Gated, c.pause)
		}
	}
}

// TestSpareOnAnyHost: the time that commands need on this host is no time of slurmctld's,
// be the host fast, slow, or slow from some time on.
func TestSpareOnAnyHost(t *testing.T) {
	const commands, share, poll = 3, 0.01, 500 * ms
	for _, c := range []struct {
		name   string
		host   func(i int) time.Duration // cost of a bare command at poll i
		answer time.Duration             // what slurmctld's answers cost beyond that
		pause  time.Duration
	}{
		{"fast", func(int) time.Duration { return 2 * ms }, 0, 0},
		{"slow", func(int) time.Duration { return 25 * ms }, 0, 0},
		{"slow later", func(i int) time.Duration { return time.Duration(2+23*(i/5)) * ms }, 0, 0},
		{"fast, many jobs", func(int) time.Duration { return 2 * ms }, 30 * ms, 3 * time.Second},
		{"slow, many jobs", func(int) time.Duration { return 25 * ms }, 30 * ms, 3 * time.Second},
	} {
		var p state.Pace
		for i := range 10 {
			in := msg.Observation{Commands: commands, CPU: commands*c.host(i) + c.answer}
			if p.Measure {
				in.BareCPU = c.host(i)
			}
			Spare(&p, &in, share, poll)
			if c.pause == 0 && p.Pause != 0 {
				t.Errorf("%s: a pause of %v after poll %d", c.name, p.Pause, i)
			}
		}
		if p.Pause != c.pause {
			t.Errorf("%s: a pause of %v, want %v", c.name, p.Pause, c.pause)
		}
	}
}

// TestShare: polls of 10 ms that begin every second take 1 % of slurmctld's time, and half of that with twice the
// pause. Where no cost was measured, there is none.
func TestShare(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		costs [state.PollsCompared]time.Duration
		pause time.Duration
		want  float64
	}{
		{want: 0}, {[state.PollsCompared]time.Duration{10 * ms, 10 * ms, 900 * ms, 10 * ms}, 0, 0.01}, {[state.PollsCompared]time.Duration{10 * ms, 10 * ms, 10 * ms, 10 * ms}, 2 * time.Second, 0.005},
	} {
		if got := Share(&state.Pace{Costs: c.costs, Pause: c.pause}, time.Second); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestUrgentPolls checks that urgent polls come soon, that routine ones make up for them, and that all together keep
// to the share however much is urgent.
func TestUrgentPolls(t *testing.T) {
	for _, pause := range []time.Duration{200 * ms, 3 * time.Second, 20 * time.Second, time.Minute, MostPause / 2} {
		p := state.Pace{Pause: pause, Urgent: true}
		begun := time.Unix(1_800_000_000, 0)
		p.Ended = begun
		const polls = 200
		for i := range polls {
			at := next(&p, p.Ended.Add(pause))
			if wait := at.Sub(p.Ended); i == 0 && wait > max(fast, pause/urgency) || wait > pause {
				t.Errorf("pause %v: urgent poll %d after %v", pause, i, wait)
			}
			indebted(&p, at)
			p.Ended = at
		}
		if took, want := p.Ended.Sub(begun), polls*pause-credit(&p); took < want {
			t.Errorf("pause %v: %d urgent polls in %v, want %v at least", pause, polls, took, want)
		}
		p.Urgent = false
		wait := next(&p, p.Ended).Sub(p.Ended)
		if wait > Apart(&p) || pause > fast && wait <= pause {
			t.Errorf("pause %v: a routine poll after %v, announced were %v", pause, wait, Apart(&p))
		}
		indebted(&p, p.Ended.Add(wait))
		if p.Debt > credit(&p)/100 {
			t.Errorf("pause %v: %v are left", pause, p.Debt)
		}
	}
}

// TestShareHolds checks that polls take at most their share of any time, even if each keeps slurmctld busy for half a minute,
// and however much is urgent. Only the first polls come before their cost is believed.
func TestShareHolds(t *testing.T) {
	const share = 0.01
	for _, cost := range []time.Duration{30 * ms, 2 * time.Second, 6 * time.Second, 30 * time.Second, 36 * time.Second} {
		for _, urgent := range []bool{false, true} {
			p, begun := state.Pace{Bare: ms, Urgent: urgent}, time.Unix(1_800_000_000, 0)
			p.Ended = begun
			spent, first := time.Duration(0), time.Time{}
			for i := range 200 {
				at := next(&p, p.Ended.Add(time.Second))
				if indebted(&p, at); i == state.PollsCompared {
					first = at
				}
				p.Ended = at.Add(cost)
				if Spare(&p, &msg.Observation{CPU: cost}, share, time.Second); i < state.PollsCompared {
					continue
				}
				spent += cost
				if most := share * float64(p.Ended.Add(p.Pause).Sub(first)+credit(&p)); float64(spent) > most {
					t.Fatalf("polls of %v (urgent: %v): the first %d took %v, at most %v is their share", cost, urgent, i-state.PollsCompared+1, spent, time.Duration(most))
				}
			}
			if got := Share(&p, time.Second); got > share {
				t.Errorf("polls of %v: a share of %v", cost, got)
			}
		}
	}
}

// TestHoldsOn checks that holds last until the next poll can have come, and that their ends seldom change.
func TestHoldsOn(t *testing.T) {
	for _, c := range []struct{ pause, want time.Duration }{
		{0, 0}, {10 * time.Second, 0}, {11 * time.Second, time.Minute}, {40 * time.Second, time.Minute}, {41 * time.Second, 2 * time.Minute},
		{2 * time.Minute, 4 * time.Minute}, {3 * time.Minute, 8 * time.Minute}, {10 * time.Minute, 32 * time.Minute}, {MostPause, MostPause},
	} {
		p := state.Pace{Pause: c.pause}
		if got := HoldsOn(&p); got != c.want || got+time.Minute < Apart(&p) {
			t.Errorf("pause %v: %v more, want %v; polls come %v apart", c.pause, got, c.want, Apart(&p))
		}
	}
}

// TestKeepToRate checks that polls take half of what slurmctld's rate limit lets through, unless the account is exempt.
func TestKeepToRate(t *testing.T) {
	for _, c := range []struct {
		user, params string
		root         bool
		before, want time.Duration
	}{
		{"evoslurm", "rl_enable", false, 0, 6 * time.Second},
		{"evoslurm", "rl_enable", false, time.Minute, time.Minute},
		{"evoslurm", "", false, time.Second, time.Second},
		{"slurm", "rl_enable", false, 0, 0},
		{"root", "rl_enable", true, 0, 0},
		{"evoslurm", "rl_enable,rl_refill_rate=1,rl_refill_period=1000", false, 0, MostPause},
	} {
		var core state.Core
		core.Site.User, core.Site.Root, core.Pace.Pause = c.user, c.root, c.before
		core.SlurmConfig.Values = map[string]string{"SlurmctldParameters": c.params, "SlurmUser": "slurm(64030)"}
		if KeepToRate(&core, 3); core.Pace.Pause != c.want {
			t.Errorf("%+v: a pause of %v", c, core.Pace.Pause)
		}
	}
}

// TestWarningsShare checks that polls and warnings together take at most their share of any time, however many jobs wait to be
// warned and however much is urgent, and that warnings take half of it at most.
func TestWarningsShare(t *testing.T) {
	const share = 0.01
	for _, cost := range []time.Duration{30 * ms, 500 * ms, 2 * time.Second} {
		for _, urgent := range []bool{false, true} {
			b := statetest.New(t, 1)
			b.SlurmConfig.Version, b.Config.Slurm.Share = "22.05.8", share
			p, begun := &b.Pace, b.Now
			*p = state.Pace{Bare: ms, Urgent: urgent, Ended: begun, Pause: pauseAfter(cost, share)}
			for i := range p.Costs {
				p.Costs[i] = cost
			}
			spent, warnings := time.Duration(0), 0
			for range 5000 {
				b.Later(p.Pause / 50)
				if MayWarn(b.Core) {
					Warns(b.Core)
					spent, warnings = spent+cost, warnings+1
				}
				if !b.Now.Before(next(p, p.Ended)) {
					indebted(p, b.Now)
					p.Ended, spent = b.Now, spent+cost
				}
				if most := share * float64(b.Now.Sub(begun)+2*p.Pause+2*credit(p)); float64(spent) > most {
					t.Fatalf("%v, urgent: %v: polls and %d warnings took %v in %v", cost, urgent, warnings, spent, b.Now.Sub(begun))
				}
			}
			if want := 50; warnings != want {
				t.Errorf("%v, urgent: %v: %d warnings, want %d", cost, urgent, warnings, want)
			}
		}
	}
}
