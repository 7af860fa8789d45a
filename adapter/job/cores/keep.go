package cores

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	prefix    = "cores-" // of the files
	sys       = "/sys/devices/system"
	keepLook  = 500 * time.Millisecond // how soon a keeper sees that another evosrun starts or ends
	keepClose = 10 * time.Second       // how long after a change it looks each time for what has not moved
	keepTries = 20                     // looks that fail in a row before a keeper gives up: its cores go to the others then
	maxBefore = 64                     // earlier sets that a keeper remembers
)

// A Place names a step of evosrun on this node.
type Place struct {
	Dir             string // the user's private folder
	Job, Step, Node string // of Slurm
}

func (p Place) path() string { return filepath.Join(p.Dir, prefix+p.Job+"-"+p.Node) }

var nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// check refuses what no step of Slurm is called.
func (p Place) check() error {
	if !nodeName.MatchString(p.Node) {
		return fmt.Errorf("invalid node %.40q: Slurm starts this program in a step", p.Node)
	}
	for _, number := range []string{p.Job, p.Step} {
		if _, err := strconv.ParseUint(number, 10, 32); err != nil {
			return fmt.Errorf("invalid job or step %.40q: Slurm starts this program in a step", number)
		}
	}
	return nil
}

// Join has a process, a task of the step, use the step's share of the cores. For the step's first
// task here, it divides the cores again and starts a keeper with the command keeper.
func Join(p Place, share, pid int, keeper []string) error {
	if err := p.check(); err != nil {
		return err
	}
	may, err := affinity(pid)
	if err != nil {
		return fmt.Errorf("read the CPUs of process %d: %w", pid, err)
	}
	Sweep(p.Dir)
	f, err := lock(p.path())
	if err != nil {
		return err
	}
	defer f.Close()
	s := f.read()
	s.prune("/proc")
	m := s.find(p.Step)
	if m == nil {
		s.Members = append(s.Members, member{Step: p.Step, Share: share, May: may})
		if err := s.share(sys); err != nil {
			return err
		}
		m = s.find(p.Step)
		if m.Keeper, err = startKeeper(keeper); err != nil {
			return fmt.Errorf("start the keeper of the cores: %w", err)
		}
		if err := f.write(s); err != nil {
			return err
		}
	}
	moveProcess("/proc", pid, m.Uses, []set{m.May})
	return nil
}

// startKeeper starts a keeper that has none of this process's files. It outlives this process and
// is nobody's child, so no task finds it when it waits for its children.
func startKeeper(command []string) (process, error) {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return process{}, err
	}
	for _, e := range fds { // those that Slurm or MPI gave the task would stay open
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env, cmd.Dir = []string{"GOMAXPROCS=1"}, "/" // without the step's variables
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return process{}, err
	}
	s, err := readStat("/proc", cmd.Process.Pid)
	return process{cmd.Process.Pid, s.start}, err
}

// Keep moves the step's processes whenever the cores are divided again. It returns when the step
// has no process left here.
func Keep(p Place) error {
	if err := p.check(); err != nil {
		return err
	}
	k := keeper{Place: p, table: table{proc: "/proc", place: p}}
	for failed := 0; ; time.Sleep(keepLook) {
		left, err := k.once(time.Now())
		if err == nil {
			failed = 0
		} else if failed++; failed == keepTries {
			return err
		}
		if left {
			return nil
		}
	}
}

// keeper keeps the processes of a step on its cores.
type keeper struct {
	Place
	table   table
	uses    set
	before  []set
	changed time.Time
	looked  time.Time
}

// once does what is to do now, and reports whether the step has left the node.
func (k *keeper) once(now time.Time) (left bool, err error) {
	left, err = k.agree(now)
	if left || err != nil {
		return left, err
	}
	if now.Sub(k.changed) < keepClose || now.Sub(k.looked) >= keepClose {
		k.looked = now
		if err := k.table.look(); err != nil {
			return false, err
		}
		k.table.move(k.uses, k.before)
	}
	return false, nil
}

// agree learns the step's cores from the file, drops the members that have ended from it, and also
// its own step if that has no process.
func (k *keeper) agree(now time.Time) (left bool, err error) {
	f, err := lock(k.path())
	if err != nil {
		return false, err
	}
	defer f.Close()
	s := f.read()
	changed := s.prune(k.table.proc)
	if !k.table.alive() {
		if err := k.table.look(); err != nil {
			return false, err
		}
		if left = len(k.table.ours) == 0; left {
			s.Members = slices.DeleteFunc(s.Members, func(m member) bool { return m.Step == k.Step })
			changed = true
		}
	}
	if changed {
		if err := errors.Join(s.share(sys), f.write(s)); err != nil {
			return left, err
		}
	}
	m := s.find(k.Step)
	switch {
	case left:
		return true, nil
	case m == nil || m.Keeper.PID != os.Getpid(): // the file was lost, and perhaps made again
		return true, nil
	case !slices.Equal(m.Uses, k.uses):
		if k.uses == nil {
			k.uses = m.May
		}
		k.before = append(slices.DeleteFunc(k.before, func(s set) bool { return slices.Equal(s, m.Uses) || slices.Equal(s, k.uses) }), k.uses)
		if len(k.before) > maxBefore {
			k.before = k.before[1:]
		}
		k.uses, k.changed = m.Uses, now
	}
	return false, nil
}
