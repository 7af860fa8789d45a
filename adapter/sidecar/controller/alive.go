package controller

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
)

// alive gives the service manager a sign of life, from the loop alone: a loop that is stuck gives none. A start is
// complete once a poll and what follows from it, a plan included, are done.
func (c *Controller) alive() {
	done := !c.view.Load().LastCycle.IsZero()
	if done && !c.begun {
		c.begun = true
		c.sayWhat()
	}
	c.Service.Alive(done, c.statusLine)
}

// sayWhat logs in one line what the sidecar has found, and what it does from now on.
func (c *Controller) sayWhat() {
	v, account := c.view.Load(), "uid "+strconv.Itoa(os.Geteuid())
	if u, err := user.Current(); err == nil {
		account = u.Username
	}
	_, now := c.settings.current()
	entry := c.log.WithFields(logrus.Fields{"account": account, "cluster": v.Cluster, "slurm": v.SlurmVersion, "nodes": v.Nodes, "jobs": v.Seen, "evolving": len(v.Jobs), "holds": v.Holds,
		"mode": v.Mode, "drive": v.Drive, "because": v.DriveReason, "strategy": v.Strategy, "policy": v.Policy, "retention": now.Retention})
	if v.Drain != nil {
		entry = entry.WithField("drain", v.Drain.Words)
	}
	entry.Info("first cycle done")
}

// statusLine describes the sidecar in a line.
func (c *Controller) statusLine() string {
	v := c.view.Load()
	var words []string
	if c.cfg.Observes() {
		words = append(words, "observing")
	}
	if v.LastCycle.IsZero() {
		words = append(words, "waiting for slurmctld")
	} else {
		words = append(words, fmt.Sprintf("%d jobs, %d evolving, polled %d s ago", v.Seen, len(v.Jobs), int(max(c.driver.Clock().Sub(v.LastCycle), 0).Seconds())))
	}
	if spaced := v.Spaced(); spaced != "" {
		words = append(words, spaced)
	}
	if v.Drain != nil {
		words = append(words, v.Drain.Words)
	}
	if v.ClockLead != 0 {
		words = append(words, fmt.Sprintf("slurmctld's clock is %+.0f s from this host's", v.ClockLead))
	}
	if v.LastError != "" {
		words = append(words, v.LastError)
	}
	return strings.Join(words, "; ")
}

// planShare is how long the plan of a job may take, at most, before the loop counts as stuck: 100 times what it takes.
const planShare = 10 * time.Millisecond

// longPlan is the shortest plan that is announced to the service manager.
const longPlan = 10 * time.Second

// planning gives signs of life during a plan that may take long, no longer than it may, until done is called.
func (c *Controller) planning(p *msg.Problem) (done func()) {
	if most := c.cfg.Strategies.Timeout + time.Duration(p.Jobs)*planShare; most >= longPlan {
		return c.Service.During(most)
	}
	return func() {}
}

// next waits for what the loop must do next, or until ctx ends.
func (c *Controller) next(ctx context.Context, timer <-chan time.Time) (inputs []msg.Input, ends bool) {
	var beats <-chan time.Time
	if every := c.Service.Every(); every > 0 {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		beats = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil, true
		case m := <-c.mail:
			return c.open(m), false
		case <-timer:
			return []msg.Input{msg.Tick{}}, false
		case <-beats:
			c.alive()
		}
	}
}
