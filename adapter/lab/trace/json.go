package trace

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// openJSON reads an object up to its jobs, and tells by its keys whose it is. Ours is streamed from
// there on where "nodes" comes first, as [NewWriter] writes it; all else is read as a whole.
func openJSON(in io.Reader, h *Header, o Options) (string, source, error) {
	text := &bounded{in, mostFile, fmt.Errorf("more than %d bytes that cannot be streamed", mostFile)}
	d := json.NewDecoder(bufio.NewReaderSize(text, 1<<16))
	var (
		nodes, res int
		jobs       []json.RawMessage
		profiles   map[string]batsimProfile
		given      = map[string]bool{}
		unknown    string
	)
	if _, err := d.Token(); err != nil {
		return "", nil, broken(err)
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return "", nil, broken(err)
		}
		key, _ := token.(string)
		if given[key] {
			return "", nil, &Fault{Field: key, Err: errors.New("is given twice")}
		}
		given[key] = true
		switch key {
		case "nodes":
			err = d.Decode(&nodes)
		case "nb_res":
			err = d.Decode(&res)
		case "header":
			var lines []string
			if err = d.Decode(&lines); len(lines) > mostHead {
				err = fmt.Errorf("is of more than %d lines", mostHead)
			}
			for _, l := range lines {
				if err == nil && strings.ContainsAny(l, lineBreaks) {
					err = fmt.Errorf("%.40q has a line break in it", l)
				}
				h.add(l)
			}
		case "busy":
			h.Busy, err = readBusy(d)
		case "profiles":
			err = d.Decode(&profiles)
		case "jobs":
			if given["nodes"] && !given["nb_res"] {
				if err := ours(h, nodes, unknown); err != nil {
					return "", nil, err
				}
				if token, err := d.Token(); err != nil {
					return "", nil, broken(err)
				} else if token != json.Delim('[') {
					return "", nil, &Fault{Field: "jobs", Err: errors.New("is not an array")}
				}
				text.full = fmt.Errorf("longer than %d bytes", mostJob)
				return "json", &jsonSource{d: d, text: text}, nil
			}
			err = d.Decode(&jobs)
		default:
			unknown = key
			err = d.Decode(new(json.RawMessage))
		}
		if err != nil {
			return "", nil, &Fault{Field: key, Err: wrongType(broken(err).Err)}
		}
	}
	if _, err := d.Token(); err != nil {
		return "", nil, broken(err)
	}
	switch {
	case given["nodes"]:
		if err := ours(h, nodes, unknown); err != nil {
			return "", nil, err
		}
		return "json", &jsonSource{jobs: jobs}, nil
	case given["nb_res"] || given["profiles"]:
		if res < 0 || res > planner.MaxNodes {
			return "", nil, &Fault{Field: "nb_res", Err: fmt.Errorf("%d is not within 1 … %d", res, planner.MaxNodes)}
		}
		h.Nodes = res
		return "batsim", &batsimSource{rawJobs: rawJobs{all: jobs}, profiles: profiles}, nil
	case given["jobs"]:
		return "elastisim", &elastiSource{rawJobs: rawJobs{all: jobs}, speed: o.Speed}, nil
	}
	return "", nil, &Fault{Err: errors.New("neither a workload file (nodes, jobs) nor Batsim's (nb_res, jobs, profiles) nor ElastiSim's (jobs)")}
}

// ours checks what stands before the jobs of a workload file.
func ours(h *Header, nodes int, unknown string) error {
	switch {
	case unknown != "":
		return &Fault{Field: unknown, Err: errors.New("unknown field")}
	case nodes < 1 || nodes > planner.MaxNodes:
		return &Fault{Field: "nodes", Err: fmt.Errorf("%d is not within 1 … %d", nodes, planner.MaxNodes)}
	}
	for i, b := range h.Busy {
		if b.Start < 0 || b.Start > workload.MaxTime || b.Duration < 1 || b.Duration > workload.MaxTime || b.Nodes < 1 || b.Nodes > nodes {
			return &Fault{Field: fmt.Sprintf("busy[%d]", i), Err: fmt.Errorf("%d nodes for %d s from second %d", b.Nodes, b.Duration, b.Start)}
		}
	}
	if h.Machine() != nodes {
		h.Nodes = nodes
		if h.Processors > 0 {
			h.Processors = nodes
		}
	}
	return nil
}

// readBusy reads what is in use from the start; a missing value is not read as 0.
func readBusy(d *json.Decoder) ([]planner.Busy, error) {
	var given []struct {
		Start, Duration *int64
		Nodes           *int
	}
	if err := d.Decode(&given); err != nil {
		return nil, err
	}
	var busy []planner.Busy
	for i, b := range given {
		if b.Start == nil || b.Duration == nil || b.Nodes == nil {
			return nil, fmt.Errorf("interval %d: start, duration or nodes is missing", i+1)
		}
		busy = append(busy, planner.Busy{Start: *b.Start, Duration: *b.Duration, Nodes: *b.Nodes})
	}
	return busy, nil
}

// bounded is a reader of a file that is too long.
type bounded struct {
	r    io.Reader
	left int64
	full error // what is wrong then
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.full
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// broken returns a fault of the JSON itself.
func broken(err error) *Fault {
	if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
		return &Fault{Err: fmt.Errorf("broken JSON at byte %d: %w", syntax.Offset, err)}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &Fault{Err: cut(err)}
}

// lineBreaks are the characters that a line of SWF cannot contain.
const lineBreaks = "\r\n"

// wrongType has an error about the type of a value say what it is.
func wrongType(err error) error {
	if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
		article := "a"
		if strings.HasPrefix(kind.Value, "a") || strings.HasPrefix(kind.Value, "o") {
			article = "an"
		}
		err = fmt.Errorf("is %s %s", article, kind.Value)
		if kind.Field != "" {
			err = fmt.Errorf("%s: %w", kind.Field, err)
		}
	}
	return err
}

// jsonSource reads the jobs of a workload file, from the decoder or as they were read.
type jsonSource struct {
	d    *json.Decoder
	text *bounded // that it reads
	jobs []json.RawMessage
	i    int
}

func (s *jsonSource) next(h *Header) (Job, string, error) {
	var text json.RawMessage
	switch {
	case s.d == nil && s.i < len(s.jobs):
		text = s.jobs[s.i]
	case s.d == nil:
		return Job{}, "", io.EOF
	case s.more():
		if err := s.d.Decode(&text); err != nil {
			return Job{}, fmt.Sprintf("job %d", s.i+1), broken(err).Err
		}
	default:
		return Job{}, "", s.end(h)
	}
	i := s.i
	s.i++
	at := fmt.Sprintf("job %d", i+1)
	p, logged, err := workload.ReadJob(text, i)
	if err != nil {
		if where, ok := errors.AsType[*planner.ProblemError](err); ok {
			return Job{}, at, &Fault{at, where.Field, where.Err}
		}
		return Job{}, at, &Fault{at, "", err}
	}
	j, fault := fromPlanner(p, logged, i)
	if fault != nil {
		fault.At = at
		return Job{}, at, fault
	}
	return j, at, nil
}

// more reports whether there is another job, and lets it be of some length.
func (s *jsonSource) more() bool {
	s.text.left = mostJob
	return s.d.More()
}

// end reads what stands behind the jobs.
func (s *jsonSource) end(h *Header) error {
	for range 2 { // ] }
		token, err := s.d.Token()
		if err != nil {
			return broken(err).Err
		}
		if key, ok := token.(string); ok {
			return fmt.Errorf("%s: stands behind the jobs; a trace has it before these", key)
		}
	}
	if _, err := s.d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the workload")
	}
	return io.EOF
}

// fromPlanner returns a job of a workload file, number i from 0.
func fromPlanner(p planner.Job, logged workload.Logged, i int) (Job, *Fault) {
	j := Unknown
	j.Number = int64(i) + 1
	if n, err := strconv.ParseInt(p.ID, 10, 64); err == nil && n >= 0 && n <= mostNumber && strconv.FormatInt(n, 10) == p.ID {
		j.Number = n
	}
	shape := Shape{ID: p.ID, ExpandLimit: p.ExpandLimit}
	if strconv.FormatInt(j.Number, 10) == p.ID {
		shape.ID = ""
	}
	if p.Submit < 0 || p.Submit > workload.MaxTime {
		return j, &Fault{Field: "submit", Err: fmt.Errorf("%d is not within 0 … 2^53", p.Submit)}
	}
	j.Submit = float64(p.Submit)
	for k, profile := range append([]planner.Profile{p.Profile}, p.Alternatives...) {
		if len(profile) == 0 && logged.SWF != nil && k == 0 {
			continue // it never ran
		}
		if err := profile.Validate(); err != nil {
			return j, &Fault{Field: "profile", Err: err}
		}
	}
	if len(p.Profile) > 0 {
		j.Run, j.Wanted = float64(p.Profile.Duration()), int64(p.Profile.Peak())
	}
	switch {
	case p.IsMoldable():
		shape.Kind, shape.Alternatives, shape.By = Moldable, p.Alternatives, p.By
	case len(p.Profile) > 1:
		shape.Kind = Evolving
	}
	if b := logged.Malleable; b != nil {
		if shape.Kind != Rigid || b.Min < 1 || b.Max < b.Min || b.Max > planner.MaxNodes {
			return j, &Fault{Field: "malleable", Err: fmt.Errorf("%d … %d nodes of a job that is %s", b.Min, b.Max, shape.Kind)}
		}
		shape.Kind, shape.Min, shape.Max = Malleable, b.Min, b.Max
		if b.Speedup != "" {
			up, err := malleable.ParseDeclared(b.Speedup)
			if err != nil {
				return j, &Fault{Field: "malleable.speedup", Err: err}
			}
			shape.Speedup = up
		}
	}
	if shape.Kind != Rigid {
		shape.Profile = p.Profile
	}
	if shape.ID != "" || shape.Kind != Rigid || shape.ExpandLimit != 0 {
		j.Shape = &shape
	}
	if logged.SWF != nil {
		if len(logged.SWF) != len(fields) {
			return j, &Fault{Field: "swf", Err: fmt.Errorf("%d fields; a job has %d", len(logged.SWF), len(fields))}
		}
		told, fault := fromValues([len(fields)]float64(logged.SWF))
		if fault != nil {
			return j, fault
		}
		if strings.ContainsAny(logged.More, lineBreaks) {
			return j, &Fault{Field: "more", Err: errors.New("has a line break in it")}
		}
		if logs := told.planned(0).Profile; shape.Kind == Rigid && !slices.Equal(logs, p.Profile) {
			return j, &Fault{Field: "swf", Err: fmt.Errorf("says %s, and the profile %s", orNothing(logs), orNothing(p.Profile))}
		}
		told.More, told.Shape = logged.More, j.Shape
		j = told
	}
	return j, nil
}

// orNothing returns a profile for people.
func orNothing(p planner.Profile) string {
	if len(p) == 0 {
		return "that it never ran"
	}
	return p.String()
}

// planned returns a job as a workload file has it; it is submitted so many seconds later than first.
func (j *Job) planned(first float64) planner.Job {
	p := planner.Job{ID: strconv.FormatInt(j.Number, 10), Submit: max(int64(math.Floor(j.Submit-first)), 0)}
	if s := j.Shape; s != nil {
		if s.ID != "" {
			p.ID = s.ID
		}
		p.Profile, p.Alternatives, p.By, p.ExpandLimit = s.Profile, s.Alternatives, s.By, s.ExpandLimit
	}
	if p.Profile == nil && j.Ran() {
		p.Profile = planner.Profile{{Duration: j.Seconds(), Nodes: j.Size()}}
	}
	return p
}

type jsonWriter struct {
	w     *bufio.Writer
	jobs  int
	first float64
}

func newJSONWriter(w *bufio.Writer, h Header) (*jsonWriter, error) {
	if h.Machine() < 1 {
		return nil, errors.New("the trace does not tell of how many nodes or processors the machine is (MaxNodes, MaxProcs); give --nodes")
	}
	fmt.Fprintf(w, `{"nodes":%d,`, h.Machine())
	if len(h.Lines) > 0 {
		text, err := json.Marshal(h.Lines)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(w, "\n\"header\":%s,", text)
	}
	for i, b := range h.Busy {
		fmt.Fprintf(w, "%s{\"start\":%d,\"duration\":%d,\"nodes\":%d}", map[bool]string{true: "\n\"busy\":[", false: ","}[i == 0], b.Start, b.Duration, b.Nodes)
		if i == len(h.Busy)-1 {
			io.WriteString(w, "],")
		}
	}
	_, err := w.WriteString("\n\"jobs\":[")
	return &jsonWriter{w: w}, err
}

func (w *jsonWriter) Write(j Job) error {
	if w.jobs == 0 {
		w.first = max(j.Submit, 0)
		if j.Shape != nil && j.Shape.ID != "" || j.Submit < 1e8 { // seconds since 1970 are of no use to a plan
			w.first = 0
		}
	} else {
		io.WriteString(w.w, ",")
	}
	p := j.planned(w.first)
	var logged workload.Logged
	if s := j.Shape; s != nil && s.Kind == Malleable {
		logged.Malleable = &workload.Bounds{Min: s.Min, Max: s.Max}
		if s.Speedup != nil {
			logged.Malleable.Speedup = fmt.Sprint(s.Speedup)
		}
	}
	back, fault := fromPlanner(p, logged, w.jobs)
	back.Shape = j.Shape
	if fault != nil || back != j {
		v := j.values()
		logged.SWF, logged.More = v[:], j.More
	}
	w.jobs++
	text, err := workload.EncodeJob(p, logged)
	if err != nil {
		return fmt.Errorf("job %d: %w", w.jobs, err)
	}
	io.WriteString(w.w, "\n")
	_, err = w.w.Write(text)
	return err
}

func (w *jsonWriter) Close() error {
	io.WriteString(w.w, "\n]}\n")
	return w.w.Flush()
}
