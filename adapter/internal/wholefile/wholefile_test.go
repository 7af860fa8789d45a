package wholefile_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/wholefile"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// holds fails the test unless the file has this text and its folder has only `others` other files.
func holds(t *testing.T, name, want string, others int) {
	t.Helper()
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%s: %q, %v; want %q", name, got, err, want)
	}
	if all, _ := os.ReadDir(filepath.Dir(name)); len(all) != 1+others {
		t.Errorf("beside %s: %v", name, all)
	}
}

// TestWhole checks that a file stays as it was until the new one is complete, and if writing fails.
func TestWhole(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	late := errors.New("late")
	half := func(w io.Writer) error { return errors.Join(text("half")(w), late) }
	if err := wholefile.Write(name, 0o666, half); !errors.Is(err, late) {
		t.Error(err)
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Error("half a file is there")
	}
	must.OK(t, wholefile.Write(name, 0o666, text("one")))
	holds(t, name, "one", 0)
	if err := wholefile.Write(name, 0o666, half); !errors.Is(err, late) {
		t.Error(err)
	}
	holds(t, name, "one", 0)
	if err := wholefile.Write(name, 0o666, func(w io.Writer) error {
		was, err := os.ReadFile(name)
		return errors.Join(err, text(string(was)+" and two")(w))
	}); err != nil {
		t.Fatal(err)
	}
	holds(t, name, "one and two", 0)
}

// TestPermissions checks that a new file follows the umask, and that an existing one keeps its
// permissions within the requested ones.
func TestPermissions(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	name := filepath.Join(t.TempDir(), "a")
	for _, step := range []struct{ before, perm, want fs.FileMode }{{0, 0o666, 0o640}, {0o604, 0o666, 0o604}, {0o664, 0o600, 0o600}} {
		if step.before != 0 {
			must.OK(t, os.Chmod(name, step.before))
		}
		must.OK(t, wholefile.Write(name, step.perm, text("x")))
		if info, err := os.Stat(name); err != nil || info.Mode() != step.want {
			t.Errorf("%o written with %o: %v, %v; want %o", step.before, step.perm, info.Mode(), err, step.want)
		}
	}
}

// TestLinks checks that the file behind a symbolic link is written, even if it does not exist yet.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	for name, to := range map[string]string{"link": "to", "to": "file"} {
		must.OK(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	for _, s := range []string{"one", "two"} {
		must.OK(t, wholefile.Write(filepath.Join(dir, "link"), 0o666, text(s)))
		holds(t, filepath.Join(dir, "file"), s, 2)
	}
	if info, err := os.Lstat(filepath.Join(dir, "link")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link: %v, %v", info, err)
	}
}

// TestPipe checks that a file that is not regular is written to directly.
func TestPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	must.OK(t, syscall.Mkfifo(name, 0o600))
	got := make(chan string)
	go func() {
		b, _ := os.ReadFile(name)
		got <- string(b)
	}()
	must.OK(t, wholefile.Write(name, 0o666, text("through")))
	if s := <-got; s != "through" {
		t.Errorf("%q", s)
	}
	if err := wholefile.Write(os.DevNull, 0o666, text("away")); err != nil {
		t.Error(err)
	}
	if err := wholefile.Write("/dev/full", 0o666, text("no room")); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
}

// TestRefused checks that errors name the given file, not the temporary one.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{dir: "open " + dir + ": is a directory", dir + "/none/a": "create " + dir + "/none/a: no such file or directory"} {
		if err := wholefile.Write(name, 0o666, text("x")); err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
