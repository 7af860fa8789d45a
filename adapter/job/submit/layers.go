package submit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/job/request"
)

// environmentOptions lists the variables that sbatch reads as options, 22.05 to 26.05, if they
// affect the request.
var environmentOptions = [][2]string{
	{"SBATCH_ARRAY_INX", "array"},
	{"SLURM_CLUSTERS", "clusters"},
	{"SBATCH_CLUSTERS", "clusters"},
	{"SBATCH_CLUSTER_CONSTRAINT", "cluster-constraint"},
	{"SBATCH_CONSTRAINT", "constraint"},
	{"SBATCH_CONSOLIDATE_SEGMENTS", "consolidate-segments"},
	{"SBATCH_CPU_FREQ_REQ", "cpu-freq"},
	{"SBATCH_CPUS_PER_GPU", "cpus-per-gpu"},
	{"SBATCH_EXCLUSIVE", "exclusive"},
	{"SBATCH_EXPORT", "export"},
	{"SBATCH_GRES", "gres"},
	{"SBATCH_GPUS", "gpus"},
	{"SBATCH_GPUS_PER_NODE", "gpus-per-node"},
	{"SBATCH_GPUS_PER_SOCKET", "gpus-per-socket"},
	{"SBATCH_GPUS_PER_TASK", "gpus-per-task"},
	{"SBATCH_MEM_PER_GPU", "mem-per-gpu"},
	{"SBATCH_OPEN_MODE", "open-mode"},
	{"SBATCH_PARTITION", "partition"},
	{"SBATCH_REQ_SWITCH", "switches"},
	{"SBATCH_RESERVATION", "reservation"},
	{"SBATCH_SEGMENT_SIZE", "segment"},
	{"SBATCH_SPREAD_SEGMENTS", "spread-segments"},
	{"SBATCH_TIMELIMIT", "time"},
	{"SBATCH_TRES_PER_TASK", "tres-per-task"},
	{"SBATCH_WAIT", "wait"},
}

// layers holds the options of one submission from all places where sbatch looks, weakest first.
type layers struct {
	script, environment, command []getopt.Option
	own                          []getopt.Option // evosbatch's, of its variables
	become                       []getopt.Option // what the site's plugins have changed
	target                       string          // the cluster that one of several submissions is for; "": the options say
	cluster                      string          // this cluster's name, if an option names clusters; "" if unknown
}

// all returns the options in the order in which sbatch applies them.
func (l layers) all() []getopt.Option {
	var all []getopt.Option
	for _, layer := range [][]getopt.Option{l.script, l.environment, l.command, l.become} {
		all = append(all, layer...)
	}
	return all
}

// last returns the option that applies, if any is given.
func (l layers) last(name string) (getopt.Option, bool) {
	for _, o := range slices.Backward(l.all()) {
		if o.Name == name && !isEvolution(o) {
			return o, true
		}
	}
	return getopt.Option{}, false
}

// value returns the value of the option that applies, or "".
func (l layers) value(name string) string {
	o, _ := l.last(name)
	return o.Value
}

// has reports whether the command line has an option.
func (l layers) has(name string) bool {
	return contains(l.command, name)
}

func contains(options []getopt.Option, name string) bool {
	return slices.ContainsFunc(options, func(o getopt.Option) bool { return o.Name == name })
}

// fromEnvironment returns the options that the environment gives sbatch.
func (t optionTable) fromEnvironment(environ []string) []getopt.Option {
	values := valuesOf(environ)
	var found []getopt.Option
	for _, pair := range environmentOptions {
		if value, ok := values[pair[0]]; ok && (value != "" || t.Long[pair[1]] != getopt.Required) {
			found = append(found, getopt.Option{Name: pair[1], Value: value, HasValue: value != "", Source: pair[0]})
		}
	}
	return found
}

// valuesOf returns the variables of an environment. The last assignment counts.
func valuesOf(environ []string) map[string]string {
	values := map[string]string{}
	for _, assignment := range environ {
		if name, value, ok := strings.Cut(assignment, "="); ok {
			values[name] = value
		}
	}
	return values
}

// ownFrom returns evosbatch's own options in the environment. It refuses a variable without a meaning.
func ownFrom(environ []string) ([]getopt.Option, error) {
	values := valuesOf(environ)
	var found []getopt.Option
	for _, name := range request.Options {
		if name == "component" { // a variable names one only
			continue
		}
		variable := ownVariable(name)
		if value := values[variable]; value != "" {
			found = append(found, getopt.Option{Name: name, Value: value, HasValue: true, Source: variable})
		}
		delete(values, variable)
	}
	for _, variable := range slices.Sorted(maps.Keys(values)) {
		if option, is := strings.CutPrefix(variable, ownVariable("")); is && values[variable] != "" {
			return nil, fmt.Errorf("%s: evosbatch reads no such variable (see evosbatch(1)): unset it, and give --%s on the command line",
				legible.Brief(variable), legible.Brief(strings.ToLower(strings.ReplaceAll(option, "_", "-"))))
		}
	}
	return found, nil
}

// errHeterogeneous is the error for every way to request a heterogeneous job.
var errHeterogeneous = errors.New("heterogeneous jobs (\":\", hetjob) cannot be planned: submit them with sbatch")

// refuseHeterogeneous refuses a lone colon anywhere: sbatch takes it for a separator.
func refuseHeterogeneous(line getopt.Line) error {
	if len(line.Operands) > 0 && line.Operands[0] == ":" {
		return errHeterogeneous
	}
	for _, o := range line.Options {
		if o.HasValue && o.Value == ":" {
			return errHeterogeneous
		}
	}
	return nil
}

// fromScript returns the options of a script's #SBATCH lines. Like sbatch, it joins the words of
// all lines before it reads options.
func (t optionTable) fromScript(script []byte, name string) ([]getopt.Option, error) {
	var words []string
	var lines []int // the line of each word
	number := 0
	for line := range strings.SplitSeq(string(script), "\n") {
		number++
		rest, ok := strings.CutPrefix(line, "#SBATCH")
		if !ok {
			rest, ok = strings.CutPrefix(line, "#SLURM")
		}
		if !ok {
			if trimmed := strings.TrimLeft(line, " \t\r\v\f"); trimmed != "" && trimmed[0] != '#' {
				break
			}
			continue
		}
		if first, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(rest))+" ", " "); first == "hetjob" || first == "packjob" {
			return nil, fmt.Errorf("%s, line %d: %w", name, number, errHeterogeneous)
		}
		found, err := request.SplitDirective(rest)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", name, number, err)
		}
		for _, word := range found {
			words, lines = append(words, word), append(lines, number)
		}
	}
	place := func(at int) string { return fmt.Sprintf("%s, line %d", name, lines[min(at, len(lines)-1)]) }
	parsed, err := t.Parse(words, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place(parsed.Failed), err)
	}
	if n := len(parsed.Operands); n > 0 {
		return nil, fmt.Errorf("%s: invalid directive %q", place(len(words)-n), legible.Brief(parsed.Operands[0]))
	}
	for i, o := range parsed.Options {
		parsed.Options[i].Source = place(o.At)
	}
	return parsed.Options, nil
}
