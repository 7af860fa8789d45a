package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// Accounts lists what a sidecar may run as: root, SlurmUser, and an operator.
var Accounts = []string{"root", "slurm", "operator"}

// An Account is what a sidecar runs as.
type Account struct {
	*slurmctl.User // nil: root
	Operator       bool
}

// FindAccount returns one of Accounts. The operator is an account of every Debian system, but none of a cluster's users.
func FindAccount(name string) (a Account, err error) {
	switch name {
	case "root":
		return a, nil
	case "operator":
		return Lookup("news")
	case "slurm":
		return Lookup(name)
	}
	return a, fmt.Errorf("account %q: choose one of %s", name, strings.Join(Accounts, ", "))
}

// Lookup returns an account of the machine: SlurmUser, or an operator.
func Lookup(name string) (a Account, err error) {
	a.Operator = name != "slurm"
	found, err := user.Lookup(name)
	if err != nil {
		return a, err
	}
	uid, err := strconv.ParseUint(found.Uid, 10, 32)
	if err == nil {
		a.User, err = slurmctl.LookupUser(uint32(uid))
	}
	return a, err
}

// Configuration returns the line of the configuration that has commands believe the account.
func (a Account) Configuration() string {
	if !a.Operator {
		return ""
	}
	return "sidecar_user: " + a.Name + "\n"
}

// Promote has slurmdbd know an operator as one.
func (a Account) Promote(cluster *slurmtest.Cluster) error {
	if !a.Operator {
		return nil
	}
	_, err := cluster.Run(context.Background(), slurmtest.Root, "sacctmgr", "-i", "add", "user", a.Name, "account=root", "adminlevel=Operator")
	return err
}

// Own gives files and folders to the account. It makes those that are missing as folders; root's sidecar does so itself.
func (a Account) Own(paths ...string) (err error) {
	if a.User == nil {
		return nil
	}
	for _, path := range paths {
		if !exists(path) {
			err = errors.Join(err, os.Mkdir(path, 0o755))
		}
		err = errors.Join(err, os.Chown(path, int(a.UID), int(a.GID)))
	}
	return err
}

// Become has a process begin as the account.
func (a Account) Become(cmd *exec.Cmd) {
	if a.User == nil {
		return
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.UID, Gid: a.GID, Groups: a.Groups}
}
