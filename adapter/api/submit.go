package api

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Where the sidecar may not submit jobs in users' names, a process of the job submits the Slurm job that brings its
// nodes. A waiting request says that its caller can do so ("?submits=1"), and may then be answered by a Submission
// with "ready": false. The caller runs salloc with these values, and repeats the request with what came of it
// ("&submitted=NAME&refusal=TEXT"). The sidecar believes none of that: it looks for the job in Slurm.

// Submission is a Slurm job that the caller must submit as its own, by salloc --no-shell.
type Submission struct {
	Job     uint32                   `json:"job"`     // base job for which it brings nodes
	Seconds int                      `json:"seconds"` // in which Slurm must have granted it
	Request slurmctl.AllocateRequest `json:"request"`
}

// Hands says what a caller can do for the sidecar, and has done.
type Hands struct {
	Submits   bool   // it submits what it is asked to
	Submitted string // name of the job that it was asked to submit last; "": none
	Refusal   string // why Slurm did not grant it; "": it did
}

// PendingRefusal begins the refusal of a job that stayed pending. Slurm's reason follows.
const PendingRefusal = "pending: "

// mostRefusal bounds the text of a refusal, in bytes.
const mostRefusal = 500

// query returns the hands as the query of a request; "" for none.
func (h Hands) query() string {
	if !h.Submits {
		return ""
	}
	q := url.Values{"submits": {"1"}}
	if h.Submitted != "" {
		q.Set("submitted", h.Submitted)
	}
	if h.Refusal != "" {
		q.Set("refusal", strings.ToValidUTF8(h.Refusal[:min(len(h.Refusal), mostRefusal)], ""))
	}
	return "?" + q.Encode()
}

func handsOf(r request) Hands {
	q := r.URL.Query()
	refusal := q.Get("refusal")
	return Hands{q.Get("submits") == "1", q.Get("submitted"), Printable(refusal[:min(len(refusal), mostRefusal)])}
}

type handsKey struct{}

// CallerHands returns what the caller of a request can do for the sidecar.
func CallerHands(ctx context.Context) Hands {
	h, _ := ctx.Value(handsKey{}).(Hands)
	return h
}

// SubmitFirst is the error of a Backend that a caller must submit a job before it is answered.
type SubmitFirst struct{ Submission }

func (*SubmitFirst) Error() string { return "the caller must submit a job first" }

// asked is the answer to a caller who must submit a job.
type asked struct {
	Ready  bool        `json:"ready"`
	Submit *Submission `json:"submit,omitempty"`
}

// either is an answer, or what must be submitted first.
type either[A any] struct {
	Answer A
	Submit *Submission
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *either[A]) UnmarshalJSON(data []byte) error {
	var first asked
	if json.Unmarshal(data, &first) == nil && first.Submit != nil {
		e.Submit = first.Submit
		return nil
	}
	return json.Unmarshal(data, &e.Answer)
}

// submit submits a job for the sidecar, and returns what to report.
func (c *Client) submit(ctx context.Context, job uint32, s *Submission) Hands {
	h := Hands{Submits: true, Submitted: s.Request.Name}
	if err := c.Submit(ctx, job, *s); err != nil {
		h.Refusal = err.Error()
	}
	return h
}
