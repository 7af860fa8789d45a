package config

import (
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

const sample = "../../../configs/evoslurm.yaml"

// load reads a file with the given text; the variables of the caller's own shell are out of the way.
func load(t *testing.T, text string, args ...string) (Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "evoslurm.yaml")
	must.OK(t, os.WriteFile(file, []byte(text), 0o600))
	t.Setenv("EVOSLURM_CONFIG", file)
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlag(flags)
	flags.String("log-level", "", "")
	flags.String("api", "", "")
	must.OK(t, flags.Parse(args))
	c, got, err := Load(flags)
	if err == nil && got != file {
		t.Errorf("read %q, want %q", got, file)
	}
	return c, err
}

func TestSampleIsTheDefault(t *testing.T) {
	text := must.Read(t, sample)
	c, err := load(t, string(text))
	must.OK(t, err)
	if d := cmp.Diff(Default(), c); d != "" {
		t.Errorf("sample differs from the default (-default +sample):\n%s", d)
	}
	v := viper.New()
	v.SetConfigFile(sample)
	must.OK(t, v.ReadInConfig())
	keys := v.AllKeys()
	slices.Sort(keys)
	if d := cmp.Diff(slices.Sorted(maps.Keys(Default().values())), keys); d != "" {
		t.Errorf("keys of the sample (-exist +sample):\n%s", d)
	}
}

func TestEmptyFileIsTheDefault(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "{}\n", "operators:\nlog:\n"} {
		c, err := load(t, text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if d := cmp.Diff(Default(), c); d != "" {
			t.Errorf("%q:\n%s", text, d)
		}
	}
}

func TestEveryKeyIsRead(t *testing.T) {
	c, err := load(t, `
database: /x/db
listen: {socket: /x/s, tcp: ":7", forwarded: ["[2001:db8::1]:341"], certificate: /x/lc, key: /x/lk, client_ca: /x/la, user: w}
api: head:7
sidecar_user: evo
auth: jwt
jwt: {key: /x/j}
munge: {socket: /x/m, max_age: 2m}
slurm: {bin: /x/bin, timeout: 5s, share: 0.1}
clusters: {dir: /x/c, wait: 4s, replicas: /x/r, mounts: [/home], bandwidths: ["a b 1e6"], stage_in: /x/get}
poll_interval: 500ms
partitions: [a, b]
stock_jobs: 7
strategy: 2X+c
strategies: {dir: /x/s, sha256: ["9F86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  dir/klein"], parameters: [a=b], timeout: 3s, memory: 512, user: u}
expand_limit: 2.5
drive: companion
margin: 3s
hold_ahead: 2h
max_holds: 5
grow_delay: 10m
allow_prefer: [near]
prefer_wait: 4m
hold_shares: {job: {reservations: 1, nodes: 2, node_hours: 3}, user: {reservations: 4, nodes: 5, node_hours: 6}, account: {reservations: 7, nodes: 8, node_hours: 9}, partition: {reservations: 10, nodes: 11, node_hours: 12}}
max_delay: 7m
max_delays: ["partition:a=1m"]
grace: 1m
give_up: 3m
retention: 48h
undriven: cancel
drain: release queued=hold
overrun: cancel
malleable: {policy: gain, approach: pra, threshold: 9, grace: 5s, max_grace: 7s}
power: {mode: off, max_wait: 40s, reserve: 3, watts: {busy: 300, idle: 200.5, off: 10, booting: 250}, types: [{nodes: 'g[1-2]', watts: {busy: 900, idle: 400}}, {feature: fat, watts: {busy: 500, idle: 300, off: 9, booting: 400}}]}
heal_leaks: true
overrun_signal: USR1
operators: {users: [u], groups: [g]}
allow: {users: [a], groups: [b, c], accounts: [d], qos: [e], partitions: [f]}
deny: {users: [g], groups: [h], accounts: [i], qos: [j], partitions: [k, l]}
tls: {ca: /x/ca, certificate: /x/nc, key: /x/nk}
web: {listen: ":8", base: /evo/, tokens: /x/t, certificate: /x/c, key: /x/k, clusters: ["b=https://b/"]}
read: own
recorder: {dir: /x/r, mib: 5}
mode: observe
observe: {dir: /x/o, mib: 6, mask: true}
log: {level: debug, format: json}
`)
	must.OK(t, err)
	want := Config{
		Database: "/x/db", Listen: Listen{Socket: "/x/s", TCP: ":7", Forwarded: []string{"[2001:db8::1]:341"}, Certificate: "/x/lc", Key: "/x/lk", ClientCA: "/x/la", User: "w"}, TLS: TLS{"/x/ca", "/x/nc", "/x/nk"}, SidecarUser: "evo", Web: Web{":8", "/evo/", "/x/t", "/x/c", "/x/k", []string{"b=https://b/"}}, API: "head:7",
		Auth: AuthJWT, JWT: JWT{"/x/j"}, Munge: Munge{Socket: "/x/m", MaxAge: 2 * time.Minute}, Slurm: Slurm{Bin: "/x/bin", Timeout: 5 * time.Second, Share: 0.1},
		Clusters:     Clusters{Dir: "/x/c", Wait: 4 * time.Second, Replicas: "/x/r", Mounts: []string{"/home"}, Bandwidths: []string{"a b 1e6"}, StageIn: "/x/get"},
		PollInterval: 500 * time.Millisecond, Partitions: []string{"a", "b"}, StockJobs: 7,
		Strategy: "2X+c",
		Strategies: Strategies{Dir: "/x/s", SHA256: []string{"9F86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  dir/klein"},
			Parameters: []string{"a=b"}, Timeout: 3 * time.Second, Memory: 512, User: "u"},
		ExpandLimit: 2.5, Drive: drivemode.Companion, Margin: 3 * time.Second,
		HoldAhead: 2 * time.Hour, MaxHolds: 5,
		HoldShares: HoldShares{Shares{1, 2, 3}, Shares{4, 5, 6}, Shares{7, 8, 9}, Shares{10, 11, 12}}, MaxDelay: 7 * time.Minute, MaxDelays: []string{"partition:a=1m"}, GrowDelay: 10 * time.Minute, AllowPrefer: []string{"near"}, PreferWait: 4 * time.Minute, GiveUp: 3 * time.Minute, Retention: 48 * time.Hour, Undriven: UndrivenCancel, Drain: "release queued=hold", Grace: time.Minute, Overrun: OverrunCancel,
		Malleable: Malleable{"gain", "pra", 9, 5 * time.Second, 7 * time.Second}, Power: Power{PowerOff, 40 * time.Second, 3, Watts{300, 200.5, 10, 250}, []NodeType{{"g[1-2]", "", Watts{900, 400, 0, 0}}, {"", "fat", Watts{500, 300, 9, 400}}}}, HealLeaks: true, OverrunSignal: "USR1",
		Operators: Operators{Users: []string{"u"}, Groups: []string{"g"}}, Read: ReadOwn,
		Allow: Names{[]string{"a"}, []string{"b", "c"}, []string{"d"}, []string{"e"}, []string{"f"}}, Deny: Names{[]string{"g"}, []string{"h"}, []string{"i"}, []string{"j"}, []string{"k", "l"}},
		Recorder: Recorder{Dir: "/x/r", MiB: 5}, Mode: ModeObserve, Observe: Observe{"/x/o", 6, true}, Log: Log{Level: "debug", Format: "json"},
	}
	if d := cmp.Diff(want, c); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	sums, err := c.Strategies.Sums()
	if want := "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"; err != nil || sums["klein"] != want {
		t.Errorf("sums %v (%v), want klein's %s", sums, err, want)
	}
}

func TestExpandLimit(t *testing.T) {
	for text, want := range map[string]planner.ExpandLimit{"inf": planner.Infinite, "\"inf\"": planner.Infinite, ".inf": planner.Infinite, "2": 2, "\"1.5\"": 1.5} {
		if c, err := load(t, "expand_limit: "+text); err != nil || c.ExpandLimit != want {
			t.Errorf("expand_limit: %s: got %v, %v; want %v", text, c.ExpandLimit, err, want)
		}
	}
}

func TestLaterSourcesWin(t *testing.T) {
	t.Setenv("EVOSLURM_LOG_LEVEL", "warn")
	t.Setenv("EVOSLURM_PARTITIONS", "p,q")
	t.Setenv("EVOSLURM_EXPAND_LIMIT", "inf")
	t.Setenv("EVOSLURM_API", "env:1")
	c, err := load(t, "log: {level: error}\napi: file:1\ngrace: 5s\n", "--api=flag:1")
	must.OK(t, err)
	if c.API != "flag:1" || c.Log.Level != "warn" || c.Grace != 5*time.Second || c.ExpandLimit != planner.Infinite || !slices.Equal(c.Partitions, []string{"p", "q"}) {
		t.Errorf("got %+v", c)
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"power: {mode: on}":                                        "power.mode: \"on\"; want off, advise, or act",
		"power: on":                                                "power",
		"power: {mode: advise}":                                    "power.watts: missing; power.mode: advise needs",
		"power: {max_wait: -1s}":                                   "power.max_wait: -1s; want 0s or more",
		"power: {reserve: -1}":                                     "power.reserve: -1; want 0 or more",
		"power: {watts: {busy: 3, idle: -1}}":                      "power.watts: idle: -1 is not within 0 … 1e+06 watts",
		"power: {watts: {busy: .nan, idle: 1}}":                    "power.watts: busy: NaN is not within",
		"power: {watts: {busy: .inf, idle: 1}}":                    "power.watts: busy: +Inf is not within",
		"power: {types: [{nodes: n1, watts: {busy: 2, idle: 1}}]}": "power.watts: missing; power.types needs what nodes of no type draw",
		"power: {watts: {busy: 2, idle: 1}, types: [{nodes: n1}]}": "power.types[0].watts: missing",
		"power: {watts: {busy: 2, idle: 1}, types: [{nodes: n1, watts: {busy: 2, idle: 1}}, {nodes: n2, watts: {busy: -2}}]}":                                                                               "power.types[1].watts: busy: -2 is not within",
		"power: {watts: {busy: 2, idle: 1}, types: [{watts: {busy: 2, idle: 1}}]}":                                                                                                                          "power.types[0]: nodes \"\" and feature \"\"; want one of them",
		"power: {watts: {busy: 2, idle: 1}, types: [{nodes: n1, feature: gpu, watts: {busy: 2, idle: 1}}]}":                                                                                                 "power.types[0]: nodes \"n1\" and feature \"gpu\"; want one of them",
		"power: {watts: {busy: 2, idle: 1}, types: [{nodes: 'n[1', watts: {busy: 2, idle: 1}}]}":                                                                                                            "power.types[0].nodes: ",
		"power: {watts: {busy: 2, idle: 1}, types: [{nodes: 'n[1-60000]', watts: {busy: 2, idle: 1}}, {nodes: 'm[1-60000]', watts: {busy: 2, idle: 1}}, {nodes: 'o[1-60000]', watts: {busy: 2, idle: 1}}]}": "power.types: 180000 nodes are listed; want",
		"power: {watts: {busy: 2, idle: 1}, types: [" + strings.Repeat("{feature: gpu, watts: {busy: 2, idle: 1}},", 101) + "]}":                                                                            "power.types: 101 types; want 100 or fewer",
		"power: {watts: {busy: much}}":                                                      "power.watts",
		"power: {watts: {busy: 9, idle: 5, off: 5}}":                                        "power.watts: idle (5) is not more than off (5)",
		"power: {watts: {busy: 3, idle: 5, off: 1}}":                                        "power.watts: busy (3) is less than idle (5)",
		"power: {watts: {busy: 300, idle: 101, off: 100, booting: 200}}":                    "power.watts: after a boot of an hour at 200 watts, a node would have to be off for 99h0m0s",
		"mode: observe\npower: {mode: advise, watts: {busy: 300, idle: 100, booting: 200}}": "power.mode: \"advise\"; want off with mode: observe",
		"strateggy: noX":                      "unknown keys: strateggy",
		"log: {levle: x}\nfoo: 1":             "unknown keys: foo, log.levle",
		"log: debug":                          "log",
		"grace: 30":                           "yaml: grace: \"30\"; want a length of time with its unit",
		"max_holds: few":                      "yaml: max_holds: \"few\"; want one of type int",
		"grace: soon":                         "yaml: grace: \"soon\"; want a length of time with its unit",
		"poll_interval: 1ms":                  "poll_interval",
		"slurm: {share: 0}":                   "slurm.share",
		"slurm: {share: 5}":                   "slurm.share",
		"expand_limit: 0.5":                   "expand_limit",
		"expand_limit: much":                  "expand_limit",
		"drive: teleport":                     "drive: invalid drive mode \"teleport\"",
		"undriven: park":                      "undriven: \"park\"; want release, cancel or keep",
		"overrun: kill":                       "overrun: \"kill\"",
		"api: no where":                       "api: \"no where\"",
		"api: http://x:1":                     "api: \"http://x:1\"",
		"api: unix://x":                       "api: \"unix://x\"",
		"api: x:0":                            "api: \"x:0\"",
		"api: x:70000":                        "api: \"x:70000\"",
		"listen: {socket: x}":                 "listen.socket",
		"listen: {socket: \"\"}":              "listen",
		"listen: {tcp: x}":                    "listen.tcp",
		"web: {listen: x}":                    "web.listen",
		"web: {base: x}":                      "web.base",
		"web: {clusters: [b]}":                "web.clusters",
		"web: {clusters: ['b=javascript:x']}": "web.clusters",
		"web: {clusters: ['b=https:///x']}":   "web.clusters",
		"web: {clusters: ['b=http://u:p@h']}": "web.clusters",
		"web: {clusters: ['<b>=http://h']}":   "web.clusters",
		"clusters: {replicas: x}":             "clusters.replicas",
		"clusters: {stage_in: x}":             "clusters.stage_in",
		"clusters: {mounts: [/x, y]}":         "clusters.mounts",
		"clusters: {bandwidths: ['a b']}":     "clusters.bandwidths",
		"clusters: {bandwidths: ['a b 0']}":   "clusters.bandwidths",
		"clusters: {bandwidths: ['a b -1']}":  "clusters.bandwidths",
		"clusters: {bandwidths: ['a b NaN']}": "clusters.bandwidths",
		"clusters: {bandwidths: ['a b inf']}": "clusters.bandwidths",
		"clusters: {bandwidths: ['a B 1']}":   "clusters.bandwidths",
		"web: {base: /../}":                   "web.base",
		"web: {base: \"/{x}/\"}":              "web.base",
		"web: {tokens: x}":                    "web.tokens",
		"web: {listen: \":1\", tokens: \"\"}": "web.tokens",
		"log: {level: loud}":                  "log.level",
		"log: {format: xml}":                  "log.format",
		"max_holds: 0":                        "max_holds",
		"grow_delay: -1s":                     "grow_delay",
		"grow_delay: 61m":                     "grow_delay",
		"best_effort: {max_nodes: -1}":        "best_effort.max_nodes: -1; want 0 (no bound) or more",
		"best_effort: {qos: \"a,b\"}":         "best_effort.qos: \"a,b\"; want the name of one qos",
		"best_effort: {account: --wrap}":      "best_effort.account",
		"allow_prefer: [near, far]":           "allow_prefer: \"far\"; want names of start, waste, near",
		"prefer_wait: -1s":                    "prefer_wait",
		"prefer_wait: 61m":                    "prefer_wait",
		"hold_shares: {user: {nodes: 0}}":     "hold_shares.user.nodes: 0; want a percentage from 1 to 100",
		"hold_shares: {job: {nodes: 101}}":    "hold_shares.job.nodes: 101; want",
		"held_nodes: {user: 1}":               "unknown keys: held_nodes.user (replaced by hold_shares.job.nodes",
		"held_time: {all: 1s}":                "unknown keys: held_time.all (replaced by hold_shares.job.node_hours",
		"malleable: {policy: \"\"}":           "malleable.policy",
		"malleable: {approach: first}":        "malleable.approach: precedence \"first\" is neither pwa",
		"malleable: {threshold: -1}":          "malleable.threshold",
		"malleable: {grace: 0s}":              "malleable.grace",
		"malleable: {max_grace: 29s}":         "malleable.max_grace",
		"stock_jobs: many":                    "stock_jobs",
		"partitions: [\"a b\"]":               "partitions",
		"database: \"\"":                      "database",
		"strategy: \"\"":                      "strategy",
		"munge: {max_age: 0s}":                "munge.max_age",
		"slurm: {timeout: 0s}":                "slurm.timeout",
		"strategies: {dir: x}":                "strategies.dir",
		"clusters: {dir: x}":                  "clusters.dir",
		"clusters: {wait: 1ms}":               "clusters.wait",
		"clusters: {wait: 1h}":                "clusters.wait",
		"strategies: {sha256: [abc klein]}":   "strategies.sha256",
		"strategies: {parameters: [a]}":       "strategies.parameters",
		"strategies: {timeout: 1ms}":          "strategies.timeout",
		"strategies: {memory: 1}":             "strategies.memory",
		"margin: -1s":                         "margin",
		"give_up: -1s":                        "give_up",
		"retention: 1h":                       "retention",
		"grace: -1s":                          "grace",
		"hold_ahead: -1s":                     "hold_ahead",
		"a: [":                                "evoslurm.yaml",
		"read: perhaps!":                      "read",
		"api: 'head:'":                        "api",
		"api: he/ad":                          "api",
		"listen: {forwarded: [head:341]}":     "listen.forwarded",
		"web: {listen: ':8'}":                 "web.listen",
		"web: {listen: 'head:8'}":             "web.listen",
		"web: {certificate: /x}":              "web.key",
		"listen: {certificate: /x}":           "listen.key",
		"listen: {key: x, certificate: /y}":   "listen.certificate",
		"listen: {client_ca: /x}":             "listen.client_ca",
		"listen: {user: \"\"}":                "listen.user",
		"auth: none":                          "auth",
		"auth: jwt":                           "jwt.key",
		"jwt: {key: x}":                       "jwt.key",
		"tls: {ca: x}":                        "tls.ca",
		"api: https://he/ad":                  "api",
		"web: {certificate: x, key: y}":       "web.certificate",
		"sidecar_user: -x":                    "sidecar_user",
		"read_only_open: false":               "unknown keys: read_only_open (now read: slurm, everybody or own)",
	} {
		if c, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "evoslurm.yaml") {
			t.Errorf("%q: got %+v, %v; want an error with the file and %q", text, c, err, want)
		}
	}
}

func TestAllErrorsAreTold(t *testing.T) {
	_, err := load(t, "grace: -1s\nmax_holds: 0\n")
	if err == nil || !strings.Contains(err.Error(), "grace") || !strings.Contains(err.Error(), "max_holds") {
		t.Errorf("got %v, want both keys", err)
	}
}

func TestNamedFileMustExist(t *testing.T) {
	t.Setenv("EVOSLURM_CONFIG", filepath.Join(t.TempDir(), "none.yaml"))
	if _, _, err := Load(nil); err == nil {
		t.Error("a file that was named and does not exist was ignored")
	}
}

func TestListenAddresses(t *testing.T) {
	for address, want := range map[string]bool{":6821": true, "0.0.0.0:1": true, "[::]:1": true, "[::1]:65535": true, "::1:1": false, "h": false, "h:": false, "h:x": false, "h:65536": false, "a/b:1": false} {
		if got := validHostPort(address, true); got != want {
			t.Errorf("%q: %v, want %v", address, got, want)
		}
	}
}

func TestOperators(t *testing.T) {
	me, err := user.Current()
	must.OK(t, err)
	group, err := user.LookupGroupId(me.Gid)
	must.OK(t, err)
	uid := uint32(os.Getuid())
	for _, c := range []struct {
		o    Operators
		uid  uint32
		want bool
	}{
		{Operators{}, uid, false},
		{Operators{Users: []string{me.Username}}, uid, true},
		{Operators{Users: []string{"no-such-user"}}, uid, false},
		{Operators{Groups: []string{group.Name}}, uid, true},
		{Operators{Groups: []string{"no-such-group"}}, uid, false},
		{Operators{Users: []string{me.Username}, Groups: []string{group.Name}}, 4000000000, false},
	} {
		if got := c.o.Allows(c.uid); got != c.want {
			t.Errorf("%+v allows %d: %v, want %v", c.o, c.uid, got, c.want)
		}
	}
}

func TestGraceOf(t *testing.T) {
	m := Default().Malleable
	for asked, want := range map[int]time.Duration{0: m.Grace, 5: 5 * time.Second, 99999: m.MaxGrace} {
		if got := m.GraceOf(asked); got != want {
			t.Errorf("%d seconds: %v, want %v", asked, got, want)
		}
	}
	if got := m.Precedence().String(); got != "pwa" {
		t.Errorf("by default %s", got)
	}
}
