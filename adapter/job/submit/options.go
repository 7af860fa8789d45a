package submit

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/adapter/job/request"
)

// sbatch's options of releases 22.05 to 26.05, as long/short. An option that only some of them have
// is harmless in the others: sbatch itself rejects it.
const (
	requiredOptions = `account/A acctg-freq array/a autocomplete batch bb bbf begin/b chdir/D cluster
		cluster-constraint clusters/M comment constraint/C container container-id container-type context
		core-spec/S cores-per-socket cpu-freq cpus-per-gpu cpus-per-task/c deadline delay-boot dependency/d
		distribution/m error/e exclude/x export export-file extra extra-node-info/B gid gpu-bind gpu-freq
		gpus/G gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint input/i job-name/J
		kill-on-invalid-dep licenses/L mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu
		mem-update mincpus network nodefile/F nodelist/w nodes/N ntasks/n ntasks-per-core ntasks-per-gpu
		ntasks-per-node ntasks-per-socket ntasks-per-tres open-mode output/o partition/p power prefer
		priority profile qos/q reservation resources segment signal sockets-per-node switches
		tasks-per-node thread-spec threads-per-core time/t time-min tmp tres-bind tres-per-task uid
		wait-all-nodes wckey wrap`
	optionalOptions = `exclusive get-user-env nice no-kill/k oom-kill-step propagate requeue resv-ports`
	flagOptions     = `consolidate-segments contiguous external help/h hold/H ignore-pbs no-requeue overcommit/O
		oversubscribe/s parsable quiet/Q reboot spread-job spread-segments stepmgr test-only usage
		use-min-nodes verbose/v version/V wait/W`
	ownOptions = `component expand-limit drive max-nodes moldable moldable-by malleable size grace speedup on-grow on-shrink on-step stage-in` // and profile, whose name sbatch uses too
	ownChoice  = `placement`
	ownFlags   = `dry-run require-profile rigid prefer-start prefer-waste prefer-near best-effort`
)

// profilers lists the values of sbatch's own --profile, which selects what accounting samples. No
// evolution profile looks like them.
var profilers = []string{"all", "none", "energy", "task", "lustre", "filesystem", "network"}

// shapes lists the options that say how a job evolves; only one from the strongest place counts.
var shapes = []string{"profile", "moldable", "malleable", "best-effort"}

// optionTable knows sbatch's options, and evosbatch's own.
type optionTable struct{ *getopt.Table }

func newOptionTable() optionTable {
	t := optionTable{getopt.NewTable(map[getopt.Arity]string{
		getopt.Required: requiredOptions + " " + ownOptions + " " + ownChoice,
		getopt.Optional: optionalOptions,
		getopt.Flag:     flagOptions + " " + ownFlags,
	})}
	t.Whole = request.AimOptions // --pref=FEATURE is sbatch's
	return t
}

// read reads the words of a command line. Unknown options may come from a site's plugins or a newer
// Slurm: sbatch's help says.
func (t optionTable) read(words []string, help func() string) (getopt.Line, error) {
	line, err := t.Parse(words, "")
	if err != nil {
		t.learn(help())
		line, err = t.Parse(words, "")
	}
	if err != nil {
		err = fmt.Errorf("%w\nTry \"evosbatch --help\" for more information", err)
	}
	return line, err
}

var helpLine = regexp.MustCompile(`(?m)^\s+(?:-(\w),\s+)?--([A-Za-z0-9][\w-]*)(\[=|=)?`)

// learn adds unknown options from sbatch's own help text: those of a site's plugins and of later
// releases.
func (t optionTable) learn(help string) {
	for _, m := range helpLine.FindAllStringSubmatch(help, -1) {
		if _, known := t.Long[m[2]]; known {
			continue
		}
		has := getopt.Flag
		switch {
		case strings.HasPrefix(m[3], "["):
			has = getopt.Optional
		case m[3] != "":
			has = getopt.Required
		}
		letter := m[1]
		if letter != "" && t.Short[letter[0]] != "" {
			letter = ""
		}
		t.Add(m[2], letter, has)
	}
}

// isEvolution reports whether an option named profile is an evolution profile, not a value for
// sbatch's own option of that name.
func isEvolution(o getopt.Option) bool {
	if o.Name != "profile" || o.Source != "" {
		return false // on #SBATCH lines and in SBATCH_PROFILE it is always sbatch's
	}
	for name := range strings.SplitSeq(o.Value, ",") {
		if !slices.Contains(profilers, strings.ToLower(name)) {
			return true
		}
	}
	return false
}

// asksToEvolve reports whether an option of the command line is a wish for an evolving job,
// whatever its value.
func asksToEvolve(o getopt.Option) bool {
	return isEvolution(o) || slices.Contains(strings.Fields(ownOptions), o.Name) || request.IsFlag(o.Name)
}

// isOwn reports whether an option of the command line is not for sbatch.
func isOwn(o getopt.Option) bool {
	return asksToEvolve(o) || o.Name == ownChoice || slices.Contains(strings.Fields(ownFlags), o.Name)
}

// ownVariable returns the variable for one of evosbatch's own options. These rank between the
// command line and the script, like sbatch's.
func ownVariable(option string) string {
	return "EVOSBATCH_" + strings.ToUpper(strings.ReplaceAll(option, "-", "_"))
}

// OptionNames returns all options for shell completion, evosbatch's own first; options that need a
// value end in '='.
func OptionNames() []string {
	t := newOptionTable()
	names := []string{"--profile=", "--component=", "--moldable=", "--moldable-by=", "--malleable=", "--size=", "--grace=", "--speedup=", "--expand-limit=", "--drive=", "--max-nodes=", "--on-grow=", "--on-shrink=", "--on-step=", "--stage-in=", "--prefer-start", "--prefer-waste", "--prefer-near", "--best-effort", "--placement=", "--dry-run", "--require-profile", "--rigid", "--tasks=", "--bag=", "--retries=", "--checkpoint=", "--checkpoint-signal=", "--checkpoint-cmd=", "--restart-cmd=", "--task-time=", "--drain-time=", "--collect="}
	for _, name := range slices.Sorted(maps.Keys(t.Long)) {
		text := "--" + name
		if t.Long[name] == getopt.Required {
			text += "="
		}
		if !slices.Contains(names, text) {
			names = append(names, text)
		}
	}
	return names
}

// ScriptGiven reports whether the words go beyond the options, so that the rest are the script's
// arguments.
func ScriptGiven(words []string) bool {
	line, err := newOptionTable().Parse(words, "")
	return err == nil && len(line.Operands) > 0
}
