package injob

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// taken lists what another user may have put in place of a user's folder.
var taken = map[string]func(name string) error{
	"another user's folder":  func(name string) error { return os.Mkdir(name, 0o700) },
	"a folder open to all":   func(name string) error { return os.Mkdir(name, 0o777) },
	"a file":                 func(name string) error { return os.WriteFile(name, nil, 0o600) },
	"a link to a folder":     func(name string) error { return os.Symlink(filepath.Dir(name), name) },
	"a link that leads away": func(name string) error { return os.Symlink("/nowhere/at/all", name) },
}

// takeMeetDir replaces the parent of the users' folders by one that another user used first.
func takeMeetDir(t *testing.T, what string) (name string) {
	t.Helper()
	before := meetBase
	t.Cleanup(func() { meetBase = before })
	base, err := os.MkdirTemp("", "m") // a short path, for sockets
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(base) })
	meetBase = base
	name = filepath.Join(base, fmt.Sprint("evoslurm-", os.Getuid()))
	for _, n := range []string{name, name + ".0"} {
		must.OK(t, taken[what](n))
		if strings.HasSuffix(what, "to all") {
			err = os.Chmod(n, 0o777)
		} else {
			err = os.Lchown(n, 65534, 65534)
		}
		must.OK(t, err)
	}
	return name
}

// TestMeetDirTaken checks that all processes of a user find the same folder, exclusive to the user,
// whatever another user has created first.
func TestMeetDirTaken(t *testing.T) {
	for what := range taken {
		t.Run(what, func(t *testing.T) {
			name := takeMeetDir(t, what)
			if dir := meetDir(); dir != "" {
				t.Errorf("%s is taken for the user's", dir)
			}
			dir, by, err := makeMeetDir()
			if err != nil || by != name {
				t.Fatalf("made %q, instead of %q: %v", dir, by, err)
			}
			var st syscall.Stat_t
			if err := syscall.Lstat(dir, &st); err != nil || int(st.Uid) != os.Getuid() || st.Mode != syscall.S_IFDIR|0o700 {
				t.Errorf("%s: owner %d, mode %o (%v)", dir, st.Uid, st.Mode, err)
			}
			if err := os.RemoveAll(name); err != nil { // as its owner may
				t.Fatal(err)
			}
			if again, _, err := makeMeetDir(); again != dir || meetDir() != dir || err != nil {
				t.Errorf("then %q, before %q (%v)", again, dir, err)
			}
		})
	}
}

// TestFollowWhereTaken checks that a follower continues with a warning, and that processes that end
// steps find it.
func TestFollowWhereTaken(t *testing.T) {
	takeMeetDir(t, "another user's folder")
	t.Setenv("EVO_ON_GROW", "echo hook $EVO_EVENT $EVO_ARRIVED")
	f := &fake{has: allocation(1, &api.Coming{Nodes: 1}, "n1", "n2")}
	address, signals, end := following(t, f, "--follow=script", "sh", "-c", worker)
	f.eventually("it runs", func() bool { return f.on() == "n1 n2" })
	f.eventually("it is met", func() bool { return Followed(address, 12) })
	m := MeetFollowers(t.Context(), address, 12, []string{"n2"}, false, time.Time{}, t.Errorf)
	if !m.Any() || f.on() != "n1" {
		t.Errorf("on %s once n2 was drained", f.on())
	}
	m.End(nil)
	signals <- syscall.SIGTERM
	end()
	if out := f.out.String(); !strings.Contains(out, "warning: "+meetBase+"/evoslurm-") {
		t.Errorf("it printed\n%s", out)
	}
}

// TestFollowWithoutMeeting checks that a follower continues even if no folder can be created.
func TestFollowWithoutMeeting(t *testing.T) {
	before := meetBase
	t.Cleanup(func() { meetBase = before })
	meetBase = filepath.Join(t.TempDir(), "missing")
	f := &fake{has: allocation(1, nil, "n1")}
	_, signals, end := following(t, f, "--follow", "sh", "-c", worker)
	f.eventually("it runs", func() bool { return f.on() == "n1" })
	signals <- syscall.SIGTERM
	end()
	if out := f.out.String(); !strings.Contains(out, "warning: evosctl next and other followers will not find this one") {
		t.Errorf("it printed\n%s", out)
	}
}
