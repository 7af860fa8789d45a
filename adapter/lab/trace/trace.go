package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// Job is one job. Times are seconds, sizes processors; negative is not known, as in SWF.
type Job struct {
	Number       int64
	Submit       float64
	Wait         float64 // until it started
	Run          float64
	Processors   int64 // that it had
	CPU          float64
	Memory       float64
	Wanted       int64 // processors that it asked for
	Limit        float64
	WantedMemory float64
	Status       int64
	User         int64
	Group        int64
	Application  int64
	Queue        int64
	Partition    int64
	Preceding    int64
	Think        float64

	More  string // of a line with more fields: these, as they stand
	Shape *Shape // nil: rigid
}

// Unknown is a job without any known value.
var Unknown = Job{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, "", nil}

// Shape holds what SWF cannot express. Its nodes are the unit of the trace.
type Shape struct {
	ID   string // of formats that name jobs
	Kind Kind

	Profile      planner.Profile   // but of a rigid job
	Alternatives []planner.Profile // of a moldable one, beside Profile
	By           planner.Preference
	ExpandLimit  planner.ExpandLimit

	// Min and Max are bounds of a malleable job; Profile is its work: a size, and how long it takes there. Speedup is how fast
	// it is on others, nil: n times as fast on n nodes.
	Min, Max int
	Speedup  malleable.Speedup
}

// Kind says who chooses the size, and when.
type Kind uint8

const (
	Rigid Kind = iota
	Moldable
	Malleable
	Evolving
)

var kinds = [...]string{"rigid", "moldable", "malleable", "evolving"}

func (k Kind) String() string { return kinds[k] }

// Kind returns the kind of the job's shape.
func (j *Job) Kind() Kind {
	if j.Shape == nil {
		return Rigid
	}
	return j.Shape.Kind
}

// Size returns the processors that it had, or, where that is not told, asked for; 0: neither is.
func (j *Job) Size() int {
	switch {
	case j.Processors > 0:
		return int(j.Processors)
	case j.Wanted > 0:
		return int(j.Wanted)
	}
	return 0
}

// Seconds returns those that it ran, a part of one counted as one.
func (j *Job) Seconds() int64 {
	if j.Run <= 0 {
		return 0
	}
	return int64(math.Ceil(j.Run))
}

// LimitSeconds returns the whole seconds that it asked for, as far as a job can run at all; 0: that is not told.
func (j *Job) LimitSeconds() int64 {
	if j.Limit <= 0 {
		return 0
	}
	return int64(min(math.Ceil(j.Limit), planner.MaxDuration))
}

// Ran reports whether it ran, on a size that is known: what cannot be run again is left out of
// simulations.
func (j *Job) Ran() bool { return j.Run > 0 && j.Size() > 0 && j.Submit >= 0 }

// Start returns when it started; negative: that is not told.
func (j *Job) Start() float64 {
	if j.Wait < 0 || j.Submit < 0 {
		return -1
	}
	return j.Submit + j.Wait
}

// Header holds what a trace says about itself.
type Header struct {
	Lines      []string // of SWF, as they stand, without ";"
	Nodes      int      // 0: not told
	Processors int
	Jobs       int   // as told
	UnixStart  int64 // the second that is 0, since 1970; -1: not told
	Zone       string
	Busy       []planner.Busy // of a workload file: in use from the start
	InNodes    bool           // sizes are nodes, else processors
}

// Machine returns the size of the machine in what the trace counts by: processors, else nodes; 0: it
// does not tell.
func (h *Header) Machine() int {
	if h.Processors > 0 {
		return h.Processors
	}
	return h.Nodes
}

// unit returns what sizes count.
func (h *Header) unit() string {
	if h.InNodes {
		return "node"
	}
	return "processor"
}

// Trace is a trace as a whole.
type Trace struct {
	Header Header
	Jobs   []Job
	Report Report
}

// Runnable returns the jobs that ran or are to run, which can be run again, the first one submitted at
// second 0, and how many others there are.
func (t *Trace) Runnable() (jobs []Job, left int) {
	first := math.Inf(1)
	for i := range t.Jobs {
		if t.Jobs[i].Ran() {
			jobs = append(jobs, t.Jobs[i])
			first = min(first, math.Floor(t.Jobs[i].Submit))
		}
	}
	for i := range jobs {
		jobs[i].Submit -= first
	}
	return jobs, len(t.Jobs) - len(jobs)
}

// Problem returns the trace as a workload file has it: what is planned of it. Jobs that never ran are left out.
func (t *Trace) Problem() planner.Problem {
	p := planner.Problem{Nodes: t.Header.Machine(), Busy: t.Header.Busy}
	for i := range t.Jobs {
		if j := &t.Jobs[i]; j.Ran() {
			p.Jobs = append(p.Jobs, j.planned(0))
		}
	}
	return p
}

// Fault says what is wrong with a job, or with the file.
type Fault struct {
	At    string // "line 7", "job 3"; "": the file as a whole
	Field string // "" : none
	Err   error
}

func (f *Fault) Error() string {
	text := f.Err.Error()
	if f.Field != "" {
		text = f.Field + ": " + text
	}
	if f.At != "" {
		text = f.At + ": " + text
	}
	return text
}

func (f *Fault) Unwrap() error { return f.Err }

// Report says what a reader has seen.
type Report struct {
	Jobs  int      `json:"jobs"`
	Left  int      `json:"left_out"`         // by a lenient reader
	First []string `json:"faults,omitempty"` // the first few of these
	Notes []string `json:"notes,omitempty"`  // what is odd, and no reason to refuse anything
}

// mostFaults bounds the faults that are printed in full.
const mostFaults = 10

// Options say how a trace is read.
type Options struct {
	Lenient  bool    // leave out what is wrong
	AnyOrder bool    // jobs need not be in order of submission
	Machine  int     // the size of the machine, whatever the header says; 0: that
	Speed    float64 // of a node of ElastiSim's, floating point operations a second; 0: 10^12
}

// Limits of what is read.
const (
	MostJobs   = 10_000_000
	MostTime   = 1e11 // seconds of a submission, since 1970 too
	mostLine   = 1 << 16
	mostNumber = 1 << 53 // fields of SWF are floating point numbers here
	mostJob    = 1 << 24 // bytes of one in a workload file
	mostHead   = 1 << 16 // lines of a header
)

// mostFile are the bytes of JSON that is not streamed.
var mostFile int64 = 1 << 28

// source is a format being read.
type source interface {
	// next returns the next job and its position. A *Fault concerns only this job; any other error
	// ends the trace.
	next(*Header) (j Job, at string, err error)
}

// Reader reads a trace.
type Reader struct {
	Header Header // before the first job was read: as far as it stands before that
	Format string // "swf", "json", "batsim", "elastisim", or another's name

	o      Options
	from   source
	report Report
	last   float64
	seen   numbers
	ahead  *Job
	err    error
}

// Format is a further format of traces.
type Format struct {
	Name    string
	Is      func(begin []byte) bool // whether a file that begins so is one
	InNodes func(begin []byte) bool // whether sizes in it are nodes; nil: they are processors
	Open    func(io.Reader) func() (j Job, at string, err error)
}

type foreign func() (Job, string, error)

func (f foreign) next(*Header) (Job, string, error) { return f() }

// NewReader reads a trace of any format, gzipped or not, and recognises which it is by its
// beginning. It has read the first job when it is back, so that the header is known. The error, if
// any, is a *Fault.
func NewReader(in io.Reader, o Options, more ...Format) (*Reader, error) {
	r := &Reader{o: o, Header: Header{UnixStart: -1}, last: math.Inf(-1)}
	text := bufio.NewReaderSize(in, mostLine)
	if magic, _ := text.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(text)
		if err != nil {
			return nil, &Fault{Err: cut(err)}
		}
		text = bufio.NewReaderSize(unzipped, mostLine)
	}
	workload.SkipMark(text)
	begin, err := text.Peek(2048)
	if err != nil && !errors.Is(err, io.EOF) && len(begin) == 0 {
		return nil, &Fault{Err: cut(err)}
	}
	trimmed := bytes.TrimLeft(begin, " \t\r\n")
	if len(trimmed) == 0 && errors.Is(err, io.EOF) {
		return nil, &Fault{Err: workload.ErrEmpty}
	}
	inNodes := len(trimmed) > 0 && trimmed[0] == '{'
	for _, f := range more {
		if f.Is(begin) {
			inNodes = f.InNodes != nil && f.InNodes(begin)
			r.Format, r.from = f.Name, foreign(f.Open(text))
		}
	}
	switch {
	case r.from != nil:
	case len(trimmed) > 0 && trimmed[0] == '{':
		r.Format, r.from, err = openJSON(text, &r.Header, o)
		if err != nil {
			return nil, err
		}
	default:
		r.Format, r.from = "swf", &swf{text: text, seen: &r.seen}
	}
	j, err := r.read()
	switch {
	case err == nil:
		r.ahead = &j
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	r.err = err
	if h := &r.Header; h.Machine() > 0 {
		inNodes = h.Processors == 0 || h.Processors == h.Nodes
	}
	r.Header.InNodes = inNodes
	return r, nil
}

// cut makes the end of a file that is cut short say so.
func cut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file is cut short")
	}
	return err
}

// Next returns the next job; io.EOF: there is none.
func (r *Reader) Next() (Job, error) {
	if r.ahead != nil {
		j := *r.ahead
		r.ahead = nil
		return j, nil
	}
	if r.err != nil {
		return Job{}, r.err
	}
	j, err := r.read()
	r.err = err
	return j, err
}

// Report returns what has been seen so far.
func (r *Reader) Report() Report { return r.report }

func (r *Reader) read() (Job, error) {
	for {
		j, at, err := r.from.next(&r.Header)
		if errors.Is(err, io.EOF) {
			if r.report.Jobs == 0 && len(r.report.First) > 0 {
				return Job{}, &Fault{Err: fmt.Errorf("no job is left of %d; the first fault is: %s", r.report.Left, r.report.First[0])}
			}
			for _, l := range r.Header.odd() {
				r.note("the header's %s is no size; it is passed over", l)
			}
			if r.Header.Jobs > 0 && r.Header.Jobs != r.report.Jobs+r.report.Left {
				r.note("the header tells of %d jobs (MaxJobs), there are %d", r.Header.Jobs, r.report.Jobs+r.report.Left)
			}
			if c, ok := r.from.(interface{ notes() []string }); ok {
				r.report.Notes = append(r.report.Notes, c.notes()...)
			}
			return Job{}, io.EOF
		}
		var fault *Fault
		if err != nil && !errors.As(err, &fault) {
			if fault = (&Fault{At: at, Err: cut(err)}); r.o.Lenient && r.report.Jobs > 0 {
				r.leave(fault, 0)
				return Job{}, io.EOF
			}
			return Job{}, fault
		}
		if fault == nil {
			fault = r.check(&j, at)
		}
		switch {
		case fault == nil && r.report.Jobs == MostJobs:
			return Job{}, &Fault{At: at, Err: fmt.Errorf("more than %d jobs", MostJobs)}
		case fault == nil:
			r.report.Jobs++
			r.seen.add(&j)
			r.last = max(r.last, j.Submit)
			return j, nil
		case !r.o.Lenient:
			return Job{}, fault
		}
		r.leave(fault, 1)
	}
}

func (r *Reader) leave(f *Fault, jobs int) {
	r.report.Left += jobs
	if len(r.report.First) < mostFaults {
		r.report.First = append(r.report.First, f.Error())
	}
}

func (r *Reader) note(format string, args ...any) {
	r.report.Notes = append(r.report.Notes, fmt.Sprintf(format, args...))
}

// check returns what is wrong with a job as a whole.
func (r *Reader) check(j *Job, at string) *Fault {
	bad := func(field int, format string, args ...any) *Fault {
		return &Fault{at, fieldName(field), fmt.Errorf(format, args...)}
	}
	machine, by := r.Header.Machine(), "by the header"
	if r.o.Machine > 0 {
		machine, by = r.o.Machine, "as given"
	}
	switch size := j.Size(); {
	case j.Submit > MostTime:
		return bad(1, "%s seconds are not a time (milliseconds?)", number(j.Submit))
	case j.Run > planner.MaxDuration:
		return bad(3, "%s seconds are more than %d", number(j.Run), planner.MaxDuration)
	case j.Wait > MostTime:
		return bad(2, "%s seconds are not a time", number(j.Wait))
	case j.Limit > MostTime:
		return bad(8, "%s seconds are not a time", number(j.Limit))
	case j.Processors > planner.MaxNodes:
		return bad(4, "%d are more than %d", j.Processors, planner.MaxNodes)
	case j.Wanted > planner.MaxNodes:
		return bad(7, "%d are more than %d", j.Wanted, planner.MaxNodes)
	case machine > 0 && size > machine:
		field := 4
		if j.Processors < 1 {
			field = 7
		}
		return bad(field, "%d, and the machine has %d (%s)", size, machine, by)
	case j.Number < 0 && !j.named():
		return bad(0, "%d; every job has one", j.Number)
	case j.Number > mostNumber:
		return bad(0, "%d is more than 2^53", j.Number)
	case r.seen.has(j) && j.named():
		return &Fault{at, "id", fmt.Errorf("%q is that of an earlier job, too", j.Shape.ID)}
	case r.seen.has(j):
		return bad(0, "%d is that of an earlier job, too", j.Number)
	case !r.o.AnyOrder && j.Submit < r.last:
		return bad(1, "%s is before the job in front of it, %s (evosim trace convert --sort puts them in order)", number(j.Submit), number(r.last))
	}
	if s := j.Shape; s != nil {
		for _, p := range append([]planner.Profile{s.Profile}, s.Alternatives...) {
			if machine > 0 && p.Peak() > machine {
				return &Fault{at, "profile", fmt.Errorf("needs %d, and the machine has %d (%s)", p.Peak(), machine, by)}
			}
		}
	}
	return nil
}

// ReadAll reads a trace to its end.
func (r *Reader) ReadAll() (Trace, error) {
	var jobs []Job
	for {
		j, err := r.Next()
		if errors.Is(err, io.EOF) {
			return Trace{r.Header, jobs, r.Report()}, nil
		}
		if err != nil {
			return Trace{}, err
		}
		jobs = append(jobs, j)
	}
}

// Read reads a whole trace of any format, in any order, and nothing but what is right of it.
func Read(in io.Reader, more ...Format) (Trace, error) {
	r, err := NewReader(in, Options{AnyOrder: true}, more...)
	if err != nil {
		return Trace{}, err
	}
	return r.ReadAll()
}

// Writer writes jobs in a format.
type Writer interface {
	Write(Job) error
	Close() error // of the format, not of what it writes to
}

// Formats lists the formats that can be written.
var Formats = []string{"swf", "json", "batsim"}

// NewWriter writes in a format. Writers of JSON keep nothing but Batsim's profiles.
func NewWriter(out io.Writer, format string, h Header) (Writer, error) {
	w := bufio.NewWriterSize(out, 1<<16)
	switch format {
	case "swf":
		return newSWFWriter(w, h), nil
	case "json":
		return newJSONWriter(w, h)
	case "batsim":
		return newBatsimWriter(w, h)
	}
	return nil, fmt.Errorf("unknown format %q: must be %s", format, strings.Join(Formats, ", "))
}
