package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/api/reach"
	"github.com/evoslurm/evoslurm/adapter/internal/certs"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/slurmctl"
)

const (
	// Slurm's clock is read to the second, so that a difference below two is none.
	clockNoticed = 2 * time.Second
	clockRemedy  = "set the clocks (NTP): Slurm needs equal ones, and MUNGE refuses credentials of a host that is 5 min ahead or behind"
	staleCycle   = time.Minute // a sidecar that has not polled Slurm for this long is stuck
)

// The commands that the sidecar and the jobs run.
var slurmCommands = []string{"squeue", "sinfo", "scontrol", "sbatch", "salloc", "scancel", "srun"}

// examine runs all checks, except those that depend on a failed one.
func examine(ctx context.Context, flags *pflag.FlagSet) *report {
	d := &doctor{}
	d.starting, _ = flags.GetBool(startingFlag) // not all commands have it
	if !d.configuration(flags) {
		return &d.report
	}
	d.slurm = &slurmctl.Client{Dir: d.cfg.Slurm.Bin, Timeout: min(d.cfg.Slurm.Timeout, checkTimeout)}
	d.authentication(ctx)
	if d.commands() && d.controllers(ctx) {
		d.cluster(ctx)
	}
	if !d.starting {
		d.sidecar(ctx)
	}
	return &d.report
}

func (d *doctor) commands() bool {
	var missing []string
	for _, name := range slurmCommands {
		path := name
		if d.cfg.Slurm.Bin != "" {
			path = filepath.Join(d.cfg.Slurm.Bin, name)
		}
		if _, err := exec.LookPath(path); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		d.add("Slurm commands", fail, "not found: "+strings.Join(missing, ", "), "install Slurm's client commands (Debian: slurm-client), or set slurm.bin to their folder")
		return false
	}
	d.add("Slurm commands", ok, strings.Join(slurmCommands, ", "), "")
	return true
}

func (d *doctor) controllers(ctx context.Context) bool {
	found, err := d.slurm.Ping(ctx)
	if err != nil {
		d.add("slurmctld", fail, err.Error(), "is slurm.conf there (SLURM_CONF, /etc/slurm), and slurmctld running?")
		return false
	}
	var up, down []string
	for _, c := range found {
		if c.Up {
			up = append(up, fmt.Sprintf("%s (%s)", c.Host, c.Role))
		} else {
			down = append(down, fmt.Sprintf("%s (%s)", c.Host, c.Role))
		}
	}
	switch {
	case len(up) == 0:
		d.add("slurmctld", fail, "down: "+strings.Join(down, ", "), "start slurmctld")
		return false
	case len(down) > 0:
		d.add("slurmctld", warn, "up: "+strings.Join(up, ", ")+"; down: "+strings.Join(down, ", "), "")
	default:
		d.add("slurmctld", ok, "up: "+strings.Join(up, ", "), "")
	}
	return true
}

// mergedRows says what the choice of merge costs where slurmdbd counts.
const mergedRows = "XDMoD counts only a merged job's last size, and seff only its first; where they matter, set drive: companion (docs/accounting.md)"

// cluster checks slurmctld's configuration and decides the drive mode.
func (d *doctor) cluster(ctx context.Context) {
	sc, err := d.slurm.Config(ctx)
	if err != nil {
		d.add("Slurm's configuration", fail, err.Error(), "")
		return
	}
	d.version(ctx, sc)
	d.clock(ctx)
	if d.cfg.Observes() {
		d.observes(ctx, sc)
	} else {
		level := d.rights(ctx, sc)
		d.expansion(sc)
		d.shrinks(sc, level)
	}
	d.stepManagers(sc)
	d.rateLimit(sc)
	d.federation(ctx, sc)
	d.priorities(sc)
	d.accounting(sc)
	d.companions(ctx, sc)
	d.power(sc)
	d.nodes(ctx)
	if own, theirs := d.cfg.Munge.Socket, sc.MungeSocket(); own != theirs && d.cfg.Auth == config.AuthMunge {
		d.add("MUNGE sockets", warn, fmt.Sprintf("Slurm uses %s, Evoslurm %s", orDefault(theirs), orDefault(own)), "set munge.socket unless both have the same key")
	}
	merge, reasons := slurmctl.Capabilities(sc)
	d.Drive, d.Reasons = string(drivemode.Companion), reasons
	switch against := slurmctl.BesideEpilog(sc); {
	case merge && against == "":
		d.Drive = string(drivemode.Merge)
	case merge:
		d.Reasons = []string{against + ": set drive: merge where that is harmless"}
	}
	if d.Drive == string(drivemode.Merge) && sc.AccountingStorageType() == "slurmdbd" {
		d.Reasons = append(d.Reasons, mergedRows)
	}
	if d.cfg.Drive != drivemode.Auto {
		d.Reasons = append([]string{fmt.Sprintf("the configuration says drive: %s (auto would choose %s)", d.cfg.Drive, d.Drive)}, d.Reasons...)
		if d.cfg.Drive == drivemode.Merge && !merge {
			d.add("drive mode", fail, "the configuration says drive: merge, which does not work here", "set drive: auto")
		}
		d.Drive = string(d.cfg.Drive)
	}
	d.partitions(ctx, sc)
}

func orDefault(socket string) string {
	if socket == "" {
		return "munge's default"
	}
	return socket
}

func (d *doctor) version(ctx context.Context, sc slurmctl.Config) {
	client, err := d.slurm.Version(ctx)
	switch {
	case err != nil:
		d.add("Slurm's version", fail, err.Error(), "")
	case client != sc.Version:
		d.add("Slurm's version", warn, fmt.Sprintf("slurmctld %s, commands %s", sc.Version, client), "use the commands of slurmctld's release here")
	default:
		d.add("Slurm's version", ok, fmt.Sprintf("%s, cluster %s", sc.Version, sc.ClusterName), "")
	}
}

func (d *doctor) clock(ctx context.Context) {
	before := time.Now()
	at, err := d.slurm.Clock(ctx)
	if err != nil {
		d.add("clock", warn, err.Error(), "")
		return
	}
	diff := at.Sub(before.Truncate(time.Second))
	if diff > 0 {
		diff = max(0, diff-time.Since(before).Round(time.Second))
	}
	detail := fmt.Sprintf("slurmctld's is %v from this machine's, to the second", diff)
	switch {
	case diff.Abs() > d.cfg.Munge.MaxAge:
		d.add("clock", fail, detail, "set the clocks (NTP); credentials are refused")
	case diff.Abs() > clockNoticed:
		d.add("clock", warn, detail, clockRemedy)
	default:
		d.add("clock", ok, detail, "")
	}
}

// rights returns as what the caller acts in Slurm: root, SlurmUser, or an admin level; "" if that is not known.
func (d *doctor) rights(ctx context.Context, sc slurmctl.Config) string {
	me, err := user.Current()
	if err != nil {
		d.add("rights", warn, err.Error(), "")
		return ""
	}
	slurmUser, slurmUID, err := sc.SlurmUser()
	uid := fmt.Sprint(os.Geteuid())
	const byJob = "all drive modes, where the jobs' own processes submit what brings their nodes (evosctl next)"
	const remedy = "install evoslurm-client of the sidecar's version on all nodes: older clients are refused; moldable jobs need root"
	switch {
	case uid == "0":
		d.add("rights", ok, "root: all drive modes; the sidecar submits what brings nodes in the users' names", "")
		return "root"
	case err == nil && uid == fmt.Sprint(slurmUID):
		d.add("rights", ok, fmt.Sprintf("%s is SlurmUser: %s", slurmUser, byJob), remedy)
		d.allocNodes(ctx)
		return "SlurmUser"
	}
	level, err := d.slurm.AdminLevel(ctx, me.Username)
	switch {
	case d.starting && (err != nil || level == "None"):
		d.add("rights", fail, me.Username+" may not change jobs in Slurm", "run the sidecar as "+slurmUser+" or root, or: sacctmgr modify user "+me.Username+" set adminlevel=operator; or set mode: observe")
	case err != nil:
		d.add("rights", warn, fmt.Sprintf("%s is neither root nor SlurmUser (%s), and sacctmgr says: %v", me.Username, slurmUser, err), "run doctor as the sidecar's user to check its rights")
	case level == "None":
		d.add("rights", warn, fmt.Sprintf("%s is an ordinary user", me.Username), "run doctor as the sidecar's user to check its rights")
	default:
		d.add("rights", ok, fmt.Sprintf("%s is %s: %s", me.Username, level, byJob), remedy)
		d.allocNodes(ctx)
	}
	return level
}

// allocNodes checks that jobs may submit from their nodes.
func (d *doctor) allocNodes(ctx context.Context) {
	const name = "AllocNodes"
	bound, err := d.slurm.AllocNodes(ctx)
	switch {
	case err != nil:
		d.add(name, warn, err.Error(), "")
	case len(bound) > 0:
		d.add(name, warn, "partitions "+strings.Join(bound, ", ")+" may take jobs from some hosts only, and the jobs' own processes submit from compute nodes",
			"add these partitions' nodes to their AllocNodes= in slurm.conf, or run the sidecar as root")
	default:
		d.add(name, ok, "jobs may submit from all nodes", "")
	}
}

// shrinks reports whether the sidecar, with the caller's rights, mends that Slurm refuses nodes from which a job was
// shrunk (docs/slurm-bugs.md, 5).
func (d *doctor) shrinks(sc slurmctl.Config, level string) {
	const name, detail = "shrinks", "after an exclusive job is killed on a node from which a job was shrunk, Slurm refuses the node for up to a third of SlurmdTimeout (%s)"
	const remedy = "; or set a smaller SlurmdTimeout in slurm.conf, or drive: companion (docs/slurm-bugs.md, 5)"
	_, always := slurmctl.StepMgr(sc)
	why, instead := "", ""
	switch {
	case always || sc.Has("disable_job_shrink"):
		d.add(name, ok, "no job gives back a part of its nodes", "")
		return
	case !slurmctl.ContactsIdle(sc):
		why, instead = "Slurm "+sc.Version+" asks no such node to answer", "use Slurm 22.05 or later"
	case level == "" || level == "None":
		why, instead = "the sidecar has such nodes answer only as root, SlurmUser, or an administrator", "run doctor as the sidecar's user"
	case level == "Operator":
		why, instead = "an operator cannot have it answer", "run the sidecar as root"
	default:
		d.add(name, ok, "the sidecar has nodes answer from which it shrank jobs", "")
		return
	}
	d.add(name, warn, fmt.Sprintf(detail+", and ", sc.Values["SlurmdTimeout"])+why, instead+remedy)
}

// stepManagers checks whether jobs have a step manager, with which nodes are given back by whole
// companions.
func (d *doctor) stepManagers(sc slurmctl.Config) {
	const name = "stepmgr"
	const bound = "a profile may give back what a growth has brought, as a whole: Slurm would still run steps of the job on nodes that it gave back in part"
	switch possible, always := slurmctl.StepMgr(sc); {
	case always:
		d.add(name, warn, "every job has a step manager (SlurmctldParameters=enable_stepmgr); "+bound, "other profiles are refused; they need drive mode chain, or a site without enable_stepmgr")
	case possible:
		d.add(name, ok, "jobs have a step manager if they ask for it (sbatch --stepmgr); then "+bound, "")
	default:
		d.add(name, ok, "no job has a step manager", "")
	}
}

func (d *doctor) expansion(sc slurmctl.Config) {
	const remedy = "for drive mode merge: "
	if sc.Has("permit_job_expansion") {
		d.add("permit_job_expansion", ok, "set", "")
		d.merged(sc)
	} else {
		d.add("permit_job_expansion", warn, "not set", remedy+"SchedulerParameters=permit_job_expansion in slurm.conf")
	}
	if sc.Has("disable_job_shrink") {
		d.add("disable_job_shrink", warn, "set: a base job keeps its first nodes to its end", "remove it from SchedulerParameters in slurm.conf")
	} else {
		d.add("disable_job_shrink", ok, "not set", "")
	}
	if flags := strings.Join(sc.List("PrologFlags"), ","); flags == "" {
		d.add("PrologFlags", ok, "none", "")
	} else if sc.HasPrologFlag("Contain") || sc.HasPrologFlag("X11") || sc.HasPrologFlag("RunInJob") {
		d.add("PrologFlags", warn, flags, "jobs with an extern step cannot be merged; companions work")
	} else {
		d.add("PrologFlags", ok, flags, "")
	}
	switch epilog := sc.Epilog(); {
	case epilog == "":
		d.add("Epilog", ok, "none", "")
	case d.cfg.Drive == drivemode.Merge:
		d.add("Epilog", ok, epilog+"; drive: merge says that other jobs may start beside it", "")
	default:
		d.add("Epilog", warn, epilog+": Slurm starts other jobs beside it on nodes that a merged job gives back", remedy+"where it harms nobody but its own job, drive: merge in evoslurm.yaml; companions work")
	}
	if gres := strings.Join(sc.List("GresTypes"), ","); gres == "" {
		d.add("GRES", ok, "none", "")
	} else {
		d.add("GRES", warn, gres, "Slurm merges no job with whole nodes where there are generic resources; companions work")
	}
}

// merged says that Slurm requeues jobs that have got a node before that of their batch script, and who is merged nevertheless
// (docs/slurm-bugs.md, 7).
func (d *doctor) merged(sc slurmctl.Config) {
	const name = "merged jobs"
	if d.cfg.Drive != drivemode.Merge {
		d.add(name, ok, "a node before that of the batch script is not merged, unless the job asks for drive mode merge or ends within BatchStartTimeout ("+sc.Values["BatchStartTimeout"]+")", "")
		return
	}
	d.add(name, warn, fmt.Sprintf("drive: merge: Slurm requeues a job with a merged node that comes before the node of its batch script, when that node registers again: after up to 20 pings "+
		"(SlurmdTimeout is %s) if the job has run for longer than BatchStartTimeout (%s)", sc.Values["SlurmdTimeout"], sc.Values["BatchStartTimeout"]),
		"set drive: auto, with which such jobs grow by companions (docs/slurm-bugs.md, 7)")
}

func (d *doctor) accounting(sc slurmctl.Config) {
	switch {
	case sc.AccountingStorageType() != "slurmdbd":
		d.add("slurmdbd", warn, "not in use", "Slurm 22.05 and older need it to resize a job more than once")
	case slurmctl.ResizeNeedsSlurmdbd(sc):
		d.add("slurmdbd", ok, "in use; every resize waits for its answer", "where jobs resize often, have TCP acknowledge at once between it and slurmctld (quickack): evoslurmd(8)")
	default:
		d.add("slurmdbd", ok, "in use", "")
	}
}

// companions checks what slurmdbd will say of companions.
func (d *doctor) companions(ctx context.Context, sc slurmctl.Config) {
	switch {
	case sc.AccountingStorageType() != "slurmdbd":
	case d.slurm.Completes(ctx):
		d.add("companions", ok, "they end as COMPLETED, if the sidecar's host has Slurm's Perl interface, as this one has", "")
	default:
		d.add("companions", warn, "they end as CANCELLED: Slurm's Perl interface is missing here",
			"install slurm-perlapi (Debian: libslurm-perl) on the sidecar's host (docs/accounting.md)")
	}
}

// nodes checks that compute nodes can reach the sidecar as configured.
func (d *doctor) nodes(ctx context.Context) {
	nodes, _, err := d.slurm.Nodes(ctx)
	switch {
	case err != nil:
		d.add("nodes", fail, err.Error(), "")
	case len(nodes) == 0:
		d.add("nodes", fail, "the cluster has none", "")
	case strings.HasPrefix(d.cfg.API, "unix://") && d.cfg.Listen.TCP == "":
		d.add("nodes", warn, fmt.Sprintf("%d, and the sidecar serves this machine alone", len(nodes)), "set listen.tcp, and api on compute nodes, so that jobs reach the sidecar from there")
	default:
		d.add("nodes", ok, fmt.Sprint(len(nodes)), "")
	}
}

// authentication checks what proves over TCP who is calling.
func (d *doctor) authentication(ctx context.Context) {
	if refused := reach.RefusedToken(ctx, d.slurm); refused != "" {
		d.add("SLURM_JWT", fail, refused, "")
	}
	if d.cfg.Auth == config.AuthMunge {
		d.munge(ctx)
		return
	}
	const name = "tokens of Slurm"
	tokens := reach.Tokens(d.slurm)
	token, err := tokens.Get(ctx)
	var ends time.Time
	if err == nil {
		ends, err = api.TokenExpires(token)
	}
	if err != nil {
		remedy := "set AuthAltTypes=auth/jwt and AuthAltParameters=jwt_key=FILE in slurm.conf, without disable_token_creation; or auth: munge"
		if errors.Is(err, slurmctl.ErrUnreachable) {
			remedy = "start slurmctld; with AuthType=auth/slurm, also slurmd or sackd on this host"
		}
		d.add(name, fail, err.Error(), remedy)
		return
	}
	source := "slurmctld makes one when a command needs it"
	if token == tokens.Given {
		source = "SLURM_JWT is used while it is good"
	}
	d.add(name, ok, fmt.Sprintf("auth: jwt; %s, the present one until %s", source, ends.Format(time.DateTime)), "")
}

// munge makes a credential and opens it again.
func (d *doctor) munge(ctx context.Context) {
	m := api.Munge{Socket: d.cfg.Munge.Socket}
	credential, err := m.Encode(ctx, "evosctl doctor", d.cfg.Munge.MaxAge)
	if err == nil {
		var c api.Credential
		if c, err = m.Decode(ctx, credential); err == nil && (int(c.UID) != os.Geteuid() || c.Payload != "evosctl doctor") {
			err = fmt.Errorf("a credential of uid %d came back as uid %d's", os.Geteuid(), c.UID)
		}
	}
	if err != nil {
		d.add("MUNGE", fail, err.Error(), "install munge, start munged, or set munge.socket to its socket; where Slurm has AuthType=auth/slurm in its place, set auth: jwt")
		return
	}
	d.add("MUNGE", ok, "a credential made here is accepted here (auth: munge)", "")
}

// sidecar checks the sidecar's state.
func (d *doctor) sidecar(ctx context.Context) {
	client, err := reach.Client(d.cfg)
	if err != nil {
		d.add("sidecar", fail, err.Error(), "")
		return
	}
	d.certificate("this machine's", certs.Client(d.cfg.TLS).Expires(), "tls.certificate")
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var away error
	client.Waiting = func(_ string, err error) { away = err; cancel() }
	s, err := client.Status(ctx)
	if away != nil {
		err = fmt.Errorf("at %s: %w", d.cfg.API, away)
	}
	if err != nil {
		d.add("sidecar", fail, err.Error(), sidecarRemedy)
		return
	}
	d.status(s)
	d.certificate("the sidecar's", client.Expires(), "listen.certificate")
	d.second(s, d.cfg.Takeover)
	d.settings(ctx, client)
}

// status checks what the sidecar says of itself.
func (d *doctor) status(s api.Status) {
	detail := fmt.Sprintf("version %s at %s drives cluster %s", s.Version, d.cfg.API, s.Cluster)
	if s.Mode == string(config.ModeObserve) {
		detail = fmt.Sprintf("version %s at %s is observing cluster %s, and changes nothing (mode: observe)", s.Version, d.cfg.API, s.Cluster)
	}
	switch age := s.Now.Sub(s.LastCycle); {
	case s.LastError != "":
		d.add("sidecar", warn, detail+"; "+s.LastError, "see its log")
	case s.LastCycle.IsZero() || age > max(staleCycle, 10*d.cfg.PollInterval)+time.Duration(s.PollsApart*float64(time.Second)):
		d.add("sidecar", warn, detail+", but has not polled Slurm lately", "see its log")
	case s.Drain != nil:
		d.add("sidecar", warn, detail+"; "+s.Drain.Words, "evosctl resume ends that")
	case s.SetAside > 0:
		d.add("sidecar", warn, fmt.Sprintf("%s; it has set aside %d of users' jobs, whose handling ended it", detail, s.SetAside),
			"evosqueue says which; report the fault with its log; the next version tries them again")
	case s.ClockLead != 0:
		d.add("sidecar", warn, fmt.Sprintf("%s; slurmctld's clock is %+.0f s from that of its host, and it goes by slurmctld's", detail, s.ClockLead), clockRemedy)
	case s.Spaced() != "":
		d.add("sidecar", warn, fmt.Sprintf("%s; %s", detail, s.Spaced()), "raise slurm.share, or find out what makes slurmctld slow (sdiag); the row \"rate limit\" tells if it limits requests")
	case s.PollPause > d.cfg.PollInterval.Seconds():
		d.add("sidecar", ok, fmt.Sprintf("%s; it polls every %.2g s to take at most %v of slurmctld's time (slurm.share) or keep to its rate limit", detail, s.PollPause, d.cfg.Slurm.Share), "")
	default:
		d.add("sidecar", ok, detail, "")
	}
}

// staleStandby is how long the sidecar on another host may be silent, and staleCopy how old its copy of the database may be.
const (
	staleStandby = 30 * time.Second
	staleCopy    = 10 * time.Minute
)

// second checks the sidecar on a second host.
func (d *doctor) second(s api.Status, takeover time.Duration) {
	const remedy = "see the log of evoslurmd on the other host; it needs the same configuration, and to reach this one by api"
	switch l := s.Lease; {
	case l == nil && takeover == 0:
	case l == nil:
		d.add("second host", fail, "takeover is set here, and the sidecar acts without a lease", "set takeover on the sidecar's host, too, and restart it")
	case l.Standby == nil || time.Since(l.Standby.Seen) > staleStandby:
		d.add("second host", warn, fmt.Sprintf("the sidecar on %s acts since %s (%s), and none follows it", l.Host, l.Since.Local().Format(time.DateTime), l.Name), remedy)
	case time.Since(l.Standby.Copied) > staleCopy:
		d.add("second host", warn, fmt.Sprintf("the sidecar on %s follows that on %s, but has no recent copy of the database", l.Standby.Host, l.Host), remedy)
	case l.Standby.Version != s.Version:
		d.add("second host", warn, fmt.Sprintf("the sidecar on %s has version %s, that on %s has %s", l.Standby.Host, l.Standby.Version, l.Host, s.Version),
			"upgrade both: a database of a later release cannot be taken over")
	default:
		d.add("second host", ok, fmt.Sprintf("the sidecar on %s acts since %s (%s); that on %s follows it", l.Host, l.Since.Local().Format(time.DateTime), l.Name, l.Standby.Host), "")
	}
}

// certificate checks when a certificate expires, which has this key in the configuration.
func (d *doctor) certificate(whose string, expires *time.Time, key string) {
	switch {
	case expires == nil:
	case !time.Now().Before(*expires):
		d.add("certificate", fail, whose+" expired on "+expires.UTC().Format(time.DateOnly), "renew it ("+key+"); the new file counts at once")
	case time.Until(*expires) < certs.Soon:
		d.add("certificate", warn, whose+" expires on "+expires.UTC().Format(time.DateOnly), "renew it ("+key+"); the new file counts at once")
	default:
		d.add("certificate", ok, whose+" expires on "+expires.UTC().Format(time.DateOnly), "")
	}
}

// priorities reports by which priority evolving jobs are planned.
func (d *doctor) priorities(sc slurmctl.Config) {
	detail := "Slurm's own (" + sc.Values["PriorityType"] + ")"
	switch a := sc.Ageing(); {
	case a.Always:
		detail += ", which count age from submission on (ACCRUE_ALWAYS)"
	case a.Weight > 0:
		detail += fmt.Sprintf(", and age from submission on, up to %s at %s, which Slurm does not count for parked jobs",
			sc.Values["PriorityWeightAge"], sc.Values["PriorityMaxAge"])
	}
	d.add("priorities", ok, detail, "")
}
