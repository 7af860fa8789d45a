package slurmtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// templateKey distinguishes databases that must not be mixed up.
func (c *Cluster) templateKey(ctx context.Context) (string, error) {
	mariadb, err := exec.CommandContext(ctx, daemonPath("mariadbd"), "--no-defaults", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("slurmtest: mariadbd --version: %w", err)
	}
	const layout = 3 // raise it with every change of a template's contents
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s %s %s %s", layout, mariadb, c.site.version, c.site.slurmUser, c.userNames(), c.options.Name))
	return fmt.Sprintf("mariadb-%x", sum[:8]), nil
}

// findTemplate returns where the template with that key is or, if not found, belongs; "" if there
// is no place for it.
func findTemplate(key string) (path string, found bool) {
	dir := cacheDir()
	if dir == "" {
		return "", false
	}
	path = filepath.Join(dir, key)
	_, err := os.Stat(path)
	return path, err == nil
}

// cacheDir returns a folder that only this user can write: in the cache of the account's home
// (tests like to set HOME), or otherwise in the temporary folder.
func cacheDir() string {
	var dirs []string
	if dir := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		dirs = append(dirs, dir)
	} else if me, err := user.LookupId(strconv.Itoa(os.Geteuid())); err == nil {
		dirs = append(dirs, filepath.Join(me.HomeDir, ".cache"))
	}
	for i, dir := range dirs {
		dirs[i] = filepath.Join(dir, "evoslurm-slurmtest")
	}
	dirs = append(dirs, filepath.Join(os.TempDir(), fmt.Sprintf("evoslurm-slurmtest-%d", os.Geteuid())))
	for _, dir := range dirs {
		if os.MkdirAll(dir, 0o700) != nil {
			continue
		}
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
			continue
		}
		if sys, ok := info.Sys().(*syscall.Stat_t); ok && int(sys.Uid) == os.Geteuid() {
			return dir
		}
	}
	return ""
}

// saveTemplate keeps a copy of the data. Of several processes that do so at once, one wins, and
// each leaves a complete copy.
func saveTemplate(data, template string) error {
	temp, err := os.MkdirTemp(filepath.Dir(template), "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := copyTree(temp+"/data", data, nil); err != nil {
		return err
	}
	err = os.Rename(temp+"/data", template)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY) {
		return nil
	}
	return err
}

// copyTree copies a folder of folders and regular files to a new folder owned by that user.
func copyTree(to, from string, u *owner) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		switch {
		case entry.IsDir():
			err = os.Mkdir(target, 0o700)
		case entry.Type().IsRegular():
			err = copyFile(target, path)
		default:
			return fmt.Errorf("slurmtest: %s is neither a file nor a folder", path)
		}
		if err != nil {
			return err
		}
		return chown(target, u)
	})
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
