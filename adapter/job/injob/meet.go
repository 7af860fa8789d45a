package injob

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// Who ends a step (evosctl next) and who has processes on the nodes that go (evosrun
// --follow) meet at a Unix socket of each follower, on the node where the job's script runs.
// The sidecar has no part in it, and may be away. On a connection lines of JSON are sent: a
// meetRequest and in the end a meetResult by who ends the step, meetAnswers by the follower.
type (
	meetRequest struct {
		Leaving []string `json:"leaving"`       // nodes to be drained; none: nothing leaves
		All     bool     `json:"all,omitempty"` // all are, the last step ends
		By      float64  `json:"by,omitempty"`  // seconds from now when they are taken; 0: they are not before this is done
	}
	meetAnswer struct {
		Within  float64 `json:"within,omitempty"`  // seconds that draining may take
		Drained bool    `json:"drained,omitempty"` // nothing runs on the nodes any more
	}
	meetResult struct {
		Allocation *api.Allocation `json:"allocation"`      // what the job has then
		Offer      int64           `json:"offer,omitempty"` // which was answered, and is not to be once more
	}
)

const (
	meetPatience = 10 * time.Second // with a follower's first answer, and beyond what it said
	maxMeetLine  = 16 << 20
)

// meetName begins the names of the sockets of a job's followers. Job ids are unique within
// the realm of a sidecar.
func meetName(address string, job uint32) string {
	sum := sha256.Sum256([]byte(address))
	return fmt.Sprintf("follow-%d-%x.", job, sum[:4])
}

// listenForSteps makes the socket of a follower.
func listenForSteps(address string, job uint32, id string) (l net.Listener, taken string, err error) {
	dir, taken, err := makeMeetDir()
	if err != nil {
		return nil, taken, err
	}
	path := filepath.Join(dir, meetName(address, job)+id)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // of one that was killed
		return nil, taken, err
	}
	l, err = net.Listen("unix", path)
	return l, taken, err
}

// Meeting is with all followers of a job; its zero value is one to which none came.
type Meeting struct{ with []*meeting }

type meeting struct {
	conn net.Conn
	read *bufio.Reader
}

// Followed reports whether a job seems to have followers on this machine.
func Followed(address string, job uint32) bool { return len(followerPaths(address, job)) > 0 }

func followerPaths(address string, job uint32) (all []string) {
	for _, dir := range meetDirs() {
		paths, _ := filepath.Glob(filepath.Join(dir, meetName(address, job)+"*")) // the pattern is sound
		all = append(all, paths...)
	}
	return all
}

// MeetFollowers tells the followers of a job on this machine which nodes leave (at the deadline, where there
// is one, in any case), or that all is over, and waits until nothing of theirs runs there. A follower that does not answer in the time that it named is
// not waited for any longer, and told of by say. It ends early with ctx.
func MeetFollowers(ctx context.Context, address string, job uint32, leaving []string, all bool, deadline time.Time, say func(string, ...any)) *Meeting {
	return meetThem(ctx, followerPaths(address, job), meetRequest{Leaving: leaving, All: all, By: secondsUntil(deadline)}, say)
}

// secondsUntil is what a meetRequest says of a deadline.
func secondsUntil(deadline time.Time) float64 {
	if deadline.IsZero() {
		return 0
	}
	return max(time.Until(deadline), time.Millisecond).Seconds()
}

// meetThem is with the followers at some sockets.
func meetThem(ctx context.Context, paths []string, req meetRequest, say func(string, ...any)) *Meeting {
	m := &Meeting{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, path := range paths {
		wg.Go(func() {
			one, err := meet(ctx, path, req)
			switch {
			case errors.Is(err, unix.ECONNREFUSED):
				_ = os.Remove(path) // it was killed; who comes next does the same
				return
			case err != nil && ctx.Err() == nil:
				say("the evosrun --follow at %s: %v; going on without it", path, err)
			}
			if one != nil {
				mu.Lock()
				defer mu.Unlock()
				m.with = append(m.with, one)
			}
		})
	}
	wg.Wait()
	return m
}

// meet has one follower drain nodes.
func meet(ctx context.Context, path string, req meetRequest) (*meeting, error) {
	dialer := &net.Dialer{Timeout: meetPatience}
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	m := &meeting{conn: conn, read: bufio.NewReaderSize(conn, 4096)}
	_ = conn.SetDeadline(time.Now().Add(meetPatience))
	if err := json.NewEncoder(conn).Encode(req); err != nil {
		return m, err
	}
	for {
		var a meetAnswer
		if err := readLine(m.read, &a); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err = errors.New("it does not answer in time")
			}
			return m, err
		}
		if a.Drained {
			_ = conn.SetDeadline(time.Time{})
			return m, nil
		}
		_ = conn.SetDeadline(time.Now().Add(meetPatience + time.Duration(a.Within*float64(time.Second))))
	}
}

// readLine reads one line of JSON.
func readLine(r *bufio.Reader, into any) error {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return json.Unmarshal(line, into)
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		case len(line) > maxMeetLine:
			return errors.New("a line that has no end")
		}
	}
}

// Any reports whether there are followers.
func (m *Meeting) Any() bool { return len(m.with) > 0 }

// End tells the followers what the job has now; nil: the step has not ended, or it is not known.
func (m *Meeting) End(a *api.Allocation) { m.end(a, 0) }

// end tells them besides which offer was answered.
func (m *Meeting) end(a *api.Allocation, offer int64) {
	for _, one := range m.with {
		if a != nil {
			_ = one.conn.SetDeadline(time.Now().Add(meetPatience))
			_ = json.NewEncoder(one.conn).Encode(meetResult{Allocation: a, Offer: offer}) // else it asks the sidecar
		}
		one.conn.Close()
	}
	m.with = nil
}

// Leaving are the nodes that the job will not have in its next step: those that the caller
// names, those that the plan does, and as far as these are not known the newest, never host,
// which runs the script.
func Leaving(a api.Allocation, release []string, host string) []string {
	if a.Coming == nil || a.Coming.Nodes >= len(NodesOf(a)) {
		return nil
	}
	n := len(NodesOf(a)) - a.Coming.Nodes
	leaving := slices.Clone(release)
	newest := slices.Clone(NodesOf(a))
	slices.Reverse(newest)
	for _, node := range slices.Concat(a.Coming.Leaving, newest) {
		if len(leaving) < n && node != host && !slices.Contains(leaving, node) {
			leaving = append(leaving, node)
		}
	}
	return leaving
}
