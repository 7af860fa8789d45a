package injob

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// The hooks of a change run once, started by the first process that comes: evosctl next, evosrun
// --follow, or one that repeats the request of a killed one. The hook's own shell records the start
// beside the followers' sockets and keeps the file locked while it runs. So a started hook
// continues without its starter, and other processes wait for its end.

// change is a change of a job, as its hooks see it.
type change struct {
	address string   // of the sidecar
	job     uint32   //
	run     int64    // when the job began, because a requeued job begins again; 0 if unknown
	offer   int64    // by which it changes; 0: by the end of a step
	step    int      // that ends
	before  []string // the job's nodes before; nil to do only what others have left undone
}

// For returns the hooks of a job, with allocation a, for the end of its step, or for an offer if
// that is not 0.
func (h Hooks) For(ctx context.Context, sidecar interface {
	Job(ctx context.Context, job uint32) (api.Job, error)
}, address string, a api.Allocation, offer int64) Hooks {
	if len(h.Variables()) == 0 {
		return h
	}
	h.change = &change{address: address, job: a.Job, offer: offer, step: a.Step, before: NodesOf(a)}
	if j, err := sidecar.Job(ctx, a.Job); err == nil && !j.Start.IsZero() {
		h.change.run = j.Start.Unix()
	}
	return h
}

// Undone returns the hooks that killed processes did not run: for the offer, or for the end of the
// previous step.
func (h Hooks) Undone() Hooks {
	if h.change != nil {
		c := *h.change
		if c.before = nil; c.offer == 0 {
			c.step--
		}
		h.change = &c
	}
	return h
}

func (c change) kind() string {
	if c.offer != 0 {
		return "offer"
	}
	return "step"
}

func (c change) number() int64 {
	if c.offer != 0 {
		return c.offer
	}
	return int64(c.step)
}

func hooksPath(dir, address string, job uint32, kind string) string {
	return filepath.Join(dir, fmt.Sprint("hooks-", meetName(address, job), kind))
}

// forgetHooks is for a job whose last step has ended.
func forgetHooks(address string, job uint32) {
	for _, dir := range meetDirs() {
		for _, kind := range []string{"step", "offer"} {
			_ = os.Remove(hooksPath(dir, address, job, kind))
		}
	}
}

// record says what was run for the last change of a kind. It is locked.
type record struct {
	file   *os.File
	before []string
	hooks  []hookLine
	done   bool // none is left
}

// A file of a record has one recordLine, then a hookLine as each hook begins and one as it ends.
type (
	recordLine struct {
		Run    int64    `json:"run,omitempty"`
		Number int64    `json:"number"`
		Before []string `json:"before"`
	}
	hookLine struct {
		Hook   string `json:"hook,omitempty"`
		Nodes  string `json:"nodes,omitempty"` // nodes that the hook gets
		Status *int   `json:"status,omitempty"`
		Done   bool   `json:"done,omitempty"` // all of them
	}
)

var (
	errPast   = errors.New("the hooks of this change have had their time")
	errBusy   = errors.New("hooks of the job that were begun before still run")
	errKilled = errors.New("it was killed")
	errGoesOn = errors.New("it goes on")
)

// open waits for exclusive access to the record, at most for the limit. Its error is errPast if
// nothing is left to do.
func (c change) open(ctx context.Context, limit time.Duration) (*record, error) {
	dir, _, err := makeMeetDir()
	if err != nil {
		return nil, err
	}
	flags := os.O_RDWR | os.O_APPEND | unix.O_NOFOLLOW
	if c.before != nil {
		flags |= os.O_CREATE
	}
	file, err := os.OpenFile(hooksPath(dir, c.address, c.job, c.kind()), flags, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errPast
	} else if err != nil {
		return nil, err
	}
	for end := time.Now().Add(limit); ; {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			file.Close()
			return nil, err
		}
		if time.Now().After(end) {
			file.Close()
			return nil, errBusy
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("%w: %w", errBusy, context.Cause(ctx))
		}
	}
	r := &record{file: file}
	if err := r.read(c); err != nil {
		file.Close()
		return nil, err
	}
	return r, nil
}

// read reads the record, and starts a new one for a later change.
func (r *record) read(c change) error {
	var first recordLine
	lines := bufio.NewScanner(r.file)
	lines.Buffer(nil, maxMeetLine)
	same := lines.Scan() && json.Unmarshal(lines.Bytes(), &first) == nil && (first.Run == c.run || first.Run == 0 || c.run == 0)
	switch {
	case same && first.Number > c.number():
		return errPast
	case same && first.Number == c.number():
		r.before = first.Before
		for lines.Scan() {
			var l hookLine
			if json.Unmarshal(lines.Bytes(), &l) == nil { // otherwise from a full file system
				r.hooks, r.done = append(r.hooks, l), r.done || l.Done
			}
		}
		return lines.Err()
	case c.before == nil:
		return errPast
	}
	r.before = c.before
	if err := r.file.Truncate(0); err != nil {
		return err
	}
	return r.write(recordLine{c.run, c.number(), c.before})
}

func (r *record) write(line any) error {
	text, err := json.Marshal(line)
	if err == nil {
		_, err = r.file.Write(append(text, '\n'))
	}
	return err
}

// finish records that all hooks have been started, if so.
func (r *record) finish(ctx context.Context) {
	if r.file != nil && ctx.Err() == nil {
		_ = r.write(hookLine{Done: true}) // otherwise the hooks are checked once more
	}
}

// told returns the nodes that a hook was given; once reports whether it was started, and failed how
// it ended.
func (r *record) told(hook string) (nodes []string, once bool, failed error) {
	for i, l := range r.hooks {
		if l.Hook != hook {
			continue
		}
		names, _ := slurmctl.ExpandNodes(l.Nodes)
		nodes, once = append(nodes, names...), true
		switch {
		case i+1 == len(r.hooks) || r.hooks[i+1].Status == nil:
			failed = fmt.Errorf("%s: %w", hook, errKilled)
		case *r.hooks[i+1].Status != 0:
			failed = fmt.Errorf("%s: exit status %d", hook, *r.hooks[i+1].Status)
		}
	}
	return nodes, once, failed
}
