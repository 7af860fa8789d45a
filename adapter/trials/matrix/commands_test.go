package matrix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// manual drives a Slurm only by its commands, as the sidecar does.
type manual struct {
	*bench
	base, expander slurmctl.JobID
	allocations    int // so far
}

// holdFlags lists the flags of the sidecar's reservations for starts.
var holdFlags = []string{"IGNORE_JOBS", "OVERLAP", "NO_HOLD_JOBS_AFTER_END", "PURGE_COMP=5"}

func (m *manual) submit(ctx context.Context, args ...string) (slurmctl.JobID, error) {
	args = append([]string{"--parsable", "--output=/dev/null", "--chdir=/", "--exclusive", "--time=20"}, args...)
	if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--wrap") }) {
		args = append(args, "--wrap=exec sleep 3600")
	}
	out, err := m.on.sbatch(ctx, args)
	if err != nil {
		return 0, err
	}
	id, err := strconv.ParseUint(strings.TrimSpace(out), 10, 32)
	return slurmctl.JobID(id), err
}

// job returns the job as Slurm has it.
func (m *manual) job(ctx context.Context, id slurmctl.JobID) (slurmctl.Job, error) {
	jobs, err := m.on.JobsByID(ctx, id)
	if err == nil && len(jobs) != 1 {
		err = fmt.Errorf("job %d: %d records", id, len(jobs))
	}
	if err != nil {
		return slurmctl.Job{}, err
	}
	return jobs[0], nil
}

// is waits until the job runs on that many nodes.
func (m *manual) is(ctx context.Context, id slurmctl.JobID, nodes int) error {
	return m.on.until(ctx, func() error {
		j, err := m.job(ctx, id)
		if err == nil && (j.State != slurmctl.Running || len(j.NodeList) != nodes) {
			err = fmt.Errorf("job %d is %s with %d nodes, want RUNNING with %d (%s)", id, j.State, len(j.NodeList), nodes, j.Reason)
		}
		return err
	})
}

// allocate gets a running expander of the base job on these nodes.
func (m *manual) allocate(ctx context.Context, q slurmctl.AllocateRequest) (slurmctl.JobID, error) {
	m.allocations++
	q.User, q.Name, q.Exclusive = m.on.user(), fmt.Sprint("matrix_", m.allocations), true
	k, err := m.on.Allocate(ctx, q)
	return k.ID, err
}

func (m *manual) cancel(ctx context.Context, ids ...slurmctl.JobID) error {
	if err := m.on.Cancel(ctx, ids...); err != nil {
		return err
	}
	return m.clean(ctx)
}

func (b *bench) clean(ctx context.Context) error {
	return b.on.until(ctx, func() error { return b.on.leftovers(ctx) })
}

// byCommands returns the operations on Slurm that the sidecar is made of.
func (m *manual) byCommands() []operation {
	return []operation{
		{name: "look at jobs, nodes, reservations, configuration", try: m.look},
		{name: "hold nodes from a second on", try: m.hold},
		{name: "change a hold: start, end, nodes", try: m.changeHold},
		{name: "write a planned start", try: m.plannedStart},
		{name: "let a parked job go, in its hold", try: m.letGo},
		{name: "detach a running job from its hold", try: m.detach},
		{name: "expander in a hold", try: m.expand},
		{name: "merge", try: m.merge},
		{name: "shrink", try: func(ctx context.Context) error { return m.shrink(ctx, 4) }},
		{name: "shrink again", try: func(ctx context.Context) error { return m.shrink(ctx, 2) }},
		{name: "merge again", try: m.mergeAgain},
		{name: "shrink by NumNodes after a merge", quirk: true, try: m.shrinkByNumber},
		{name: "time limit up; end to the second", try: m.limits},
		{name: "read the batch script", try: m.script},
		{name: "step in a companion", try: m.companionStep},
		{name: "cancel leaves nothing", try: func(ctx context.Context) error { return m.cancel(ctx, m.base, m.expander) }},
		{name: "merge into an ended job does no harm", quirk: true, try: m.mergeIntoEnded},
	}
}

func (m *manual) look(ctx context.Context) error {
	name := "odd | näme\twith [1-3],\"quotes\""
	id, err := m.submit(ctx, "--begin=now+1day", "--array=1-5", "--job-name="+name, "--comment=evo:v1; 100%")
	if err != nil {
		return err
	}
	jobs, err := m.on.Jobs(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(jobs, func(j slurmctl.Job) bool { return j.ID == id })
	if at < 0 || jobs[at].Name != name || jobs[at].Comment != "evo:v1; 100%" || jobs[at].ArrayTasks != 5 {
		return fmt.Errorf("job %d is not shown as submitted: %+v", id, jobs)
	}
	nodes, partitions, err := m.on.Nodes(ctx)
	if err != nil {
		return err
	}
	if len(nodes) != 8 || len(partitions) != 1 || nodes[0].CPUs != 4 {
		return fmt.Errorf("8 nodes of 4 CPUs in one partition are shown as %+v %+v", nodes, partitions)
	}
	var meter slurmctl.Meter
	if _, err := m.on.Reservations(slurmctl.WithMeter(ctx, &meter)); err != nil {
		return err
	}
	if now := m.on.now(); now.Sub(meter.Clock()).Abs() > time.Minute {
		return fmt.Errorf("slurmctld's clock is read as %v, not %v", meter.Clock(), now)
	}
	cfg, err := m.on.Config(ctx)
	if err != nil {
		return err
	}
	if cfg.SelectType() != m.plugin {
		return fmt.Errorf("SelectType is read as %q", cfg.SelectType())
	}
	return m.cancel(ctx, id)
}

func (m *manual) reservation(ctx context.Context, name string) (slurmctl.Reservation, error) {
	all, err := m.on.Reservations(ctx)
	if err != nil {
		return slurmctl.Reservation{}, err
	}
	for _, r := range all {
		if r.Name == name {
			return r, nil
		}
	}
	return slurmctl.Reservation{}, fmt.Errorf("no reservation %s", name)
}

// holds returns a hold on nodes for the first user.
func (m *manual) holds(ctx context.Context, name string, start time.Time, nodes ...string) error {
	return m.on.CreateReservation(ctx, slurmctl.ReservationRequest{Name: name, Start: start,
		End: m.on.now().Add(10 * time.Minute), Nodes: nodes, Users: []string{m.on.user().Name}, Flags: holdFlags})
}

func (m *manual) hold(ctx context.Context) error {
	start := m.on.now().Add(100 * time.Second).Truncate(time.Second)
	if err := m.holds(ctx, "first", start, "n1", "n2", "n5"); err != nil {
		return err
	}
	r, err := m.reservation(ctx, "first")
	if err == nil && (!r.Start.Equal(start) || !slices.Equal(r.Nodes, []string{"n1", "n2", "n5"})) {
		err = fmt.Errorf("asked for n1, n2, n5 from %v, got %+v", start, r)
	}
	return err
}

func (m *manual) changeHold(ctx context.Context) error {
	end := m.on.now().Add(421 * time.Second).Truncate(time.Second)
	for _, u := range []slurmctl.ReservationUpdate{{Nodes: []string{"n1", "n2"}}, {End: end}, {StartNow: true}} {
		if err := m.on.UpdateReservation(ctx, "first", u); err != nil {
			return err
		}
	}
	r, err := m.reservation(ctx, "first")
	if err == nil && (r.Start.After(m.on.now()) || !r.End.Equal(end) || !slices.Equal(r.Nodes, []string{"n1", "n2"})) {
		err = fmt.Errorf("asked for n1, n2 from now to %v, got %+v", end, r)
	}
	return err
}

func (m *manual) plannedStart(ctx context.Context) (err error) {
	if m.base, err = m.submit(ctx, "--nodes=2", "--begin=now+3650days"); err != nil {
		return err
	}
	start := m.on.now().Add(333 * time.Second).Truncate(time.Second)
	if err := m.on.UpdateJob(ctx, m.base, slurmctl.JobUpdate{StartTime: start}); err != nil {
		return err
	}
	j, err := m.job(ctx, m.base)
	if err == nil && !j.StartTime.Equal(start) {
		err = fmt.Errorf("asked for a start at %v, squeue shows %v", start, j.StartTime)
	}
	return err
}

func (m *manual) letGo(ctx context.Context) error {
	name := "first"
	if err := m.on.UpdateJob(ctx, m.base, slurmctl.JobUpdate{StartNow: true, Reservation: &name}); err != nil {
		return err
	}
	if err := m.is(ctx, m.base, 2); err != nil {
		return err
	}
	j, err := m.job(ctx, m.base)
	if err == nil && !slices.Equal(j.NodeList, []string{"n1", "n2"}) {
		err = fmt.Errorf("it runs on %v, not in its hold", j.NodeList)
	}
	return err
}

func (m *manual) detach(ctx context.Context) error {
	none := ""
	if err := m.on.UpdateJob(ctx, m.base, slurmctl.JobUpdate{Reservation: &none}); err != nil {
		return err
	}
	if err := m.on.DeleteReservation(ctx, "first"); err != nil {
		return err
	}
	return m.is(ctx, m.base, 2)
}

func (m *manual) expand(ctx context.Context) (err error) {
	if err = m.holds(ctx, "growth", time.Time{}, "n4", "n5", "n8"); err != nil {
		return err
	}
	m.expander, err = m.allocate(ctx, slurmctl.AllocateRequest{Nodes: 3, NodeList: []string{"n4", "n5", "n8"},
		Reservation: "growth", ExpandJob: m.base})
	if err != nil {
		return err
	}
	return m.is(ctx, m.expander, 3)
}

func (m *manual) merge(ctx context.Context) error {
	if err := m.on.Merge(ctx, m.expander); err != nil {
		return err
	}
	if err := m.is(ctx, m.base, 5); err != nil {
		return err
	}
	return m.on.DeleteReservation(ctx, "growth")
}

// shrink leaves the base job its batch host and the last of its nodes.
func (m *manual) shrink(ctx context.Context, to int) error {
	j, err := m.job(ctx, m.base)
	if err != nil {
		return err
	}
	keep := append([]string{j.BatchHost}, j.NodeList[len(j.NodeList)-to+1:]...)
	if err := m.on.Shrink(ctx, m.base, keep); err != nil {
		return err
	}
	after, err := m.job(ctx, m.base)
	if err == nil && (len(after.NodeList) != to || !slices.Contains(after.NodeList, j.BatchHost)) {
		err = fmt.Errorf("it has %v after a shrink to %v", after.NodeList, keep)
	}
	return err
}

func (m *manual) mergeAgain(ctx context.Context) (err error) {
	m.expander, err = m.allocate(ctx, slurmctl.AllocateRequest{Nodes: 2, ExpandJob: m.base})
	if err != nil {
		return err
	}
	if err := m.on.Merge(ctx, m.expander); err != nil {
		return err
	}
	return m.is(ctx, m.base, 4)
}

func (m *manual) shrinkByNumber(ctx context.Context) error {
	if _, err := m.cluster.Run(ctx, m.root(), "scontrol", "update", fmt.Sprintf("JobId=%d", m.base), "NumNodes=3"); err != nil {
		return refusal(lastLine(err))
	}
	return m.is(ctx, m.base, 3)
}

func (m *manual) limits(ctx context.Context) error {
	if err := m.on.UpdateJob(ctx, m.base, slurmctl.JobUpdate{TimeLimit: 47 * time.Minute}); err != nil {
		return err
	}
	j, err := m.job(ctx, m.base)
	if err != nil {
		return err
	}
	if j.TimeLimit != 47*time.Minute {
		return fmt.Errorf("the time limit is %v, want 47m", j.TimeLimit)
	}
	end := m.on.now().Add(777 * time.Second).Truncate(time.Second)
	if err := m.on.UpdateJob(ctx, m.base, slurmctl.JobUpdate{EndTime: end}); err != nil {
		return err
	}
	if j, err = m.job(ctx, m.base); err == nil && !j.EndTime.Equal(end) {
		err = fmt.Errorf("the end is %v, want %v", j.EndTime, end)
	}
	return err
}

func (m *manual) script(ctx context.Context) error {
	text, err := m.on.BatchScript(ctx, m.base)
	if err == nil && !strings.Contains(text, "exec sleep 3600") {
		err = fmt.Errorf("the script is %q", text)
	}
	return err
}

// companionStep runs a step in a further allocation of the same user.
func (m *manual) companionStep(ctx context.Context) (err error) {
	if m.expander, err = m.allocate(ctx, slurmctl.AllocateRequest{Nodes: 2}); err != nil {
		return err
	}
	out, err := m.cluster.Run(ctx, m.cluster.Users()[0], "srun", fmt.Sprintf("--jobid=%d", m.expander), "--nodes=2", "--mpi=none",
		"sh", "-c", "echo $SLURMD_NODENAME")
	if err != nil {
		return refusal(lastLine(err))
	}
	j, err := m.job(ctx, m.expander)
	if err != nil {
		return err
	}
	nodes := strings.Fields(out)
	if slurmctl.SortNodes(nodes); !slices.Equal(nodes, j.NodeList) {
		err = fmt.Errorf("the step ran on %v, the companion has %v", nodes, j.NodeList)
	}
	return err
}

// mergeIntoEnded does what must be avoided, and tells what comes of it.
func (m *manual) mergeIntoEnded(ctx context.Context) (err error) {
	if m.base, err = m.submit(ctx, "--nodes=2"); err != nil {
		return err
	}
	if err := m.is(ctx, m.base, 2); err != nil {
		return err
	}
	if m.expander, err = m.allocate(ctx, slurmctl.AllocateRequest{Nodes: 3, ExpandJob: m.base}); err != nil {
		return err
	}
	if err := m.on.Cancel(ctx, m.base); err != nil {
		return err
	}
	if err := m.on.until(ctx, func() error {
		j, err := m.job(ctx, m.base)
		if err == nil && !j.Ended() {
			err = fmt.Errorf("job %d is %s", m.base, j.State)
		}
		return err
	}); err != nil {
		return err
	}
	merged := m.on.Merge(ctx, m.expander)
	if err := m.on.Cancel(ctx, m.expander); err != nil {
		return err
	}
	soon, cancel := m.on.within(ctx, 5*time.Second)
	defer cancel()
	leak := m.clean(soon)
	if leak == nil {
		return merged
	}
	text := "Slurm says yes"
	if merged != nil {
		_, text = judge(merged)
	}
	healed := "`scontrol reconfigure` heals it"
	if err := errors.Join(m.on.Reconfigure(ctx), m.clean(ctx)); err != nil {
		healed = "`scontrol reconfigure` does not heal it"
	}
	return fmt.Errorf("%s and nodes stay allocated without a job; %s", text, healed)
}
