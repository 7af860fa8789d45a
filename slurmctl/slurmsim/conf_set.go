package slurmsim

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// set reads a parameter of the whole cluster.
func (c *conf) set(name, value string) (err error) {
	key, o := strings.ToLower(name), &c.options
	duration := func(d *time.Duration) {
		n, wrong := strconv.ParseUint(value, 10, 31)
		if wrong != nil {
			err = errNumber
			return
		}
		*d = time.Duration(n) * time.Second
	}
	only := func(values ...string) {
		for one := range strings.SplitSeq(strings.ToLower(value), ",") {
			if !slices.Contains(values, one) {
				c.unmodelled(name + "=" + one)
			}
		}
	}
	switch key {
	case "killwait":
		duration(&o.KillWait)
	case "minjobage":
		duration(&o.MinJobAge)
	case "schedulertype":
		if strings.EqualFold(value, "sched/builtin") {
			o.BackfillInterval = -1
			return nil
		}
		only("sched/backfill")
	case "schedulerparameters":
		for one := range strings.SplitSeq(value, ",") {
			if err := c.scheduler(strings.TrimSpace(one)); err != nil {
				return err
			}
		}
	case "selecttype":
		only("select/cons_tres", "select/cons_res", "select/linear")
	case "selecttypeparameters":
		only("cr_cpu", "cr_core", "cr_socket", "cr_core_default_dist_block", "cr_one_task_per_core", "cr_lln", "")
	case "prioritytype":
		c.multi = strings.EqualFold(value, "priority/multifactor")
		only("priority/basic", "priority/multifactor")
	case "priorityweightage":
		if c.age, err = strconv.ParseUint(value, 10, 32); err != nil {
			err = errNumber
		}
	case "prioritymaxage":
		o.MaxAge, err = confTime(value)
	case "accountingstoragetype":
		o.Accounting = strings.EqualFold(value, "accounting_storage/slurmdbd")
		only("accounting_storage/slurmdbd", "accounting_storage/none")
	case "prologflags":
		o.Contain = slices.Contains(strings.Split(strings.ToLower(value), ","), "contain")
		only("contain", "alloc", "serial", "nohold", "forcerequeueonfail", "x11", "none", "")
	case "epilog":
		o.Epilog = value != ""
	case "preempttype":
		only("preempt/none")
	case "preemptmode":
		only("off")
	case "topologyplugin":
		only("topology/none", "topology/default", "topology/flat")
	case "accountingstorageenforce":
		only("none", "associations", "0", "1", "")
	case "suspendtime":
		only("-1", "none", "infinite")
	case "suspendprogram", "resumeprogram", "suspendtimeout", "resumetimeout", "suspendrate", "resumerate", "suspendexcnodes", "suspendexcparts", "slurmctldparameters",
		"dependencyparameters", "resvoverrun", "overtimelimit", "jobsubmitplugins", "grestypes", "licenses", "enforcepartlimits", "jobrequeue", "maxnodecount", "schedulertimeslice":
		c.special(key, name, value)
	default:
		if strings.HasPrefix(key, "priorityweight") {
			only("0")
		} else if !isIgnored(ignored, key) {
			c.unmodelled(name)
		}
	}
	return err
}

// special reads a parameter that makes a difference only with some values.
func (c *conf) special(key, name, value string) {
	switch key {
	case "enforcepartlimits", "jobrequeue", "maxnodecount", "schedulertimeslice", "suspendtimeout", "resumetimeout", "suspendrate", "resumerate", "suspendexcnodes",
		"suspendexcparts", "suspendprogram", "resumeprogram", "dependencyparameters", "slurmctldparameters":
		return // without SuspendTime, nothing is powered down
	}
	if value != "" && value != "0" && !strings.EqualFold(value, "none") {
		c.unmodelled(name)
	}
}

// scheduler reads one of the SchedulerParameters.
func (c *conf) scheduler(text string) error {
	name, value, _ := strings.Cut(text, "=")
	o := &c.options
	number := func(set func(int)) error {
		n, err := confNumber(value)
		if err != nil {
			return errors.New(text + ": " + err.Error())
		}
		set(n)
		return nil
	}
	seconds := func(d *time.Duration) error {
		return number(func(n int) { *d = time.Duration(n) * time.Second })
	}
	switch key := strings.ToLower(name); key {
	case "":
	case "batch_sched_delay":
		return seconds(&o.SchedDelay)
	case "sched_interval":
		return seconds(&o.SchedInterval)
	case "sched_min_interval":
		return number(func(n int) { o.SchedMinInterval = time.Duration(n) * time.Microsecond })
	case "default_queue_depth":
		return number(func(n int) { o.QueueDepth = n })
	case "bf_interval":
		return number(func(n int) {
			if o.BackfillInterval > 0 && n > 0 {
				o.BackfillInterval = time.Duration(n) * time.Second
			}
		})
	case "bf_window":
		return number(func(n int) { o.BackfillWindow = time.Duration(n) * time.Minute })
	case "bf_resolution":
		return seconds(&o.BackfillStep)
	case "bf_max_job_test":
		return number(func(n int) { o.BackfillJobs = n })
	case "defer":
		o.Defer = true
	case "permit_job_expansion":
		o.PermitJobExpansion = true
	case "disable_job_shrink":
		o.DisableShrink = true
	default:
		if !isIgnored(schedulerIgnored, key) {
			c.unmodelled("SchedulerParameters:" + name)
		}
	}
	return nil
}

// SetScheduler sets some SchedulerParameters in the form of slurm.conf: bf_interval=60,…
func (o *Options) SetScheduler(text string) error {
	c := conf{options: *o}
	orElse(&c.options.BackfillInterval, 30*time.Second)
	for one := range strings.SplitSeq(text, ",") {
		if err := c.scheduler(strings.TrimSpace(one)); err != nil {
			return err
		}
	}
	if *o = c.options; len(c.unknown) > 0 {
		return &NotModelled{c.unknown}
	}
	return nil
}
