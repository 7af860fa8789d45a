package outcome

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"

	"github.com/evoslurm/evoslurm/adapter/lab/trace"
)

// isResult reports whether a file begins like output of evosim run --format=json.
func isResult(begin []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(begin, " \t\r\n"), []byte("{")) && bytes.Contains(begin, []byte(`"strategy"`))
}

// Results is output of evosim run --format=json as a trace format: the outcome of each job, by its
// number.
var Results = trace.Format{Name: "result", Is: isResult, Open: func(in io.Reader) func() (trace.Job, string, error) {
	var (
		o   Outcome
		err error
		i   = -1
	)
	return func() (trace.Job, string, error) {
		if i++; i == 0 {
			o, err = readResult(bufio.NewReader(in), "")
		}
		if err != nil {
			return trace.Job{}, "", err
		}
		if i == len(o.Jobs) {
			return trace.Job{}, "", io.EOF
		}
		return o.Jobs[i].traced(fmt.Sprintf("job %d", i+1))
	}
}}

// traced returns the job in a trace's form: rigid, on its largest size.
func (j *Job) traced(at string) (trace.Job, string, error) {
	t := trace.Unknown
	var err error
	if t.Number, err = strconv.ParseInt(j.ID, 10, 64); err != nil || t.Number < 0 {
		return t, at, &trace.Fault{At: at, Field: "id", Err: fmt.Errorf("%q: in a trace jobs have numbers", j.ID)}
	}
	t.Submit, t.User, t.Status = float64(j.Submit), int64(j.User), 5
	if j.Ran() {
		t.Wait, t.Run, t.Processors = float64(j.Wait()), float64(j.End-j.Start), int64(j.Peak())
		if t.Status = 0; j.State == Completed {
			t.Status = 1
		}
	}
	return t, at, nil
}
