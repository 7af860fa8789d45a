package controller

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/drive"
	"github.com/evoslurm/evoslurm/adapter/sidecar/observed"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// observe makes a controller that changes nothing in Slurm, and records what happens there.
func (c *Controller) observe() (err error) {
	if c.watcher, err = observed.NewWatcher(c.cfg, c.version, time.Now()); err != nil {
		return err
	}
	c.watcher.Warn(func(err error) { c.log.WithError(err).Warn("days are not recorded") })
	c.driver.Slurm = drive.ReadOnly(c.driver.Slurm, func(what string) {
		c.log.WithField("action", what).Error("refused to change Slurm: the sidecar only observes; please report this")
	})
	before := c.slurm.Ran
	c.slurm.Ran = func(r slurmctl.Ran) {
		c.watcher.Command(r.Args[0])
		if before != nil {
			before(r)
		}
	}
	c.log.WithField("record", c.cfg.ObserveDir()).Info("observing: nothing is changed in Slurm (mode: observe)")
	return nil
}

// hiddenFrom returns what PrivateData hides from this process unless it is an operator.
func hiddenFrom(cfg *slurmctl.Config) []string {
	if cfg == nil || os.Geteuid() == 0 {
		return nil
	}
	if _, uid, err := cfg.SlurmUser(); err == nil && int(uid) == os.Geteuid() {
		return nil
	}
	return cfg.Hidden()
}

// warnHidden logs what Slurm may hide from this account.
func (c *Controller) warnHidden(hidden []string) {
	name := strconv.Itoa(os.Geteuid())
	if me, err := c.slurm.LookupUser(uint32(os.Geteuid())); err == nil {
		name = me.Name
	}
	c.log.WithFields(logrus.Fields{"hidden": strings.Join(hidden, ","), "account": name, "remedy": slurmctl.MakeOperator(name)}).Warn("PrivateData hides something from " +
		"accounts that are not Slurm's operators; unless this account is one, what is hidden is not recorded, and plans do not know of it (evosctl doctor)")
}

// watch gives an input to the watcher.
func (c *Controller) watch(in msg.Input) {
	if o, ok := in.(msg.Observation); ok {
		if hidden := hiddenFrom(o.Config); c.watcher != nil && !c.hidden && len(hidden) > 0 {
			c.hidden = true
			c.warnHidden(hidden)
		}
		took := c.clock.now().Sub(o.Begun)
		c.watcher.See(c.driver.Clock().Add(-took), took, in)
		return
	}
	c.watcher.See(time.Time{}, 0, in)
}
