package simulate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// hands says how the processes of an application submit what brings its nodes, where the sidecar is an operator.
type hands struct {
	How   string // "": as they should; old, never, dies, slow, slips, moves, longer, forges, leaves, twice
	Times int    // so often; 0: always
}

// parseHands reads HOW[:TIMES].
func parseHands(text string) (h hands, err error) {
	how, times, some := strings.Cut(text, ":")
	if h.How = how; some {
		h.Times, err = strconv.Atoi(times)
	}
	switch how {
	case "old", "never", "dies", "slow", "slips", "moves", "longer", "forges", "leaves", "twice":
		return h, err
	}
	return h, fmt.Errorf("hands: %q", how)
}

// next returns how the next submission goes.
func (h *hands) next() string {
	how := h.How
	if h.Times > 0 && how != "old" {
		if h.Times--; h.Times == 0 {
			h.How = ""
		}
	}
	return how
}

// killedFor is after how long the script calls evosctl again that was killed.
const killedFor = 20 * time.Second

// leavesFor is the time limit of a job that takes nodes of an open hold.
const leavesFor = 5 * time.Hour

// ask does what call does, and submits what the sidecar asks for in place of an answer.
func (s *Sidecar) ask(p *slurmsim.Process, in msg.Call) (msg.Reply, bool) {
	if !s.Operator {
		return s.call(p, in)
	}
	h := &hands{}
	if s.Hands != nil {
		h = s.Hands(in.Job)
	}
	owner, _ := s.Cluster.Record(slurmctl.JobID(in.Job))
	for in.UID, in.Hands.Submits = owner.UID, h.How != "old"; ; {
		r, answered := s.call(p, in)
		if !answered || r.Submit == nil {
			return r, answered
		}
		how := h.next()
		if how == "twice" {
			s.callBeside(in)
		}
		in.Hands = s.submit(p, owner, how, *r.Submit)
	}
}

// callBeside has another process of the job call, too. It does nothing with the answer.
func (s *Sidecar) callBeside(in msg.Call) {
	s.LastCall++
	in.ID, in.Hands = s.LastCall, api.Hands{Submits: true}
	s.Cluster.Later(0, calls{s, s.Life, in})
}

// submit runs salloc as the job's user, and returns the report; none if the process was killed.
func (s *Sidecar) submit(p *slurmsim.Process, owner slurmctl.Job, how string, first api.Submission) api.Hands {
	user := slurmsim.User{Name: owner.User, UID: owner.UID, Account: owner.Account}
	killed := api.Hands{Submits: true}
	switch how {
	case "never":
		p.Sleep(killedFor)
		return killed
	case "slow":
		p.Sleep(killedFor)
	case "moves":
		for _, r := range s.Cluster.Queue() {
			if r.UID == user.UID && r.State == slurmctl.Pending {
				_ = s.Cluster.Client(user).UpdateJob(context.Background(), r.ID, slurmctl.JobUpdate{Reservation: &first.Request.Reservation, StartNow: true})
			}
		}
		p.Sleep(2 * time.Second) // until Slurm starts it
	case "longer":
		first.Request.TimeLimit = leavesFor
	case "slips", "forges", "leaves":
		if slips := first.Request; slips.Reservation != "" {
			slips.TimeLimit, slips.ExpandJob = leavesFor, 0
			if slips.Name += "9"; how != "forges" {
				slips.Name, slips.Comment = how, ""
			}
			k, _ := s.Cluster.Client(user).Allocate(context.Background(), slips) // if it is refused, others were faster
			if how != "slips" {
				_ = s.Cluster.Client(user).UpdateJob(context.Background(), k.ID, slurmctl.JobUpdate{Reservation: new(string)})
			}
		}
	}
	ctx, cancel := s.Cluster.WithTimeout(context.Background(), time.Duration(first.Seconds)*time.Second)
	defer cancel()
	_, err := s.Cluster.Client(user).Allocate(ctx, first.Request)
	if how == "dies" {
		p.Sleep(killedFor)
		return killed
	}
	report := api.Hands{Submits: true, Submitted: first.Request.Name}
	if pending, ok := errors.AsType[*slurmctl.PendingError](err); ok {
		report.Refusal = api.PendingRefusal + pending.Reason
	} else if err != nil {
		report.Refusal = err.Error()
	}
	return report
}
