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

// A process that ends a step (evosctl next) meets the processes on the leaving nodes (evosrun
// --follow) at a Unix socket per follower, on the node of the job's script. The sidecar is not
// involved and may be away. A connection carries lines of JSON: the process that ends a step sends
// a meetRequest and finally a meetResult; the follower sends meetAnswers.
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
		Allocation *api.Allocation `json:"allocation"`      // what the job has afterwards
		Offer      int64           `json:"offer,omitempty"` // which was answered, and is not to be once more
	}
)

const (
	meetPatience = 10 * time.Second // for a follower's first answer, and beyond the time that it announced
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

// MeetFollowers tells a job's followers on this machine which nodes leave (by the deadline, if
// there is one), or that the job's steps are over. It waits until none of their processes runs
// there. If a follower does not answer within the time that it announced, MeetFollowers stops
// waiting for it and reports it through say. It ends early with ctx.
func MeetFollowers(ctx context.Context, address string, job uint32, leaving []string, all bool, deadline time.Time, say func(string, ...any)) *Meeting {
	return meetThem(ctx, followerPaths(address, job), meetRequest{Leaving: leaving, All: all, By: secondsUntil(deadline)}, say)
}

// secondsUntil returns a deadline in the form of a meetRequest.
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
				_ = os.Remove(path) // it was killed; the next process does the same
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

// End tells the followers what the job has now; nil if the step has not ended or this is unknown.
func (m *Meeting) End(a *api.Allocation) { m.end(a, 0) }

// end also says which offer was answered.
func (m *Meeting) end(a *api.Allocation, offer int64) {
	for _, one := range m.with {
		if a != nil {
			_ = one.conn.SetDeadline(time.Now().Add(meetPatience))
			_ = json.NewEncoder(one.conn).Encode(meetResult{Allocation: a, Offer: offer}) // otherwise it asks the sidecar
		}
		one.conn.Close()
	}
	m.with = nil
}

// Going returns the nodes that nothing may run on while a step ends: those that leave the job, and those that one component
// gives to another.
func Going(a api.Allocation, leaving []string) []string {
	if a.Coming == nil {
		return leaving
	}
	return append(slices.Clone(leaving), difference(a.Coming.Handing, leaving)...)
}

// Leaving returns the nodes that the job will not have in its next step: those that the caller
// names, those in the plan, and, if these are too few, the newest ones, but never host, which runs
// the script.
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
