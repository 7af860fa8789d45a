package slurmtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// User is an account of the machine that runs clients of the cluster.
type User struct {
	Name   string
	UID    uint32
	GID    uint32
	Groups []uint32 // all groups, including GID
	Home   string   // a folder of the user's own under Dir, where commands start
}

// Root is the administrator of a cluster: root itself or, in a cluster without root, the only user,
// who is SlurmUser.
var Root = User{Name: "root"}

// candidates are accounts of every Debian system (package base-passwd) that own
// nothing and run nothing.
var candidates = []string{"games", "backup", "news", "uucp", "irc", "list", "nobody"}

// Users returns the unprivileged users of the cluster: two as root, otherwise one.
func (c *Cluster) Users() []User { return append([]User(nil), c.users...) }

// findUsers picks the unprivileged users.
func findUsers() ([]User, error) {
	if os.Geteuid() != 0 {
		me, err := user.LookupId(strconv.Itoa(os.Geteuid()))
		if err != nil {
			return nil, fmt.Errorf("slurmtest: Slurm needs a user that has a name: %w", err)
		}
		u, err := asUser(me)
		return []User{u}, err
	}
	var users []User
	for _, name := range candidates {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		u, err := asUser(account)
		if err != nil {
			return nil, err
		}
		if users = append(users, u); len(users) == 2 {
			return users, nil
		}
	}
	return nil, fmt.Errorf("slurmtest: fewer than two of the accounts %s exist", strings.Join(candidates, ", "))
}

func asUser(account *user.User) (User, error) {
	u := User{Name: account.Username}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return u, err
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return u, err
	}
	u.UID, u.GID = uint32(uid), uint32(gid)
	ids, err := account.GroupIds()
	if err != nil {
		return u, err
	}
	for _, id := range ids {
		if g, err := strconv.ParseUint(id, 10, 32); err == nil {
			u.Groups = append(u.Groups, uint32(g))
		}
	}
	return u, nil
}

// account returns the owner that a daemon of the named system account runs as. It returns nil (the
// caller) without root or without that account.
func account(name string) *owner {
	if os.Geteuid() != 0 {
		return nil
	}
	a, err := user.Lookup(name)
	if err != nil {
		return nil
	}
	u, err := asUser(a)
	if err != nil {
		return nil
	}
	return &owner{UID: u.UID, GID: u.GID, Groups: u.Groups}
}

// Env returns the environment that a Slurm client needs to speak to this cluster. Processes that
// still run with it when the cluster stops are killed.
func (c *Cluster) Env() []string {
	return append([]string{"SLURM_CONF=" + c.site.conf(), clusterEnv + "=" + c.site.dir}, c.clockEnv()...)
}

// Command prepares a client command as the user (one of Users, or Root), in the user's home and in
// a clean environment, whose only SLURM_ variables are those in Env. When ctx ends, the command is
// killed.
func (c *Cluster) Command(ctx context.Context, u User, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	if u.Name == Root.Name && u.UID == 0 {
		u.Home = c.site.dir + "/home/root"
	}
	cmd.Dir = u.Home
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH") + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
		"HOME=" + u.Home, "USER=" + u.Name, "LOGNAME=" + u.Name, "SHELL=/bin/sh", "LANG=C.UTF-8",
	}, c.Env()...)
	if uint32(os.Geteuid()) != u.UID && os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}}
	}
	cmd.WaitDelay = 2 * time.Second // a grandchild may hold the pipes
	return cmd
}

// Run runs a client command and returns its standard output. The error holds the command, how it
// ended, and its standard error.
func (c *Cluster) Run(ctx context.Context, u User, name string, args ...string) (string, error) {
	cmd := c.Command(ctx, u, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s (as %s): %w: %s", strings.Join(cmd.Args, " "), u.Name, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}
