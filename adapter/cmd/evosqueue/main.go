package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"os/user"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/chart"
	"github.com/evoslurm/evoslurm/adapter/config"
	"github.com/evoslurm/evoslurm/adapter/display"
	"github.com/evoslurm/evoslurm/adapter/version"
)

var linked string // the version, set by the linker

// patience is how long the sidecar may be away.
const patience = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "evosqueue: error: %v\n", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	users, partitions, names, states, jobs []string
	me, noHeader, long, json, gantt, ascii bool
	iterate                                float64
	filter                                 filter
	address                                string // of the sidecar
}

func newCommand() *cobra.Command { return newCommandOf(&options{}) }

func newCommandOf(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "evosqueue",
		Short: "Show evolving jobs",
		Long: `Shows the evolving jobs that Evoslurm has in its care: where they are in their
profiles, what changes next and when, the planned start and end.`,
		Example: `  evosqueue --me            my jobs
  evosqueue --gantt -i 2    a chart of all, drawn again every two seconds
  evosqueue -a --json       all, ended ones too, for programs`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.prepare(); err != nil {
				return err
			}
			site, _, err := config.Load(cmd.Flags())
			if err != nil {
				return err
			}
			client, err := api.NewClient(site.API, api.Munge{Socket: site.Munge.Socket})
			if err != nil {
				return err
			}
			o.address = site.API
			return o.run(cmd.Context(), client, os.Stdout, display.Look(os.Stdout, os.Getenv))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringSliceVarP(&o.users, "user", "u", nil, "jobs of these users, by name or number")
	f.BoolVar(&o.me, "me", false, "my jobs")
	f.StringSliceVarP(&o.jobs, "jobs", "j", nil, "these jobs")
	f.StringSliceVarP(&o.partitions, "partition", "p", nil, "jobs of these partitions")
	f.StringSliceVarP(&o.names, "name", "n", nil, "jobs of these names")
	f.StringSliceVarP(&o.states, "states", "t", nil, "jobs in these states: PD, CF, R, WT (the step has ended, the next one's nodes are to come), S (suspended by Slurm), CD, CA, F, TO, … or all")
	f.BoolVarP(&o.filter.all, "all", "a", false, "ended jobs too")
	f.BoolVarP(&o.long, "long", "l", false, "more columns, and what the alternatives of moldable jobs would give")
	f.BoolVarP(&o.noHeader, "noheader", "h", false, "no headings")
	f.Float64VarP(&o.iterate, "iterate", "i", 0, "show again every so many seconds")
	f.BoolVar(&o.gantt, "gantt", false, "a chart of past and plan")
	f.BoolVar(&o.json, "json", false, "JSON, as the API has it")
	f.BoolVar(&o.ascii, "ascii", false, "plain ASCII (the default without a UTF-8 locale)")
	config.AddFlag(f)
	f.Bool("help", false, "show this help")
	version.Flag(cmd, linked)
	cmd.MarkFlagsMutuallyExclusive("json", "gantt", "long")
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
	for _, name := range []string{"user", "jobs", "partition", "name", "iterate"} {
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions); err != nil {
			panic(err)
		}
	}
}

// prepare makes the filter of the options.
func (o *options) prepare() error {
	ids, err := jobIDs(o.jobs)
	if err != nil {
		return err
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
	if o.iterate < 0 || o.iterate > 0 && o.iterate < 0.1 {
		return errors.New("--iterate needs at least 0.1 seconds")
	}
	all := o.filter.all || ended || len(ids) > 0
	o.filter = filter{users: o.users, partitions: o.partitions, names: o.names, states: set, ids: ids, all: all}
	return nil
}

// source is where jobs come from; *api.Client is one.
type source interface {
	Jobs(ctx context.Context, all bool) ([]api.Job, error)
	Status(ctx context.Context) (api.Status, error)
}

// run shows the jobs once, or again and again until ctx is done.
func (o *options) run(ctx context.Context, from source, out io.Writer, t display.Terminal) error {
	for {
		text, err := o.view(ctx, from, time.Now(), t)
		if ctx.Err() != nil && o.iterate > 0 {
			return nil
		}
		if err != nil && o.iterate == 0 {
			return err
		}
		if err != nil {
			text = fmt.Sprintf("evosqueue: error: %v\n", err)
		}
		switch {
		case o.iterate > 0 && o.gantt && t.TTY:
			text = redraw(text)
		case o.iterate > 0 && !o.json && !o.gantt:
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
	jobs, err := from.Jobs(ctx, o.filter.all)
	if err != nil {
		return "", silent(ctx, o.address, err)
	}
	if err := o.filter.known(jobs); err != nil {
		return "", err
	}
	jobs = o.filter.apply(jobs)
	switch {
	case o.json:
		text, err := json.MarshalIndent(jobs, "", "  ")
		return string(text) + "\n", err
	case o.gantt:
		status, err := from.Status(ctx)
		if err != nil {
			return "", silent(ctx, o.address, err)
		}
		opts := chart.Options{Width: t.Width, Color: t.Color, ASCII: t.ASCII || o.ascii, Nodes: status.Nodes}
		if t.TTY && o.iterate > 0 {
			opts.Height = t.Height - 1
		}
		return chart.Render(jobs, now, opts), nil
	}
	columns := shortColumns
	if o.long {
		columns = longColumns
	}
	text := table(jobs, now, columns, !o.noHeader, t.ASCII || o.ascii)
	if o.long {
		text += alternatives(jobs, now, t.ASCII || o.ascii)
	}
	if o.noHeader {
		return text, nil
	}
	status, err := from.Status(ctx)
	if err != nil {
		return "", silent(ctx, o.address, err)
	}
	if status.StrategyNote != "" {
		text += "\nStrategy " + status.Strategy + ": " + status.StrategyNote + "\n"
	}
	return text, nil
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
	var network *net.OpError
	if errors.As(err, &network) {
		err = network.Err
	}
	return fmt.Errorf("Evoslurm's sidecar at %s does not answer: %w\nEvolving jobs wait in Slurm until it (evoslurmd) is back; squeue shows them", address, err)
}
