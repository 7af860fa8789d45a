package crash_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/trials/crash"
)

// control is the test's end of the socket: it numbers the points, decides what happens at each, and
// records what was done.
type control struct {
	kill func()   // kills the sidecar and waits for its end
	env  []string // of the real commands, beside what the sidecar gives them

	mu      sync.Mutex
	points  []string // what was done, in order
	target  int      // the point, from 1, at which the sidecar is killed; 0: none
	hit     string   // what it was
	faults  *faults  // nil: none
	watch   func(crash.Question)
	unmet   *bool    // whether what site.at is for has happened; nil: there is nothing
	history []string // commands with how they ended, those that only look included
}

func newControl(t *testing.T, dir string, env []string, kill func()) *control {
	t.Helper()
	c := &control{kill: kill, env: env}
	path := filepath.Join(dir, crash.SocketName)
	l, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o666) // expanders are asked for in the users' names
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.serve(conn)
		}
	}()
	return c
}

// arm starts a new count.
func (c *control) arm(target int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.points, c.target, c.hit, c.history, c.watch, c.unmet = nil, target, "", nil, nil, nil
}

func (c *control) serve(conn net.Conn) {
	defer conn.Close()
	var q crash.Question
	if json.NewDecoder(conn).Decode(&q) != nil {
		return
	}
	a, killed := c.answer(q)
	if killed {
		c.kill()
		if q.Moment == crash.Before {
			a.Action = crash.Refuse
		}
	}
	a.Env = c.env
	json.NewEncoder(conn).Encode(a)
}

func (c *control) answer(q crash.Question) (a crash.Answer, kill bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what := strings.TrimSpace(string(q.Moment) + " " + strings.Join(q.Args, " "))
	if q.Moment == crash.Commit || changes(q.Args) {
		c.points = append(c.points, what)
		if len(c.points) == c.target {
			c.hit, kill = what, true
		}
	}
	if q.Moment == crash.Before && c.faults != nil && !kill {
		a = c.faults.next(q.Args)
		if a.Action != crash.Run {
			what += " [" + string(a.Action) + "]"
		}
	}
	if c.faults != nil && !kill {
		kill = c.faults.kills(q)
		if kill {
			what += " [sidecar killed]"
		}
	}
	c.history = append(c.history, what)
	if c.watch != nil {
		c.watch(q)
	}
	return a, kill
}

// changes reports whether a command changes anything in Slurm.
func changes(args []string) bool {
	if len(args) < 2 {
		return false
	}
	switch args[0] {
	case "salloc", "sbatch", "scancel":
		return true
	case "scontrol":
		at := slices.IndexFunc(args[1:], func(a string) bool { return !strings.HasPrefix(a, "-") })
		return at >= 0 && !slices.Contains([]string{"show", "write", "ping"}, args[1+at])
	}
	return false
}

func (c *control) reached() (points int, hit string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.points), c.hit
}
