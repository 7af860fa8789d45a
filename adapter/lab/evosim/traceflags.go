package evosim

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/planner"
)

// traceFlags says how a trace is read and written.
type traceFlags struct {
	more    []trace.Format
	options trace.Options
	nodes   int
	to, out string
}

func (f *traceFlags) reading(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.options.Lenient, "lenient", false, "skip invalid jobs, with a message")
	cmd.Flags().IntVar(&f.nodes, "nodes", 0, "nodes of the machine, or processors if the trace counts these (default: the header's)")
	cmd.Flags().Float64Var(&f.options.Speed, "flops", 1e12, "operations per second of a node, for ElastiSim's jobs")
}

func (f *traceFlags) writing(cmd *cobra.Command) {
	f.reading(cmd)
	cmd.Flags().StringVar(&f.to, "to", "", "format to write: "+strings.Join(trace.Formats, ", ")+" (default: from the name of --output, else the input format, else swf)")
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "file to write, gzipped if it ends in .gz (default: standard output)")
}

// open opens a trace; done reports what was left out and closes it.
func (f *traceFlags) open(cmd *cobra.Command, name string) (r *trace.Reader, done func(), err error) {
	in, label, shut := cmd.InOrStdin(), "standard input", func() {}
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, nil, err
		}
		in, label, shut = file, name, func() { file.Close() }
	}
	if f.nodes < 0 || f.nodes > planner.MaxNodes {
		return nil, nil, fmt.Errorf("--nodes=%d: must be within 1 … %d", f.nodes, planner.MaxNodes)
	}
	f.options.Machine = f.nodes
	r, err = trace.NewReader(in, f.options, f.more...)
	if err != nil {
		shut()
		return nil, nil, fmt.Errorf("%s: %w", label, err)
	}
	if f.nodes > 0 {
		r.Header.Set("MaxNodes", strconv.Itoa(f.nodes))
		r.Header.Set("MaxProcs", strconv.Itoa(f.nodes))
	}
	return r, func() {
		Tell(cmd.ErrOrStderr(), label, r.Report())
		shut()
	}, nil
}

// each calls see for every job of a trace; the header and the format are known then.
func (f *traceFlags) each(cmd *cobra.Command, name string, see func(trace.Job)) (h trace.Header, format string, err error) {
	r, done, err := f.open(cmd, name)
	if err != nil {
		return h, "", err
	}
	defer done()
	for {
		j, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r.Header, r.Format, nil
		} else if err != nil {
			return h, "", fmt.Errorf("%s: %w", name, err)
		}
		see(j)
	}
}

// all reads a whole trace.
func (f *traceFlags) all(cmd *cobra.Command, name string) (trace.Trace, string, error) {
	r, done, err := f.open(cmd, name)
	if err != nil {
		return trace.Trace{}, "", err
	}
	defer done()
	t, err := r.ReadAll()
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return t, r.Format, err
}

// format returns the one to write.
func (f *traceFlags) format(read string) (string, error) {
	name := strings.TrimSuffix(f.out, ".gz")
	switch {
	case f.to != "":
		if !slices.Contains(trace.Formats, f.to) {
			return "", fmt.Errorf("--to=%s: must be %s", f.to, strings.Join(trace.Formats, ", "))
		}
		return f.to, nil
	case strings.HasSuffix(name, ".swf"):
		return "swf", nil
	case strings.HasSuffix(name, ".json"):
		return "json", nil
	case slices.Contains(trace.Formats, read):
		return read, nil
	case read == "elastisim":
		return "json", nil
	}
	return "swf", nil
}

// write writes jobs until an error.
func (f *traceFlags) write(cmd *cobra.Command, read string, h trace.Header, jobs iter.Seq2[trace.Job, error]) error {
	format, err := f.format(read)
	if err != nil {
		return err
	}
	write := func(out io.Writer) error { return writeJobs(cmd, out, format, h, jobs) }
	if f.out == "" {
		return write(cmd.OutOrStdout())
	}
	return create(f.out, write)
}

// stream changes or drops every job of a trace as it is read.
func (f *traceFlags) stream(cmd *cobra.Command, name string, head func(*trace.Header), change func(*trace.Job) (bool, error)) error {
	r, done, err := f.open(cmd, name)
	if err != nil {
		return err
	}
	defer done()
	h := r.Header // jobs are checked against the reader's own header
	if head != nil {
		head(&h)
	}
	return f.write(cmd, r.Format, h, func(yield func(trace.Job, error) bool) {
		for {
			j, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				yield(j, fmt.Errorf("%s: %w", name, err))
				return
			}
			if keep, err := change(&j); (err != nil || keep) && !yield(j, err) {
				return
			}
		}
	})
}

// given returns jobs that are already in memory.
func given(jobs iter.Seq[trace.Job]) iter.Seq2[trace.Job, error] {
	return func(yield func(trace.Job, error) bool) {
		for j := range jobs {
			if !yield(j, nil) {
				return
			}
		}
	}
}

// Tell prints what was left out of a trace and what is odd about it.
func Tell(stderr io.Writer, label string, r trace.Report) {
	say := func(format string, args ...any) {
		fmt.Fprintf(stderr, "evosim: %s: "+format+"\n", append([]any{label}, args...)...)
	}
	for _, fault := range r.First {
		say("left out: %s", fault)
	}
	if n := r.Left - len(r.First); n > 0 {
		say("%d more jobs are left out", n)
	}
	for _, note := range r.Notes {
		say("%s", note)
	}
}

func writeJobs(cmd *cobra.Command, out io.Writer, format string, h trace.Header, jobs iter.Seq2[trace.Job, error]) error {
	w, err := trace.NewWriter(out, format, h)
	if err != nil {
		return err
	}
	n, left, written := 0, 0, 0
	for j, err := range jobs {
		if n%4096 == 0 && cmd.Context().Err() != nil {
			return cmd.Context().Err()
		}
		n++
		if err != nil {
			return err
		}
		if err := w.Write(j); errors.Is(err, trace.ErrNeverRan) {
			left++
		} else if err != nil {
			return err
		} else {
			written++
		}
	}
	if left > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "evosim: %d jobs that never ran are left out\n", left)
	}
	if written == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "evosim: what was written has no jobs in it")
	}
	return output(w.Close())
}
