// Package strict checks who could replace a file, as sshd does with StrictModes, and keeps root from following such a user.
package strict

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// OwnerError says that a file or folder belongs to another user than it may.
type OwnerError struct {
	Path string
	UID  uint32
}

func (e OwnerError) Error() string {
	return fmt.Sprintf("%s belongs to user %d, who could put another file in its place, not to root or this process's user", e.Path, e.UID)
}

// Path returns an error unless only root, this process's user, and the other given ones can write or replace a file or
// folder: they own it, every folder above it, and every link that leads to it, and no other user
// may write there. Folders above may be open to all with the sticky bit, like /tmp.
func Path(path string, others ...uint32) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if err := chain(path, others); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil || real == path {
		return err
	}
	return chain(real, others)
}

// chain checks a path and all folders that it names.
func chain(path string, others []uint32) error {
	for above := false; ; above = true {
		st, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if err := owned(path, st, others); err != nil {
			return err
		}
		open := st.Mode().Perm()&0o022 != 0 && st.Mode()&fs.ModeSymlink == 0
		if open && (!above || st.Mode()&fs.ModeSticky == 0) {
			return fmt.Errorf("%s may be written by others (mode %04o): anybody could put another file in its place; chmod go-w %[1]s", path, st.Mode().Perm())
		}
		next := filepath.Dir(path)
		if next == path {
			return nil
		}
		path = next
	}
}

func owned(path string, st fs.FileInfo, others []uint32) error {
	if owner := st.Sys().(*syscall.Stat_t).Uid; owner != 0 && int(owner) != os.Geteuid() && !slices.Contains(others, owner) {
		return OwnerError{path, owner}
	}
	return nil
}

// AsOwner runs f, which writes into a folder, with the rights of the first user but root who owns a part of the way there. Root
// would else follow links that this user makes.
func AsOwner(dir string, f func() error) error {
	if os.Geteuid() != 0 {
		return f()
	}
	owner, err := firstOwner(dir)
	if err != nil {
		return err
	}
	if owner.Uid == 0 {
		return f()
	}
	group := os.Getegid()
	groups, err := syscall.Getgroups()
	if err != nil {
		return err
	}
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setegid(int(owner.Gid)), syscall.Seteuid(int(owner.Uid))); err != nil {
		return err
	}
	err = f()
	return errors.Join(err, syscall.Seteuid(0), syscall.Setegid(group), syscall.Setgroups(groups))
}

// mostLinks bounds the links on the way to a folder, as the kernel does.
const mostLinks = 40

// firstOwner returns the first owner but root of a folder or link on the way to a folder, or root.
func firstOwner(dir string) (*syscall.Stat_t, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	at, rest, links := "/", strings.Split(dir, "/"), 0
	for {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		st, err := os.Lstat(next)
		if err != nil {
			return nil, err
		}
		owner := st.Sys().(*syscall.Stat_t)
		if owner.Uid != 0 || len(rest) == 0 && st.Mode()&fs.ModeSymlink == 0 {
			return owner, nil
		}
		if st.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		to, err := os.Readlink(next)
		if links++; err != nil || links > mostLinks {
			return nil, errors.Join(err, fmt.Errorf("%s: too many links", dir))
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
}
