package submit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/internal/wholefile"
	"github.com/evoslurm/evoslurm/adapter/job/bag"
	"github.com/evoslurm/evoslurm/slurmctl"
)

const (
	campaignLook = 5 * time.Second // between two looks at how a campaign stands
	mostLook     = time.Minute
	memberLook   = 30 * time.Second // between two looks at a cluster's job
	mostCampaign = 100_000          // folders that may be there already
	jobsFolder   = "jobs"           // in a campaign's folder: the ID of each cluster's job
	interrupted  = 130
)

// campaign is a bag of tasks that best-effort jobs of several clusters work off, one of each.
type campaign struct {
	*Command
	sbatch  sbatch
	src     sources
	bag     bagCall
	dir     string
	members []*member
}

// member is the job of a cluster that takes part in a campaign.
type member struct {
	*bid
	id       slurmctl.JobID // 0: there is none
	why      string         // the cluster is left out; "": it is not
	failures int            // one after the other
	again    time.Time      // when it is tried again
	looked   time.Time
	ended    bool // its job had, when it was looked at last
	done     int  // tasks that the cluster had done when its job was submitted
}

var errCollect = errors.New("--collect is for a campaign: give --best-effort and --clusters=NAME,NAME|all, too")

// isCampaign reports whether the command line has a bag for best-effort jobs: a campaign, if it is for several clusters.
func (s sources) isCampaign(b *bagCall) bool {
	bestEffort := s.options.has("best-effort") || contains(s.options.own, "best-effort")
	return b != nil && bestEffort
}

// campaign submits one job to each cluster, and with --wait watches them until all tasks have ended.
func (c *Command) campaign(ctx context.Context, program sbatch, src sources, b bagCall, names []string) (int, error) {
	if src.options.has("placement") {
		return 0, errors.New("--placement is for one job: a campaign goes to all clusters")
	}
	sites, err := c.Sites(ctx, names)
	if err != nil {
		return 0, err
	}
	isWait := func(o getopt.Option) bool { return o.Name == "wait" }
	_, wait := src.options.last("wait")
	src.options.command, src.options.environment = slices.DeleteFunc(slices.Clone(src.options.command), isWait), slices.DeleteFunc(slices.Clone(src.options.environment), isWait)
	program.environ = slices.DeleteFunc(slices.Clone(program.environ), func(entry string) bool { return strings.HasPrefix(entry, "SBATCH_WAIT=") })
	k := &campaign{Command: c, sbatch: program, src: src, bag: b}
	for _, s := range sites {
		k.members = append(k.members, &member{bid: &bid{site: s}})
	}
	dry := src.options.has("dry-run")
	if err := k.open(dry); err != nil {
		return 0, err
	}
	if state, err := bag.Read(k.dir); err == nil && !dry { // it may be there already
		if s := state.Summary(time.Now()); isOver(s) {
			return k.ended(s), nil
		}
	}
	taken := 0
	for _, m := range k.members {
		if k.enter(ctx, m, dry); m.why == "" {
			taken++
		}
	}
	k.show()
	switch {
	case taken == 0:
		return 0, errors.New("no cluster takes a job of the campaign")
	case dry:
		return 0, nil
	}
	fmt.Fprintf(c.Stderr, "evosbatch: the campaign is in %s: evosctl tasks shows how it stands\n", k.dir)
	if !wait {
		return 0, nil
	}
	return k.watch(ctx)
}

// open makes the folder of the campaign, or finds the one of an earlier submission.
func (k *campaign) open(dry bool) (err error) {
	if k.dir = k.bag.dir; k.dir == "" {
		if k.dir, err = newFolder(dry); err != nil {
			return err
		}
	}
	if k.dir, err = filepath.Abs(k.dir); err != nil || dry {
		return err
	}
	if strings.Contains(k.dir, "%") {
		return fmt.Errorf("--bag=%s: a folder without %% in its name is needed", k.dir)
	}
	if err := bag.Create(k.dir, k.bag.tasks, k.bag.collect); err != nil {
		return fmt.Errorf("--bag: %w", err)
	}
	return os.MkdirAll(filepath.Join(k.dir, jobsFolder), 0o777) //nolint:gosec // the user's umask decides
}

// newFolder makes a folder for a campaign here, and returns its name.
func newFolder(dry bool) (string, error) {
	for i := 1; i < mostCampaign; i++ {
		name := "evocampaign-" + strconv.Itoa(i)
		_, err := os.Lstat(name)
		if err == nil {
			continue
		}
		if !dry {
			err = os.Mkdir(name, 0o777) //nolint:gosec // the user's umask decides
		}
		switch {
		case dry || err == nil:
			return name, nil
		case !errors.Is(err, os.ErrExist):
			return "", err
		}
	}
	return "", errors.New("there are too many campaigns in this folder: name another one with --bag")
}

// enter submits the cluster's job, unless it is there already. If the cluster takes none, it is left out for a while.
func (k *campaign) enter(ctx context.Context, m *member, dry bool) {
	if m.id == 0 {
		m.id = k.submitted(m.site.Name)
	}
	if m.id != 0 && !dry {
		if over, err := m.isOver(ctx); err != nil || !over {
			m.leftOut(err)
			return
		}
		m.id = 0
	}
	m.leftOut(k.submit(ctx, m, dry))
}

// isOver reports whether the cluster's job has ended.
func (m *member) isOver(ctx context.Context) (bool, error) {
	m.looked = time.Now()
	jobs, err := m.site.Cluster.Glance(ctx, m.id)
	if err != nil {
		return false, err
	}
	return len(jobs) == 0 || jobs[0].Ended(), nil
}

// leftOut leaves the cluster out because of an error, for longer each time, or takes it back.
func (m *member) leftOut(err error) {
	if m.why = ""; err != nil {
		m.why = oneLine(err.Error())
		m.failures++
		m.again = time.Now().Add(bag.OutFor(m.failures))
	}
}

// submitted returns the ID of the job that was submitted to a cluster last, or 0.
func (k *campaign) submitted(name string) slurmctl.JobID {
	text, err := os.ReadFile(filepath.Join(k.dir, jobsFolder, name))
	if err != nil {
		return 0
	}
	id, _ := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	return slurmctl.JobID(id)
}

var firstNumber = regexp.MustCompile(`\d+`)

// submit submits the cluster's job, or shows how it would.
func (k *campaign) submit(ctx context.Context, m *member, dry bool) error {
	src := k.src
	script := "exec evosrun --campaign --bag=" + quote(k.dir)
	for _, word := range k.bag.words {
		script += " " + quote(word)
	}
	set := map[string]string{"wrap": script}
	if _, given := src.options.last("output"); !given { // jobs of two clusters may have the same ID
		set["output"] = filepath.Join(strings.ReplaceAll(k.dir, "%", "%%"), "job-"+m.site.Name+"-%j.out")
	}
	src.options.command = slices.DeleteFunc(slices.Clone(src.options.command), func(o getopt.Option) bool { return o.Name == "wrap" })
	for _, name := range []string{"output", "wrap"} {
		if value, given := set[name]; given {
			src.options.command = append(src.options.command, getopt.Option{Name: name, Value: value, HasValue: true, Words: []string{"--" + name + "=" + value}})
		}
	}
	m.said = io.Discard
	if m == k.members[0] { // once is enough
		m.said = k.Stderr
	}
	if m.prepare(ctx, k.Command, src); m.err != nil {
		return m.err
	}
	one := k.sbatch
	one.environ = withVariables(m.site.environ(one.environ), m.job.variables())
	if dry {
		return sender{sbatch: one, site: m.here}.dryRun(m.job)
	}
	m.site.note(ctx, k.Stderr)
	var out, errs bytes.Buffer
	one.stdout, one.stderr = io.MultiWriter(k.Stdout, &out), &errs
	status, err := sender{sbatch: one, site: m.here}.send(ctx, m.job)
	if err == nil && status != 0 {
		err = fmt.Errorf("sbatch ended with status %d: %s", status, cmp.Or(oneLine(errs.String()), "it said nothing"))
	}
	if err != nil {
		return err
	}
	id, err := strconv.ParseUint(firstNumber.FindString(out.String()), 10, 32)
	if err != nil {
		return fmt.Errorf("sbatch printed %q, and no job ID", oneLine(out.String()))
	}
	m.id, m.looked = slurmctl.JobID(id), time.Now()
	return wholefile.Write(filepath.Join(k.dir, jobsFolder, m.site.Name), 0o666, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, m.id)
		return err
	})
}

// show tells which clusters take part.
func (k *campaign) show() {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLUSTER\tJOB\tNOTE")
	for _, m := range k.members {
		job, note := "-", ""
		if m.id != 0 {
			job = strconv.FormatUint(uint64(m.id), 10)
		}
		if m.why != "" {
			note = "left out: " + legible.Printable(m.why, false)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", m.site.Name, job, note)
	}
	_ = w.Flush()
	for line := range strings.Lines(b.String()) {
		fmt.Fprintln(k.Stderr, strings.TrimRight(line, " \n"))
	}
}

// watch waits until all tasks have ended. A cluster whose job ends before gets another one after a while.
func (k *campaign) watch(ctx context.Context) (int, error) {
	if k.Progress != nil {
		defer k.Progress(bag.Summary{})
	}
	for {
		begun := time.Now()
		state, err := bag.Read(k.dir)
		if err != nil {
			return 0, err
		}
		s := state.Summary(time.Now())
		if k.Progress != nil {
			k.Progress(s)
		}
		if isOver(s) {
			return k.ended(s), nil
		}
		took := time.Since(begun)
		for _, m := range k.members {
			k.tend(ctx, m, s)
		}
		select {
		case <-ctx.Done():
			fmt.Fprintf(k.Stderr, "evosbatch: the jobs go on: the same command with --bag=%s waits for them again\n", k.dir)
			return interrupted, nil
		case <-time.After(min(max(campaignLook, 5*took), mostLook)): // large campaigns are read less often
		}
	}
}

// isOver reports whether nothing is left to do.
func isOver(s bag.Summary) bool {
	return s.Waiting+s.Running == 0 && (s.Collected == "" || s.Collected == "done" || s.Collected == "failed")
}

// ended reports how the campaign has ended, and returns the exit status.
func (k *campaign) ended(s bag.Summary) int {
	fmt.Fprintf(k.Stderr, "evosbatch: %v\n", s)
	if s.Collected == "failed" {
		fmt.Fprintf(k.Stderr, "evosbatch: the command that collects has failed: see %s\n", filepath.Join(k.dir, "collect"))
		return 1
	}
	return min(s.Failed, 1)
}

// tend sees that a cluster takes part.
func (k *campaign) tend(ctx context.Context, m *member, s bag.Summary) {
	now := time.Now()
	if now.Before(m.again) || m.id != 0 && now.Sub(m.looked) < memberLook || ctx.Err() != nil {
		return
	}
	done := 0
	for _, c := range s.Clusters {
		if c.Name == m.site.Name {
			done = c.Done
		}
	}
	if done > m.done {
		m.failures, m.done = 0, done
	}
	was := m.why
	if m.id == 0 {
		m.leftOut(k.submit(ctx, m, false))
	} else {
		over, err := m.isOver(ctx)
		if err == nil && over {
			if !m.ended { // with the campaign, perhaps: the next look tells
				m.ended, m.looked = true, time.Time{}
				return
			}
			err = fmt.Errorf("job %d has ended before the campaign", m.id)
			m.id = 0
		}
		m.ended = false
		m.leftOut(err)
	}
	switch {
	case m.why == was:
	case m.why == "":
		fmt.Fprintf(k.Stderr, "evosbatch: cluster %s takes part again: job %d\n", m.site.Name, m.id)
	default:
		fmt.Fprintf(k.Stderr, "evosbatch: cluster %s is left out for %v: %s\n", m.site.Name, bag.OutFor(m.failures), legible.Printable(m.why, false))
	}
}
