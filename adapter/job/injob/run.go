package injob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Command is a command to run over all nodes that a job has.
type Command struct {
	Allocation api.Allocation
	Args       []string // srun's options, then the command and its arguments
	Environ    []string // of the job script
	Srun       string   // path of srun; "": found in PATH
	Evosrun    string   // path of evosrun, for --cores; "": beside this program

	Stdin          *os.File
	Stdout, Stderr io.Writer // files: srun writes to them itself
}

// rankScript runs a task of a part. Its arguments are the rank of the part's first task, the number
// of all tasks (empty for the step's), the base job, and the command, which it runs unchanged,
// without a shell.
const rankScript = `export EVO_RANK=$(($1 + SLURM_PROCID)) EVO_NTASKS=${2:-$SLURM_STEP_NUM_TASKS} EVO_JOB_ID=$3 EVO_PART_ID=$SLURM_JOB_ID
shift 3
exec "$@"`

// overParts are srun's options that mean something within one Slurm job only.
var overParts = []struct{ name, why string }{
	{"multi-prog", "its file counts the tasks of one Slurm job"},
	{"pty", "there is one terminal"},
	{"relative", "it counts the nodes of one Slurm job; use --nodelist"},
	{"nodefile", "write the nodes with --nodelist"},
	{"het-group", "evolving jobs are not heterogeneous"},
	{"no-allocate", "the nodes are allocated"},
}

// run is one srun.
type run struct {
	args  []string
	env   []string
	first int      // rank of its first task, for labels
	stdin *os.File // nil: empty
}

// Run runs the command with srun, one per part, and returns the highest exit status. It passes
// arriving signals on to srun; the end of ctx kills it. If each part is its own Slurm job, tasks
// (EVO_RANK) and the labels of --label are numbered consecutively; MPI does not span parts this way
// (see Launch).
func (c Command) Run(ctx context.Context, signals <-chan os.Signal) (int, error) {
	if err := check(c.Allocation); err != nil {
		return 1, err
	}
	if len(c.Allocation.Parts) == 0 {
		return 1, errors.New("the job's last step has ended: it has no nodes to run on")
	}
	args, err := parseSrun(c.Args)
	if err != nil {
		return 1, err
	}
	if len(args.command) == 0 {
		return 1, errors.New("no command to run")
	}
	if args, err = c.sharing(args); err != nil {
		return 1, err
	}
	component, _ := args.last("component")
	if c.Allocation, err = presentOf(c.Allocation, component); err != nil {
		return 1, err
	}
	if len(c.Allocation.Parts) == 1 && !args.has("component") {
		r, err := c.single(args)
		if err != nil {
			return 1, err
		}
		r.stdin = c.Stdin
		return c.start(ctx, []run{r}, together{}, signals)
	}
	runs, o, err := c.several(args)
	if err != nil {
		return 1, err
	}
	return c.start(ctx, runs, o, signals)
}

// single returns the srun of a job that is one Slurm job: the options as given, the
// environment of its present size.
func (c Command) single(args srunArgs) (run, error) {
	e, err := ExportsOf(c.Allocation, c.getenv)
	if err != nil {
		return run{}, err
	}
	options, err := c.placed(args)
	if err != nil {
		return run{}, err
	}
	id := formatJob(c.Allocation.Parts[0].Job)
	e.Set = append(e.Set, Var{"SLURM_JOB_ID", id}, Var{"SLURM_JOBID", id})
	return run{args: append(options, c.wrap(args, 0, "")...), env: e.Apply(c.Environ)}, nil
}

// several returns the sruns of a job that is several Slurm jobs, or of a component, which is a part of them.
func (c Command) several(args srunArgs) ([]run, together, error) {
	for _, o := range overParts {
		if args.has(o.name) {
			if args.has("component") {
				return nil, together{}, fmt.Errorf("--%s cannot be used with --component: %s", o.name, o.why)
			}
			return nil, together{}, fmt.Errorf("--%s cannot be used while the job is several Slurm jobs (drive mode companion): %s", o.name, o.why)
		}
	}
	shares, err := layOut(c.Allocation, args, c.getenv)
	if err != nil {
		return nil, together{}, err
	}
	tasks := 0
	for _, s := range shares {
		tasks += s.tasks
	}
	redirect, err := c.redirections(args, shares)
	if err != nil {
		return nil, together{}, err
	}
	options := args.without("component", "jobid", "nodes", "ntasks", "nodelist", "exclude", "input")
	if n := positive(c.getenv("SLURM_NTASKS_PER_NODE")); n > 0 && !args.has("ntasks", "ntasks-per-node") {
		options = append(options, "--ntasks-per-node="+strconv.Itoa(n)) // the script's --ntasks-per-node
	}
	env := withoutSlurm(atFrequency(c.Allocation, c.Environ))
	runs := make([]run, len(shares))
	for i, s := range shares {
		a := append(slices.Clone(options),
			"--jobid="+formatJob(s.job), "--nodes="+strconv.Itoa(len(s.nodes)), "--ntasks="+strconv.Itoa(s.tasks),
			"--nodelist="+slurmctl.CompressNodes(s.nodes))
		a = append(a, redirect.input[i]...)
		if redirect.append {
			a = append(a, "--open-mode=append")
		}
		runs[i] = run{args: append(a, c.wrap(args, s.first, strconv.Itoa(tasks))...), env: env, first: s.first}
	}
	return runs, together{
		label: labelled(args, c.getenv), width: len(strconv.Itoa(tasks - 1)),
		killOnBadExit: killOnBadExit(args, c.getenv), reads: redirect.reads,
	}, nil
}

// wrap returns the command for srun, started so that it knows its rank. If srun itself must see the
// command's file, wrap leaves it as it is.
func (c Command) wrap(args srunArgs, first int, tasks string) []string {
	if args.has("multi-prog", "bcast", "launch-cmd") {
		return args.command
	}
	var w []string
	if !args.has("job-name") { // otherwise the step would be called sh
		if name := filepath.Base(args.command[0]); !strings.HasPrefix(name, "-") {
			w = append(w, "--job-name="+name)
		}
	}
	base := strconv.FormatUint(uint64(c.Allocation.Job), 10)
	return append(append(w, args.shell(rankScript, strconv.Itoa(first), tasks, base)...), args.command...)
}

func (c Command) getenv(name string) string { return lookup(c.Environ, name) }

// lookup returns the value of a variable in an environment.
func lookup(environ []string, name string) string {
	for _, entry := range slices.Backward(environ) {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			return v
		}
	}
	return ""
}

// keptSlurm lists the SLURM_ variables that an srun --jobid of another Slurm job may see: options
// that users set themselves.
var keptSlurm = []string{
	"SLURM_MPI_TYPE", "SLURM_KILL_BAD_EXIT", "SLURM_LABELIO", "SLURM_UNBUFFEREDIO",
	"SLURM_OVERLAP", "SLURM_EXACT", "SLURM_OVERCOMMIT", "SLURM_WAIT", request.VarSrunFrequency,
}

// withoutSlurm cleans an environment of what Slurm set for one job.
func withoutSlurm(environ []string) []string {
	var out []string
	for _, entry := range environ {
		if name, _, _ := strings.Cut(entry, "="); !slurmsOwn(name) || slices.Contains(keptSlurm, name) {
			out = append(out, entry)
		}
	}
	return out
}

func labelled(args srunArgs, getenv func(string) string) bool {
	return args.has("label") || isOn(getenv("SLURM_LABELIO"))
}

func killOnBadExit(args srunArgs, getenv func(string) string) bool {
	if value, given := args.last("kill-on-bad-exit"); given {
		return value == "" || isOn(value)
	}
	return isOn(getenv("SLURM_KILL_BAD_EXIT"))
}

func isOn(text string) bool { return text != "" && text != "0" && text != "no" }

// redirections holds --input, --output, and --error for several parts.
type redirections struct {
	input  [][]string // options of each share
	reads  []bool     // the share reads evosrun's own input
	append bool       // parts share a file, which none may truncate
}

func (c Command) redirections(args srunArgs, shares []share) (redirections, error) {
	r := redirections{input: make([][]string, len(shares)), reads: make([]bool, len(shares))}
	value, given := args.last("input")
	rank, err := strconv.Atoi(value)
	for i, s := range shares {
		switch {
		case !given || value == "all":
			r.reads[i] = true
		case err != nil: // "none" or a file
			r.input[i] = []string{"--input=" + value}
		case rank >= s.first && rank < s.first+s.tasks: // one task's, by its rank over all parts
			r.reads[i], r.input[i] = true, []string{"--input=" + strconv.Itoa(rank-s.first)}
		default:
			r.input[i] = []string{"--input=none"}
		}
	}
	files := make(map[string]bool)
	for _, name := range []string{"output", "error"} {
		value, given := args.last(name)
		if _, err := strconv.Atoi(value); !given || value == "all" || value == "none" {
			continue
		} else if err == nil {
			return r, fmt.Errorf("--%s=%s: the output of one task alone is not available while the job is several Slurm jobs", name, value)
		}
		for _, pattern := range []string{"%t", "%n"} {
			if strings.Contains(value, pattern) {
				return r, fmt.Errorf("--%s=%s: %s counts within one Slurm job, and the job is several now; let the command write to a file named by $EVO_RANK", name, value, pattern)
			}
		}
		if !strings.Contains(value, "%") {
			files[value] = true
		}
	}
	if len(files) == 0 || args.has("open-mode") {
		return r, nil
	}
	r.append = true
	for file := range files {
		if dir, given := args.last("chdir"); given && !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		f, err := os.Create(file)
		if err != nil {
			return r, err
		}
		f.Close()
	}
	return r, nil
}

// together is how several sruns are run side by side.
type together struct {
	label         bool
	width         int // of labels
	killOnBadExit bool
	reads         []bool // by run: it gets a copy of evosrun's own input
}

// start runs the sruns side by side and returns the highest status.
func (c Command) start(ctx context.Context, runs []run, o together, signals <-chan os.Signal) (int, error) {
	srun := c.Srun
	if srun == "" {
		var err error
		if srun, err = exec.LookPath("srun"); err != nil {
			return 1, err
		}
	}
	closeInputs, err := copyInput(c.Stdin, runs, o.reads)
	if err != nil {
		return 1, err
	}
	defer closeInputs()
	procs := make([]*process, len(runs))
	for i, r := range runs {
		procs[i] = c.process(srun, r, o)
	}
	finished := make(chan struct{})
	defer close(finished)
	go passSignals(signals, finished, isTerminal(c.Stdin), procs)
	statuses := make([]int, len(procs))
	var wg sync.WaitGroup
	for i, p := range procs {
		wg.Go(func() {
			statuses[i] = p.runToEnd(ctx)
			if statuses[i] != 0 && o.killOnBadExit {
				for _, other := range procs {
					other.stop()
				}
			}
		})
	}
	wg.Wait()
	return slices.Max(statuses), nil
}

// passSignals passes signals on to the sruns until they have finished.
func passSignals(signals <-chan os.Signal, finished <-chan struct{}, atTerminal bool, procs []*process) {
	for {
		select {
		case s := <-signals:
			if atTerminal && (s == os.Interrupt || s == syscall.SIGQUIT) {
				continue // typed there: srun, in the same group, already has it, and a second one aborts it
			}
			for _, p := range procs {
				p.signal(s)
			}
		case <-finished:
			return
		}
	}
}

// copyInput returns every run that reads a pipe with a copy of what stdin has, and
// returns what to call in the end.
func copyInput(stdin *os.File, runs []run, reads []bool) (func(), error) {
	var writers, files []*os.File
	closeAll := func() {
		for _, f := range files {
			f.Close()
		}
	}
	for i := range reads {
		if !reads[i] {
			continue
		}
		r, w, err := os.Pipe()
		if err != nil {
			closeAll()
			return nil, err
		}
		runs[i].stdin = r
		writers, files = append(writers, w), append(files, r, w)
	}
	if len(writers) == 0 {
		return closeAll, nil
	}
	go func() {
		buf := make([]byte, 32<<10)
		for {
			n, err := stdin.Read(buf)
			for _, w := range writers {
				_, _ = w.Write(buf[:n]) // a part that reads no more does not keep the others from reading
			}
			if err != nil {
				break
			}
		}
		for _, w := range writers {
			w.Close()
		}
	}()
	return closeAll, nil
}
