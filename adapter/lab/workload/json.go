package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/evoslurm/evoslurm/planner"
)

// Bounds on what a workload file may say. With them no sum overflows.
const (
	MaxBytes = 1 << 30 // of a file
	MaxTime  = 1 << 53 // seconds: of submissions and of busy intervals
)

// The file's objects. Pointers tell a missing field from a zero.
type (
	jobJSON struct {
		ID          *string              `json:"id"`
		Submit      *int64               `json:"submit,omitempty"`
		Profile     []stepJSON           `json:"profile"`
		ExpandLimit *planner.ExpandLimit `json:"expand_limit,omitempty"`

		Alternatives [][]stepJSON `json:"alternatives,omitempty"`
		MoldableBy   *string      `json:"moldable_by,omitempty"`

		Logged
	}
	stepJSON struct {
		Duration *int64 `json:"duration"`
		Nodes    *int   `json:"nodes"`
	}
	busyJSON struct {
		Start    *int64 `json:"start"`
		Duration *int64 `json:"duration"`
		Nodes    *int   `json:"nodes"`
	}
)

// Logged holds a trace's further data about a job. Planning does not read it.
type Logged struct {
	SWF       Fields  `json:"swf,omitempty"`  // of its line
	More      string  `json:"more,omitempty"` // what is behind these
	Malleable *Bounds `json:"malleable,omitempty"`
}

// Fields are numbers; what is not known is -1, as in SWF. None is null, which would read as 0.
type Fields []float64

// nullError is which of the fields is null, from 1.
type nullError int

func (e nullError) Error() string {
	return fmt.Sprintf("field %d is null; what is not known is -1", int(e))
}

// UnmarshalJSON is json.Unmarshaler's.
func (f *Fields) UnmarshalJSON(text []byte) error {
	null := bytes.Index(text, []byte("null"))
	if null == 0 {
		return nil // no fields
	}
	err := json.Unmarshal(text, (*[]float64)(f))
	if err == nil && null > 0 {
		err = nullError(1 + bytes.Count(text[:null], []byte(",")))
	}
	return err
}

// Bounds are the sizes that a malleable job can have; what is planned is its profile. Speedup is as
// malleable.ParseDeclared reads it; "": n times as fast on n nodes.
type Bounds struct {
	Min     int    `json:"min"`
	Max     int    `json:"max"`
	Speedup string `json:"speedup,omitempty"`
}

// Read reads one workload and checks it. The error names the job and the field
// (*planner.ProblemError) or says at which byte the JSON is broken. It takes time
// and memory linear in the input.
func Read(r io.Reader) (planner.Problem, error) { return read(r, MaxBytes) }

func read(r io.Reader, most int64) (planner.Problem, error) {
	limited := &io.LimitedReader{R: r, N: most + 1}
	text := bufio.NewReaderSize(limited, 1<<16)
	SkipMark(text)
	d := &decoder{json: json.NewDecoder(text), ids: make(map[string]int)}
	d.json.DisallowUnknownFields()
	err := d.file()
	if limited.N <= 0 {
		return planner.Problem{}, fmt.Errorf("workload is larger than %d bytes", most)
	}
	if err != nil {
		return planner.Problem{}, err
	}
	if err := Check(d.problem); err != nil {
		return planner.Problem{}, err
	}
	return d.problem, nil
}

// ErrEmpty is a file with nothing in it.
var ErrEmpty = errors.New("the file is empty")

// SkipMark reads over the byte order mark with which some editors and spreadsheets begin a text.
func SkipMark(text *bufio.Reader) {
	if mark, _ := text.Peek(3); string(mark) == "\ufeff" {
		_, _ = text.Discard(len(mark))
	}
}

type decoder struct {
	json    *json.Decoder
	problem planner.Problem
	ids     map[string]int // index of the job with an id
}

// file reads the outermost object.
func (d *decoder) file() error {
	if err := d.delim('{', "workload"); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for d.json.More() {
		token, err := d.json.Token()
		if err != nil {
			return d.broken(err)
		}
		key, _ := token.(string)
		if seen[key] {
			return fileError(key, errors.New("is given twice"))
		}
		seen[key] = true
		switch key {
		case "nodes":
			var n *int
			if err := d.json.Decode(&n); err != nil {
				return d.wrap(-1, "", key, err)
			}
			if n == nil {
				return fileError(key, errors.New("is null"))
			}
			d.problem.Nodes = *n
		case "busy":
			err = d.array(key, d.busy)
		case "jobs":
			err = d.array(key, d.job)
		case "header": // belongs to a trace; plans ignore it
			var lines []string
			if err := d.json.Decode(&lines); err != nil {
				return d.wrap(-1, "", key, err)
			}
		default:
			return fileError(key, errors.New("unknown field"))
		}
		if err != nil {
			return err
		}
	}
	if _, err := d.json.Token(); err != nil {
		return d.broken(err)
	}
	if _, err := d.json.Token(); err != io.EOF {
		return fmt.Errorf("there is more after the workload, at byte %d", d.json.InputOffset())
	}
	for _, key := range []string{"nodes", "jobs"} {
		if !seen[key] {
			return fileError(key, errors.New("is missing"))
		}
	}
	return nil
}

func (d *decoder) array(key string, element func(i int) error) error {
	if err := d.delim('[', key); err != nil {
		return err
	}
	for i := 0; d.json.More(); i++ {
		if err := element(i); err != nil {
			return err
		}
	}
	if _, err := d.json.Token(); err != nil {
		return d.broken(err)
	}
	return nil
}

func (d *decoder) delim(want json.Delim, what string) error {
	token, err := d.json.Token()
	if err != nil {
		return d.broken(err)
	}
	if token != want {
		kind := "an object"
		if want == '[' {
			kind = "an array"
		}
		return fileError(what, fmt.Errorf("is not %s", kind))
	}
	return nil
}

func (d *decoder) busy(i int) error {
	field := fmt.Sprintf("busy[%d]", i)
	var b busyJSON
	if err := d.json.Decode(&b); err != nil {
		return d.wrap(-1, "", field, err)
	}
	for name, missing := range map[string]bool{"start": b.Start == nil, "duration": b.Duration == nil, "nodes": b.Nodes == nil} {
		if missing {
			return fileError(field+"."+name, errors.New("is missing"))
		}
	}
	d.problem.Busy = append(d.problem.Busy, planner.Busy{Start: *b.Start, Duration: *b.Duration, Nodes: *b.Nodes})
	return nil
}

// job reads the next job of the file.
func (d *decoder) job(i int) error {
	job, logged, err := d.one(i)
	if err != nil {
		return err
	}
	if len(job.Profile) == 0 && logged.SWF != nil {
		return nil // it never ran
	}
	if err := once(d.ids, i, job.ID); err != nil {
		return err
	}
	d.problem.Jobs = append(d.problem.Jobs, job)
	return nil
}

// ReadJob reads one job as a file has it, number i from 0.
func ReadJob(text []byte, i int) (planner.Job, Logged, error) {
	d := &decoder{json: json.NewDecoder(bytes.NewReader(text))}
	d.json.DisallowUnknownFields()
	return d.one(i)
}

// one reads a job.
func (d *decoder) one(i int) (planner.Job, Logged, error) {
	var j jobJSON
	err := d.json.Decode(&j)
	id := ""
	if j.ID != nil {
		id = *j.ID
	}
	fail := func(field, format string, args ...any) error {
		return &planner.ProblemError{Job: i, ID: id, Field: field, Err: fmt.Errorf(format, args...)}
	}
	none := planner.Job{}
	switch {
	case err != nil:
		return none, Logged{}, d.wrap(i, id, "", err)
	case j.ID == nil:
		return none, Logged{}, fail("id", "is missing")
	case id == "":
		return none, Logged{}, fail("id", "is empty")
	case j.Profile == nil && len(j.Alternatives) == 0:
		return none, Logged{}, fail("profile", "is missing")
	case j.MoldableBy != nil && len(j.Alternatives) == 0:
		return none, Logged{}, fail("moldable_by", "is given without alternatives")
	}
	job := planner.Job{ID: id}
	if j.Submit != nil {
		job.Submit = *j.Submit
	}
	if j.ExpandLimit != nil {
		job.ExpandLimit = *j.ExpandLimit
	}
	if j.MoldableBy != nil {
		if job.By, err = planner.ParsePreference(*j.MoldableBy); err != nil {
			return none, Logged{}, fail("moldable_by", "%w", err)
		}
	}
	steps := func(field string, given []stepJSON) (planner.Profile, error) {
		p := make(planner.Profile, len(given))
		for k, s := range given {
			if s.Duration == nil {
				return nil, fail(field, "step %d: duration is missing", k+1)
			}
			if s.Nodes == nil {
				return nil, fail(field, "step %d: nodes is missing", k+1)
			}
			p[k] = planner.Step{Duration: *s.Duration, Nodes: *s.Nodes}
		}
		return p, nil
	}
	if job.Profile, err = steps("profile", j.Profile); err != nil {
		return none, Logged{}, err
	}
	for k, given := range j.Alternatives {
		p, err := steps(fmt.Sprintf("alternatives[%d]", k), given)
		switch {
		case err != nil:
			return none, Logged{}, err
		case k == 0 && j.Profile == nil:
			job.Profile = p
		default:
			job.Alternatives = append(job.Alternatives, p)
		}
	}
	return job, j.Logged, nil
}

// wrap says in which job and field decoding failed.
func (d *decoder) wrap(job int, id, field string, err error) error {
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field = strings.Trim(field+"."+strings.TrimPrefix(kind.Field, "Logged."), ".") // the prefix comes from Go, not from the file
		err = fmt.Errorf("is a %s, not %s", kind.Value, jsonKind(kind.Type.String()))
		if field == "" {
			return fmt.Errorf("job %d: %w", job+1, err)
		}
	} else if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		field = strings.Trim(field+"."+strings.Trim(name, `"`), ".")
		err = errors.New("unknown field")
	} else if isSyntax(err) {
		err = d.broken(err)
		if job < 0 {
			return err
		}
		return fmt.Errorf("job %d: %w", job+1, err)
	} else if errors.As(err, new(nullError)) {
		field = "swf"
	} else if field == "" {
		field = "expand_limit" // the only other one that reads itself
	}
	return &planner.ProblemError{Job: job, ID: id, Field: field, Err: err}
}

func isSyntax(err error) bool {
	return errors.As(err, new(*json.SyntaxError)) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// jsonKind returns what a Go type is called in the file.
func jsonKind(goType string) string {
	switch {
	case strings.HasPrefix(goType, "int"):
		return "a whole number in range"
	case goType == "float64":
		return "a number"
	case goType == "string":
		return "a string"
	case strings.HasPrefix(goType, "[]"):
		return "an array"
	}
	return "an object"
}

// broken returns the error for what is not JSON.
func (d *decoder) broken(err error) error {
	if errors.Is(err, io.EOF) && d.json.InputOffset() == 0 {
		return ErrEmpty
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("JSON is truncated at byte %d", d.json.InputOffset())
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("broken JSON at byte %d: %w", syntax.Offset, err)
	}
	return err
}

func fileError(field string, err error) error {
	return &planner.ProblemError{Job: -1, Field: field, Err: err}
}

// once checks that an ID belongs to no other job.
func once(ids map[string]int, i int, id string) error {
	if first, twice := ids[id]; twice {
		return &planner.ProblemError{Job: i, ID: id, Field: "id", Err: fmt.Errorf("is that of job %d, too", first+1)}
	}
	ids[id] = i
	return nil
}

// Check holds a problem to the bounds of a file, beyond planner's own.
func Check(p planner.Problem) error {
	ids := make(map[string]int, len(p.Jobs))
	for i, j := range p.Jobs {
		if err := once(ids, i, j.ID); err != nil {
			return err
		}
	}
	for i, b := range p.Busy {
		field := fmt.Sprintf("busy[%d]", i)
		switch {
		case b.Start < 0 || b.Start > MaxTime:
			return fileError(field+".start", fmt.Errorf("%d is not within 0 … 2^53", b.Start))
		case b.Duration < 1 || b.Duration > MaxTime:
			return fileError(field+".duration", fmt.Errorf("%d is not within 1 … 2^53", b.Duration))
		}
	}
	for i, j := range p.Jobs {
		if j.Submit < 0 || j.Submit > MaxTime {
			return &planner.ProblemError{Job: i, ID: j.ID, Field: "submit", Err: fmt.Errorf("%d is not within 0 … 2^53", j.Submit)}
		}
	}
	if err := p.Validate(); err != nil {
		return err
	}
	for _, s := range p.Timeline().Steps() {
		if s.Nodes > p.Nodes {
			return fileError("busy", fmt.Errorf("%d nodes are in use at second %d, the cluster has %d", s.Nodes, s.Start, p.Nodes))
		}
	}
	return nil
}

// EncodeJob returns a job as it stands in a workload file.
func EncodeJob(j planner.Job, l Logged) ([]byte, error) {
	out := struct {
		ID          string              `json:"id"`
		Submit      int64               `json:"submit,omitempty"`
		Profile     planner.Profile     `json:"profile"`
		ExpandLimit planner.ExpandLimit `json:"expand_limit,omitempty"`

		Alternatives []planner.Profile `json:"alternatives,omitempty"`
		MoldableBy   string            `json:"moldable_by,omitempty"`
		Logged
	}{j.ID, j.Submit, j.Profile, j.ExpandLimit, j.Alternatives, "", l}
	if out.Profile == nil {
		out.Profile = planner.Profile{}
	}
	if j.By != planner.ByCompletion && j.IsMoldable() {
		out.MoldableBy = j.By.String()
	}
	return json.Marshal(out)
}

// Write writes a workload that Read reads back, on one line.
func Write(w io.Writer, p planner.Problem) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"nodes":%d,`, p.Nodes)
	if len(p.Busy) > 0 {
		b.WriteString(`"busy":[`)
		for i, busy := range p.Busy {
			comma(&b, i)
			fmt.Fprintf(&b, `{"start":%d,"duration":%d,"nodes":%d}`, busy.Start, busy.Duration, busy.Nodes)
		}
		b.WriteString(`],`)
	}
	b.WriteString(`"jobs":[`)
	for i, j := range p.Jobs {
		comma(&b, i)
		text, err := EncodeJob(j, Logged{})
		if err != nil {
			return fmt.Errorf("job %d: %w", i+1, err)
		}
		b.Write(text)
	}
	b.WriteString("]}\n")
	_, err := w.Write(b.Bytes())
	return err
}

func comma(b *bytes.Buffer, i int) {
	if i > 0 {
		b.WriteByte(',')
	}
}
