// Package wholefile writes files that are there whole or not at all.
package wholefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Write lets write fill a file. Until that is done, and if it fails, the file stays as it was, or
// absent; so it may be read meanwhile. An existing file keeps its permissions within perm; a new
// one gets perm within the umask. A symbolic link stays one. If the name is not a regular file, or
// is standard output or standard error under another name, it cannot be replaced, and Write writes
// to it directly.
func Write(name string, perm fs.FileMode, write func(io.Writer) error) error {
	there, err := os.OpenFile(name, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return replace(target(name), renameio.WithPermissions(perm), write)
	}
	if err != nil {
		return err
	}
	info, err := there.Stat()
	if err != nil {
		return errors.Join(err, there.Close())
	}
	for _, standard := range []*os.File{os.Stdout, os.Stderr} {
		if own, err := standard.Stat(); err == nil && os.SameFile(own, info) {
			return errors.Join(there.Close(), write(standard))
		}
	}
	path := target(name)
	if again, err := os.Lstat(path); err != nil || !again.Mode().IsRegular() || !os.SameFile(again, info) {
		return errors.Join(write(there), there.Close())
	}
	if err := there.Close(); err != nil {
		return err
	}
	return replace(path, renameio.WithStaticPermissions(info.Mode().Perm()&perm), write)
}

// target returns the file that a name means, even if it does not exist yet.
func target(name string) string {
	for {
		to, err := os.Readlink(name)
		if err != nil {
			return name
		}
		if !filepath.IsAbs(to) {
			to = filepath.Dir(name) + "/" + to // not cleaned: the part before .. may be a link
		}
		name = to
	}
}

func replace(path string, mode renameio.Option, write func(io.Writer) error) error {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), mode)
	if err != nil {
		if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
			failed.Op, failed.Path = "create", path // not the temporary file's
		}
		return err
	}
	if err := write(f.File); err != nil {
		return errors.Join(err, f.Cleanup())
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return errors.Join(err, f.Cleanup())
	}
	return nil
}
