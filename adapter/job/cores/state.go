package cores

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxState = 4 << 20 // bytes of the file
	lockWait = time.Minute
	lockLook = 10 * time.Millisecond
)

// state holds the agreement of the evosruns of a job on this node.
type state struct {
	Members []member `json:"members"`
}

// member is a step of evosrun on this node.
type member struct {
	Step   string  `json:"step"`
	Share  int     `json:"share"`
	Keeper process `json:"keeper"`
	May    set     `json:"may"`  // CPUs that it could use when it began
	Uses   set     `json:"uses"` // CPUs that it has now
}

func (s *state) find(step string) *member {
	for i := range s.Members {
		if s.Members[i].Step == step {
			return &s.Members[i]
		}
	}
	return nil
}

// prune drops the members whose keeper has ended, and reports whether there was one.
func (s *state) prune(proc string) bool {
	n := len(s.Members)
	s.Members = slices.DeleteFunc(s.Members, func(m member) bool { return !m.Keeper.lives(proc) })
	return len(s.Members) < n
}

// share divides the cores that all members may use.
func (s *state) share(sys string) error {
	if len(s.Members) == 0 {
		return nil
	}
	pool := s.Members[0].May
	for _, m := range s.Members {
		pool = pool.and(m.May)
	}
	cores := topology(sys, pool)
	shares, has := make([]int, len(s.Members)), make([][]int, len(s.Members))
	for i, m := range s.Members {
		shares[i] = m.Share
		for c, cpus := range cores {
			if m.Uses.has(cpus[0]) {
				has[i] = append(has[i], c)
			}
		}
	}
	gets, err := divide(shares, has, len(cores))
	if err != nil {
		return err
	}
	for i := range s.Members {
		var uses set
		for _, c := range gets[i] {
			uses = append(uses, cores[c]...)
		}
		slices.Sort(uses)
		s.Members[i].Uses = uses
	}
	return nil
}

// file is the locked file of a job's state.
type file struct {
	*os.File
	path string
}

// lock opens a job's file in the user's folder, makes it if missing, and locks it.
func lock(path string) (*file, error) {
	deadline := time.Now().Add(lockWait)
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
		if err != nil {
			return nil, err
		}
		switch err := tryLock(f, path); {
		case err == nil:
			return &file{f, path}, nil
		case errors.Is(err, errRemoved), errors.Is(err, unix.EWOULDBLOCK) && time.Now().Before(deadline):
			f.Close()
		case errors.Is(err, unix.EWOULDBLOCK):
			f.Close()
			return nil, fmt.Errorf("%s: another process of the job has locked it for %v", path, lockWait)
		default:
			f.Close()
			return nil, err
		}
		time.Sleep(lockLook)
	}
}

var errRemoved = errors.New("removed meanwhile")

// tryLock locks the file unless another process has locked or removed it, and checks that it is the user's own.
func tryLock(f *os.File, path string) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	var open, there unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &open); err != nil {
		return err
	}
	if err := unix.Lstat(path, &there); err != nil || open.Ino != there.Ino || open.Dev != there.Dev {
		return errRemoved
	}
	if open.Mode&unix.S_IFMT != unix.S_IFREG || int(open.Uid) != os.Getuid() {
		return fmt.Errorf("%s: not a file of this user", path)
	}
	return nil
}

// read returns the state; a file that cannot be understood has none.
func (f *file) read() (s state) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, maxState))
	if err != nil || json.Unmarshal(text, &s) != nil || slices.ContainsFunc(s.Members, func(m member) bool { return m.Share < 1 || m.Share > maxShare }) {
		return state{}
	}
	return s
}

// write writes the state, or removes the file if no member is left.
func (f *file) write(s state) error {
	if len(s.Members) == 0 {
		return os.Remove(f.path)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(text, 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(text)))
}

// Sweep removes the files in the user's folder that ended jobs left: Slurm kills what still runs.
func Sweep(dir string) {
	if dir == "" {
		return
	}
	paths, _ := filepath.Glob(filepath.Join(dir, prefix+"*")) // the pattern is sound
	for _, path := range paths {
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if tryLock(f, path) == nil {
			state := (&file{f, path}).read()
			if state.prune("/proc"); len(state.Members) == 0 {
				os.Remove(path)
			}
		}
		f.Close()
	}
}
