package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"os/user"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/cmd/internal/complete"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/internal/version"
	"github.com/evoslurm/evoslurm/adapter/show/chart"
	"github.com/evoslurm/evoslurm/adapter/show/display"
	"github.com/evoslurm/evoslurm/slurmctl"
)

var linked string // the version, set by the linker

// longestIterate is the longest interval between two tables, in seconds: a year.
const longestIterate = 366 * 24 * 3600

// patience is how long the sidecar may be away.
const patience = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := execute(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "evosqueue: error: %v\n", err)
		os.Exit(1)
	}
}

func execute(ctx context.Context, words []string) error {
	cmd := newCommand()
	if len(words) == 0 || !strings.HasPrefix(words[0], "__complete") {
		var err error
		if words, err = canonical(cmd.Flags(), words); err != nil {
			return fmt.Errorf("%w\nTry \"evosqueue --help\" for more information", err)
		}
	}
	cmd.SetArgs(words)
	return cmd.ExecuteContext(ctx)
}

// options holds the command line's options.
type options struct {
	users, partitions, names, states, jobs   []string
	me, noHeader, long, gantt, ascii, hidden bool
	asSqueue
	iterate float64
	filter  filter
	query   *slurmctl.Queue // what squeue is to print; nil: a table or so of our own
	address string          // of the sidecar
	errs    io.Writer       // nil: standard error
	from    queue           // nil: squeue
}

// ownJSON is the value of --json for the sidecar's own list; slurmJSON is the default value.
const ownJSON, slurmJSON = "evoslurm", "slurm"

// jsonValue returns the value of squeue's --json: which of Slurm's data parsers, empty for its default.
func (o *options) jsonValue() string {
	if o.jsonAs == slurmJSON {
		return ""
	}
	return o.jsonAs
}

func newCommand() *cobra.Command { return newCommandOf(&options{}) }

func newCommandOf(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "evosqueue",
		Short: "Show evolving jobs",
		Long: `Show the evolving jobs that Evoslurm manages: their step, the next change and its time,
and the planned start and end.`,
		Example: `  evosqueue --me            my jobs
  evosqueue --gantt -i 2    a chart of all, drawn again every two seconds
  evosqueue -t all          ended ones, too
  evosqueue -o "%.10i %.9P %.8u %.2t %.8{step} %{next}"    squeue's fields and Evoslurm's
  evosqueue --json          squeue's JSON, with "evoslurm" in each job`,
		Args:          cobra.ArbitraryArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.usage {
				_, err := io.WriteString(cmd.OutOrStdout(), version.Usage(cmd))
				return err
			}
			if err := o.operands(args); err != nil {
				return err
			}
			o.environment(cmd.Flags().Changed, os.Getenv, func(name string) bool { _, is := os.LookupEnv(name); return is })
			if o.iterate == 0 && cmd.Flags().Changed("iterate") {
				return errors.New("--iterate=0")
			}
			if err := o.prepare(); err != nil {
				return err
			}
			o.tellUsers(exists)
			site, _, err := config.Load(cmd.Flags())
			if err != nil {
				return err
			}
			show, err := o.shown(cmd.Context(), site)
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), show, os.Stdout, display.Look(os.Stdout, os.Getenv))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringSliceVarP(&o.users, "user", "u", nil, "jobs of these users, by name or number")
	f.BoolVar(&o.me, "me", false, "your own jobs")
	f.StringSliceVarP(&o.jobs, "jobs", "j", nil, "jobs to show, ended or not: ID, or ARRAY_TASK")
	f.Lookup("jobs").NoOptDefVal = everything
	f.StringSliceVarP(&o.partitions, "partition", "p", nil, "jobs in these partitions")
	f.StringSliceVarP(&o.names, "name", "n", nil, "jobs with these names")
	f.StringSliceVarP(&o.states, "states", "t", nil, "jobs in these states: PD, CF, R, WT (step ended, waiting for the next step's nodes), S (suspended by Slurm), CD, CA, F, TO, … or all")
	f.BoolVarP(&o.hidden, "all", "a", false, "include jobs in hidden partitions, as in squeue (ended jobs: -t all)")
	f.BoolVarP(&o.long, "long", "l", false, "show more columns, the alternatives of moldable jobs, and the offers to malleable jobs with their answers")
	f.BoolVarP(&o.noHeader, "noheader", "h", false, "omit the headings")
	f.Float64VarP(&o.iterate, "iterate", "i", 0, "seconds between repeated outputs")
	f.BoolVar(&o.gantt, "gantt", false, "show a chart of the past and the plan")
	f.StringVar(&o.jsonAs, "json", "", "print Slurm's JSON with the sidecar's view of each job; evoslurm: only that view; other values: Slurm's data parsers")
	f.Lookup("json").NoOptDefVal = slurmJSON
	f.BoolVar(&o.ascii, "ascii", false, "plain ASCII (the default without a UTF-8 locale)")
	o.addFlags(f)
	config.AddFlag(f)
	f.Bool("help", false, "show this help")
	version.Flag(cmd, linked)
	completeFlags(cmd)
	return cmd
}

// completeFlags teaches shells the values of flags.
func completeFlags(cmd *cobra.Command) {
	var codes []cobra.Completion
	for _, s := range states {
		codes = append(codes, cobra.CompletionWithDesc(s.names[0], s.api))
	}
	for _, s := range ends {
		codes = append(codes, cobra.CompletionWithDesc(s.names[0], s.api))
	}
	if err := cmd.RegisterFlagCompletionFunc("states", cobra.FixedCompletions(append(codes, "all"), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag is named wrongly
	}
	if err := cmd.RegisterFlagCompletionFunc("json", cobra.FixedCompletions([]cobra.Completion{ownJSON}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
	complete.Flags(cmd, map[string]func(context.Context) []string{"partition": complete.Partitions, "account": complete.Accounts})
	complete.None(cmd, "user", "jobs", "name", "iterate", "qos", "nodelist", "licenses", "reservation", "format", "Format", "sort", "steps", "clusters")
}

// operands returns the IDs of jobs if --jobs, or otherwise --steps, has no joined value.
func (o *options) operands(words []string) error {
	list := &o.jobs
	if len(o.jobs) == 0 {
		list = &o.steps
	}
	if len(words) > 1 || len(words) == 1 && !slices.Equal(*list, []string{everything}) {
		return fmt.Errorf("unrecognized option: %s", words[len(words)-1])
	}
	if len(words) == 1 {
		*list = strings.Split(words[0], ",")
	}
	return nil
}

// prepare makes the filter of the options.
func (o *options) prepare() error {
	var ids []api.JobName
	var err error
	if !slices.Contains(o.jobs, everything) {
		if ids, err = jobIDs(o.jobs); err != nil {
			return err
		}
	}
	set, ended, err := stateSet(o.states)
	if err != nil {
		return err
	}
	if o.me {
		u, err := user.Current()
		if err != nil {
			return err
		}
		o.users = append(o.users, u.Uid)
	}
	if o.iterate != 0 && !(o.iterate >= 0.1 && o.iterate <= longestIterate) { // it may be no number
		return errors.New("--iterate needs at least 0.1 seconds, and at most a year")
	}
	nodes, err := slurmctl.ExpandNodes(strings.Join(o.nodes, ","))
	if err != nil {
		return fmt.Errorf("'%s' invalid entry for --nodelist: %w", strings.Join(o.nodes, ","), err)
	}
	if o.start && len(o.states) == 0 {
		set = []string{"queued"}
	}
	o.filter = filter{users: o.users, partitions: o.partitions, names: o.names, accounts: o.accounts, states: set, ids: ids, nodes: nodes, all: ended || len(ids) > 0}
	return o.check()
}

// exists reports whether the machine knows a user, by name or number.
func exists(name string) bool {
	_, err := user.Lookup(name)
	if err != nil {
		_, err = user.LookupId(name)
	}
	return err == nil
}

// tellUsers names users that do not exist, as squeue does, and continues. If squeue is run, it does
// so itself.
func (o *options) tellUsers(exists func(name string) bool) {
	if o.squeue() || o.asksSqueue() {
		return
	}
	for _, name := range o.users {
		if name != "" && !exists(name) {
			fmt.Fprintf(o.stderr(), "evosqueue: error: Invalid user: %s\n\n", legible.Printable(name, false))
		}
	}
}

// source is a source of jobs; *api.Client implements it.
type source interface {
	Jobs(ctx context.Context, all bool) ([]api.Job, error)  // with their plans
	Queue(ctx context.Context, all bool) ([]api.Job, error) // without
	Status(ctx context.Context) (api.Status, error)
	Cluster(ctx context.Context) (api.Cluster, error)
}

// squeue reports whether the output is squeue's, with our fields in it.
func (o *options) squeue() bool {
	return o.query != nil || o.yaml_ || o.jsonAs != "" && o.jsonAs != ownJSON
}

// needsPlans reports whether the output needs more than a line of the table.
func (o *options) needsPlans() bool {
	return o.gantt || o.squeue() || o.jsonAs == ownJSON || len(o.filter.nodes) > 0
}

// viewer writes the jobs as they are now.
type viewer func(ctx context.Context, now time.Time, t display.Terminal) (string, error)

// run shows the jobs once, or again and again until ctx is done.
func (o *options) run(ctx context.Context, show viewer, out io.Writer, t display.Terminal) error {
	for {
		text, err := show(ctx, time.Now(), t)
		if ctx.Err() != nil && o.iterate > 0 {
			return nil
		}
		if err != nil && o.iterate == 0 {
			_, _ = io.WriteString(out, text)
			return err
		}
		if err != nil {
			text += fmt.Sprintf("evosqueue: error: %v\n", err)
		}
		switch {
		case o.iterate > 0 && o.gantt && t.TTY:
			text = redraw(text)
		case o.iterate > 0 && o.jsonAs == "" && !o.yaml_ && !o.gantt && !o.noHeader:
			text = time.Now().Format(time.ANSIC) + "\n" + text + "\n"
		}
		if _, err := io.WriteString(out, text); err != nil || o.iterate == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(o.iterate * float64(time.Second))):
		}
	}
}

// view asks for the jobs and writes them as the options say.
func (o *options) view(ctx context.Context, from source, now time.Time, t display.Terminal) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	list := from.Queue
	if o.needsPlans() {
		list = from.Jobs
	}
	jobs, err := list(ctx, o.filter.all || o.squeue())
	if err != nil {
		return "", silent(ctx, o.address, err)
	}
	if err := cmp.Or(o.filter.known(jobs), o.nodesKnown(ctx, from, jobs)); err != nil {
		return "", err
	}
	switch {
	case o.query != nil:
		return o.lines(ctx, o.slurm(), jobs, now, t.ASCII || o.ascii, t.TTY)
	case o.squeue():
		return o.document(ctx, o.slurm(), jobs)
	}
	jobs = o.filter.apply(jobs)
	if o.asksSqueue() {
		if jobs, err = o.pick(ctx, o.slurm(), jobs); err != nil {
			return "", err
		}
	}
	switch {
	case o.jsonAs == ownJSON:
		text, err := json.MarshalIndent(jobs, "", "  ")
		return string(text) + "\n", err
	case o.gantt:
		status, err := from.Status(ctx)
		if err != nil {
			return "", silent(ctx, o.address, err)
		}
		cluster, err := from.Cluster(ctx)
		if err != nil && !errors.Is(err, api.ErrNotFound) && !errors.Is(err, api.ErrUnavailable) { // an older sidecar, or a young one
			return "", silent(ctx, o.address, err)
		}
		opts := chart.Options{Width: t.Width, Color: t.Color, ASCII: t.ASCII || o.ascii, Nodes: status.Nodes, Others: chart.Others(cluster.Others, now)}
		if t.TTY && o.iterate > 0 {
			opts.Height = t.Height - 1
		}
		return chart.Render(jobs, now, opts), nil
	}
	columns := shortColumns
	if o.long {
		columns = longColumns
	}
	text := table(display.Fold(jobs, o.array), now, columns, !o.noHeader, t.ASCII || o.ascii)
	if o.long {
		text += alternatives(jobs, now, t.ASCII || o.ascii) + agreements(jobs, now, t.ASCII || o.ascii)
	}
	if o.noHeader {
		return text, nil
	}
	status, err := from.Status(ctx)
	if err != nil {
		return "", silent(ctx, o.address, err)
	}
	if status.Drain != nil {
		text = "Evoslurm: " + status.Drain.Words + "\n\n" + text
	}
	return text + notes(status), nil
}

// notes returns what is unusual about the sidecar.
func notes(status api.Status) (text string) {
	if status.Mode == string(config.ModeObserve) {
		text += "\nObserving: Evoslurm changes nothing in Slurm, and drives no evolving jobs.\n"
	}
	if status.StrategyNote != "" {
		text += "\nStrategy " + status.Strategy + ": " + status.StrategyNote + "\n"
	}
	if status.PolicyNote != "" {
		text += "\nMalleability policy " + status.Policy + ": " + status.PolicyNote + "\n"
	}
	return text
}

// nodesKnown rejects names in --nodelist that neither the cluster nor a job has, as squeue does. If
// the nodes are unknown, it accepts all names.
func (o *options) nodesKnown(ctx context.Context, from source, jobs []api.Job) error {
	if len(o.filter.nodes) == 0 {
		return nil
	}
	cluster, err := from.Cluster(ctx)
	told := err == nil && len(cluster.Nodes) > 0
	for _, name := range o.filter.nodes {
		is := func(n api.Node) bool { return n.Name == name }
		if told && !slices.ContainsFunc(cluster.Nodes, is) && !slices.ContainsFunc(jobs, func(j api.Job) bool { return shares(j, []string{name}) }) {
			return fmt.Errorf("Invalid node name %s", name) //nolint:staticcheck // squeue's words
		}
	}
	return nil
}

// slurm returns the source of squeue's lines.
func (o *options) slurm() queue {
	if o.from != nil {
		return o.from
	}
	return newQueue()
}

// redraw puts a text over the one before it without a flicker: from the top, each
// line and then the screen cleared behind it.
func redraw(text string) string {
	return "\x1b[H" + strings.ReplaceAll(text, "\n", "\x1b[K\n") + "\x1b[J"
}

// silent says of a sidecar that does not answer what that means.
func silent(ctx context.Context, address string, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if errors.Is(err, api.ErrUnavailable) { // it has answered
		return fmt.Errorf("%w; squeue shows the jobs", err)
	}
	if network, ok := errors.AsType[*net.OpError](err); ok {
		err = network.Err
	}
	return fmt.Errorf("Evoslurm's sidecar at %s does not answer: %w\nEvolving jobs wait in Slurm until it (evoslurmd) is back; squeue shows them", address, err)
}
