package recorder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/codec"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
)

const (
	suffix = ".evorec"
	// parts is the number of files that share a folder's bound; kept is how many of them are
	// reserved for the beginning of the current run.
	parts = 16
	kept  = 4
	// mostState bounds the state in a file, before it is compressed: the bound of the folder divided by it.
	mostState = 8
	// flushAfter is how long steps may be only in memory.
	flushAfter = time.Second
	// againAfter is how long to wait before writing to a failed folder again.
	againAfter = time.Minute
)

// Recorder records the steps of a core in a ring of files. It is not safe for concurrent use: the
// shell's loop owns it. It reports a failure once to Warn and does not disturb the sidecar.
type Recorder struct {
	Warn func(error)
	// State, if set, returns the core's state. Every file but the first of a run begins with it, so that a replay can.
	State func() ([]byte, error)

	dir     string
	most    int64 // bytes of all files
	version string
	start   Start
	file    *os.File
	seg     segment
	flushed time.Time
	failed  time.Time // since when nothing can be written
	step    bool      // inputs without their effects are there
}

// New begins a recording in a folder of at most that many MiB.
func New(dir string, mib int, version string, start Start) *Recorder {
	start.Run = runAt(start.Begun)
	start.Config = start.Config.Discreet()
	return &Recorder{dir: dir, most: int64(mib) << 20, version: version, start: start, Warn: func(error) {}}
}

func runAt(t time.Time) string { return t.UTC().Format("20060102T150405.000Z") }

// Inputs records inputs before the core gets them, because the core may change them.
func (r *Recorder) Inputs(now time.Time, inputs []msg.Input) {
	if r == nil || !r.ready(now) {
		return
	}
	defer r.survive(now)
	for i, in := range inputs {
		if in, ok := in.(msg.Configuration); ok && in.Config != nil {
			cfg := in.Config.Discreet()
			in.Config = &cfg
			inputs = slices.Clone(inputs)
			inputs[i] = in
		}
	}
	codec.Write(r.seg.enc, &now)
	codec.Write(r.seg.enc, &inputs)
	r.step = true
}

// Effects writes what came of it, and ends the step.
func (r *Recorder) Effects(now time.Time, effects []msg.Effect) {
	if r == nil || !r.step {
		return
	}
	defer r.survive(now)
	r.step = false
	codec.Write(r.seg.enc, &effects)
	if len(r.seg.enc.B) < blockSize && now.Sub(r.flushed) < flushAfter {
		return
	}
	r.flush(now)
}

// survive turns a panic of the recorder into a gap: the sidecar continues.
func (r *Recorder) survive(now time.Time) {
	if p := recover(); p != nil {
		r.fail(now, fmt.Errorf("%v", p))
	}
}

func (r *Recorder) flush(now time.Time) {
	r.flushed = now
	if err := r.seg.flush(); err != nil {
		r.fail(now, err)
		return
	}
	if r.seg.size >= r.most/parts {
		if err := r.close(); err != nil {
			r.fail(now, err)
		}
	}
}

// Close writes the rest.
func (r *Recorder) Close() error {
	if r == nil || r.file == nil {
		return nil
	}
	err := r.seg.flush()
	return errors.Join(err, r.close())
}

func (r *Recorder) close() error {
	f := r.file
	r.file = nil
	r.start.Number++
	return f.Close()
}

// fail gives up the current file; the next one's number shows a reader the gap.
func (r *Recorder) fail(now time.Time, err error) {
	if r.failed.IsZero() {
		r.Warn(fmt.Errorf("the recorder cannot write: %w", err))
	}
	r.failed, r.step = now, false
	if r.file != nil {
		_ = r.close()
	}
	r.start.Number++
}

// ready has a file at hand.
func (r *Recorder) ready(now time.Time) bool {
	if r.file != nil {
		return true
	}
	if !r.failed.IsZero() && now.Sub(r.failed) < againAfter {
		return false
	}
	if err := r.open(now); err != nil {
		r.fail(now, err)
		return false
	}
	r.failed, r.flushed = time.Time{}, now
	return true
}

func (r *Recorder) open(now time.Time) error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	if err := r.prune(); err != nil {
		return err
	}
	create := func() (*os.File, error) {
		name := filepath.Join(r.dir, fmt.Sprintf("%s-%06d%s", r.start.Run, r.start.Number, suffix))
		return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	f, err := create()
	for try := 1; try < 100 && r.start.Number == 0 && errors.Is(err, os.ErrExist); try++ {
		r.start.Run = runAt(r.start.Begun.Add(time.Duration(try) * time.Millisecond)) // another one began just then
		f, err = create()
	}
	if err != nil {
		return err
	}
	r.file, r.start.At, r.start.State = f, now, ""
	if r.State != nil && r.start.Number > 0 {
		data, err := r.State()
		if err != nil {
			r.Warn(err) // a replay must begin before this file
		} else if int64(len(data)) <= r.most/mostState {
			r.start.State = string(data)
		}
	}
	err = r.seg.begin(f, r.version, r.start)
	r.start.State = "" // it may be large
	return err
}

// prune makes room for another file.
func (r *Recorder) prune() error {
	files, err := Files(r.dir)
	if err != nil {
		return err
	}
	sizes, total := make([]int64, len(files)), r.most/parts
	for i, name := range files {
		if info, err := os.Stat(name); err == nil {
			sizes[i] = info.Size()
			total += sizes[i]
		}
	}
	for i, name := range files {
		if total <= r.most {
			break
		}
		if run, number := parse(name); run == r.start.Run && number < kept {
			continue
		}
		if err := os.Remove(name); err != nil {
			return err
		}
		total -= sizes[i]
	}
	return nil
}

// Files returns the files of a folder, oldest first.
func Files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries { // by name, which begins with the time
		if run, _ := parse(e.Name()); run != "" {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, nil
}

// parse returns the run and number in a file name, or "".
func parse(name string) (run string, number int) {
	base, ours := strings.CutSuffix(filepath.Base(name), suffix)
	run, text, ok := strings.Cut(base, "-")
	if _, err := fmt.Sscanf(text, "%d", &number); !ours || !ok || err != nil {
		return "", 0
	}
	return run, number
}
