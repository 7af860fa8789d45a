package slurmctl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config holds slurmctld's configuration.
type Config struct {
	Version     string // "22.05.8"
	ClusterName string
	Values      map[string]string // as printed; "(null)" is ""
}

// Config returns slurmctld's configuration, by one scontrol.
func (c *Client) Config(ctx context.Context) (Config, error) {
	out, err := c.output(ctx, "scontrol", "show", "config")
	if err != nil {
		return Config{}, err
	}
	cfg, err := parseConfig(out)
	if err == nil {
		c.compare(cfg.Version)
	}
	return cfg, err
}

// parseConfig reads "Name = value" lines. The first value of a name counts, because sections of
// plugins and of cgroup.conf follow the main section.
func parseConfig(out string) (Config, error) {
	values := map[string]string{}
	for line := range strings.Lines(out) {
		name, value, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if _, known := values[name]; !ok || known || name == "" || strings.ContainsAny(name, " \t") {
			continue
		}
		values[name] = text(strings.TrimSpace(value))
	}
	cfg := Config{Version: values["SLURM_VERSION"], ClusterName: values["ClusterName"], Values: values}
	if cfg.Version == "" {
		return cfg, errors.New("scontrol show config: no SLURM_VERSION in its output")
	}
	return cfg, nil
}

// List returns a value split at commas, e.g. List("PrologFlags").
func (c Config) List(name string) []string {
	items := list(c.Values[name])
	for i, item := range items {
		items[i] = strings.TrimSpace(item)
	}
	return items
}

// Has reports whether SchedulerParameters has a parameter, in any case, with or without a value.
func (c Config) Has(param string) bool {
	_, ok := c.SchedulerParameter(param)
	return ok
}

// SchedulerParameter returns the value of one of the SchedulerParameters ("" if it has none) and
// whether it is set.
func (c Config) SchedulerParameter(param string) (string, bool) {
	for _, p := range c.List("SchedulerParameters") {
		name, value, _ := strings.Cut(p, "=")
		if strings.EqualFold(name, param) {
			return value, true
		}
	}
	return "", false
}

// HasPrologFlag reports whether PrologFlags has a flag, e.g. "Contain".
func (c Config) HasPrologFlag(flag string) bool {
	return slices.ContainsFunc(c.List("PrologFlags"), func(f string) bool { return strings.EqualFold(f, flag) })
}

// Epilog returns the program that slurmd runs after a job, or the first of several (numbered from
// 24.05 on), or "".
func (c Config) Epilog() string {
	if first := c.Values["Epilog[0]"]; first != "" {
		return first
	}
	return c.Values["Epilog"]
}

// Private reports whether PrivateData hides something from users, e.g. Private("jobs").
func (c Config) Private(what string) bool {
	return slices.ContainsFunc(c.List("PrivateData"), func(f string) bool { return strings.EqualFold(f, what) || strings.EqualFold(f, "all") })
}

// Hidden lists what PrivateData hides from users of what a poll shows.
func (c Config) Hidden() (all []string) {
	for _, what := range []string{"jobs", "nodes", "partitions", "reservations"} {
		if c.Private(what) {
			all = append(all, what)
		}
	}
	return all
}

// SelectType returns the selection plugin without its prefix: "cons_tres", "linear".
func (c Config) SelectType() string { return c.plugin("SelectType") }

// Boot returns when slurmctld was started, as slurmctld prints it. It distinguishes one run from
// another.
func (c Config) Boot() string { return c.Values["BOOT_TIME"] }

// AccountingStorageType returns "slurmdbd" or "none", without its prefix.
func (c Config) AccountingStorageType() string {
	if p := c.plugin("AccountingStorageType"); p != "" {
		return p
	}
	return "none" // newer versions print "(null)"
}

// plugin returns the part of a plugin's name after the slash, or "" if none is set.
func (c Config) plugin(name string) string {
	v := c.Values[name]
	return v[strings.LastIndexByte(v, '/')+1:]
}

var userIDPattern = pattern(`^(.*)\((\d+)\)$`)

// SlurmUser returns the name and ID of the user that slurmctld runs as.
func (c Config) SlurmUser() (name string, uid uint32, err error) {
	m := userIDPattern().FindStringSubmatch(c.Values["SlurmUser"])
	if m == nil {
		return "", 0, fmt.Errorf("SlurmUser %q is not understood", c.Values["SlurmUser"])
	}
	n, err := strconv.ParseUint(m[2], 10, 32)
	return m[1], uint32(n), err
}

// MungeSocket returns the socket of the cluster's munged, or "" for the system's own.
func (c Config) MungeSocket() string {
	for _, p := range c.List("AuthInfo") {
		if v, ok := strings.CutPrefix(p, "socket="); ok {
			return v
		}
	}
	return ""
}

// KillWait returns the time between SIGTERM and SIGKILL at a job's end.
func (c Config) KillWait() time.Duration { return c.seconds("KillWait") }

// MinJobAge returns how long slurmctld remembers an ended job.
func (c Config) MinJobAge() time.Duration { return c.seconds("MinJobAge") }

// BackfillInterval returns how long the backfill scheduler rests between two cycles.
func (c Config) BackfillInterval() time.Duration {
	v, _ := c.SchedulerParameter("bf_interval")
	n, err := strconv.ParseUint(v, 10, 31)
	if err != nil || n == 0 {
		return 30 * time.Second // Slurm's default
	}
	return time.Duration(n) * time.Second
}

// seconds reads a value like "30 sec"; 0 if it has another form.
func (c Config) seconds(name string) time.Duration {
	n, err := strconv.ParseUint(strings.TrimSuffix(c.Values[name], " sec"), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}

var versionPattern = pattern(`\b(\d{2})\.(\d{2})(?:[.-][0-9A-Za-z.-]+)?`)

// Version returns the version of Slurm's commands, e.g. "22.05.8".
func (c *Client) Version(ctx context.Context) (string, error) {
	out, err := c.output(ctx, "squeue", "--version")
	if err != nil {
		return "", err
	}
	v := versionPattern().FindString(out)
	if v == "" {
		return "", fmt.Errorf("squeue --version: %q is not understood", oneLine(out, 80))
	}
	return v, nil
}

// Controller is one slurmctld as scontrol ping sees it.
type Controller struct {
	Role string // "primary", "backup", "backup1", …
	Host string
	Up   bool
}

var pingPattern = pattern(`(?m)^Slurmctld\(([^)\n]*)\) at (\S+) is (UP|DOWN)`)

// Ping returns which controllers are up. It returns no error if all are down.
func (c *Client) Ping(ctx context.Context) ([]Controller, error) {
	out, err := c.output(ctx, "scontrol", "ping")
	var found []Controller
	for _, m := range pingPattern().FindAllStringSubmatch(out, -1) {
		found = append(found, Controller{Role: m[1], Host: m[2], Up: m[3] == "UP"})
	}
	if len(found) > 0 {
		return found, nil
	}
	if err == nil {
		err = fmt.Errorf("scontrol ping: %q is not understood", oneLine(out, 80))
	}
	return nil, err
}
