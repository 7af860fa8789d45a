package injob

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// The folder in which a user's processes meet is /tmp/evoslurm-UID. Anybody may have made
// that name first, so the folder counts only if it belongs to the user alone. Otherwise the
// user gets /tmp/evoslurm-UID.RANDOM, which nobody can guess, take or (the sticky bit of
// /tmp) remove, and which other processes find by looking for folders that are the user's.
// /run/user/UID is no such place: it vanishes when the user's last session ends, while jobs
// go on. TMPDIR is none either, since a script may change it.

// meetBase is the folder of all users' folders; tests replace it.
var meetBase = "/tmp"

// meetDirs returns the folders of this user, the one to use first.
func meetDirs() []string {
	name := filepath.Join(meetBase, fmt.Sprint("evoslurm-", os.Getuid()))
	private, _ := filepath.Glob(name + ".*") // the pattern is sound; sorted
	return slices.DeleteFunc(append([]string{name}, private...), func(dir string) bool { return !ownDir(dir) })
}

// meetDir returns the folder of the user's sockets, locks and records, or "" if there is none.
func meetDir() string {
	if dirs := meetDirs(); len(dirs) > 0 {
		return dirs[0]
	}
	return ""
}

// ownDir reports whether dir is a folder that belongs to this user alone.
func ownDir(dir string) bool {
	var st unix.Stat_t
	return unix.Lstat(dir, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && int(st.Uid) == os.Getuid() && st.Mode&0o022 == 0
}

// makeMeetDir returns meetDir, which it makes if it is missing. taken is the usual name
// where another user has it.
func makeMeetDir() (dir, taken string, err error) {
	name := filepath.Join(meetBase, fmt.Sprint("evoslurm-", os.Getuid()))
	if dir = meetDir(); dir == "" {
		err = os.Mkdir(name, 0o700)
		if errors.Is(err, os.ErrExist) && !ownDir(name) {
			_, err = os.MkdirTemp(meetBase, filepath.Base(name)+".")
		}
		if err != nil && !errors.Is(err, os.ErrExist) {
			return "", "", err
		}
		dir = meetDir() // another process may have made one, too
	}
	if dir == "" {
		return "", "", fmt.Errorf("no folder for this user in %s", meetBase)
	}
	if dir != name {
		taken = name
	}
	return dir, taken, nil
}
