package slurmsim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// ignored lists parameters of slurm.conf that make no difference to the model: names, paths, logs,
// daemons' timeouts, permissions, what happens on nodes, and how nodes power down, which they never
// do without SuspendTime. A final * matches any rest.
var ignored = strings.Fields(`clustername slurmctldhost* controlmachine controladdr backupcontroller backupaddr authtype authinfo authalt* credtype cryptotype
 jobcredential* slurmuser slurmduser statesavelocation slurmdspooldir slurmctldpidfile slurmdpidfile slurmctldlogfile slurmdlogfile
 slurmctldsyslogdebug slurmdsyslogdebug slurmschedlogfile slurmschedloglevel logtimeformat slurmctldport slurmdport srunportrange mailprog maildomain mpidefault mpiparams
 proctracktype taskplugin* taskprolog taskepilog prolog prologslurmctld epilogslurmctld srunprolog srunepilog prologepilogtimeout
 batchstarttimeout completewait slurmctldtimeout slurmdtimeout messagetimeout inactivelimit waittime tcptimeout unkillablesteptimeout
 unkillablestepprogram healthcheck* eiotimeout epilogmsgtime resvepilog resvprolog returntoservice usepam propagate* debugflags slurmctlddebug slurmddebug
 accountingstoragehost accountingstoragebackuphost accountingstorageport accountingstorageuser accountingstoragepass accountingstoragetres accountingstoreflags
 accountingstoragejobcomment accountingstorageexternalhost jobacctgather* jobcomp* acctgather* privatedata maxjobcount maxarraysize maxstepcount maxtaskspernode maxdbdmsgs firstjobid maxjobid
 disablerootjobs plugindir plugstackconfig topologyparam communicationparameters launchparameters launchtype switchtype switchparameters
 jobfileappend jobcontainertype jobcheckpointdir keepalivetime killonbadexit tmpfs treewidth clifilterplugins federationparameters
 fairsharedampeningfactor gpufreqdef corespecplugin rebootprogram dumpsharedobjects resumefailprogram scronparameters
 sbcastparameters slurmctldaddr slurmctldprimaryonprog slurmctldprimaryoffprog slurmdparameters vsizefactor unkillable* x11parameters
 getenvtimeout groupupdateforce groupupdatetime hashplugin interactivestepoptions preemptexempttime preemptparameters acctgathernodefreq acctgatherenergytype
 extsensorstype extsensorsfreq ext_sensors* nodefeaturesplugins prioritycalcperiod prioritydecayhalflife priorityusageresetperiod priorityfavorsmall
 priorityflags priorityparameters prioritysitefactor* mcsplugin mcsparameters defmempercpu defmempernode maxmempercpu maxmempernode
 reservedports slurmctldplugstack certmgr* tls* namespaceplugin allowspecresourcesusage
 enforcepartlimits jobrequeue maxnodecount schedulertimeslice suspendtimeout resumetimeout suspendrate resumerate suspendexcnodes suspendexcparts
 suspendprogram resumeprogram dependencyparameters slurmctldparameters`)

// schedulerIgnored lists ignored SchedulerParameters: they say how slurmctld spends its own time,
// and passes of the model take none.
var schedulerIgnored = strings.Fields(`bf_max_time bf_yield_interval bf_yield_sleep bf_yield_rpc_cnt max_rpc_cnt
 max_sched_time salloc_wait_nodes sbatch_wait_nodes enable_user_top enable_hetjob_steps max_switch_wait
 ignore_prefer_validation bf_continue max_script_size nohold_on_prolog_fail requeue_setup_env_fail enable_job_state_cache
 default_gbytes`)

func isIgnored(list []string, name string) bool {
	return slices.ContainsFunc(list, func(known string) bool {
		known = strings.ToLower(known)
		if stem, open := strings.CutSuffix(known, "*"); open {
			return strings.HasPrefix(name, stem)
		}
		return known == name
	})
}

// conf is a partly read slurm.conf.
type conf struct {
	options    Options
	leave      map[string]bool
	unknown    []string
	defaults   map[string]map[string]string // of NodeName=DEFAULT and PartitionName=DEFAULT lines
	nodes      map[string]bool
	partitions []confPartition
	multi      bool
	age        uint64
}

type confPartition struct {
	Partition
	nodes string
}

// unmodelled records something that the model does not know.
func (c *conf) unmodelled(name string) {
	if !c.leave["all"] && !c.leave[strings.ToLower(name)] && !slices.Contains(c.unknown, name) {
		c.unknown = append(c.unknown, name)
	}
}

func confNumber(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", s)
	}
	return int(n), nil
}

var errNumber = errors.New("want a number")

// confSeconds reads a number of seconds.
func confSeconds(s string, d *time.Duration) error {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return errNumber
	}
	*d = time.Duration(n) * time.Second
	return nil
}

// confTime reads minutes, minutes:seconds, hours:minutes:seconds, days-hours and so on.
func confTime(s string) (time.Duration, error) {
	switch strings.ToUpper(s) {
	case "UNLIMITED", "INFINITE", "NONE":
		return slurmctl.Unlimited, nil
	}
	bad := fmt.Errorf("%q is no time", s)
	days, clock, hasDays := strings.Cut(s, "-")
	if !hasDays {
		days, clock = "0", s
	}
	units := map[int][]time.Duration{1: {time.Minute}, 2: {time.Minute, time.Second}, 3: {time.Hour, time.Minute, time.Second}}[strings.Count(clock, ":")+1]
	if hasDays {
		units = []time.Duration{time.Hour, time.Minute, time.Second}
	}
	parts := strings.Split(clock, ":")
	if len(parts) > len(units) {
		return 0, bad
	}
	n, err := strconv.ParseUint(days, 10, 16)
	total := time.Duration(n) * 24 * time.Hour
	for i, part := range parts {
		field, wrong := strconv.ParseUint(part, 10, 25)
		if err = errors.Join(err, wrong); err != nil {
			return 0, bad
		}
		total += time.Duration(field) * units[i]
	}
	return total, nil
}

// confPairs splits Name=Value Name="a value".
func confPairs(text string) (pairs [][2]string, err error) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		name, rest, ok := strings.Cut(text, "=")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t\"") {
			return nil, fmt.Errorf("%q; want Name=Value", text)
		}
		value := ""
		if quoted, isQuoted := strings.CutPrefix(rest, `"`); isQuoted {
			if value, text, ok = strings.Cut(quoted, `"`); !ok {
				return nil, fmt.Errorf("%s: a quotation mark is missing", name)
			}
		} else if i := strings.IndexAny(rest, " \t"); i >= 0 {
			value, text = rest[:i], rest[i:]
		} else {
			value, text = rest, ""
		}
		pairs = append(pairs, [2]string{name, value})
	}
	return pairs, nil
}

func sorted(p map[string]string) []string {
	var keys []string
	for k := range p {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
