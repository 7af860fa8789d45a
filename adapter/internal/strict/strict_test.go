package strict

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

const stranger = 65534

// TestPath checks that a path is rejected as soon as another user could replace a part of it.
func TestPath(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(base string) error
		path  string
		want  string // part of the error; "": none
	}{
		"as it should be":             {func(string) error { return nil }, "a/b/file", ""},
		"the file is missing":         {func(string) error { return nil }, "a/b/missing", "no such file"},
		"the file is open":            {func(base string) error { return os.Chmod(base+"/a/b/file", 0o666) }, "a/b/file", "a/b/file may be written"},
		"the file is another's":       {func(base string) error { return os.Chown(base+"/a/b/file", stranger, 0) }, "a/b/file", "a/b/file belongs to user 65534"},
		"its folder is open":          {func(base string) error { return os.Chmod(base+"/a/b", 0o775) }, "a/b/file", "a/b may be written"},
		"a folder above is open":      {func(base string) error { return os.Chmod(base+"/a", 0o777) }, "a/b/file", "a may be written"},
		"a folder above is sticky":    {func(base string) error { return os.Chmod(base+"/a", 0o777|os.ModeSticky) }, "a/b/file", ""},
		"the folder is sticky":        {func(base string) error { return os.Chmod(base+"/a", 0o777|os.ModeSticky) }, "a", "a may be written"},
		"a folder above is another's": {func(base string) error { return os.Chown(base+"/a", stranger, 0) }, "a/b/file", "a belongs to user"},
		"a link leads there":          {func(base string) error { return os.Symlink("a", base+"/link") }, "link/b/file", ""},
		"another's link leads there": {func(base string) error {
			if err := os.Symlink("a", base+"/link"); err != nil {
				return err
			}
			return os.Lchown(base+"/link", stranger, 0)
		}, "link/b/file", "link belongs to user"},
		"a link leads to an open folder": {func(base string) error {
			if err := os.Chmod(base+"/a", 0o777); err != nil {
				return err
			}
			return os.Symlink("a/b", base+"/link")
		}, "link/file", "a may be written"},
	} {
		t.Run(name, func(t *testing.T) {
			base, err := filepath.EvalSymlinks(t.TempDir())
			must.OK(t, err)
			must.OK(t, os.MkdirAll(base+"/a/b", 0o755))
			must.OK(t, os.WriteFile(base+"/a/b/file", nil, 0o600))
			must.OK(t, c.spoil(base))
			err = Path(filepath.Join(base, c.path))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}

// TestAsOwner checks with whose rights root writes into a folder, and that root has its own again afterwards.
func TestAsOwner(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	links := map[string]string{"link": "theirs/b", "far": base + "/theirs", "loop": "loop", "theirs/out": "../a", "theirs/up": base + "/a"}
	err = errors.Join(os.MkdirAll(base+"/a", 0o755), os.MkdirAll(base+"/theirs/b", 0o755), os.Chown(base+"/theirs", stranger, stranger))
	for name, to := range links {
		err = errors.Join(err, os.Symlink(to, base+"/"+name))
	}
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"a": 0, "a/../a": 0, "theirs": stranger, "theirs/b": stranger, "link": stranger, "far": stranger, "theirs/out": stranger, "theirs/up": stranger, "loop": -1, "none": -1} {
		as, groups := -1, 0
		err := AsOwner(base+"/"+path, func() error {
			all, err := os.Getgroups()
			as, groups = os.Geteuid(), len(all)
			return err
		})
		if as != want || (err != nil) != (want < 0) || want > 0 && groups > 0 {
			t.Errorf("%s: as %d with %d groups, %v; want as %d", path, as, groups, err, want)
		}
	}
	if err := os.WriteFile(base+"/a/file", nil, 0o600); err != nil || os.Getegid() != 0 {
		t.Errorf("afterwards: %v, group %d", err, os.Getegid())
	}
}
