package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/adapter/job/bag"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
)

// Command is one run of evosbatch.
type Command struct {
	Args       []string // without the program's name
	Environ    []string
	Stdin      *os.File
	Stdout     io.Writer
	Stderr     io.Writer
	Sbatch     string            // the program to run: a path, or a name to look for in PATH
	Cluster    Cluster           // nil: sizes are not checked
	Defaults   request.Request   // the site's, for jobs that set none
	Partitions []string          // partitions that the site's Evoslurm drives; empty for all
	MaxGrace   time.Duration     // for which a malleable job may ask; 0: any
	BestEffort config.BestEffort // how the site runs best-effort jobs
	// MayPrefer returns an error if the site does not allow what a job wants of its own placement. nil: it allows all.
	MayPrefer func(planner.Aim) error
	// MayEvolve returns why the site keeps a job with these names from evolving, or nil, and which kinds of names it
	// would also compare. nil: every job may.
	MayEvolve func(ctx context.Context, job config.Names) (unchecked []string, err error)
	// Note returns what the user of a job that is about to be submitted should know, or "". nil: nothing.
	Note func(ctx context.Context) string
	// LastRuns returns the profile that would have fitted the user's last runs of the job with that
	// name, and which runs those were.
	LastRuns func(ctx context.Context, name string) (profile, what string, err error)

	// Sites returns the clusters that --clusters names, or why it cannot. nil: there is only this one.
	Sites func(ctx context.Context, names []string) ([]Site, error)
	// Clusters says where input files are, and how fast they get to other clusters.
	Clusters config.Clusters

	// Progress shows how a campaign stands that --wait waits for; the zero value once that is over. nil: nothing is shown.
	Progress func(bag.Summary)

	// Refuses returns why this cluster drives no evolving jobs now, or nil.
	Refuses func(ctx context.Context) error

	Help    func() // shows evosbatch's own help
	Usage   func()
	Version func()
	// Exec replaces this process by another program.
	Exec func(path string, argv, environ []string, stdin *os.File) error
}

// Run submits the job and returns the exit status: sbatch's, or if nothing was submitted, sbatch's
// for errors, 1 or $SLURM_EXIT_ERROR. On a cluster without plugins, a successful submission does
// not return if Exec works.
func (c *Command) Run(ctx context.Context) int {
	status, err := c.run(ctx)
	if err == nil {
		return status
	}
	fmt.Fprintf(c.Stderr, "evosbatch: error: %v\n", err)
	if bad, ok := errors.AsType[*planner.ParseError](err); ok {
		if pointer := bad.Pointer(); pointer != "" {
			fmt.Fprintln(c.Stderr, pointer)
		}
	}
	if n, err := strconv.Atoi(valuesOf(c.Environ)["SLURM_EXIT_ERROR"]); err == nil && n != 0 {
		return n
	}
	return 1
}

// run takes the words of the command line through the stages of a submission.
func (c *Command) run(ctx context.Context) (int, error) {
	program := sbatch{path: c.Sbatch, environ: c.Environ, stdin: c.Stdin, stdout: c.Stdout, stderr: c.Stderr, exec: c.Exec}
	here := site{cluster: c.Cluster, partitions: c.Partitions, maxGrace: c.MaxGrace, bestEffort: c.BestEffort, mayPrefer: c.MayPrefer, mayEvolve: c.MayEvolve, stderr: c.Stderr}
	in := reader{environ: c.Environ, stdin: c.Stdin, stderr: c.Stderr, lastRuns: c.LastRuns, site: here}

	// 1. Words → options, as sbatch reads them. A bag of tasks is a script of its own.
	tasks, words, err := readBag(c.Args, func() string { return program.help(ctx) })
	if err != nil {
		return 0, err
	}
	c.Args = words
	table := newOptionTable()
	line, bad := table.read(c.Args, func() string { return program.help(ctx) })

	// 2. Jobs that do not evolve go to sbatch as they are; questions are answered.
	text, done, err := in.passOn(program, line, bad, c.Args)
	if done || err != nil {
		return 0, err
	}
	if err := cmp.Or(bad, refuseHeterogeneous(line)); err != nil {
		return 0, err
	}
	if answered, err := c.answer(program, line); answered {
		return 0, err
	}

	// 3. Options → sources: variables, the script, and files with profiles are read.
	src, err := in.sources(ctx, table, line, text)
	if err != nil {
		return 0, err
	}

	if status, placed, err := c.placed(ctx, program, src, tasks); placed {
		return status, err
	}

	// 4. Sources → request (pure), and what it reads: the file with a speed-up.
	r, err := c.submission(src, c.Defaults, c.Stderr)
	if err != nil {
		return 0, err
	}

	if r.options.has("rigid") {
		program.environ = append(withVariables(c.Environ, r.variables()), request.VarRigid+"="+r.rigidSteps())
		return 0, program.sendRigid(r)
	}
	if err := c.refuses(ctx, r); err != nil {
		return 0, err
	}

	// 5. Request → request that is feasible here: Slurm is asked.
	if r, err = here.feasible(ctx, r); err != nil {
		return 0, err
	}

	// 6. Request → sbatch's arguments (pure; wholeCall, linkCall), which are shown or run.
	program.environ = withVariables(c.Environ, r.variables())
	out := sender{sbatch: program, site: here}
	if r.options.has("dry-run") {
		return 0, out.dryRun(r)
	}
	c.note(ctx)
	return out.send(ctx, r)
}

// submission joins the sources, reads the file with a speed-up into the request, and names what is left out.
// The defaults are those of the site.
func (c *Command) submission(src sources, defaults request.Request, warnings io.Writer) (submission, error) {
	r, ignored, err := newSubmission(src, defaults, time.Now())
	if err != nil {
		return r, err
	}
	if r, err = r.withSpeedup(); err != nil {
		return r, err
	}
	r.ownFrequency = ownFrequency(c.Environ)
	for _, name := range ignored {
		fmt.Fprintf(warnings, "evosbatch: %s does not go with this job: left out\n", name)
	}
	return r, nil
}

// refuses returns why this cluster drives no evolving jobs now, or nil. A dry run does not ask.
func (c *Command) refuses(ctx context.Context, r submission) error {
	if c.Refuses == nil || r.options.has("dry-run") {
		return nil
	}
	return c.Refuses(ctx)
}

// note tells what the user should know of the sidecar before the job is submitted.
func (c *Command) note(ctx context.Context) {
	if c.Note == nil {
		return
	}
	if text := c.Note(ctx); text != "" {
		fmt.Fprintf(c.Stderr, "evosbatch: %s\n", text)
	}
}

// answer answers a question of the command line, if it has one, instead of submitting.
func (c *Command) answer(program sbatch, line getopt.Line) (answered bool, err error) {
	for _, o := range line.Options {
		switch o.Name {
		case "help":
			c.Help()
		case "usage":
			c.Usage()
		case "version":
			c.Version()
		case "autocomplete":
			return true, program.become(c.Args, script{})
		default:
			continue
		}
		return true, nil
	}
	return false, nil
}
