package slurmsim

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// modelled lists the known values of parameters whose other values are not in the model.
var modelled = map[string][]string{
	"schedulertype":            {"sched/backfill", "sched/builtin"},
	"selecttype":               {"select/cons_tres", "select/cons_res", "select/linear"},
	"selecttypeparameters":     {"cr_cpu", "cr_core", "cr_socket", "cr_core_default_dist_block", "cr_one_task_per_core", "cr_lln", ""},
	"prioritytype":             {"priority/basic", "priority/multifactor"},
	"accountingstoragetype":    {"accounting_storage/slurmdbd", "accounting_storage/none"},
	"prologflags":              {"contain", "alloc", "serial", "nohold", "forcerequeueonfail", "x11", "none", ""},
	"preempttype":              {"preempt/none"},
	"preemptmode":              {"off"},
	"topologyplugin":           {"topology/none", "topology/default", "topology/flat"},
	"accountingstorageenforce": {"none", "associations", "0", "1", ""},
	"suspendtime":              {"-1", "none", "infinite"},
}

// unset lists parameters that must have no value in the model.
var unset = strings.Fields("resvoverrun overtimelimit jobsubmitplugins grestypes")

// readers read the parameters that make a difference to the model.
var readers = map[string]func(c *conf, value string) error{
	"killwait":  func(c *conf, value string) error { return confSeconds(value, &c.options.KillWait) },
	"minjobage": func(c *conf, value string) error { return confSeconds(value, &c.options.MinJobAge) },
	"schedulertype": func(c *conf, value string) error {
		if strings.EqualFold(value, "sched/builtin") {
			c.options.BackfillInterval = -1
		}
		return nil
	},
	"schedulerparameters": func(c *conf, value string) error {
		for one := range strings.SplitSeq(value, ",") {
			if err := c.scheduler(strings.TrimSpace(one)); err != nil {
				return err
			}
		}
		return nil
	},
	"prioritytype": func(c *conf, value string) error {
		c.multi = strings.EqualFold(value, "priority/multifactor")
		return nil
	},
	"priorityweightage": func(c *conf, value string) (err error) {
		if c.age, err = strconv.ParseUint(value, 10, 32); err != nil {
			return errNumber
		}
		return nil
	},
	"prioritymaxage": func(c *conf, value string) (err error) {
		c.options.MaxAge, err = confTime(value)
		return err
	},
	"accountingstoragetype": func(c *conf, value string) error {
		c.options.Accounting = strings.EqualFold(value, "accounting_storage/slurmdbd")
		return nil
	},
	"licenses": func(c *conf, value string) (err error) {
		c.options.Licenses, err = slurmctl.ParseLicenses(value)
		return err
	},
	"prologflags": func(c *conf, value string) error {
		c.options.Contain = slices.Contains(strings.Split(strings.ToLower(value), ","), "contain")
		return nil
	},
	"epilog": func(c *conf, value string) error {
		c.options.Epilog = value != ""
		return nil
	},
}

// set reads a parameter of the whole cluster.
func (c *conf) set(name, value string) error {
	key := strings.ToLower(name)
	read, values := readers[key], modelled[key]
	switch {
	case values != nil:
		c.only(name, value, values)
	case read != nil:
	case strings.HasPrefix(key, "priorityweight"):
		c.only(name, value, []string{"0"})
	case slices.Contains(unset, key):
		if value != "" && value != "0" && !strings.EqualFold(value, "none") {
			c.unmodelled(name)
		}
	case !isIgnored(ignored, key):
		c.unmodelled(name)
	}
	if read == nil {
		return nil
	}
	return read(c, value)
}

// only records those parts of a value that the model does not know.
func (c *conf) only(name, value string, known []string) {
	for one := range strings.SplitSeq(strings.ToLower(value), ",") {
		if !slices.Contains(known, one) {
			c.unmodelled(name + "=" + one)
		}
	}
}

// schedulerParameter is where one of the SchedulerParameters goes: a flag, a count, or a time.
type schedulerParameter struct {
	flag  *bool
	count *int
	time  *time.Duration
	unit  time.Duration
}

// scheduler reads one of the SchedulerParameters.
func (c *conf) scheduler(text string) error {
	name, value, _ := strings.Cut(text, "=")
	key, o := strings.ToLower(name), &c.options
	p, known := map[string]schedulerParameter{
		"batch_sched_delay":    {time: &o.SchedDelay, unit: time.Second},
		"sched_interval":       {time: &o.SchedInterval, unit: time.Second},
		"sched_min_interval":   {time: &o.SchedMinInterval, unit: time.Microsecond},
		"default_queue_depth":  {count: &o.QueueDepth},
		"bf_interval":          {time: &o.BackfillInterval, unit: time.Second},
		"bf_window":            {time: &o.BackfillWindow, unit: time.Minute},
		"bf_resolution":        {time: &o.BackfillStep, unit: time.Second},
		"bf_max_job_test":      {count: &o.BackfillJobs},
		"defer":                {flag: &o.Defer},
		"permit_job_expansion": {flag: &o.PermitJobExpansion},
		"disable_job_shrink":   {flag: &o.DisableShrink},
	}[key]
	if !known {
		if key != "" && !isIgnored(schedulerIgnored, key) {
			c.unmodelled("SchedulerParameters:" + name)
		}
		return nil
	}
	if p.flag != nil {
		*p.flag = true
		return nil
	}
	n, err := confNumber(value)
	if err != nil {
		return errors.New(text + ": " + err.Error())
	}
	switch {
	case p.count != nil:
		*p.count = n
	case key == "bf_interval" && (o.BackfillInterval <= 0 || n == 0): // sched/builtin has none
	default:
		*p.time = time.Duration(n) * p.unit
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
