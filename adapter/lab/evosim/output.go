package evosim

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/wholefile"
)

// output turns a write error into a failure.
func output(err error) error {
	if err != nil {
		return Failure{err}
	}
	return nil
}

// create writes a complete file or none, gzipped if its name ends in .gz.
func create(file string, write func(io.Writer) error) error {
	filled := false
	err := wholefile.Write(file, 0o666, func(out io.Writer) error {
		err := fill(out, strings.HasSuffix(file, ".gz"), write)
		filled = err == nil
		return err
	})
	if filled {
		return output(err)
	}
	return err
}

// fill lets write write to out through a buffer.
func fill(out io.Writer, zipped bool, write func(io.Writer) error) error {
	w := bufio.NewWriterSize(sink{out}, 1<<16)
	if !zipped {
		if err := write(w); err != nil {
			return err
		}
		return w.Flush()
	}
	z := gzip.NewWriter(w)
	if err := write(z); err != nil {
		return err
	}
	return errors.Join(z.Close(), w.Flush())
}

// sink marks write errors, so that they do not count as input errors.
type sink struct{ io.Writer }

func (s sink) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	return n, output(err)
}

// writeJSON writes a value on one line.
func writeJSON(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
