package injob

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A job may have several followers. The one that ends a step, or answers an offer, meets the others
// as evosctl next does: nodes are given back once all have drained them. Only one process does so at a
// time, under a lock; for the others that intended to, nothing is left to do.

// lockPause is between looks at a lock that another holds.
const lockPause = 100 * time.Millisecond

var followers atomic.Int32

// followerID returns the number of this process, with a suffix if it has several followers.
func followerID() string {
	id := strconv.Itoa(os.Getpid())
	if n := followers.Add(1); n > 1 {
		id += fmt.Sprint("-", n)
	}
	return id
}

// others returns the sockets of the job's other followers on this machine.
func (f *follower) others() []string {
	return slices.DeleteFunc(followerPaths(f.address, f.Allocation.Job), func(path string) bool { return path == f.socket })
}

// drainEverywhere is drainNodes, here and by the other followers at once.
func (f *follower) drainEverywhere(nodes []string, limit time.Duration, req meetRequest, done func(others *Meeting)) {
	drained := make(chan struct{})
	f.drainNodes(nodes, limit, func() { close(drained) })
	go func() {
		others := meetThem(f.ctx, f.others(), req, f.say)
		<-drained
		f.post(func() { done(others) })
	}()
}

func lockPath(what, address string, job uint32) string {
	return filepath.Join(meetDir(), fmt.Sprint(what, "-", meetName(address, job), "lock"))
}

// alone waits until no other process of the job does the same, and excludes them until unlock is
// called or this process ends. Without a lock, e.g. for lack of space, all do it.
func (f *follower) alone(what string) (unlock func()) {
	unlock, _ = alone(f.ctx, lockPath(what, f.address, f.Allocation.Job))
	return unlock
}

// EndAlone waits until no follower of the job on this machine ends a step, and keeps them from it until unlock is called. It
// reports whether it waited: then the step may have ended. Without followers, it does nothing.
func EndAlone(ctx context.Context, address string, job uint32) (unlock func(), waited bool) {
	if !Followed(address, job) {
		return func() {}, false
	}
	return alone(ctx, lockPath("step", address, job))
}

func alone(ctx context.Context, path string) (unlock func(), waited bool) {
	if meetDir() == "" {
		return func() {}, false
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return func() {}, false
	}
	for ctx.Err() == nil {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			break
		}
		waited = true
		time.Sleep(lockPause)
	}
	unlock = sync.OnceFunc(func() { file.Close() })
	context.AfterFunc(ctx, unlock)
	return unlock, waited
}

// leave has the follower be met no more; the last one takes the locks away.
func (f *follower) leave(l net.Listener) {
	l.Close()
	if meetDir() != "" && len(f.others()) == 0 {
		os.Remove(lockPath("step", f.address, f.Allocation.Job))
		os.Remove(lockPath("offer", f.address, f.Allocation.Job))
	}
}
