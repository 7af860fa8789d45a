package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/evoslurm/evoslurm/adapter/cmd/internal/findings"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/strict"
	"github.com/evoslurm/evoslurm/adapter/internal/version"
	"github.com/evoslurm/evoslurm/adapter/show/web"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/plugins/builtin"
)

// slurmChecks is how long doctor may take.
const slurmChecks = 2 * time.Minute

// checking collects what --check finds. It writes nothing, opens no address, and asks Slurm only through doctor.
type checking struct {
	cfg    config.Config
	checks []findings.Check
	drive  string // what new jobs get, if Slurm was asked
}

func (c *checking) add(name string, err error, detail, remedy string) {
	if err != nil {
		c.checks = append(c.checks, findings.Check{Check: name, Result: findings.Fail, Detail: err.Error(), Remedy: remedy})
		return
	}
	c.checks = append(c.checks, findings.Check{Check: name, Result: findings.OK, Detail: detail})
}

// checkAll is evoslurmd --check.
func checkAll(cmd *cobra.Command) error {
	c := &checking{}
	cfg, file, err := config.Load(cmd.Flags())
	if file == "" {
		file = "defaults (no file)"
	}
	c.add("configuration", err, file, "correct it; the sample configs/evoslurm.yaml explains every key")
	if err == nil {
		c.cfg = cfg
		ctx, cancel := context.WithTimeout(context.Background(), slurmChecks)
		defer cancel()
		c.database(ctx)
		c.folders()
		c.addresses()
		c.strategy()
		c.slurm(ctx, file)
	}
	out := cmd.OutOrStdout()
	findings.Print(out, c.checks, false)
	if n := findings.Failed(c.checks); n > 0 {
		return failure{exitOther, fmt.Errorf("%d of these checks failed", n)}
	}
	_, err = fmt.Fprintln(out, "\n"+c.plan())
	return err
}

// plan says in a line what the sidecar would do.
func (c *checking) plan() string {
	does := "drives evolving jobs"
	if c.drive != "" {
		does += ", new ones by drive mode " + c.drive
	}
	if c.cfg.Observes() {
		does = "observes, and changes nothing in Slurm"
	}
	if c.cfg.Drain != "" {
		does += ", drained"
	}
	who := "uid " + strconv.Itoa(os.Geteuid())
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	kept := "records are kept for " + c.cfg.Retention.String()
	if c.cfg.Retention == 0 {
		kept = "no record is deleted"
	}
	return fmt.Sprintf("evoslurmd %s, as %s: %s; strategy %s; %s.", version.Of(linked), who, does, c.cfg.Strategy, kept)
}

// database checks the file, and whether it may be written.
func (c *checking) database(ctx context.Context) {
	path := c.cfg.Database
	if err := mayWrite(filepath.Dir(path)); err != nil {
		c.add("database", err, "", "make the folder for the account that the sidecar runs as, or set the key database")
		return
	}
	if err := store.CheckPlace(path); err != nil {
		c.add("database", err, "", "set the key database to a file on a local disk")
		return
	}
	e, err := store.Examine(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.add("database", nil, path+" does not exist: the sidecar makes one from what Slurm knows of the jobs", "")
		return
	case err == nil && len(e.Faults) > 0:
		err = errors.New(path + ": " + strings.Join(e.Faults, "; "))
	case err == nil:
		err = mayWrite(path)
	}
	detail := describe(path, e)
	if e.Schema < e.Latest {
		detail += fmt.Sprintf("; it is brought to schema %d", e.Latest)
	}
	c.add("database", err, detail, "evosctl db restore BACKUP, the release that wrote it, or another file (docs/runbook.md)")
}

// mayWrite reports whether this account may write to what exists of a path.
func mayWrite(path string) error {
	for {
		err := unix.Access(path, unix.W_OK)
		if !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			if err != nil {
				return fmt.Errorf("%s cannot be written: %w", path, err)
			}
			return nil
		}
		path = filepath.Dir(path)
	}
}

// folders checks where records are written.
func (c *checking) folders() {
	const remedy = "make the folder for the account that the sidecar runs as"
	if c.cfg.Recorder.MiB > 0 {
		c.add("recorder", mayWrite(c.cfg.RecorderDir()), c.cfg.RecorderDir(), remedy+", or set recorder.mib: 0")
	}
	if c.cfg.Observes() {
		c.add("observe", mayWrite(c.cfg.ObserveDir()), c.cfg.ObserveDir(), remedy+", or set observe.dir")
	}
}

// addresses checks the addresses to listen on, and opens none.
func (c *checking) addresses() {
	if socket := c.cfg.Listen.Socket; socket != "" {
		dir := filepath.Dir(socket)
		err := mayWrite(dir)
		if err == nil {
			if err = strict.Path(dir); errors.Is(err, fs.ErrNotExist) {
				err = nil // it is made
			}
		}
		if st, e := os.Lstat(socket); err == nil && e == nil && st.Mode()&os.ModeSocket == 0 {
			err = fmt.Errorf("%s is no socket, and in the way", socket)
		}
		c.add("listen.socket", err, socket, "under systemd, RuntimeDirectory=evoslurm makes the folder; or set listen.socket")
	}
	c.ports()
	if c.cfg.Web.Listen != "" {
		c.add("web.tokens", (&web.Tokens{File: c.cfg.Web.Tokens}).Check(), c.cfg.Web.Tokens, "mode 0600, and a line USER TOKEN for each reader (evoslurmd(8), Page)")
	}
	if c.cfg.JWT.Key != "" {
		_, err := tokens(c.cfg, func() uint32 { return 0 })
		c.add("jwt.key", err, c.cfg.JWT.Key, "give the sidecar's account the right to read it, and no other (evoslurmd(8), Tokens)")
	}
	for section, pair := range certificates(c.cfg) {
		if _, err := pair.Current(); err != nil {
			c.add(section+".certificate", err, "", "give the sidecar's account the right to read the certificate and its key, which must belong together")
		} else if err := pair.Trouble(time.Now()); err != nil {
			c.checks = append(c.checks, findings.Check{Check: section + ".certificate", Result: findings.Warn, Detail: err.Error(), Remedy: "renew it; the sidecar reads the new file by itself"})
		} else {
			c.add(section+".certificate", nil, pair.Certificate, "")
		}
	}
}

// ports checks the TCP addresses.
func (c *checking) ports() {
	for key, address := range map[string]string{"listen.tcp": c.cfg.Listen.TCP, "listen.metrics": c.cfg.Listen.Metrics, "web.listen": c.cfg.Web.Listen} {
		if _, port, err := net.SplitHostPort(address); err == nil {
			if n, _ := strconv.Atoi(port); n > 0 && n < 1024 && os.Geteuid() != 0 {
				c.checks = append(c.checks, findings.Check{Check: key, Result: findings.Warn, Detail: address + " is below 1024, and this account may not be able to listen there",
					Remedy: "systemctl enable --now evoslurmd.socket keeps the port for the sidecar"})
				continue
			}
			c.add(key, nil, address, "")
		}
	}
}

// strategy checks that the strategy exists. Plugins are not started.
func (c *checking) strategy() {
	name := c.cfg.Strategy
	_, own := builtin.Find(name)
	if _, err := planner.StrategyByName(name); own || err == nil {
		c.add("strategy", nil, name+", built in", "")
		return
	}
	path := filepath.Join(c.cfg.Strategies.Dir, name)
	err := unix.Access(path, unix.X_OK)
	if err == nil {
		err = strict.Path(path)
	}
	if err != nil {
		err = fmt.Errorf("%s is neither built in nor a plugin that may be run: %w", name, err)
	}
	c.add("strategy", err, path, "evosctl strategy list has those that there are")
}

// slurm has evosctl doctor check Slurm and the rights there.
func (c *checking) slurm(ctx context.Context, file string) {
	args := []string{"doctor", "--json", "--starting"}
	if _, err := os.Stat(file); err == nil {
		args = append(args, "--config="+file)
	}
	text, err := exec.CommandContext(ctx, besideThis("evosctl"), args...).Output()
	var found struct {
		Checks []findings.Check
		Drive  string
	}
	if ended := (*exec.ExitError)(nil); err == nil || errors.As(err, &ended) {
		err = json.Unmarshal(text, &found)
	}
	if err != nil {
		c.add("Slurm", fmt.Errorf("evosctl doctor: %w", err), "", "install evoslurm-client of this version")
		return
	}
	c.drive = found.Drive
	for _, one := range found.Checks {
		if one.Check != "configuration" {
			c.checks = append(c.checks, one)
		}
	}
}

// besideThis returns a command of ours where it is installed with this one, or its name.
func besideThis(name string) string {
	if own, err := os.Executable(); err == nil {
		for _, dir := range []string{".", "../bin"} {
			if path, err := exec.LookPath(filepath.Join(filepath.Dir(own), dir, name)); err == nil {
				return path
			}
		}
	}
	return name
}
