package trace

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/planner"
)

// ErrNeverRan is a writer's error for a job that its format cannot represent, because it never ran.
var ErrNeverRan = errors.New("it never ran")

type (
	batsimJob struct {
		ID       json.RawMessage `json:"id"` // a text, of old versions a number
		Submit   *float64        `json:"subtime"`
		Limit    *float64        `json:"walltime,omitempty"`
		Nodes    *int64          `json:"res"`
		Profile  *string         `json:"profile"`
		Original string          `json:"swf,omitempty"` // ours: what the line said; Batsim reads over it
	}
	batsimProfile struct {
		Type   string   `json:"type"`
		Delay  *float64 `json:"delay,omitempty"`
		Repeat *int64   `json:"repeat,omitempty"`
		Seq    []string `json:"seq,omitempty"`
	}
)

// rawJobs are the jobs of a file that is read whole, one after the other.
type rawJobs struct {
	all []json.RawMessage
	n   int // of the present one, from 1
}

// take returns the next job's text, and where that stands; false at the end.
func (r *rawJobs) take() (text json.RawMessage, at string, ok bool) {
	if r.n == len(r.all) {
		return nil, "", false
	}
	r.n++
	return r.all[r.n-1], fmt.Sprintf("job %d", r.n), true
}

// batsimSource reads the jobs of Batsim's workload.
type batsimSource struct {
	rawJobs
	profiles map[string]batsimProfile
	known    map[string]float64 // seconds of profiles
}

func (s *batsimSource) next(*Header) (Job, string, error) {
	text, at, ok := s.take()
	if !ok {
		return Job{}, "", io.EOF
	}
	bad := func(field, format string, args ...any) (Job, string, error) {
		return Job{}, at, &Fault{at, field, fmt.Errorf(format, args...)}
	}
	var b batsimJob
	if err := json.Unmarshal(text, &b); err != nil {
		return bad("", "%w", wrongType(err))
	}
	id, err := batsimID(b.ID)
	if err != nil {
		return bad("id", "%w", err)
	}
	j := Unknown
	j.Number = int64(s.n)
	if n, err := strconv.ParseInt(id, 10, 64); err == nil && n >= 0 && n <= mostNumber {
		j.Number = n
	} else if id != "" {
		j.Shape = &Shape{ID: id}
	}
	switch {
	case id == "":
		return bad("id", "is missing")
	case b.Submit == nil:
		return bad("subtime", "is missing")
	case b.Nodes == nil:
		return bad("res", "is missing")
	case b.Profile == nil:
		return bad("profile", "is missing")
	case !(*b.Submit >= 0):
		return bad("subtime", "%v is negative", *b.Submit)
	case *b.Nodes < 1:
		return bad("res", "%d; want at least 1", *b.Nodes)
	case b.Limit != nil && *b.Limit < 0 && *b.Limit != -1:
		return bad("walltime", "%v; want seconds, or -1 for none", *b.Limit)
	}
	if b.Limit != nil && *b.Limit > 0 {
		j.Limit = *b.Limit
	}
	run, err := s.seconds(*b.Profile, 0)
	if err != nil {
		return bad("profile", "%w", err)
	}
	j.Submit, j.Wanted, j.Run = *b.Submit, *b.Nodes, run
	if b.Original != "" {
		told, fault := new(swf).job([]byte(b.Original))
		switch {
		case fault != nil:
			return Job{}, at, &Fault{at, "swf", fault}
		case strings.ContainsAny(b.Original, lineBreaks):
			return bad("swf", "has a line break in it")
		case told.Run != run || int64(told.Size()) != *b.Nodes || told.Submit != *b.Submit:
			return bad("swf", "is another job's: submitted at %v, %v s on %d", told.Submit, told.Run, told.Size())
		}
		told.Shape = j.Shape
		j = told
	}
	return j, at, nil
}

// batsimID returns a job's name, or its number.
func batsimID(text json.RawMessage) (string, error) {
	var id string
	if len(text) == 0 || json.Unmarshal(text, &id) == nil && string(text) != "null" {
		return id, nil
	}
	var n int64
	if json.Unmarshal(text, &n) != nil || string(text) == "null" {
		return "", fmt.Errorf("%.40s is neither a text nor a whole number", text)
	}
	return strconv.FormatInt(n, 10), nil
}

// mostNested are the sequences of profiles that are one within the other.
const mostNested = 1000

// seconds returns how long a profile takes; so many are around it.
func (s *batsimSource) seconds(name string, around int) (float64, error) {
	if t, ok := s.known[name]; ok {
		if t < 0 {
			return 0, fmt.Errorf("profile %q contains itself", name)
		}
		return t, nil
	}
	if s.known == nil {
		s.known = make(map[string]float64)
	}
	p, ok := s.profiles[name]
	sum := 0.
	switch {
	case !ok:
		return 0, fmt.Errorf("there is no profile %q", name)
	case around > mostNested:
		return 0, fmt.Errorf("more than %d profiles are one within the other", mostNested)
	case p.Type == "delay" && p.Delay != nil:
		sum = *p.Delay
	case p.Type == "composed" || p.Type == "sequential_composition":
		s.known[name] = -1 // while it is looked at
		for _, part := range p.Seq {
			t, err := s.seconds(part, around+1)
			if err != nil {
				delete(s.known, name)
				return 0, err
			}
			sum += t
		}
		if p.Repeat != nil {
			sum *= float64(*p.Repeat)
		}
	default:
		return 0, fmt.Errorf("profile %q is of type %q, whose duration only a platform tells; delay and sequences of it are known", name, p.Type)
	}
	delete(s.known, name)
	if !(sum > 0 && sum <= planner.MaxDuration) {
		return 0, fmt.Errorf("profile %q: %v seconds; want more than 0 and up to %d", name, sum, planner.MaxDuration)
	}
	s.known[name] = sum
	return sum, nil
}

// batsimWriter writes Batsim's workload: profiles come after the jobs.
type batsimWriter struct {
	w      *bufio.Writer
	jobs   int
	delays map[float64]bool
}

func newBatsimWriter(w *bufio.Writer, h Header) (*batsimWriter, error) {
	if h.Machine() < 1 {
		return nil, errors.New("the trace does not tell of how many nodes or processors the machine is (MaxNodes, MaxProcs); give --nodes")
	}
	if len(h.Busy) > 0 {
		return nil, errors.New("busy: Batsim's workload has no nodes that are in use from the start")
	}
	_, err := fmt.Fprintf(w, "{\"nb_res\":%d,\n", h.Machine())
	if len(h.Lines) > 0 && err == nil {
		text, marshal := json.Marshal(h.Lines)
		if marshal != nil {
			return nil, marshal
		}
		_, err = fmt.Fprintf(w, "\"header\":%s,\n", text)
	}
	io.WriteString(w, "\"jobs\":[")
	return &batsimWriter{w: w, delays: make(map[float64]bool)}, err
}

func (w *batsimWriter) Write(j Job) error {
	if j.Kind() != Rigid {
		return fmt.Errorf("job %d is %s, which Batsim's workload has no words for; write json", j.Number, j.Kind())
	}
	if !j.Ran() {
		return ErrNeverRan
	}
	if w.jobs++; w.jobs > 1 {
		io.WriteString(w.w, ",")
	}
	id := strconv.FormatInt(j.Number, 10)
	if j.Shape != nil && j.Shape.ID != "" {
		id = j.Shape.ID
	}
	quoted, err := json.Marshal(id)
	if err != nil {
		return err
	}
	w.delays[j.Run] = true
	nodes, profile := int64(j.Size()), number(j.Run)
	out := batsimJob{ID: quoted, Submit: &j.Submit, Nodes: &nodes, Profile: &profile}
	if j.Limit > 0 {
		out.Limit = &j.Limit
	}
	back := Unknown
	back.Number, back.Submit, back.Wanted, back.Run, back.Shape = j.Number, j.Submit, nodes, j.Run, j.Shape
	if j.Limit > 0 {
		back.Limit = j.Limit
	}
	if back != j {
		line := swfWriter{w: bufio.NewWriter(io.Discard)}
		if err := line.Write(j); err != nil {
			return err
		}
		out.Original = string(line.line)
	}
	text, err := json.Marshal(out)
	if err != nil {
		return err
	}
	io.WriteString(w.w, "\n")
	_, err = w.w.Write(text)
	return err
}

func (w *batsimWriter) Close() error {
	delays := make([]float64, 0, len(w.delays))
	for d := range w.delays {
		delays = append(delays, d)
	}
	sort.Float64s(delays)
	io.WriteString(w.w, "\n],\n\"profiles\":{")
	for i, d := range delays {
		if i > 0 {
			io.WriteString(w.w, ",")
		}
		fmt.Fprintf(w.w, "\n%q:{\"type\":\"delay\",\"delay\":%s}", number(d), number(d))
	}
	io.WriteString(w.w, "\n}}\n")
	return w.w.Flush()
}
