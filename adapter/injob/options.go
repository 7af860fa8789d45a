package injob

import (
	"fmt"
	"slices"
	"strings"
)

// srun's options, of 20.11 to 26.05, by what follows them. What srun has and
// these tables have not (a SPANK plugin's options) is passed on; it takes its
// value with "=".
var (
	// With a value, also as the next argument. Short names beside the long ones.
	valued = table(`
A account  a attach  acctg-freq  B extra-node-info  bb  bbf  b begin  bcast-exclude  C constraint  c cpus-per-task
cluster-constraint  comment  container  container-id  cores-per-socket  cpu-bind  cpu-freq  cpus-per-gpu  D chdir
d dependency  deadline  delay-boot  e error  environment  epilog  export  export-file  extra  F nodefile  G gpus
gid  gpu-bind  gpu-freq  gpus-per-node  gpus-per-socket  gpus-per-task  gres  gres-flags  het-group  hint  i input
J job-name  jobid  L licenses  M clusters  m distribution  mail-type  mail-user  mcs-label  mem  mem-bind
mem-per-cpu  mem-per-gpu  mincpus  mpi  N nodes  n ntasks  network  ntasks-per-core  ntasks-per-gpu  ntasks-per-node
ntasks-per-socket  ntasks-per-tres  o output  open-mode  P  p partition  power  prefer  priority  profile  prolog
q qos  r relative  R  reservation  resv  S core-spec  segment  signal  slurmd-debug  sockets-per-node  spank  switches  T threads
t time  task-epilog  task-prolog  thread-spec  threads-per-core  time-min  tmp  treewidth  tres-bind  tres-per-task
U  uid  W wait  w nodelist  wckey  x exclude  accel-bind  consolidate-segments`)
	// Without one, or with one only as --name=value or -Nvalue.
	bare = table(`
bcast  compress  contiguous  debugger-test  E preserve-env  exact  exclusive  external  get-user-env  H hold
h help  I immediate  interactive  K kill-on-bad-exit  k no-kill  kill-invalid-depend  l label  launch-cmd
launcher-opts  multi-prog  nice  no-bell  O overcommit  overlap  parallel-debugger  propagate  pty  Q quiet
quit-on-interrupt  reboot  resv-ports  s oversubscribe  send-libs  share  spread-job  stepmgr  test-only  u
unbuffered  usage  use-min-nodes  V version  v verbose  wait-for-children  whole  X disable-status  x11  Z
no-allocate`)
)

// table reads names: a short one belongs to the long one that follows it.
func table(text string) map[string]string {
	names := make(map[string]string)
	fields := strings.Fields(text)
	for i, name := range fields {
		long := name
		if len(name) == 1 && i+1 < len(fields) && len(fields[i+1]) > 1 {
			long = fields[i+1]
		}
		names[name] = long
	}
	return names
}

// option is one of srun's options as given.
type option struct {
	name  string   // long name where there is one
	value string   // "" if none
	args  []string // as given
}

// srunArgs are srun's arguments, cut into options and the command.
type srunArgs struct {
	options []option
	command []string // the command and its arguments
}

// parseSrun cuts srun's arguments as getopt does: options end at the first
// argument that is none, or at "--".
func parseSrun(args []string) (srunArgs, error) {
	var s srunArgs
	for i := 0; i < len(args); {
		arg := args[i]
		if arg == "--" {
			s.command = args[i+1:]
			return s, nil
		}
		if len(arg) < 2 || arg[0] != '-' {
			s.command = args[i:]
			return s, nil
		}
		options, needs := cutLong(arg)
		if !strings.HasPrefix(arg, "--") {
			options, needs = cutShort(arg)
		}
		i++
		if needs {
			last := &options[len(options)-1]
			if i == len(args) {
				return s, fmt.Errorf("option %s needs a value", arg)
			}
			last.value = args[i]
			last.args = append(last.args, args[i])
			i++
		}
		s.options = append(s.options, options...)
	}
	return s, nil
}

// cutLong reads --name, --name=value and, as getopt, unique beginnings of names.
func cutLong(arg string) (options []option, needs bool) {
	name, value, has := strings.Cut(arg[2:], "=")
	name, takes := longName(name)
	return []option{{name: name, value: value, args: []string{arg}}}, takes && !has
}

// longName completes a name that begins no two others, and tells whether it takes a value.
func longName(name string) (string, bool) {
	if _, ok := valued[name]; ok && len(name) > 1 {
		return name, true
	}
	if _, ok := bare[name]; ok && len(name) > 1 {
		return name, false
	}
	var found []string
	takes := false
	for _, t := range []map[string]string{valued, bare} {
		for long := range t {
			if len(long) > 1 && strings.HasPrefix(long, name) {
				found = append(found, long)
				_, takes = valued[long]
			}
		}
	}
	if len(found) == 1 {
		return found[0], takes
	}
	return name, false
}

// cutShort reads -l, -lu, -n4 and -n (4).
func cutShort(arg string) (options []option, needs bool) {
	for i := 1; i < len(arg); i++ {
		c := arg[i : i+1]
		if long, ok := valued[c]; ok {
			o := option{name: long, value: arg[i+1:], args: []string{"-" + arg[i:]}}
			return append(options, o), o.value == ""
		}
		long, ok := bare[c]
		if !ok {
			long = c
		}
		o := option{name: long, args: []string{"-" + c}}
		if c == "I" || c == "K" || c == "k" { // an optional value, attached
			if rest := arg[i+1:]; rest != "" && rest[0] >= '0' && rest[0] <= '9' {
				o.value, o.args = rest, []string{"-" + arg[i:]}
				return append(options, o), false
			}
		}
		options = append(options, o)
	}
	return options, false
}

// has tells whether an option was given.
func (s srunArgs) has(names ...string) bool {
	return slices.ContainsFunc(s.options, func(o option) bool { return slices.Contains(names, o.name) })
}

// last is an option's value, the last one given.
func (s srunArgs) last(name string) (string, bool) {
	for _, o := range slices.Backward(s.options) {
		if o.name == name {
			return o.value, true
		}
	}
	return "", false
}

// without are the options, as given, but those named.
func (s srunArgs) without(names ...string) []string {
	var args []string
	for _, o := range s.options {
		if !slices.Contains(names, o.name) {
			args = append(args, o.args...)
		}
	}
	return args
}
