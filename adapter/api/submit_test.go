package api

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// asksFirst answers next once its caller has submitted a job.
type asksFirst struct {
	*fakeBackend
	heard []Hands
}

func (b *asksFirst) Next(ctx context.Context, id uint32, req NextRequest) (Allocation, error) {
	h := CallerHands(ctx)
	if b.heard = append(b.heard, h); h.Submits && h.Submitted == "" {
		return Allocation{}, &SubmitFirst{Submission{Job: id, Seconds: 9, Request: slurmctl.AllocateRequest{Nodes: 2, Name: "evo_12_2_1", NodeList: []string{"n3", "n4"}, Comment: "a\x1bb"}}}
	}
	return b.fakeBackend.Next(ctx, id, req)
}

// TestSubmitFirst checks that a client that can submit is asked to, reports what came of it, and that others are not asked.
func TestSubmitFirst(t *testing.T) {
	b := &asksFirst{fakeBackend: newBackend(uint32(os.Geteuid()))}
	close(b.ready)
	r := serve(t, b, nil)
	for _, address := range []string{r.unix, r.tcp} {
		t.Run(address, func(t *testing.T) { b.submits(t, address) })
		b.heard = nil
		if a, err := client(t, address).Next(t.Context(), 12, NextRequest{From: 1}); err != nil || !a.Ready || len(b.heard) != 1 || b.heard[0].Submits {
			t.Errorf("%s: a client that cannot submit got %+v, %v after %+v", address, a, err, b.heard)
		}
	}
}

// submits has a client submit, with and without success.
func (b *asksFirst) submits(t *testing.T, address string) {
	for _, failure := range []string{"", strings.Repeat("no\n", 500)} {
		b.heard = nil
		var got []Submission
		c := client(t, address)
		c.Submit = func(_ context.Context, job uint32, s Submission) error {
			if got = append(got, s); job != 12 || failure == "" {
				return nil
			}
			return errors.New(failure)
		}
		if a, err := c.Next(t.Context(), 12, NextRequest{From: 1}); err != nil || !a.Ready {
			t.Errorf("%s: %+v, %v", address, a, err)
		}
		if len(got) != 1 || got[0].Job != 12 || got[0].Seconds != 9 || got[0].Request.Nodes != 2 || len(got[0].Request.NodeList) != 2 || got[0].Request.Comment != "a?b" {
			t.Errorf("%s: submitted %+v", address, got)
		}
		want := Hands{Submits: true, Submitted: "evo_12_2_1", Refusal: Printable(failure[:min(len(failure), mostRefusal)])}
		if len(b.heard) != 2 || b.heard[1] != want {
			t.Errorf("%s: heard %+v", address, b.heard)
		}
	}
}
