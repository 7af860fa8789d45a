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

// Write has write fill a file. Until that is done, and wherever it fails, the file is what it was, or not there; so it may
// be read meanwhile. One that was there keeps its permissions as far as perm has them, a new one gets perm as umask
// has it. A symbolic link stays one. What is no regular file, or standard output or standard error under another
// name, cannot be replaced: it is written to.
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

// target is the file that a name means, also where that does not exist yet.
func target(name string) string {
	for {
		to, err := os.Readlink(name)
		if err != nil {
			return name
		}
		if !filepath.IsAbs(to) {
			to = filepath.Dir(name) + "/" + to // not cleaned: what is before .. may be a link
		}
		name = to
	}
}

func replace(path string, mode renameio.Option, write func(io.Writer) error) error {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), mode)
	if err != nil {
		if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
			failed.Op, failed.Path = "create", path // not that of the file beside it
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
