package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/api/reach"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/strict"
	"github.com/evoslurm/evoslurm/adapter/internal/wholefile"
	"github.com/evoslurm/evoslurm/adapter/sidecar/claims"
	"github.com/evoslurm/evoslurm/adapter/sidecar/drive"
	"github.com/evoslurm/evoslurm/adapter/sidecar/release"
	"github.com/evoslurm/evoslurm/slurmctl"
)

const drainHelp = `Drain the sidecar: it adopts and holds nothing new. Queued evolving jobs stay parked, and evosqueue
says why. Running jobs go on as planned and get the growths that were promised to them, but no offers and
no changes that add nodes. This lasts until evosctl resume, also over restarts. Only operators may do this.

With --direct, the sidecar need not run: it will start drained. Run it as root on the sidecar's host.`

const resumeHelp = `End what evosctl drain or evosctl release-all began: the sidecar adopts, plans, and holds again. Jobs
that were let go stay ordinary jobs; held ones (--queued=hold) are evolving again, and start after scontrol
release. Only operators may do this.`

const releaseAllHelp = `Drain the sidecar and give up everything at once. All holds go. Every queued evolving job becomes an
ordinary one: --queued=start lets it start with the nodes of its first step (--as=peak: of its largest, if
Slurm lets its user have them; not links of chains), or at its own --begin; hold keeps it as scontrol hold does; cancel ends it.
Running jobs keep their nodes (--running=shrink: they give back what they have beyond their step, malleable
ones within their grace). Every evosctl next is answered at once and from then on: no more changes. Companions
stay until their jobs end. A job that was let go is never an evolving job again.

It prints a line for each thing, and waits for --timeout. What is left then is listed; the sidecar goes on
with that, also after a restart. So you can run it again, to see what is left. Only operators may do this.

With --direct, it finds everything in Slurm by itself, and needs no sidecar: run it as root, or as an operator of
Slurm, after systemctl stop evoslurmd, on both hosts if there are two sidecars (takeover). A companion of a job that ends
early then stays until its own time limit; run it once more to cancel those. --running=shrink needs the sidecar.

Exit status: 0 if nothing is left, else 1.`

// off holds the options of drain, resume, and release-all.
type off struct {
	d       config.Drained
	direct  bool
	force   bool
	dryRun  bool
	json    bool
	timeout time.Duration
}

func newDrain() *cobra.Command {
	o := &off{}
	cmd := &cobra.Command{Use: "drain", Short: "Adopt and hold nothing new (operators)", Long: drainHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.direct {
				return o.write(cmd)
			}
			return o.ask(cmd, func(ctx context.Context, c *api.Client) (any, string, error) {
				a, err := c.Drain(ctx, api.DrainRequest{})
				return a, a.Words, err
			})
		}}
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.direct, "direct", false, "let a sidecar that is down start drained")
	return cmd
}

func newResume() *cobra.Command {
	o := &off{}
	cmd := &cobra.Command{Use: "resume", Short: "End drain or release-all (operators)", Long: resumeHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.ask(cmd, func(ctx context.Context, c *api.Client) (any, string, error) {
				a, err := c.Resume(ctx)
				return a, "the sidecar is resumed", err
			})
		}}
	o.flags(cmd)
	return cmd
}

func newReleaseAll() *cobra.Command {
	o := &off{d: config.Drained{Release: true}}
	cmd := &cobra.Command{Use: "release-all", Short: "Give up all holds and let all jobs go as ordinary ones (operators)", Long: releaseAllHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			if o.direct {
				return o.releaseDirect(ctx, cmd)
			}
			return o.release(ctx, cmd)
		}}
	o.flags(cmd)
	f := cmd.Flags()
	oneOf(f, &o.d.Queued, "queued", config.ReleaseQueued, "what becomes of queued jobs")
	oneOf(f, &o.d.As, "as", config.ReleaseAs, "the step whose nodes queued jobs start with")
	oneOf(f, &o.d.Running, "running", config.ReleaseRunning, "whether running jobs keep all their nodes")
	f.BoolVar(&o.direct, "direct", false, "work without the sidecar, as root or an operator of Slurm")
	f.BoolVar(&o.force, "force", false, "with --direct: although a sidecar answers, or acts on another host")
	f.BoolVar(&o.dryRun, "dry-run", false, "only list what there is")
	return cmd
}

func (o *off) flags(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&o.timeout, "timeout", 30*time.Second, "longest time to wait")
	cmd.Flags().BoolVar(&o.json, "json", false, "write the result as JSON")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
}

// choice is a flag with one of some values.
type choice struct {
	value *string
	among []string
}

func (c choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

func (c choice) Set(text string) error {
	if !slices.Contains(c.among, text) {
		last := len(c.among) - 1
		return fmt.Errorf("want %s or %s", strings.Join(c.among[:last], ", "), c.among[last])
	}
	*c.value = text
	return nil
}

func (c choice) Type() string { return strings.Join(c.among, "|") }

func oneOf(f *pflag.FlagSet, to *string, name string, among []string, help string) {
	*to = among[0]
	f.Var(choice{to, among}, name, help)
}

// ask asks the sidecar, and prints the answer.
func (o *off) ask(cmd *cobra.Command, question func(context.Context, *api.Client) (any, string, error)) error {
	client, err := connect(cmd)
	if err != nil {
		return err
	}
	ctx, stop := untilSignalOr(cmd.Context(), o.timeout)
	defer stop()
	a, words, err := question(ctx, client)
	if err != nil {
		return err
	}
	if o.json {
		return printJSON(os.Stdout, a)
	}
	_, err = fmt.Println(words)
	return err
}

// released is the JSON of release-all.
type released struct {
	Things []release.Thing `json:"things"`         // all that there was
	Left   *api.Left       `json:"left,omitempty"` // what the sidecar still has to do
}

// print prints lines about things, or keeps them for the JSON.
func (o *off) print(t release.Thing) {
	if !o.json {
		fmt.Println(t)
	}
}

func (o *off) done(r released, failed bool) error {
	if r.Things == nil {
		r.Things = []release.Thing{}
	}
	if o.json {
		if err := printJSON(os.Stdout, r); err != nil {
			return err
		}
	} else if len(r.Things) == 0 {
		fmt.Println("nothing of Evoslurm's is in Slurm")
	}
	if o.dryRun {
		say("nothing was changed (--dry-run)")
	}
	if failed {
		return exitStatus(1)
	}
	return nil
}

// release has the sidecar release everything.
func (o *off) release(ctx context.Context, cmd *cobra.Command) error {
	client, err := connect(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	before, err := o.things(ctx, client)
	if err != nil {
		return err
	}
	if o.dryRun {
		for _, t := range before {
			o.print(t)
		}
		return o.done(released{Things: before}, false)
	}
	a, err := client.Drain(ctx, api.DrainRequest{Release: true, Queued: o.d.Queued, As: o.d.As, Running: o.d.Running})
	if err != nil {
		return err
	}
	for ; !a.Left.None() && ctx.Err() == nil; pause(ctx, 300*time.Millisecond) {
		s, err := client.Status(ctx)
		if err == nil && s.Drain == nil {
			return errors.New("another operator has resumed the sidecar meanwhile")
		}
		if err == nil {
			a = *s.Drain
		}
	}
	if !a.Left.None() {
		o.stillThere(cmd.Context(), client, before)
	}
	for _, t := range before {
		o.print(t)
	}
	if l := a.Left; !l.None() && !o.json {
		say("left: %d holds, %d queued and %d running jobs, %d waiting scripts; the sidecar goes on with them (evosqueue and its log say why; run this again)", l.Holds, l.Queued, l.Running, l.Calls)
	}
	return o.done(released{before, &a.Left}, !a.Left.None())
}

// stillThere notes which things are left, and why.
func (o *off) stillThere(ctx context.Context, client *api.Client, before []release.Thing) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	after, err := o.things(ctx, client)
	for i, t := range before {
		at := slices.IndexFunc(after, func(a release.Thing) bool { return a.Name == t.Name && a.Job == t.Job })
		switch {
		case err != nil:
			before[i].Error = err.Error()
		case at >= 0 && t.Kind == "hold":
			before[i].Error = "it is still there"
		case at >= 0:
			before[i].Error = after[at].Error
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// things lists what the sidecar has in Slurm.
func (o *off) things(ctx context.Context, client *api.Client) (all []release.Thing, err error) {
	jobs, err := atOnce(ctx, client, func(ctx context.Context) ([]api.Job, error) { return client.Queue(ctx, false) })
	if err != nil {
		return nil, err
	}
	cluster, err := client.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	queued := map[string]string{"start": "let go with the nodes of its " + map[string]string{"first": "first", "peak": "largest"}[o.d.As] + " step", "hold": "held", "cancel": "cancelled"}[o.d.Queued]
	for _, j := range jobs {
		t := release.Thing{Kind: "running", Job: j.ID, User: j.User, Nodes: j.NodeList, Does: "let go with its nodes"}
		if j.State == "queued" {
			t.Kind, t.Does = "queued", queued
		}
		if _, why, failed := strings.Cut(j.Reason, "it cannot be "); failed {
			t.Error = why
		}
		all = append(all, t)
	}
	for _, r := range cluster.Reservations {
		if r.Hold {
			all = append(all, release.Thing{Kind: "hold", Job: r.Job, Name: r.Name, Nodes: r.NodeList, Does: "given up"})
		}
	}
	return all, nil
}

// releaseDirect releases everything without the sidecar.
func (o *off) releaseDirect(ctx context.Context, cmd *cobra.Command) error {
	if o.d.Running == "shrink" {
		return errors.New("--running=shrink needs the sidecar, which knows the jobs' steps; with --direct, jobs keep their nodes")
	}
	cfg, _, err := config.Load(cmd.Flags())
	if err != nil {
		return err
	}
	if !o.dryRun {
		if err := o.noSidecar(ctx, cfg); err != nil {
			return err
		}
		if err := o.write(cmd); err != nil {
			say("%v", err)
		}
	}
	me, err := user.Current()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, max(o.timeout, 10*time.Minute))
	defer cancel()
	slurm := &slurmctl.Client{Dir: cfg.Slurm.Bin, Timeout: cfg.Slurm.Timeout}
	site, err := release.Look(ctx, slurm, me.Username, os.Geteuid() == 0)
	if err != nil {
		return fmt.Errorf("nothing is released: %w", err)
	}
	r, failed := released{Things: release.Find(site, o.d)}, 0
	d := drive.New(slurm, time.Now)
	did := func(t release.Thing) {
		if o.print(t); t.Error != "" {
			failed++
		}
	}
	if o.dryRun {
		for _, t := range r.Things {
			did(t)
		}
	} else {
		release.Do(ctx, d, r.Things, did)
	}
	if failed > 0 {
		say("%d are left; run this again", failed)
	}
	return o.done(r, failed > 0)
}

// noSidecar returns an error if a sidecar answers, or one on another host acts.
func (o *off) noSidecar(ctx context.Context, cfg config.Config) error {
	if o.force {
		return nil
	}
	client, err := reach.Client(cfg)
	if err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client.Waiting = func(string, error) { cancel() }
	if s, err := client.Status(asking); err == nil && s.Mode != string(config.ModeObserve) { // which changes nothing
		on, stop := "", "systemctl stop evoslurmd"
		if s.Lease != nil { // if one stops, the other goes on
			on, stop = " on "+s.Lease.Host, "on both hosts: "+stop
		}
		return fmt.Errorf("a sidecar%s answers: leave out --direct, or stop it first (%s); --force does it anyway", on, stop)
	}
	slurm := &slurmctl.Client{Dir: cfg.Slurm.Bin, Timeout: cfg.Slurm.Timeout}
	lease, err := claims.Acting(ctx, slurm, cfg.Takeover, func(name string, d time.Duration) {
		say("Slurm has the lease %s: looking for %v whether a sidecar on another host renews it (--force does not look)", name, d)
	})
	switch {
	case err != nil:
		return fmt.Errorf("nothing is released: %w", err)
	case lease != "":
		return fmt.Errorf("a sidecar on another host (api: %s) acts, though it does not answer here: it renews the lease %s in Slurm. "+
			"Stop it there (systemctl disable --now evoslurmd.socket evoslurmd), and run this again; "+
			"--force lets everything go at once, but that sidecar takes new jobs until it is stopped", cfg.API, lease)
	}
	return nil
}

// write says beside the sidecar's database that it must start drained.
func (o *off) write(cmd *cobra.Command) error {
	cfg, _, err := config.Load(cmd.Flags())
	if err != nil {
		return err
	}
	me, err := user.Current()
	if err != nil {
		return err
	}
	d := o.d
	d.By, d.At = me.Username, time.Now()
	file := config.DrainFile(cfg.Database) // everybody may read it: the sidecar may have another account than root
	if err := strict.AsOwner(filepath.Dir(file), func() error {
		return wholefile.Write(file, 0o644, func(w io.Writer) error { _, err := io.WriteString(w, string(d.Text())); return err })
	}); err != nil {
		return fmt.Errorf("a sidecar that starts will not be drained: %w; on its host, run systemctl disable --now evoslurmd", err)
	}
	if !d.Release {
		fmt.Println("the sidecar will start drained; evosctl resume ends that then")
	}
	return nil
}
