package observed

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

const (
	// flushAfter is how long records may be only in memory.
	flushAfter = time.Minute
	// againAfter is how long to wait before writing to a failed folder again.
	againAfter = time.Minute
	// parts is the number of files that share a folder's bound at least.
	parts = 16
	// block is the smallest size of a file on disk.
	block = 4 << 10
)

// Writer writes records into a folder. It is not safe for concurrent use. It reports a failure once to Warn; records
// are lost until the folder can be written again.
type Writer struct {
	Warn func(error)
	// Head returns the heading of a new file.
	Head func() Heading

	dir     string
	most    int64 // bytes of all files
	day     string
	file    *os.File
	size    counter
	zip     *gzip.Writer
	flushed time.Time
	failed  time.Time // when writing last failed; zero if it works
}

// NewWriter returns a writer for a folder that takes at most this many MiB.
func NewWriter(dir string, mib int, head func() Heading) *Writer {
	return &Writer{Warn: func(error) {}, Head: head, dir: dir, most: int64(mib) << 20}
}

// Write writes a record into the file of the day now.
func (w *Writer) Write(now time.Time, r Record) {
	if !w.failed.IsZero() && now.Sub(w.failed) < againAfter {
		return
	}
	if err := w.write(now, r); err != nil {
		w.fail(now, err)
		return
	}
	w.failed = time.Time{}
}

func (w *Writer) write(now time.Time, r Record) error {
	if day := now.UTC().Format(time.DateOnly); w.file == nil || day != w.day || w.size.n >= w.most/parts {
		if err := w.close(); err != nil {
			return err
		}
		if err := w.open(now, day); err != nil {
			return err
		}
	}
	return json.NewEncoder(w.zip).Encode(r)
}

// Flush writes what is older than a minute to the disk.
func (w *Writer) Flush(now time.Time) {
	if w.file == nil || now.Sub(w.flushed) < flushAfter {
		return
	}
	w.flushed = now
	if err := w.zip.Flush(); err != nil {
		w.fail(now, err)
	}
}

// fail gives up the current file.
func (w *Writer) fail(now time.Time, err error) {
	if w.failed.IsZero() {
		w.Warn(fmt.Errorf("cannot record what is observed: %w", err))
	}
	w.failed = now
	_ = w.close()
}

// Close writes the rest.
func (w *Writer) Close() error { return w.close() }

func (w *Writer) close() error {
	if w.file == nil {
		return nil
	}
	f := w.file
	w.file = nil
	return errors.Join(w.zip.Close(), f.Close())
}

func (w *Writer) open(now time.Time, day string) error {
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return err
	}
	days, err := Days(w.dir)
	if err != nil {
		return err
	}
	number := 1
	for _, d := range days {
		if d.Date == day {
			_, last := parseName(d.Files[len(d.Files)-1])
			number = last + 1
		}
	}
	if err := w.prune(days); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(w.dir, fileName(day, number)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w.file, w.day, w.flushed, w.size = f, day, now, counter{w: f}
	w.zip = gzip.NewWriter(&w.size)
	return errors.Join(json.NewEncoder(w.zip).Encode(w.Head()), w.zip.Flush())
}

// prune removes the oldest files, so that there is room for another one.
func (w *Writer) prune(days []Day) error {
	var files []string
	for _, d := range days {
		files = append(files, d.Files...)
	}
	sizes, total := make([]int64, len(files)), w.most/parts
	for i, name := range files {
		if info, err := os.Stat(name); err == nil {
			sizes[i] = max(info.Size(), block)
			total += sizes[i]
		}
	}
	for i, name := range files {
		if total <= w.most {
			break
		}
		if err := os.Remove(name); err != nil {
			return err
		}
		total -= sizes[i]
	}
	return nil
}

// counter counts the bytes that were written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
