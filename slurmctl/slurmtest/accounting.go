package slurmtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// accountName is the account that the unprivileged users belong to.
const accountName = "proj"

func (c *Cluster) databaseDir() string    { return c.site.dir + "/db" }
func (c *Cluster) databaseSocket() string { return c.databaseDir() + "/socket" }

// startDatabase starts MariaDB on a copy of this machine's template or, without one, on a new
// database.
func (c *Cluster) startDatabase(ctx context.Context, template string) error {
	data := c.databaseDir() + "/data"
	if template != "" {
		if err := copyTree(data, template, account(c.site.slurmUser)); err != nil {
			return err
		}
	} else if err := c.installDatabase(ctx, data); err != nil {
		return err
	}
	return c.startMariadbd(ctx)
}

// installDatabase creates MariaDB's system tables. Its root has no password: only SlurmUser can
// reach the socket.
func (c *Cluster) installDatabase(ctx context.Context, data string) error {
	cmd := exec.CommandContext(ctx, accountingParts[2].find(), "--no-defaults", "--datadir="+data,
		"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve",
		"--force") // for a host name without an address
	cmd.Args = append(cmd.Args, innodb...)
	cmd.Env, cmd.Dir = daemonEnv("HOME="+c.databaseDir(), "TMPDIR="+c.databaseDir()), c.databaseDir()
	if u := account(c.site.slurmUser); u != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("slurmtest: mariadb-install-db: %w: %s", err, out)
	}
	// A folder is a database. If slurmdbd creates it itself, it connects, fails, and connects
	// again. MariaDB's client library 11.8.9 (Debian unstable) then reads its limit of columns as
	// 0.
	return folder{databaseName, account(c.site.slurmUser), 0o700}.make(data)
}

const databaseName = "slurm_acct_db"

// innodb keeps the files small. The data are safe only after a clean stop, because they live only
// as long as the cluster.
var innodb = []string{
	"--innodb-log-file-size=8M", "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0",
	"--skip-innodb-doublewrite", "--skip-innodb-use-native-aio", "--innodb-autoextend-increment=1",
}

func (c *Cluster) startMariadbd(ctx context.Context) error {
	dir := c.databaseDir()
	d, err := c.sup.start(ctx, request{
		Name: "mariadbd", Path: daemonPath("mariadbd"),
		Argv: append([]string{"mariadbd", "--no-defaults", "--datadir=" + dir + "/data", "--socket=" + c.databaseSocket(),
			"--pid-file=" + dir + "/pid", "--tmpdir=" + dir, "--skip-networking", "--skip-name-resolve", "--skip-log-bin",
			"--innodb-lock-wait-timeout=900", "--skip-innodb-buffer-pool-load-at-startup", "--skip-innodb-buffer-pool-dump-at-shutdown",
		}, innodb...),
		Env: daemonEnv(), Dir: dir, Output: c.site.dir + "/log/mariadbd.log", User: account(c.site.slurmUser),
	})
	if err != nil {
		return err
	}
	return d.until(ctx, func() bool { return accepts("unix", c.databaseSocket()) })
}

// startSlurmdbd starts slurmdbd on the running database.
func (c *Cluster) startSlurmdbd(ctx context.Context) error {
	auth := "AuthType=auth/munge\nAuthInfo=socket=" + c.site.mungeSocket()
	if c.options.AuthSlurm {
		auth = "AuthType=auth/slurm"
	}
	lines := []string{
		auth,
		"DbdHost=" + c.site.host,
		"DbdAddr=" + loopback,
		fmt.Sprintf("DbdPort=%d", c.site.dbPort),
		"SlurmUser=" + c.site.slurmUser,
		"PidFile=" + c.databaseDir() + "/slurmdbd.pid",
		"LogFile=" + c.site.dir + "/log/slurmdbd.log",
		"DebugLevel=info",
		"StorageType=accounting_storage/mysql",
		"StorageHost=localhost",
		"StorageUser=root",
		"StorageLoc=" + databaseName,
	}
	if c.site.bind {
		lines = append(lines, "CommunicationParameters=NoInAddrAny")
	}
	path := c.site.dir + "/slurmdbd.conf"
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	if err := chown(path, account(c.site.slurmUser)); err != nil {
		return err
	}
	d, err := c.sup.start(ctx, request{
		Name: "slurmdbd", Path: daemonPath("slurmdbd"), Argv: []string{"slurmdbd", "-D"},
		// MariaDB's client library reads the socket from here.
		Env: append(c.daemonEnv(), "MYSQL_UNIX_PORT="+c.databaseSocket()),
		Dir: c.databaseDir(), Output: c.site.dir + "/log/slurmdbd.out", User: account(c.site.slurmUser),
	})
	if err != nil {
		return err
	}
	return d.until(ctx, func() bool { return accepts("tcp", fmt.Sprintf("%s:%d", loopback, c.site.dbPort)) })
}

// startAccounting starts the database and slurmdbd. The first time on a machine, it fills them,
// which takes seconds, and keeps a copy of the result. Later it starts from that copy. It needs
// munged. A cluster beside another only registers there.
func (c *Cluster) startAccounting(ctx context.Context, munge <-chan error) error {
	if c.options.Beside != nil {
		if err := <-munge; err != nil {
			return err
		}
		return c.fillAccounting(ctx)
	}
	key, err := c.templateKey(ctx)
	if err != nil {
		return err
	}
	template, found := findTemplate(key)
	if found {
		err = errors.Join(c.startDatabase(ctx, template), <-munge)
		if err == nil {
			err = c.startSlurmdbd(ctx)
		}
		if err != nil {
			err = errors.Join(err, os.RemoveAll(template)) // in case the template is damaged
		}
		return err
	}
	if err := errors.Join(c.startDatabase(ctx, ""), <-munge); err != nil {
		return err
	}
	if err := c.startSlurmdbd(ctx); err != nil {
		return err
	}
	if err := c.fillAccounting(ctx); err != nil {
		return err
	}
	for _, name := range []string{"slurmdbd", "mariadbd"} {
		if err := c.sup.kill(ctx, name, syscall.SIGTERM); err != nil {
			return err
		}
	}
	if template != "" {
		if err := saveTemplate(c.databaseDir()+"/data", template); err != nil {
			return err
		}
	}
	if err := c.startMariadbd(ctx); err != nil {
		return err
	}
	return c.startSlurmdbd(ctx)
}

// fillAccounting registers the cluster with slurmdbd, with one account for all users.
func (c *Cluster) fillAccounting(ctx context.Context) error {
	for _, args := range [][]string{
		{"cluster", c.options.Name},
		{"account", accountName, "cluster=" + c.options.Name},
		{"user", c.userNames(), "account=" + accountName, "cluster=" + c.options.Name},
	} {
		if _, err := c.Run(ctx, Root, "sacctmgr", append([]string{"-i", "add"}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) userNames() string {
	var names []string
	for _, u := range c.users {
		names = append(names, u.Name)
	}
	return strings.Join(names, ",")
}

// SQL changes slurmdbd's database, for what no command of Slurm writes.
func (c *Cluster) SQL(ctx context.Context, statement string) error {
	cmd := exec.CommandContext(ctx, "mariadb", "--no-defaults", "--user=root", "--socket="+c.databaseSocket(), "--execute="+statement, databaseName)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("slurmtest: mariadb: %w: %s", err, out)
	}
	return nil
}
