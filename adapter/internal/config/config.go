package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/planner"
)

// DefaultFile is read if no other file is named and it exists.
const DefaultFile = "/etc/evoslurm/evoslurm.yaml"

// Config is everything that a site may set.
type Config struct {
	Database string `mapstructure:"database"` // sqlite file
	Listen   Listen `mapstructure:"listen"`
	Web      Web    `mapstructure:"web"`
	API      string `mapstructure:"api"` // address that commands use: unix:///path, host:port, or https://host:port
	TLS      TLS    `mapstructure:"tls"` // of commands that reach the sidecar by https://
	Auth     Auth   `mapstructure:"auth"`
	JWT      JWT    `mapstructure:"jwt"`
	Munge    Munge  `mapstructure:"munge"`

	// SidecarUser is the account that the sidecar runs as, if it is neither root nor SlurmUser:
	// commands believe only answers of these three.
	SidecarUser string `mapstructure:"sidecar_user"`

	Slurm Slurm `mapstructure:"slurm"`

	Clusters Clusters `mapstructure:"clusters"`

	Mode    Mode    `mapstructure:"mode"`
	Observe Observe `mapstructure:"observe"` // what mode: observe records

	PollInterval time.Duration `mapstructure:"poll_interval"` // between two polls of Slurm
	Takeover     time.Duration `mapstructure:"takeover"`      // how long after this sidecar's end one on another host acts; 0: there is none
	Partitions   []string      `mapstructure:"partitions"`    // driven; empty: all
	StockJobs    int           `mapstructure:"stock_jobs"`    // pending stock jobs taken into the plan, at most

	Strategy    string              `mapstructure:"strategy"`
	Strategies  Strategies          `mapstructure:"strategies"`   // plugins
	ExpandLimit planner.ExpandLimit `mapstructure:"expand_limit"` // for jobs that set none
	Drive       drivemode.Mode      `mapstructure:"drive"`        // for jobs that set none
	Margin      time.Duration       `mapstructure:"margin"`       // how much longer released nodes count as busy
	HoldAhead   time.Duration       `mapstructure:"hold_ahead"`   // how far ahead of planned starts nodes are held
	MaxHolds    int                 `mapstructure:"max_holds"`    // reservations at a time, at most
	HoldShares  HoldShares          `mapstructure:"hold_shares"`  // of reservations held ahead of time

	MaxDelay  time.Duration `mapstructure:"max_delay"`  // how much later holds may make a stock job start
	MaxDelays []string      `mapstructure:"max_delays"` // the same for single partitions and QOS

	GrowDelay time.Duration `mapstructure:"grow_delay"` // how much later growths on demand may make a waiting job start, in all

	AllowPrefer []string      `mapstructure:"allow_prefer"` // which of planner.Aims users may ask for
	PreferWait  time.Duration `mapstructure:"prefer_wait"`  // how much later than it could a job may start for that

	Retention time.Duration `mapstructure:"retention"` // how long records of the past are kept; 0 for as long as the database

	GiveUp   time.Duration `mapstructure:"give_up"`  // how long a growth that fails is tried
	Undriven Undriven      `mapstructure:"undriven"` // what becomes of a parked job that cannot be driven, after GiveUp
	Drain    Drain         `mapstructure:"drain"`    // what the sidecar no longer does
	Grace    time.Duration `mapstructure:"grace"`    // overrun of a step before a warning, and again before action
	Overrun  Overrun       `mapstructure:"overrun"`
	// OverrunSignal is sent to a job with the warning; "": none.
	OverrunSignal string `mapstructure:"overrun_signal"`

	Malleable  Malleable  `mapstructure:"malleable"`
	BestEffort BestEffort `mapstructure:"best_effort"`

	Power Power `mapstructure:"power"`

	HealLeaks bool `mapstructure:"heal_leaks"` // run scontrol reconfigure if nodes are allocated to no job

	Operators Operators `mapstructure:"operators"`
	Allow     Names     `mapstructure:"allow"` // who may have evolving jobs; empty lists: all
	Deny      Names     `mapstructure:"deny"`  // who may not
	Read      Read      `mapstructure:"read"`  // who may read jobs, status, and events
	Recorder  Recorder  `mapstructure:"recorder"`
	Log       Log       `mapstructure:"log"`
}

// Recorder configures where the sidecar records what it sees and decides.
type Recorder struct {
	Dir string `mapstructure:"dir"` // folder; "" for recorder beside the database
	MiB int    `mapstructure:"mib"` // of all files, at most; 0: nothing is recorded
}

// Mode says whether the sidecar changes Slurm.
type Mode string

// The modes.
const (
	ModeAct     Mode = "act"
	ModeObserve Mode = "observe" // poll and plan, record what happens, and change nothing
)

// Observes reports whether the sidecar changes nothing in Slurm.
func (c Config) Observes() bool { return c.Mode == ModeObserve }

// Observe configures the record of the mode observe.
type Observe struct {
	Dir  string `mapstructure:"dir"`  // folder; "" for observed beside the database
	MiB  int    `mapstructure:"mib"`  // of all files, at most
	Mask bool   `mapstructure:"mask"` // replace the names of users, accounts, QOS, and jobs
}

// ObserveDir returns the folder of the record.
func (c Config) ObserveDir() string {
	if c.Observe.Dir != "" {
		return c.Observe.Dir
	}
	return filepath.Join(filepath.Dir(c.Database), "observed")
}

// Discreet returns the configuration without possible secrets: a plugin's parameters.
func (c Config) Discreet() Config {
	c.Strategies.Parameters = slices.Clone(c.Strategies.Parameters)
	for i, v := range c.Strategies.Parameters {
		name, _, _ := strings.Cut(v, "=")
		c.Strategies.Parameters[i] = name + "=…"
	}
	return c
}

// RecorderDir returns the folder of the flight recorder.
func (c Config) RecorderDir() string {
	if c.Recorder.Dir != "" {
		return c.Recorder.Dir
	}
	return filepath.Join(filepath.Dir(c.Database), "recorder")
}

// Listen configures where the sidecar serves its API; "" for nowhere.
type Listen struct {
	Socket string `mapstructure:"socket"` // path of a Unix socket
	TCP    string `mapstructure:"tcp"`    // host:port, or :port for every interface
	// Forwarded lists the addresses, IP:port, at which clients reach TCP through a forwarder.
	Forwarded []string `mapstructure:"forwarded"`
	// Metrics is the host:port, or :port, that serves only /metrics, /healthz, and /readyz, open to
	// all.
	Metrics string `mapstructure:"metrics"`

	Certificate string `mapstructure:"certificate"` // of TLS on TCP, PEM; "": plain HTTP
	Key         string `mapstructure:"key"`         // its private key
	ClientCA    string `mapstructure:"client_ca"`   // authority of clients' certificates; "": they need none
	User        string `mapstructure:"user"`        // that the processes run as that serve TCP, if the sidecar is root
}

// Web configures the page on its own address.
type Web struct {
	Listen string `mapstructure:"listen"` // host:port, or :port; "": nowhere
	Base   string `mapstructure:"base"`   // path of the page, as requests have it
	Tokens string `mapstructure:"tokens"` // file of the users' sign-in tokens; "" for no sign-in

	Certificate string `mapstructure:"certificate"` // of TLS, PEM; "": plain HTTP
	Key         string `mapstructure:"key"`         // its private key

	Clusters []string `mapstructure:"clusters"` // NAME=URL: the pages of the site's other clusters
}

// Munge is how credentials are made and checked.
type Munge struct {
	Socket string        `mapstructure:"socket"` // munged's; "": munge's default
	MaxAge time.Duration `mapstructure:"max_age"`
}

// Slurm is how Slurm's commands are run.
type Slurm struct {
	Bin     string        `mapstructure:"bin"`     // folder of squeue, scontrol, …; "": PATH
	Timeout time.Duration `mapstructure:"timeout"` // of one command
	Share   float64       `mapstructure:"share"`   // of slurmctld's time that what can wait may take
}

// Log configures the sidecar's own log.
type Log struct {
	Level  string `mapstructure:"level"`  // error, warn, info, debug, trace
	Format string `mapstructure:"format"` // text or json
}

// Strategies is how strategies that are plugin processes are found and run.
type Strategies struct {
	Dir        string        `mapstructure:"dir"`        // folder of the executables; "": no plugins
	SHA256     []string      `mapstructure:"sha256"`     // lines of sha256sum; a plugin named there must match
	Parameters []string      `mapstructure:"parameters"` // of Strategy, name=value
	Timeout    time.Duration `mapstructure:"timeout"`    // for a plugin's part of one cycle
	Memory     int           `mapstructure:"memory"`     // MiB, of all processes of one plugin
	User       string        `mapstructure:"user"`       // that plugins run as, if the sidecar is root; "": root
}

// Sums returns the SHA-256 sums by plugin name, in lower-case hexadecimal.
func (s Strategies) Sums() (map[string]string, error) {
	sums := map[string]string{}
	for _, line := range s.SHA256 {
		fields := strings.Fields(line)
		if len(fields) != 2 || len(fields[0]) != 64 || strings.Trim(strings.ToLower(fields[0]), "0123456789abcdef") != "" {
			return nil, fmt.Errorf("%q; want a line of sha256sum, the sum and the plugin's file", line)
		}
		sums[filepath.Base(strings.TrimPrefix(fields[1], "*"))] = strings.ToLower(fields[0])
	}
	return sums, nil
}

// Values returns the parameters by name.
func (s Strategies) Values() (map[string]string, error) {
	values := map[string]string{}
	for _, text := range s.Parameters {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q; want name=value", text)
		}
		values[name] = value
	}
	return values, nil
}

// Operators lists who may act on all users' jobs; root and SlurmUser always may.
type Operators struct {
	Users  []string `mapstructure:"users"`
	Groups []string `mapstructure:"groups"`
}

// Read says who may read; operators and the owners of jobs always may.
type Read string

// The rules of reading.
const (
	ReadSlurm     Read = "slurm"     // users all jobs, unless Slurm's PrivateData has "jobs"
	ReadEverybody Read = "everybody" // even over TCP without a credential
	ReadOwn       Read = "own"       // users their own jobs
)

// Undriven says what happens to a parked job that cannot be driven.
type Undriven string

// The policies for jobs that cannot be driven.
const (
	UndrivenKeep    Undriven = "keep"
	UndrivenRelease Undriven = "release"
	UndrivenCancel  Undriven = "cancel"
)

// Overrun says what happens to a job that keeps nodes beyond its step and the grace.
type Overrun string

// The overrun actions.
const (
	OverrunShrink Overrun = "shrink" // take the nodes away, as planned
	OverrunCancel Overrun = "cancel" // cancel the job
)

// PluginUser is the account that the packages create for strategy plugins.
const PluginUser = "evoslurm-plugin"

// LeastRetention is the shortest time for which records of the past are kept: jobs that have just ended still matter.
const LeastRetention = 24 * time.Hour

// WebUser is the account that the packages create for the processes that serve TCP.
const WebUser = "evoslurm-web"

// Default returns the configuration without any file.
func Default() Config {
	return Config{
		Database:     "/var/lib/evoslurm/evoslurm.db",
		Listen:       Listen{Socket: "/run/evoslurm/api.sock", Forwarded: []string{}, User: WebUser},
		Web:          Web{Base: "/", Tokens: "/etc/evoslurm/web.tokens", Clusters: []string{}},
		API:          "unix:///run/evoslurm/api.sock",
		Auth:         AuthMunge,
		Munge:        Munge{MaxAge: time.Minute},
		SidecarUser:  "evoslurm",
		Slurm:        Slurm{Timeout: 30 * time.Second, Share: 0.01},
		Clusters:     Clusters{Dir: "/etc/evoslurm/clusters", Wait: time.Second, Mounts: []string{}, Bandwidths: []string{}},
		Mode:         ModeAct,
		Observe:      Observe{MiB: 256},
		PollInterval: time.Second,
		Partitions:   []string{},
		StockJobs:    500,
		Strategy:     "noX",
		Strategies: Strategies{Dir: "/usr/libexec/evoslurm/strategies", SHA256: []string{}, Parameters: []string{},
			Timeout: 2 * time.Second, Memory: 1024, User: PluginUser},
		ExpandLimit: 1,
		Drive:       drivemode.Auto,
		Margin:      2 * time.Second,
		HoldAhead:   time.Hour,
		MaxHolds:    100,
		HoldShares: HoldShares{
			Job: Shares{Reservations: 25, Nodes: 100, NodeHours: 50}, User: Shares{Reservations: 50, Nodes: 75, NodeHours: 50},
			Account: Shares{Reservations: 75, Nodes: 100, NodeHours: 75}, Partition: Shares{Reservations: 100, Nodes: 100, NodeHours: 100},
		},
		MaxDelay:      time.Hour,
		MaxDelays:     []string{},
		AllowPrefer:   planner.Aims(),
		PreferWait:    10 * time.Minute,
		Retention:     400 * 24 * time.Hour,
		GiveUp:        10 * time.Minute,
		Undriven:      UndrivenRelease,
		Grace:         30 * time.Second,
		Overrun:       OverrunShrink,
		OverrunSignal: "URG",
		Malleable:     Malleable{Policy: "egs", Approach: "pwa", Grace: 30 * time.Second, MaxGrace: 10 * time.Minute},
		Power:         Power{Mode: PowerOff, MaxWait: 30 * time.Second, Types: []NodeType{}},
		Operators:     Operators{Users: []string{}, Groups: []string{}},
		Allow:         noNames(),
		Deny:          noNames(),
		Read:          ReadSlurm,
		Recorder:      Recorder{MiB: 32},
		Log:           Log{Level: "info", Format: "text"},
	}
}

// Validate returns everything that is wrong, each with its key.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, key, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
		}
	}
	check(c.Database != "", "database", "empty; want the path of a file")
	check(c.Listen.Socket != "" || c.Listen.TCP != "", "listen", "neither socket nor tcp is set")
	check(strings.HasPrefix(c.Listen.Socket, "/") || c.Listen.Socket == "", "listen.socket", "%q is not an absolute path", c.Listen.Socket)
	if c.Listen.TCP != "" {
		check(validHostPort(c.Listen.TCP, true), "listen.tcp", "%q; want host:port or :port", c.Listen.TCP)
	}
	if c.Listen.Metrics != "" {
		check(validHostPort(c.Listen.Metrics, true), "listen.metrics", "%q; want host:port or :port", c.Listen.Metrics)
	}
	if c.Web.Listen != "" {
		check(validHostPort(c.Web.Listen, true), "web.listen", "%q; want host:port or :port", c.Web.Listen)
		check(c.Web.Tokens != "" || c.Read == ReadEverybody, "web.tokens", "empty; want the file of tokens that users sign in with (or read: everybody)")
	}
	check(c.Web.Listen == "" || c.Web.Tokens == "" || c.Web.Certificate != "" || loopback(c.Web.Listen), "web.listen",
		"%q is reached from other machines, and tokens would travel as they are; want localhost:port with a proxy before it, or web.certificate and web.key", c.Web.Listen)
	c.validateTLS(check)
	c.validateAuth(check)
	check(pagePath.MatchString(c.Web.Base), "web.base", "%q; want a path such as / or /evoslurm/", c.Web.Base)
	c.Web.validate(check)
	check(c.Web.Tokens == "" || filepath.IsAbs(c.Web.Tokens), "web.tokens", "%q is not an absolute path", c.Web.Tokens)
	c.validateSecond(check)
	for _, address := range c.Listen.Forwarded {
		_, err := netip.ParseAddrPort(address)
		check(err == nil, "listen.forwarded", "%q; want IP:port", address)
	}
	check(c.Listen.User != "" && accountName.MatchString(c.Listen.User), "listen.user", "%q is not an account name", c.Listen.User)
	check(accountName.MatchString(c.SidecarUser), "sidecar_user", "%q is not an account name", c.SidecarUser)
	check(c.Munge.MaxAge >= time.Second, "munge.max_age", "%v; want 1s or more", c.Munge.MaxAge)
	check(c.Slurm.Timeout >= time.Second, "slurm.timeout", "%v; want 1s or more", c.Slurm.Timeout)
	check(c.Slurm.Share > 0 && c.Slurm.Share <= 1, "slurm.share", "%v; want more than 0 and 1 at most", c.Slurm.Share)
	c.Clusters.validate(check)
	check(c.Mode == ModeAct || c.Mode == ModeObserve, "mode", "%q; want act or observe", c.Mode)
	check(c.Observe.Dir == "" || filepath.IsAbs(c.Observe.Dir), "observe.dir", "%q is not an absolute path", c.Observe.Dir)
	check(c.Observe.MiB >= 4, "observe.mib", "%d; want 4 or more", c.Observe.MiB)
	check(c.PollInterval >= 100*time.Millisecond, "poll_interval", "%v; want 100ms or more", c.PollInterval)
	check(c.StockJobs >= 0, "stock_jobs", "%d; want 0 or more", c.StockJobs)
	check(c.MaxHolds >= 1, "max_holds", "%d; want 1 or more", c.MaxHolds)
	c.HoldShares.validate(check)
	check(c.Recorder.Dir == "" || filepath.IsAbs(c.Recorder.Dir), "recorder.dir", "%q is not an absolute path", c.Recorder.Dir)
	check(c.Recorder.MiB == 0 || c.Recorder.MiB >= 4, "recorder.mib", "%d; want 0 (nothing is recorded) or 4 and more", c.Recorder.MiB)
	check(c.Margin >= 0, "margin", "%v; want 0s or more", c.Margin)
	check(c.HoldAhead >= 0, "hold_ahead", "%v; want 0s or more", c.HoldAhead)
	check(c.MaxDelay >= 0, "max_delay", "%v; want 0s or more", c.MaxDelay)
	check(c.GrowDelay >= 0 && c.GrowDelay <= MostGrowDelay, "grow_delay", "%v; want 0s to %v", c.GrowDelay, MostGrowDelay)
	for _, name := range c.AllowPrefer {
		_, err := planner.ParseAim(name)
		check(err == nil, "allow_prefer", "%q; want names of %s", name, strings.Join(planner.Aims(), ", "))
	}
	check(c.PreferWait >= 0 && c.PreferWait <= MostPreferWait, "prefer_wait", "%v; want 0s to %v", c.PreferWait, MostPreferWait)
	_, err := c.Delays()
	check(err == nil, "max_delays", "%v", err)
	check(signalName.MatchString(c.OverrunSignal), "overrun_signal", "%q; want a signal's name, such as URG", c.OverrunSignal)
	check(c.Retention == 0 || c.Retention >= LeastRetention, "retention", "%v; want 0s (nothing is deleted) or %v and more", c.Retention, LeastRetention)
	check(c.GiveUp >= 0, "give_up", "%v; want 0s or more", c.GiveUp)
	check(c.Undriven == UndrivenKeep || c.Undriven == UndrivenRelease || c.Undriven == UndrivenCancel, "undriven", "%q; want release, cancel or keep", c.Undriven)
	_, err = c.Drain.Parse()
	check(err == nil, "drain", "%v", err)
	check(c.Grace >= 0, "grace", "%v; want 0s or more", c.Grace)
	check(c.Strategy != "", "strategy", "empty; want a strategy's name, such as noX")
	check(c.Strategies.Dir == "" || filepath.IsAbs(c.Strategies.Dir), "strategies.dir", "%q is not an absolute path", c.Strategies.Dir)
	check(c.Strategies.Timeout >= 100*time.Millisecond, "strategies.timeout", "%v; want 100ms or more", c.Strategies.Timeout)
	check(c.Strategies.Memory >= 192, "strategies.memory", "%d; want 192 (MiB) or more", c.Strategies.Memory)
	_, err = c.Strategies.Sums()
	check(err == nil, "strategies.sha256", "%v", err)
	_, err = c.Strategies.Values()
	check(err == nil, "strategies.parameters", "%v", err)
	if err := c.ExpandLimit.Validate(); err != nil {
		check(false, "expand_limit", "%v", err)
	}
	_, err = drivemode.Parse(string(c.Drive))
	check(err == nil, "drive", "%v", err)
	check(c.Overrun == OverrunShrink || c.Overrun == OverrunCancel, "overrun", "%q; want shrink or cancel", c.Overrun)
	c.Malleable.validate(check)
	c.Power.validate(check)
	check(!c.Observes() || c.Power.Mode == PowerOff, "power.mode", "%q; want off with mode: observe, which plans for no node", c.Power.Mode)
	c.BestEffort.validate(check)
	c.Allow.validate(check, "allow")
	c.Deny.validate(check, "deny")
	check(c.Read == ReadSlurm || c.Read == ReadEverybody || c.Read == ReadOwn, "read", "%q; want slurm, everybody or own", c.Read)
	check(slices.Contains([]string{"error", "warn", "info", "debug", "trace"}, c.Log.Level), "log.level", "%q; want error, warn, info, debug or trace", c.Log.Level)
	check(c.Log.Format == "text" || c.Log.Format == "json", "log.format", "%q; want text or json", c.Log.Format)
	for _, p := range c.Partitions {
		check(p != "" && !strings.ContainsAny(p, " ,\t\n"), "partitions", "%q is not a partition name", p)
	}
	return errors.Join(errs...)
}

// validateSecond checks where sidecars are reached, and what two on different hosts need.
func (c Config) validateSecond(check func(ok bool, key, format string, args ...any)) {
	for address := range strings.SplitSeq(c.API, ",") {
		socket, isUnix := strings.CutPrefix(address, "unix://")
		server := strings.TrimPrefix(address, "https://")
		check(isUnix && strings.HasPrefix(socket, "/") || !isUnix && (validHostPort(server, false) || hostName.MatchString(server)), "api", "%q; want unix:///path, host, host:port, or https://host:port", address)
	}
	check(c.Takeover == 0 || c.Takeover >= 15*time.Second, "takeover", "%v; want 15s or more, or 0s if there is no sidecar on a second host", c.Takeover)
	check(c.Takeover == 0 || strings.Contains(c.API, ",") && c.Mode != ModeObserve, "takeover", "%v; want the addresses of both sidecars in api, and mode: act", c.Takeover)
}

var pagePath = regexp.MustCompile(`^/([A-Za-z0-9_~.-]*[A-Za-z0-9_~-][A-Za-z0-9_~.-]*/?)*$`)

var (
	hostName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*$`)
	accountName = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.@$-]*)?$`)
)

var signalName = regexp.MustCompile(`^[A-Z]*[0-9]?$`)

// loopback reports whether a listening address can be reached only from this machine.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip, _ := netip.ParseAddr(host)
	return err == nil && (host == "localhost" || ip.IsLoopback())
}

// validHostPort reports whether the address is host:port; the host may be empty to listen.
func validHostPort(address string, listen bool) bool {
	i := strings.LastIndexByte(address, ':')
	if i < 0 || i == 0 && !listen {
		return false
	}
	host := address[:i]
	if strings.Contains(host, ":") && !(strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]")) || strings.ContainsAny(host, "/ ") {
		return false
	}
	port, err := strconv.ParseUint(address[i+1:], 10, 16)
	return err == nil && (port > 0 || listen)
}

// Allows reports whether the user is an operator. Names are looked up each time,
// so that a change of groups counts at once.
func (o Operators) Allows(uid uint32) bool {
	if len(o.Users) == 0 && len(o.Groups) == 0 {
		return false
	}
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return false
	}
	if slices.Contains(o.Users, u.Username) {
		return true
	}
	if len(o.Groups) == 0 {
		return false
	}
	ids, err := u.GroupIds()
	if err != nil {
		return false
	}
	for _, name := range o.Groups {
		if g, err := user.LookupGroup(name); err == nil && slices.Contains(ids, g.Gid) {
			return true
		}
	}
	return false
}
