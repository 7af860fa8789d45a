package injob

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// A user's processes meet in the folder /tmp/evoslurm-UID. Another user may have created that name
// first, so the folder counts only if it belongs exclusively to this user. Otherwise the user gets
// /tmp/evoslurm-UID.RANDOM, which others cannot guess, take, or (sticky bit of /tmp) remove, and
// which other processes find by searching for the user's folders. /run/user/UID does not suit: it
// vanishes when the user's last session ends, while jobs continue. TMPDIR does not suit either,
// because a script may change it.

// meetBase is the parent of all users' folders; tests replace it.
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

// ownDir reports whether dir is a folder that belongs exclusively to this user.
func ownDir(dir string) bool {
	var st unix.Stat_t
	return unix.Lstat(dir, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && int(st.Uid) == os.Getuid() && st.Mode&0o022 == 0
}

// makeMeetDir returns meetDir and creates it if missing. taken is the usual name if another user
// has it.
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
		dir = meetDir() // another process may have created one as well
	}
	if dir == "" {
		return "", "", fmt.Errorf("no folder for this user in %s", meetBase)
	}
	if dir != name {
		taken = name
	}
	return dir, taken, nil
}
