package submit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	placement "github.com/evoslurm/evoslurm/adapter/job/place"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Site is one of several clusters that a job may be submitted to, with what its Evoslurm allows. The fields are those of
// Command.
type Site struct {
	Name       string
	Own        bool // this machine belongs to it
	Cluster    Cluster
	Defaults   request.Request
	Partitions []string
	MaxGrace   time.Duration
	BestEffort config.BestEffort
	MayPrefer  func(planner.Aim) error
	MayEvolve  func(ctx context.Context, job config.Names) (unchecked []string, err error)
	Refuses    func(ctx context.Context) error
	Note       func(ctx context.Context) string

	// Place asks the cluster's sidecar where the job would run, for Wait at most.
	Place func(ctx context.Context, q api.PlacementQuery) (api.Placement, error)
	Wait  time.Duration

	Mounts  []string // folders that the cluster's nodes see as this host does
	StageIn string   // command that fetches input files to the cluster; "": none does
}

// environ returns the environment for a submission to the cluster. Variables that configure commands here
// would have a job elsewhere ask this cluster's sidecar.
func (s Site) environ(all []string) []string {
	if s.Own {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(entry string) bool { return strings.HasPrefix(entry, "EVOSLURM_") })
}

// note tells what the user should know of the cluster's sidecar before a submission.
func (s Site) note(ctx context.Context, to io.Writer) {
	if s.Note == nil {
		return
	}
	if text := s.Note(ctx); text != "" {
		fmt.Fprintf(to, "evosbatch: cluster %s: %s\n", s.Name, text)
	}
}

// bid holds the answer of a cluster.
type bid struct {
	site  Site
	here  site
	job   submission
	asked api.PlacementQuery
	place api.Placement
	err   error // why the cluster does not count
	said  io.Writer
}

// placed submits a job that may go to several clusters, or whose files must get to one, or a campaign, and reports whether this is
// one of them.
func (c *Command) placed(ctx context.Context, program sbatch, src sources, tasks *bagCall) (status int, placed bool, err error) {
	inputs, err := src.inputs()
	if err != nil {
		return 0, true, err
	}
	names := src.options.elsewhere(len(inputs) > 0)
	if c.Sites == nil || src.options.has("rigid") {
		names = nil
	}
	switch {
	case names != nil && src.isCampaign(tasks) && len(inputs) > 0:
		err = errors.New("--stage-in: the tasks of a best-effort job get no input files: let each task fetch its own")
	case names != nil && src.isCampaign(tasks):
		status, err = c.campaign(ctx, program, src, *tasks, names)
	case tasks.collects():
		err = errCollect
	case names == nil:
		return 0, false, nil
	default:
		status, err = c.among(ctx, program, src, names, inputs)
	}
	return status, true, err
}

// among submits a job to the best of the clusters that --clusters names, and returns sbatch's exit status. Each cluster's
// sidecar is asked for a place, all at once. The answers bind for some seconds; those that are not taken are given back.
func (c *Command) among(ctx context.Context, program sbatch, src sources, names, inputs []string) (int, error) {
	policy, err := placement.ParsePolicy(cmp.Or(src.options.value("placement"), string(placement.Earliest)))
	if err != nil {
		return 0, fmt.Errorf("--placement: %w", err)
	}
	if policy == placement.CloseToFiles && len(inputs) == 0 {
		return 0, fmt.Errorf("--placement=%s: which files? give --stage-in=FILE[,FILE…]", policy)
	}
	sites, err := c.Sites(ctx, names)
	if err != nil {
		return 0, err
	}
	files, rates, err := c.located(ctx, inputs)
	if err != nil {
		return 0, err
	}
	bids := make([]*bid, len(sites))
	var asked sync.WaitGroup
	for i, s := range sites {
		bids[i] = &bid{site: s, said: io.Discard}
		if i == 0 { // once is enough
			bids[i].said = c.Stderr
		}
		asked.Go(func() {
			one := src
			if one.staging, bids[i].err = s.staging(files, rates); bids[i].err == nil {
				bids[i].ask(ctx, c, one)
			}
		})
	}
	asked.Wait()
	order, why := ranked(policy, bids)
	c.showBids(bids, len(files) > 0, why)
	switch {
	case len(order) == 0 && policy.Splits():
		return 0, errors.New("no cluster takes the whole job, and components on several clusters are not supported: nothing was submitted")
	case len(order) == 0:
		return 0, errors.New("no cluster takes the job: nothing was submitted")
	}
	if order[0].job.options.has("dry-run") {
		giveBack(ctx, bids, nil)
		best := order[0]
		program.environ = withVariables(c.Environ, best.job.variables())
		if line := best.job.staging.line(); line != "" {
			fmt.Fprintf(c.Stderr, "evosbatch: before the script: %s\n", line)
		}
		return 0, sender{sbatch: program, site: best.here}.dryRun(best.job)
	}
	return c.sendToFirst(ctx, program, bids, order)
}

// prepare makes the job for the cluster, as far as it is feasible there.
func (b *bid) prepare(ctx context.Context, c *Command, src sources) {
	s := b.site
	b.here = site{cluster: s.Cluster, partitions: s.Partitions, maxGrace: s.MaxGrace, bestEffort: s.BestEffort, mayPrefer: s.MayPrefer, mayEvolve: s.MayEvolve, stderr: io.Discard}
	src.options.target = s.Name
	if b.job, b.err = c.submission(src, s.Defaults, b.said); b.err != nil {
		return
	}
	if b.err = s.Refuses(ctx); b.err != nil {
		return
	}
	b.job, b.err = b.here.feasible(ctx, b.job)
}

// ask prepares the job for the cluster, and asks for a place.
func (b *bid) ask(ctx context.Context, c *Command, src sources) {
	s := b.site
	if b.prepare(ctx, c, src); b.err != nil {
		return
	}
	b.asked = b.job.question()
	ctx, cancel := context.WithTimeout(ctx, s.Wait)
	defer cancel()
	b.place, b.err = s.Place(ctx, b.asked)
	switch {
	case b.err != nil && ctx.Err() != nil:
		b.err = fmt.Errorf("its sidecar does not answer within %v", s.Wait)
	case b.err == nil && b.place.Unfit != "":
		b.err = errors.New(b.place.Unfit)
	case b.err == nil && b.place.Start.IsZero():
		b.err = errors.New("its sidecar has no plan for the job")
	}
}

// question returns what a sidecar is asked about the job.
func (r submission) question() api.PlacementQuery {
	text, _ := r.request.Marker()
	q := api.PlacementQuery{ID: rand.Text(), Request: text, Name: r.options.value("job-name"), Partition: r.options.value("partition"), Account: r.options.value("account"),
		QOS: r.options.value("qos"), Constraint: r.options.value("constraint"), Exclude: r.options.value("exclude"), Reservation: r.options.value("reservation"),
		Licenses: r.options.value("licenses"), Minutes: r.wholeLimit(r.request.Profile)}
	if len(r.gres.perNode) > 0 {
		q.GRES = slurmctl.JoinGRES(r.gres.perNode)
	}
	if r.request.Drive.Means().StepsAreJobs {
		q.Minutes = 0
		for i := range r.request.Profile {
			q.Minutes = max(q.Minutes, r.linkLimit(r.request.Profile, i))
		}
	}
	return q
}

// ranked returns the clusters that take the job, best first, and why the first one is best.
func ranked(policy placement.Policy, bids []*bid) (order []*bid, why string) {
	var offers []placement.Offer
	var from []*bid
	for _, b := range bids {
		if b.err != nil {
			continue
		}
		p := b.place
		transfer := b.job.staging.seconds
		offers = append(offers, placement.Offer{Cluster: b.site.Name, Start: max(int64(p.Start.Sub(p.Now)/time.Second), 0) + transfer, Transfer: transfer, End: max(int64(p.End.Sub(p.Now)/time.Second), 0),
			Need: b.job.request.Profile[0].Nodes, Free: p.Free, Nodes: p.Nodes})
		from = append(from, b)
	}
	if len(offers) == 0 {
		return nil, ""
	}
	places, why, err := placement.Choose(policy, offers)
	if err != nil { // an answer makes no sense: the clusters are taken as they were named
		return from, err.Error()
	}
	for _, i := range places {
		order = append(order, from[i])
	}
	return order, why
}

// showBids shows what the clusters answered, with the time of the transfers if the job has input files.
func (c *Command) showBids(bids []*bid, files bool, why string) {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	column := func(text string) string {
		if files {
			return text + "\t"
		}
		return ""
	}
	fmt.Fprintln(w, "CLUSTER\tSTARTS IN\t"+column("TRANSFER")+"DONE IN\tFREE\tNOTE")
	for _, one := range bids {
		p := one.place
		if one.err != nil {
			fmt.Fprintf(w, "%s\t-\t%s-\t-\t%s\n", one.site.Name, column("-"), legible.Printable(oneLine(one.err.Error()), false))
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s%s\t%d/%d\t%s\n", one.site.Name, ahead(p.Start.Sub(p.Now)), column(planner.FormatDuration(one.job.staging.seconds)), ahead(p.End.Sub(p.Now)), p.Free, p.Nodes, legible.Printable(oneLine(p.Waits), false))
	}
	_ = w.Flush()
	for line := range strings.Lines(b.String()) {
		fmt.Fprintln(c.Stderr, strings.TrimRight(line, " \n"))
	}
	if why != "" {
		fmt.Fprintf(c.Stderr, "evosbatch: %s\n", why)
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// ahead returns how far ahead a time is.
func ahead(d time.Duration) string {
	return planner.FormatDuration(max(int64(d.Round(time.Second)/time.Second), 0))
}

// giveBack gives back the places that were offered, except for one cluster's. A sidecar that does not answer keeps them for a few
// seconds.
func giveBack(ctx context.Context, bids []*bid, except *bid) {
	var all sync.WaitGroup
	for _, b := range bids {
		if b == except || b.asked.ID == "" {
			continue
		}
		all.Go(func() {
			limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.site.Wait)
			defer cancel()
			_, _ = b.site.Place(limited, api.PlacementQuery{ID: b.asked.ID, Withdraw: true})
		})
	}
	all.Wait()
}

// unreached lists what sbatch prints if it could not reach the cluster, so that it has submitted nothing: slurmdbd says that the
// cluster is away, or nobody listens. After any other error, the job may be there.
var unreached = [][]byte{[]byte("can't be reached now"), []byte("Unable to contact slurm controller (connect failure)")}

// sendToFirst submits the job to the first cluster that can be reached, and to no second one if it may be there already.
func (c *Command) sendToFirst(ctx context.Context, program sbatch, bids, order []*bid) (int, error) {
	for i, b := range order {
		giveBack(ctx, bids, b)
		bids = slices.DeleteFunc(slices.Clone(bids), func(other *bid) bool { return other != b && !slices.Contains(order[i:], other) })
		b.site.note(ctx, c.Stderr)
		var said bytes.Buffer
		one := program
		one.environ, one.stderr = withVariables(b.site.environ(c.Environ), b.job.variables()), io.MultiWriter(program.stderr, &said)
		status, err := sender{sbatch: one, site: b.here}.send(ctx, b.job)
		away := slices.ContainsFunc(unreached, func(text []byte) bool { return bytes.Contains(said.Bytes(), text) })
		if status == 0 && err == nil || !away || i == len(order)-1 {
			return status, err
		}
		fmt.Fprintf(c.Stderr, "evosbatch: cluster %s is away, and has not got the job: cluster %s is next\n", b.site.Name, order[i+1].site.Name)
	}
	return 1, nil
}

// elsewhere returns the clusters that the job may go to, if it must be placed: any of them is not this one, or files must get there.
func (l layers) elsewhere(files bool) []string {
	o, given := l.last("clusters")
	if !given || l.ownCluster() && !files {
		return nil
	}
	return strings.Split(o.Value, ",")
}
