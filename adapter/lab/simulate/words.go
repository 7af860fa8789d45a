package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// doing does what a word of a script says, with the words after it.
type doing func(words []string) error

// happens does what a line says.
func (h *history) happens(words []string) error {
	do, ok := h.words()[words[0]]
	if !ok {
		return fmt.Errorf("unknown command %q", words[0])
	}
	return do(words[1:])
}

// words returns the words for what happens.
func (h *history) words() map[string]doing {
	c := h.s.Cluster
	root := c.Client(admin)
	all := map[string]doing{
		// users
		"submit":   h.submit,
		"change":   h.change,
		"progress": h.progress,
		"place":    h.place, // where a job would run if it were submitted now
		"stock":    h.stock,
		"forge":    h.forge,                                             // a job of another user's that is named as an expander
		"stop":     named(func(name string) { h.stopped[name] = true }), // a user stops every salloc that runs in the user's name
		"tell":     named(h.tell),                                       // what evosqueue says of it
		"price":    named(h.price),                                      // what evosacct shows of it
		"ledger":   named(h.ledger),                                     // the rows of its holds and promises, and of stock jobs that these delay
		"peek":     named(h.peek),                                       // the answer to evosctl peek

		// administrators
		"cancelholds": h.cancelHolds,
		"set":         h.set, // a setting, as evosctl budget set
		"off":         h.off,
		"cancel":      h.toJob("cancel", func(ctx context.Context, id slurmctl.JobID) error { return root.Cancel(ctx, id) }),
		"requeue":     h.toJob("requeue", root.Requeue),
		"suspend":     h.toJob("suspend", root.Suspend),
		"resume":      h.toJob("resume", root.Resume),
		"hold":        h.toJob("hold", root.Hold),
		"release":     h.toJob("release", root.Release),
		"limit":       func(words []string) error { return h.limit(root, words) },
		"plugin":      h.plugin.set,
		"bound":       h.bound,
		"licenses":    h.licenses,
		"reserve":     func(words []string) error { return h.reserve(root, words) },
		"unreserve":   named(func(name string) { h.unreserve(root, name) }),
		"heal": named(func(string) { // what the sidecar's log says of nodes that Slurm has lost
			if c.Leaks() {
				c.Go(func(*slurmsim.Process) { h.blame(root.Reconfigure(context.Background())) })
			}
		}),
	}
	maps.Copy(all, h.breakage())
	if h.hosts != nil {
		maps.Copy(all, h.hosts.words())
	}
	if h.seat != nil {
		maps.Copy(all, h.seat.words())
	}
	return all
}

// breakage returns the words for what breaks and comes back.
func (h *history) breakage() map[string]doing {
	c := h.s.Cluster
	return map[string]doing{
		"broken": named(func(name string) { c.SetBoots(name, false) }), // it does not come up
		"mended": named(func(name string) { c.SetBoots(name, true) }),
		"down": named(func(name string) {
			h.lossy = true
			h.fails(name)
			c.SetNode(name, true, false)
		}),
		"drain":  named(func(name string) { c.SetNode(name, false, true) }),
		"reboot": named(c.Reboot),
		"create": named(c.CreateNode),
		"delete": named(func(name string) {
			if err := c.DeleteNode(name); err != nil {
				h.say(err.Error())
			}
		}),
		"up":    named(func(name string) { c.SetNode(name, false, false) }),
		"clock": h.clock,
		"ahead": h.ahead,
		"twin": named(func(string) { // a sidecar on another host, with a database of its own
			h.twin = &Sidecar{Cluster: c, Database: NewDatabase(), Config: h.s.Config, Strategy: h.s.Strategy}
			h.twin.Start()
		}),
		"untwin": named(func(string) { h.twin.Stop() }),
		"kill":   named(func(string) { h.s.Stop() }),
		"start": named(func(string) {
			h.calmFrom = max(h.calmFrom, c.Elapsed()+time.Minute)
			h.checks.heldBack = heldBack{} // budgets count from here
			h.s.Start()
		}),
		"aside":    named(h.aside),
		"lose":     named(func(string) { h.lose() }),                         // the database
		"ship":     named(func(string) { h.shipped = h.s.Database.clone() }), // to a second host
		"takeover": named(func(string) { h.takeOver() }),
		"crash":    named(func(string) { h.crash() }),
		"boot":     named(func(string) { h.boot() }),
		"fail":     h.failing, // the next commands of that name, in these words
		"fault": func(words []string) error { // of the next change, whatever it is
			h.calmFrom = c.Elapsed() + 5*time.Minute
			return h.faulty(words)
		},
		"answers": h.answers, // how fast slurmctld does
	}
}

// named makes a word of something that needs a name at most.
func named(do func(name string)) doing {
	return func(words []string) error {
		do(first(words))
		return nil
	}
}

// toJob makes a word of something that an administrator does to a job.
func (h *history) toJob(word string, do func(context.Context, slurmctl.JobID) error) doing {
	return named(func(name string) {
		id, ok := h.jobOf(name)
		if !ok {
			h.say("there is no such job")
			return
		}
		h.s.Cluster.Go(func(*slurmsim.Process) {
			if err := do(context.Background(), id); err != nil {
				h.say(fmt.Sprintf("%s: %v", word, err))
			}
		})
	})
}

// limit JOB DURATION: an administrator gives a job another one.
func (h *history) limit(root *slurmsim.Client, words []string) error {
	if len(words) < 2 {
		return errors.New("limit JOB DURATION")
	}
	limit, err := time.ParseDuration(words[1])
	if err != nil {
		return err
	}
	return h.toJob("limit", func(ctx context.Context, id slurmctl.JobID) error {
		return root.UpdateJob(ctx, id, slurmctl.JobUpdate{TimeLimit: limit})
	})(words)
}

// aside JOB: its handling is found to have ended the life of the sidecar before the next.
func (h *history) aside(name string) {
	if r, ok := h.s.Cluster.Record(h.jobs[name]); ok {
		h.s.Database.Aside = append(h.s.Database.Aside, msg.Aside{Job: r.ID, Submitted: r.SubmitTime, Why: "the sidecar was killed while it handled it"})
	}
}

func (h *history) peek(name string) {
	if id, ok := h.jobOf(name); ok {
		h.s.Cluster.Go(func(p *slurmsim.Process) { h.s.call(p, msg.Call{Job: uint32(id)}) })
	}
}

func (h *history) unreserve(root *slurmsim.Client, name string) {
	h.s.Cluster.Go(func(*slurmsim.Process) {
		if err := root.DeleteReservation(context.Background(), name); err != nil {
			h.say(fmt.Sprintf("unreserve: %v", err))
		}
	})
}

// clock BY: the machine's clock is set.
func (h *history) clock(words []string) error {
	by, err := time.ParseDuration(first(words))
	if err != nil {
		return err
	}
	h.calmFrom = max(h.calmFrom, h.s.Cluster.Elapsed()+10*time.Minute)
	h.s.Cluster.StepClock(by)
	h.s.poke()
	return nil
}

// ahead BY: the clock of the sidecar's host is set, to be ahead of slurmctld's by as much.
func (h *history) ahead(words []string) (err error) {
	h.s.Skewed, err = time.ParseDuration(first(words))
	h.s.Cluster.StepClock(0) // polls show something new
	h.s.poke()
	return err
}
