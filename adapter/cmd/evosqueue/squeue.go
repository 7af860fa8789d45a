package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// asSqueue holds options that only squeue has: squeue itself carries them out, run by the user with
// the user's rights, and defines their meaning.
type asSqueue struct {
	accounts, qos, licenses, clusters, nodes          []string
	format, longFormat, sort, reservation, jsonAs     string
	steps                                             []string
	array, unique, hide, noConvert, priority, start   bool
	local, federation, sibling, verbose, usage, yaml_ bool
}

// everything is the value of --jobs and --steps without a list.
const everything = "all"

func (s *asSqueue) addFlags(f *pflag.FlagSet) {
	f.StringSliceVarP(&s.accounts, "account", "A", nil, "jobs of these accounts")
	f.StringSliceVarP(&s.qos, "qos", "q", nil, "jobs of these QOS")
	f.StringSliceVarP(&s.nodes, "nodelist", "w", nil, "jobs that have one of these nodes")
	f.StringSliceVarP(&s.licenses, "licenses", "L", nil, "jobs that use these licenses")
	f.StringVarP(&s.reservation, "reservation", "R", "", "jobs in this reservation")
	f.StringVarP(&s.format, "format", "o", "", "fields to print: squeue's letters, and Evoslurm's as %[[.]size]{name} ("+strings.Join(fieldNames(), ", ")+")")
	f.StringVarP(&s.longFormat, "Format", "O", "", "fields to print: squeue's names, and Evoslurm's with prefix evo, e.g. evostep:8")
	f.StringVarP(&s.sort, "sort", "S", "", "sort order, in squeue's letters")
	f.BoolVar(&s.start, "start", false, "planned starts of queued jobs")
	f.StringSliceVarP(&s.steps, "steps", "s", nil, "show the srun steps of the jobs, or only these steps")
	f.Lookup("steps").NoOptDefVal = everything
	f.BoolVar(&s.yaml_, "yaml", false, "same as --json, in YAML")
	f.BoolVar(&s.hide, "hide", false, "omit jobs in hidden partitions (squeue's default; tables always include them)")
	f.BoolVarP(&s.array, "array", "r", false, "a line for each waiting task of an array")
	f.BoolVar(&s.unique, "array-unique", false, "as in squeue")
	f.BoolVarP(&s.priority, "priority", "P", false, "show a job once per partition (with --format)")
	f.BoolVar(&s.noConvert, "noconvert", false, "print numbers without units (with --format)")
	f.BoolVar(&s.local, "local", false, "show only this cluster")
	f.StringSliceVarP(&s.clusters, "clusters", "M", nil, "jobs of these clusters of the site, each asked of its own sidecar, or of all")
	f.BoolVar(&s.federation, "federation", false, "rejected: Evoslurm drives no federated cluster")
	f.BoolVar(&s.sibling, "sibling", false, "rejected: Evoslurm drives no federated cluster")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "print how squeue is called, on standard error")
	f.BoolVar(&s.usage, "usage", false, "list the options in brief")
}

// spellings are other names of options, as squeue has them.
var spellings = map[string]string{"accounts": "account", "users": "user", "partitions": "partition", "nodes": "nodelist", "node": "nodelist",
	"cluster": "clusters", "sib": "sibling"}

// canonical rewrites a command line for pflag, where squeue accepts more: other spellings,
// unambiguous abbreviations, and options whose optional value is joined on.
func canonical(f *pflag.FlagSet, words []string) ([]string, error) {
	table := getopt.NewTable(nil)
	f.VisitAll(func(flag *pflag.Flag) {
		has := getopt.Required
		switch {
		case flag.Value.Type() == "bool":
			has = getopt.Flag
		case flag.NoOptDefVal != "":
			has = getopt.Optional
		}
		table.Add(flag.Name, flag.Shorthand, has)
	})
	words = slices.Clone(words)
	for i, word := range words {
		name, value, joined := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		if full := spellings[name]; full != "" && strings.HasPrefix(word, "--") {
			if words[i] = "--" + full; joined {
				words[i] += "=" + value
			}
		}
	}
	var options, operands []string
	for {
		line, err := table.Parse(words, "")
		if err != nil {
			return nil, err
		}
		for _, o := range line.Options {
			word := "--" + o.Name
			if o.HasValue {
				word += "=" + o.Value
			}
			options = append(options, word)
		}
		if line.Dashes || len(line.Operands) == 0 {
			operands = append(operands, line.Operands...)
			return slices.Concat(options, []string{"--"}, operands), nil
		}
		operands, words = append(operands, line.Operands[0]), line.Operands[1:]
	}
}

// environment fills in options from the user's environment, as squeue does; the command line
// overrides them.
func (o *options) environment(changed func(name string) bool, getenv func(string) string, is func(string) bool) {
	for name, flag := range map[string]*bool{"SQUEUE_ALL": &o.hidden, "SQUEUE_ARRAY": &o.array, "SQUEUE_ARRAY_UNIQUE": &o.unique, "SQUEUE_PRIORITY": &o.priority,
		"SQUEUE_LOCAL": &o.local, "SQUEUE_FEDERATION": &o.federation, "SQUEUE_SIB": &o.sibling, "SQUEUE_SIBLING": &o.sibling} {
		*flag = *flag || is(name)
	}
	for _, v := range []struct {
		name, flag string
		list       *[]string
	}{
		{"SQUEUE_ACCOUNT", "account", &o.accounts}, {"SQUEUE_NAMES", "name", &o.names}, {"SQUEUE_LICENSES", "licenses", &o.licenses},
		{"SQUEUE_PARTITION", "partition", &o.partitions}, {"SQUEUE_QOS", "qos", &o.qos}, {"SQUEUE_STATES", "states", &o.states},
		{"SQUEUE_USERS", "user", &o.users}, {"SLURM_CLUSTERS", "clusters", &o.clusters},
	} {
		if is(v.name) && !changed(v.flag) && (v.flag != "user" || !o.me) {
			*v.list = strings.Split(getenv(v.name), ",")
		}
	}
	if is("SQUEUE_SORT") && !changed("sort") {
		o.sort = getenv("SQUEUE_SORT")
	}
	switch {
	case o.format != "" || o.longFormat != "" || o.long || o.start || len(o.steps) > 0 || o.gantt:
	case is("SQUEUE_FORMAT"):
		o.format = getenv("SQUEUE_FORMAT")
	case is("SQUEUE_FORMAT2"):
		o.longFormat = getenv("SQUEUE_FORMAT2")
	}
}

// some returns how many are true.
func some(are ...bool) (n int) {
	for _, is := range are {
		if is {
			n++
		}
	}
	return n
}

// check refuses what cannot be, and reads the formats.
func (o *options) check() error {
	switch {
	case (o.federation || o.sibling) && !o.local && len(o.clusters) == 0: // these go before, as in squeue
		return errors.New("--federation and --sibling: Evoslurm drives no federated cluster; --clusters=all shows the jobs of all of the site's clusters")
	case len(o.clusters) > 1 && (o.jsonAs != "" || o.yaml_):
		return errors.New("--json and --yaml go with one cluster: name one at a time with --clusters")
	case some(o.jsonAs != "", o.yaml_, o.gantt, o.long) > 1:
		return errors.New("only one of --json, --yaml, --gantt and --long can be had at a time")
	case o.format != "" && o.longFormat != "":
		return errors.New("-O (--Format) is incompatible with -o (--format)")
	case o.format != "" && o.long:
		return errors.New("options -o (--format) and -l (--long) are mutually exclusive")
	}
	format, long := o.format, o.longFormat
	if format == "" && long == "" {
		switch {
		case len(o.steps) > 0:
			format = "%.15i %.8j %.9P %.8u %.9M %N"
		case o.start:
			format = "%.18i %.9P %.8j %.8u %.2t  %.19{start} %.6D %.8{step} %20Y %R"
		default:
			return nil
		}
	}
	read, err := slurmctl.ParseQueueFormat(format, len(o.steps) > 0)
	if long != "" {
		read, err = slurmctl.ParseLongQueueFormat(long, func(name string) bool {
			name, own := strings.CutPrefix(strings.ToLower(name), fieldPrefix)
			return own && fields[name].text != nil
		})
	}
	if err != nil {
		return err
	}
	for _, own := range read.Own {
		if fieldNamed(own.Name).text == nil {
			return fmt.Errorf("no field is called {%s}: there are %s, and squeue's letters", own.Name, strings.Join(fieldNames(), ", "))
		}
	}
	o.query = &slurmctl.Queue{Format: read, Header: !o.noHeader}
	if len(o.steps) > 0 {
		list := strings.Join(o.steps, ",")
		if slices.Contains(o.steps, everything) {
			list = ""
		}
		o.query.Steps = &list
	}
	return nil
}

// inSqueue returns the options for squeue. It omits nodes, because those of companions also belong
// to the job, and Evoslurm's own states.
func (o *options) inSqueue() []string {
	var words []string
	list := func(name string, values []string) {
		if len(values) > 0 && !slices.Contains(values, everything) {
			words = append(words, "--"+name+"="+strings.Join(values, ","))
		}
	}
	list("accounts", o.accounts)
	list("qos", o.qos)
	list("licenses", o.licenses)
	list("users", o.users)
	list("partitions", o.partitions)
	list("name", o.names)
	list("jobs", o.jobs)
	if o.reservation != "" {
		words = append(words, "--reservation="+o.reservation)
	}
	sort, states := o.sort, slurmStates(o.states)
	if o.start && len(o.steps) == 0 {
		sort = cmp.Or(sort, "S")
		if len(states) == 0 {
			states = []string{"PD"}
		}
	}
	if len(states) > 0 {
		words = append(words, "--states="+strings.Join(states, ","))
	}
	if sort != "" {
		words = append(words, "--sort="+sort)
	}
	for name, is := range map[string]bool{"all": o.hidden, "hide": o.hide, "array": o.array, "array-unique": o.unique, "priority": o.priority, "noconvert": o.noConvert} {
		if is {
			words = append(words, "--"+name)
		}
	}
	slices.SortStableFunc(words, func(a, b string) int { return cmp.Compare(b, a) }) // --hide after --array, before --all: as requested
	return words
}

// slurmStates converts states to squeue's; Evoslurm's own become what they are in Slurm.
func slurmStates(words []string) []string {
	var list []string
	for _, word := range words {
		switch strings.ToUpper(word) {
		case "WT", "WAITING":
			word = "R"
		case "QUEUED":
			word = "PD"
		case "STARTING":
			word = "CF,R"
		}
		list = append(list, word)
	}
	return list
}

// ownStates reports whether some of the states are unknown to squeue.
func ownStates(words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		return slices.Contains([]string{"WT", "WAITING", "QUEUED", "STARTING"}, strings.ToUpper(word))
	})
}

// asksSqueue reports whether there is something that the sidecar does not know of jobs.
func (o *options) asksSqueue() bool {
	return len(o.qos) > 0 || len(o.licenses) > 0 || o.reservation != "" || o.sort != "" || o.hide
}

// shares reports whether the job has one of the requested nodes. An ended job had its nodes in the
// past.
func shares(j api.Job, nodes []string) bool {
	lists := []string{j.NodeList}
	if j.State == "ended" {
		for _, p := range j.Past {
			lists = append(lists, p.NodeList)
		}
	}
	for _, list := range lists {
		has, err := slurmctl.ExpandNodes(list)
		if err == nil && slices.ContainsFunc(has, func(n string) bool { return slices.Contains(nodes, n) }) {
			return true
		}
	}
	return false
}
