package cores

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

const patience = time.Minute

// The tests' program is the keeper as well.
func TestMain(m *testing.M) {
	if len(os.Args) == 6 && os.Args[1] == "keep" {
		if err := Keep(Place{Dir: os.Args[2], Job: os.Args[3], Step: os.Args[4], Node: os.Args[5]}); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// task is a process of a step with a child.
type task struct {
	*exec.Cmd
	child int
	in    interface{ Close() error }
}

func startTask(t *testing.T, p Place) *task {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "env -i sleep 600 & echo $!; read end; kill $!")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "SLURM_JOB_ID=" + p.Job, "SLURM_STEP_ID=" + p.Step, "SLURMD_NODENAME=" + p.Node}
	in, err := cmd.StdinPipe()
	must.OK(t, err)
	out, err := cmd.StdoutPipe()
	must.OK(t, err)
	must.OK(t, cmd.Start())
	task := &task{Cmd: cmd, in: in}
	line, err := bufio.NewReader(out).ReadString('\n')
	must.OK(t, err)
	_, err = fmt.Sscan(line, &task.child)
	must.OK(t, err)
	t.Cleanup(func() { task.end() })
	return task
}

func (k *task) end() {
	k.in.Close()
	k.Wait()
}

func (k *task) join(t *testing.T, p Place, share int) error {
	t.Helper()
	self, err := os.Executable()
	must.OK(t, err)
	return Join(p, share, k.Process.Pid, []string{self, "keep", p.Dir, p.Job, p.Step, p.Node})
}

func uses(t *testing.T, pid int) set {
	t.Helper()
	s, err := affinity(pid)
	must.OK(t, err)
	return s
}

// eventually waits until what is true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v until %s", patience, what)
		}
	}
}

// TestShare has two steps share the CPUs of the tests' process; with one core, the second is refused. A
// child that began before its task joined moves, too, also without the variables.
func TestShare(t *testing.T) {
	dir := t.TempDir()
	p1, p2 := Place{dir, "7", "1", "n1"}, Place{dir, "7", "2", "n1"}
	may := uses(t, os.Getpid())
	cores := len(topology(sys, may))
	a, b := startTask(t, p1), startTask(t, p2)
	must.OK(t, a.join(t, p1, 1))
	if got := uses(t, a.Process.Pid); !slices.Equal(got, may) {
		t.Fatalf("alone, it uses %s of %s", got, may)
	}
	if err := b.join(t, p2, 1); (err == nil) != (cores > 1) {
		t.Fatalf("the second of %d cores: %v", cores, err)
	}
	if cores > 1 {
		mine := uses(t, b.Process.Pid)
		apart := func(pid int) bool {
			s := uses(t, pid)
			return len(s) > 0 && len(s.and(mine)) == 0 && len(s)+len(mine) == len(may)
		}
		eventually(t, "the first has folded", func() bool { return apart(a.Process.Pid) && apart(a.child) })
		eventually(t, "the child of the second has, too", func() bool { return slices.Equal(uses(t, b.child), mine) })
		b.end()
		eventually(t, "the first has unfolded", func() bool {
			return slices.Equal(uses(t, a.Process.Pid), may) && slices.Equal(uses(t, a.child), may)
		})
	}
	a.end()
	eventually(t, "the last keeper has removed the file", func() bool {
		_, err := os.Lstat(p1.path())
		return errors.Is(err, fs.ErrNotExist)
	})
}

// Two tasks of a step have the same cores and one keeper, which stays until both have ended.
func TestTwoTasks(t *testing.T) {
	p := Place{t.TempDir(), "7", "1", "n1"}
	a, b := startTask(t, p), startTask(t, p)
	must.OK(t, a.join(t, p, 1))
	first := keeperOf(t, p)
	must.OK(t, b.join(t, p, 1))
	if second := keeperOf(t, p); second != first {
		t.Errorf("keepers %d and %d", first, second)
	}
	if x, y := uses(t, a.Process.Pid), uses(t, b.Process.Pid); !slices.Equal(x, y) {
		t.Errorf("they use %s and %s", x, y)
	}
	a.end()
	time.Sleep(3 * keepLook)
	if second := keeperOf(t, p); second != first {
		t.Errorf("with one task left, the keeper is %d, not %d", second, first)
	}
	b.end()
	eventually(t, "the keeper has removed the file", func() bool {
		_, err := os.Lstat(p.path())
		return errors.Is(err, fs.ErrNotExist)
	})
}

// keeperOf returns the process that keeps the only step of a file.
func keeperOf(t *testing.T, p Place) int {
	t.Helper()
	f, err := lock(p.path())
	must.OK(t, err)
	defer f.Close()
	s := f.read()
	if len(s.Members) != 1 {
		t.Fatalf("%d steps share the cores: %+v", len(s.Members), s)
	}
	return s.Members[0].Keeper.PID
}

// A keeper that is killed is noticed, and a later task of the step starts another one.
func TestKilledKeeper(t *testing.T) {
	p := Place{t.TempDir(), "7", "1", "n1"}
	a := startTask(t, p)
	must.OK(t, a.join(t, p, 1))
	first := keeperOf(t, p)
	must.OK(t, syscall.Kill(first, syscall.SIGKILL))
	eventually(t, "the keeper has ended", func() bool {
		s, err := readStat("/proc", first)
		return err != nil || s.state == 'Z'
	})
	must.OK(t, a.join(t, p, 1))
	if second := keeperOf(t, p); second == first {
		t.Errorf("keeper %d is dead", first)
	}
}

// What an ended job left is removed; what is not a file of this kind stays.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) { must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)) }
	stat, err := readStat("/proc", os.Getpid())
	must.OK(t, err)
	write("cores-1-n1", `{"members":[{"step":"0","share":1,"keeper":{"pid":1,"start":99999999999},"may":"0","uses":"0"}]}`)
	write("cores-2-n1", `nonsense`)
	write("cores-3-n1", fmt.Sprintf(`{"members":[{"step":"0","share":1,"keeper":{"pid":%d,"start":%d},"may":"0","uses":"0"}]}`, os.Getpid(), stat.start))
	write("other", "")
	must.OK(t, os.Symlink("other", filepath.Join(dir, "cores-4-n1")))
	must.OK(t, unix.Mkfifo(filepath.Join(dir, "cores-5-n1"), 0o600))
	Sweep(dir)
	var left []string
	entries, err := os.ReadDir(dir)
	must.OK(t, err)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got := strings.Join(left, " "); got != "cores-3-n1 cores-4-n1 cores-5-n1 other" {
		t.Error(got)
	}
}

// A file that is a link, or of a strange kind, is refused, and one that nobody gives free in time.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.WriteFile(dir+"/other", nil, 0o600))
	must.OK(t, os.Symlink("other", dir+"/cores-1-n1"))
	must.OK(t, unix.Mkfifo(dir+"/cores-2-n1", 0o600))
	for _, name := range []string{"/cores-1-n1", "/cores-2-n1"} {
		if f, err := lock(dir + name); err == nil {
			f.Close()
			t.Errorf("%s: locked", name)
		}
	}
	f, err := lock(dir + "/cores-3-n1")
	must.OK(t, err)
	must.OK(t, f.write(state{})) // which removes it
	again, err := lock(dir + "/cores-3-n1")
	must.OK(t, err)
	again.Close()
	f.Close()
}

func TestPlace(t *testing.T) {
	for _, p := range []Place{{}, {Job: "7", Step: "1"}, {Job: "7", Step: "1", Node: "../n1"}, {Job: "x", Step: "1", Node: "n1"}, {Job: "7", Step: "-1", Node: "n1"}} {
		if Join(p, 1, os.Getpid(), nil) == nil || Keep(p) == nil {
			t.Errorf("%+v: accepted", p)
		}
	}
}
