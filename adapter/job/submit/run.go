package submit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// maxScript bounds a script, in bytes; Slurm's own bound is 4 MiB as a rule.
const maxScript = 64 << 20

// helpTime bounds a look at sbatch's help.
const helpTime = 10 * time.Second

// Command is one run of evosbatch.
type Command struct {
	Args       []string // without the program's name
	Environ    []string
	Stdin      *os.File
	Stdout     io.Writer
	Stderr     io.Writer
	Sbatch     string          // the program to run: a path, or a name to look for in PATH
	Cluster    Cluster         // nil: sizes are not checked
	Defaults   request.Request // the site's, for jobs that set none
	Partitions []string        // partitions that the site's Evoslurm drives; empty for all
	MaxGrace   time.Duration   // for which a malleable job may ask; 0: any
	// LastRuns returns the profile that would have fitted the user's last runs of the job with that
	// name, and which runs those were.
	LastRuns func(ctx context.Context, name string) (profile, what string, err error)

	Help    func() // shows evosbatch's own help
	Usage   func()
	Version func()
	// Exec replaces this process by another program.
	Exec func(path string, argv, environ []string, stdin *os.File) error

	table optionTable
	hooks request.Hooks
	read  []byte // of standard input, already; nil: nothing
}

// Run submits the job and returns the exit status: sbatch's, or if nothing was submitted, sbatch's
// for errors, 1 or $SLURM_EXIT_ERROR. On a cluster without plugins, a successful submission does
// not return if Exec works.
func (c *Command) Run(ctx context.Context) int {
	c.table = newOptionTable()
	status, err := c.run(ctx)
	if err == nil {
		return status
	}
	fmt.Fprintf(c.Stderr, "evosbatch: error: %v\n", err)
	var bad *planner.ParseError
	if errors.As(err, &bad) {
		if pointer := bad.Pointer(); pointer != "" {
			fmt.Fprintln(c.Stderr, pointer)
		}
	}
	if n, err := strconv.Atoi(c.getenv("SLURM_EXIT_ERROR")); err == nil && n != 0 {
		return n
	}
	return 1
}

func (c *Command) run(ctx context.Context) (int, error) {
	if done, err := c.passOn(ctx); done || err != nil {
		return 0, err
	}
	line, err := c.parse(ctx)
	if err != nil {
		return 0, err
	}
	for _, o := range line.Options {
		switch o.Name {
		case "help":
			c.Help()
			return 0, nil
		case "usage":
			c.Usage()
			return 0, nil
		case "version":
			c.Version()
			return 0, nil
		case "autocomplete":
			return 0, c.exec(c.Args, c.Stdin)
		}
	}
	r, err := c.submission(ctx, line)
	if err != nil {
		return 0, err
	}
	for _, name := range r.leftOut {
		fmt.Fprintf(c.Stderr, "evosbatch: %s does not go with this job: left out\n", name)
	}
	c.Environ, c.hooks = withHooks(c.Environ, r.request.Hooks), r.request.Hooks
	switch {
	case r.request.Moldable != nil:
		err = c.checkAlternatives(ctx, r)
	case r.request.Malleable != nil || r.request.Endless():
		if err = cmp.Or(c.checkGrace(r.request.Malleable), c.lasts(ctx, r)); err == nil {
			err = c.checkCluster(ctx, r)
		}
		if err == nil {
			err = r.complete() // its bounds may have changed
		}
	default:
		err = c.checkCluster(ctx, r)
	}
	if err != nil {
		return 0, err
	}
	chain, dry := r.request.Drive == drivemode.Chain, r.options.has("dry-run")
	switch {
	case chain && dry:
		return 0, c.showChain(r)
	case chain:
		return c.submitChain(ctx, r)
	}
	s, err := r.whole()
	if err != nil {
		return 0, err
	}
	if dry || r.testOnly {
		c.explain(r)
	}
	if dry {
		c.show(r.words(s))
		return 0, nil
	}
	if (c.plugins(ctx) || request.HasLine(r.text)) && !r.testOnly {
		return c.runWatched(ctx, r, s)
	}
	return 0, c.submit(r.words(s), r.script)
}

// parse reads the command line. Unknown options may come from a site's plugins or a newer Slurm:
// sbatch's help says.
func (c *Command) parse(ctx context.Context) (getopt.Line, error) {
	line, err := c.table.Parse(c.Args, "")
	var unknown *getopt.UnknownError
	if errors.As(err, &unknown) {
		c.learn(ctx)
		line, err = c.table.Parse(c.Args, "")
	}
	if err != nil {
		return line, fmt.Errorf("%w\nTry \"evosbatch --help\" for more information", err)
	}
	if len(line.Operands) > 0 && line.Operands[0] == ":" {
		return line, errHeterogeneous
	}
	for _, o := range line.Options {
		if o.HasValue && o.Value == ":" {
			return line, errHeterogeneous // sbatch takes every lone colon for a separator
		}
	}
	return line, nil
}

func (c *Command) learn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, helpTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Sbatch, "--help")
	cmd.Env = c.Environ
	cmd.WaitDelay = time.Second
	if help, err := cmd.Output(); err == nil {
		c.table.learn(string(help))
	}
}

// submission reads the script and joins everything to one.
func (c *Command) submission(ctx context.Context, line getopt.Line) (*submission, error) {
	options := layers{environment: c.table.fromEnvironment(c.Environ), command: line.Options, own: ownFrom(c.Environ)}
	var script []byte
	var err error
	for _, place := range [][]getopt.Option{options.command, options.own} {
		for i := range place {
			if o := &place[i]; o.Name == "profile" {
				if o.Value, err = c.profileOf(ctx, o.Value); err != nil {
					return nil, err
				}
			}
		}
	}
	name, fromStdin := "stdin", false
	switch {
	case options.has("wrap"):
		name = "--wrap"
	case len(line.Operands) > 0:
		name = filepath.Base(line.Operands[0])
		script, err = readScript(c.find(line.Operands[0]))
	default:
		fromStdin = true
		if script = c.read; script == nil {
			script, err = readAll(c.Stdin)
		}
	}
	if err != nil {
		return nil, err
	}
	if options.script, err = c.table.fromScript(script, name); err != nil {
		return nil, err
	}
	asked, err := request.FromScript(script)
	if err != nil {
		return nil, fmt.Errorf("%s, %w", name, err)
	}
	if _, given := options.last("clusters"); given {
		options.cluster = c.ownCluster(ctx)
	}
	r, err := newSubmission(line, asked, options, c.Defaults, time.Now())
	if err == nil {
		r.text = script
		err = r.readSpeedup()
	}
	if err == nil && fromStdin {
		r.script = script
	}
	return r, err
}

// ownCluster returns the cluster that is used if none is named, or "" if it does not answer.
func (c *Command) ownCluster(ctx context.Context) string {
	if c.Cluster == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	cfg, err := c.Cluster.Config(ctx)
	if err != nil {
		return ""
	}
	return cfg.ClusterName
}

// find searches for a script where sbatch does: a name without a leading dot or slash in the
// working directory, then in PATH.
func (c *Command) find(name string) string {
	if strings.HasPrefix(name, "/") || strings.HasPrefix(name, ".") {
		return name
	}
	for _, dir := range append([]string{""}, filepath.SplitList(c.getenv("PATH"))...) {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return name
}

func readScript(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("unable to open the script: %w", err)
	}
	defer f.Close()
	return readAll(f)
}

func readAll(r io.Reader) ([]byte, error) {
	script, err := io.ReadAll(io.LimitReader(r, maxScript+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the script: %w", err)
	case len(script) > maxScript:
		return nil, fmt.Errorf("the script is larger than %d MiB", maxScript>>20)
	}
	return script, nil
}

// checkCluster rejects what is infeasible in all partitions. If Slurm does not answer, sbatch
// reports it.
func (c *Command) checkCluster(ctx context.Context, r *submission) error {
	if c.Cluster == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	size := &sizing{Cluster: c.Cluster}
	places, err := r.options.places(ctx, size, r.gres)
	var blind lookError
	if errors.As(err, &blind) {
		var failed *slurmctl.CommandError
		if !errors.As(err, &failed) {
			fmt.Fprintf(c.Stderr, "evosbatch: warning: the profile's size is not checked: %v\n", err)
		}
		if err = c.checkLimits(ctx, r, nil); err != nil && c.mayMove(ctx, r) {
			r.doubt, err = err, nil
		}
		return err
	}
	if err != nil {
		return err
	}
	if cfg, err := c.Cluster.Config(ctx); err == nil {
		if err := cmp.Or(refuseMerge(r.request.Drive, cfg), checkResizes(r, cfg)); err != nil {
			return err
		}
	}
	if err = c.checkPlaces(ctx, r, places, size); err != nil && c.mayMove(ctx, r) {
		r.doubt, err = err, nil
	}
	return err
}

// checkPlaces rejects what is infeasible in all requested partitions, or by the limits of the
// account and QOS.
func (c *Command) checkPlaces(ctx context.Context, r *submission, places []place, size *sizing) error {
	places, out, err := driven(places, c.Partitions)
	if err != nil {
		return err
	}
	if len(out) > 0 {
		fmt.Fprintf(c.Stderr, "evosbatch: warning: partition %s has no evolving jobs here: the job gets none of its nodes\n", strings.Join(out, ","))
	}
	longest, err := checkFit(r.request.Claimed(), places)
	if err != nil {
		if r.request.MaxNodes > r.request.Profile.Peak() {
			err = fmt.Errorf("--max-nodes=%d: with its claim %w", r.request.MaxNodes, err)
		}
		return c.unshown(ctx, places, size.shown, err)
	}
	r.maxTime = longest
	c.cutToPlaces(r, places)
	return c.checkLimits(ctx, r, places)
}

// unshown adds to a refusal which nodes of the partitions Slurm does not show.
func (c *Command) unshown(ctx context.Context, places []place, shown []slurmctl.Node, refusal error) error {
	cluster, ok := c.Cluster.(rules)
	cfg, err := c.Cluster.Config(ctx)
	if !ok || err != nil || !cfg.HidesCloud() {
		return refusal
	}
	limits, err := cluster.Limits(ctx, cfg)
	if err != nil {
		return refusal
	}
	for _, p := range places {
		if nodes := limits.Unshown(p.partition.Name, shown); len(nodes) > 0 {
			refusal = fmt.Errorf("%w; Slurm does not show %s of partition %s, which are off, to anybody: PrivateData=cloud in slurm.conf would", refusal, slurmctl.CompressNodes(nodes), p.partition.Name)
		}
	}
	return refusal
}

// sizing is a cluster that knows its nodes once it was queried.
type sizing struct {
	Cluster
	nodes int
	shown []slurmctl.Node
}

// Nodes implements Cluster.
func (s *sizing) Nodes(ctx context.Context) ([]slurmctl.Node, []slurmctl.Partition, error) {
	nodes, partitions, err := s.Cluster.Nodes(ctx)
	s.nodes, s.shown = len(nodes), nodes
	return nodes, partitions, err
}

// submit becomes sbatch.
func (c *Command) submit(words []string, script []byte) error {
	stdin := c.Stdin
	if script != nil {
		f, err := fileOf(script)
		if err != nil {
			return err
		}
		stdin = f
	}
	return c.exec(words, stdin)
}

func (c *Command) exec(words []string, stdin *os.File) error {
	path, err := exec.LookPath(c.Sbatch)
	if err != nil {
		return fmt.Errorf("sbatch: %w", err)
	}
	return c.Exec(path, append([]string{"sbatch"}, words...), c.Environ, stdin)
}

// fileOf returns an unnamed file with this content, open at its beginning.
func fileOf(content []byte) (*os.File, error) {
	f, err := os.CreateTemp("", "evosbatch-")
	if err != nil {
		return nil, fmt.Errorf("keeping the script from standard input: %w", err)
	}
	_ = os.Remove(f.Name())
	if _, err = f.Write(content); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("keeping the script from standard input: %w", err)
	}
	return f, nil
}

// submitChain runs sbatch once per step. If one fails, it cancels the earlier ones: half a chain
// would run and never finish.
func (c *Command) submitChain(ctx context.Context, r *submission) (int, error) {
	var ids []slurmctl.JobID
	var first, previous uint32
	r.watched = (c.plugins(ctx) || request.HasLine(r.text)) && !r.testOnly
	for i := range r.request.Profile {
		s, err := r.chainStep(i, first, previous)
		if err != nil {
			return 0, c.giveUp(ids, err)
		}
		id, status, err := c.submitStep(ctx, r, i, s)
		if err != nil {
			return 0, c.giveUp(ids, err)
		}
		if status != 0 {
			if len(ids) > 0 {
				fmt.Fprintf(c.Stderr, "evosbatch: error: %v\n", c.giveUp(ids, fmt.Errorf("step %d of %d was not submitted", i+1, len(r.request.Profile))))
			}
			return status, nil
		}
		if r.testOnly {
			continue
		}
		if i == 0 {
			first = id
		}
		previous = id
		ids = append(ids, slurmctl.JobID(id))
	}
	c.report(r, ids)
	return r.await()
}

// submitStep runs sbatch for one step of a chain and returns the job's id.
func (c *Command) submitStep(ctx context.Context, r *submission, i int, s step) (uint32, int, error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, errors.New("interrupted")
	}
	if !r.testOnly {
		s.extra = append(s.extra, "--parsable")
	}
	if r.watched {
		done, err := r.carry(&s)
		defer done()
		if err != nil {
			return 0, 0, err
		}
	}
	var stdout bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Sbatch, r.words(s)...) // no deadline: sbatch has its own
	cmd.Env = append(append([]string{}, c.Environ...), stepVariables(i, r.request.Profile)...)
	cmd.Stdin = c.Stdin
	if r.script != nil {
		cmd.Stdin = bytes.NewReader(r.script)
	}
	cmd.Stderr = c.Stderr
	var err error
	if _, waits := r.options.last("wait"); waits && !r.testOnly {
		var id string
		id, err = c.submitWaiting(r, cmd)
		stdout.WriteString(id)
	} else {
		cmd.Stdout = &stdout
		err = cmd.Run()
	}
	if status, err := statusOf(err); err != nil || status != 0 || r.testOnly {
		return 0, status, err
	}
	id, err := parseJobID(stdout.String())
	if err == nil && r.watched {
		err = c.lookBack(ctx, r, s.request, slurmctl.JobID(id))
	}
	return id, 0, err
}

// statusOf returns the exit status of a sbatch that has ended.
func statusOf(err error) (int, error) {
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed) && failed.Exited():
		return failed.ExitCode(), nil
	case err != nil:
		return 0, fmt.Errorf("sbatch: %w", err)
	}
	return 0, nil
}

// giveUp cancels the jobs of a chain that cannot be completed and adds to err
// what became of them.
func (c *Command) giveUp(ids []slurmctl.JobID, err error) error {
	if len(ids) == 0 {
		return err
	}
	var names []string
	for _, id := range ids {
		names = append(names, strconv.FormatUint(uint64(id), 10))
	}
	list := strings.Join(names, " ")
	if c.Cluster == nil {
		return fmt.Errorf("%w; cancel the steps before it: scancel %s", err, list)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	if failed := c.Cluster.Cancel(ctx, ids...); failed != nil {
		return fmt.Errorf("%w; cancelling the steps before it failed (%v): scancel %s", err, failed, list)
	}
	return fmt.Errorf("%w; the steps before it are cancelled: %s", err, list)
}

// report prints what sbatch would print for the chain's first job; the others go
// to stderr.
func (c *Command) report(r *submission, ids []slurmctl.JobID) {
	if r.testOnly || len(ids) == 0 || r.options.has("quiet") {
		return
	}
	if r.options.has("parsable") {
		fmt.Fprintln(c.Stdout, ids[0])
		return
	}
	fmt.Fprintf(c.Stdout, "Submitted batch job %d\n", ids[0])
	for i, id := range ids[1:] {
		fmt.Fprintf(c.Stderr, "evosbatch: step %d of %d is job %d\n", i+2, len(ids), id)
	}
}

// show prints a call of sbatch as one would type it.
func (c *Command) show(words []string) {
	var quoted []string
	for _, v := range c.hooks.Variables() {
		quoted = append(quoted, v[0]+"="+quote(v[1]))
	}
	quoted = append(quoted, "sbatch")
	for _, w := range words {
		quoted = append(quoted, quote(w))
	}
	fmt.Fprintln(c.Stdout, strings.Join(quoted, " "))
}

// showChain prints the calls of a chain, with 1, 2, … for the jobs' ids to come.
func (c *Command) showChain(r *submission) error {
	for i := range r.request.Profile {
		s, err := r.chainStep(i, 1, uint32(i))
		if err != nil {
			return err
		}
		c.show(r.words(s))
	}
	return nil
}

const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./,:@%"

// quote writes a word as a POSIX shell reads it.
func quote(word string) string {
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func (c *Command) getenv(name string) string {
	for i := len(c.Environ) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(c.Environ[i], name+"="); ok {
			return value
		}
	}
	return ""
}
