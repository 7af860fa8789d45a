package msg

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// This file describes effects in words, for histories and for people. A description says what the effect does,
// and mostly leaves out values that follow from the others.

func (t Task) String() string { return fmt.Sprint(t.Command) }

func (c Start) String() string {
	text := fmt.Sprintf("start %d in %s", c.Job, Both(c.Hold, c.Inside))
	if c.Partition != "" {
		text += " in partition " + c.Partition
	}
	if c.OpenRow {
		text += ", with a row in slurmdbd"
	}
	return text
}

func (c Grow) String() string {
	how := "companion"
	if c.Merge {
		how = "merge"
	}
	switch {
	case c.Opens:
		return fmt.Sprintf("open %s for %s", c.Hold, strings.Join(c.LetIn, ","))
	case c.ByJob:
		how += " by the job"
	}
	text := fmt.Sprintf("grow %d by %s for step %d: %s", c.Base, slurmctl.CompressNodes(c.Nodes), c.Step, how)
	if from := Both(c.Hold, c.Inside); from != "" {
		text += " from " + from
	}
	if len(c.Expanders) > 0 {
		text += fmt.Sprintf(" with %v", c.Expanders)
	}
	return text
}

func (c Shrink) String() string {
	return fmt.Sprintf("shrink %d by %s", c.Held[0].ID, slurmctl.CompressNodes(c.Surplus))
}

func (c Detach) String() string {
	text := fmt.Sprintf("detach %d from %s", c.Job, c.Hold)
	if c.Inside != "" {
		text += " into " + c.Inside
	}
	return text
}

func (c Unfold) String() string {
	text := fmt.Sprintf("unfold %s of %d as %s", c.Tasks, c.Array, c.Name)
	if c.RestName != "" {
		text += fmt.Sprintf(", the rest as %q", c.RestName)
	}
	return text
}

func (c Update) String() string {
	var what []string
	if c.Change.StartNow {
		what = append(what, "start=now")
	} else if !c.Change.StartTime.IsZero() {
		what = append(what, "start="+clock(c.Change.StartTime))
	}
	if c.Change.Reservation != nil {
		what = append(what, "reservation="+*c.Change.Reservation)
	}
	if c.Change.Hold {
		what = append(what, "hold")
	}
	if c.Change.Name != "" {
		what = append(what, "name="+c.Change.Name)
	}
	if c.Change.NumNodes > 0 {
		what = append(what, fmt.Sprintf("nodes=%d", c.Change.NumNodes))
	}
	if c.Change.TimeLimit > 0 {
		what = append(what, fmt.Sprintf("limit=%v", c.Change.TimeLimit))
	}
	if c.Change.Comment != nil {
		what = append(what, "comment="+*c.Change.Comment)
	}
	if c.As != 0 {
		what = append(what, fmt.Sprintf("as uid %d", c.As))
	}
	return fmt.Sprintf("update %d %s", c.Job, strings.Join(what, " "))
}

func (c ExtendLimits) String() string {
	all := make([]string, len(c.Parts))
	for i, p := range c.Parts {
		all[i] = fmt.Sprintf("%d to %v", p.Job, p.Limit)
	}
	return "extend limit of " + strings.Join(all, ", ")
}

func (c Signal) String() string { return fmt.Sprintf("signal %v %s", c.Jobs, c.Name) }

func (c Cancel) String() string { return fmt.Sprintf("cancel %v", c.Jobs) }

func (c Requeue) String() string {
	if len(c.Beside) == 0 {
		return fmt.Sprintf("requeue %d", c.Job)
	}
	return fmt.Sprintf("requeue %d without %v", c.Job, c.Beside)
}

func (c Ask) String() string { return fmt.Sprintf("ask %v", c.Jobs) }

func (c Reserve) String() string {
	start := "now"
	if !c.Request.Start.IsZero() {
		start = clock(c.Request.Start)
	}
	return fmt.Sprintf("reserve %s %s from %s to %s for %s", c.Request.Name, slurmctl.CompressNodes(c.Request.Nodes), start, clock(c.Request.End), strings.Join(c.Request.Users, ","))
}

func (c ChangeHold) String() string {
	var what []string
	if c.Change.StartNow {
		what = append(what, "start=now")
	} else if !c.Change.Start.IsZero() {
		what = append(what, "start="+clock(c.Change.Start))
	}
	if !c.Change.End.IsZero() {
		what = append(what, "end="+clock(c.Change.End))
	}
	if c.Change.Nodes != nil {
		what = append(what, "nodes="+slurmctl.CompressNodes(c.Change.Nodes))
	}
	if c.Change.Users != nil {
		what = append(what, "users="+strings.Join(c.Change.Users, ","))
	}
	return fmt.Sprintf("change %s %s", c.Name, strings.Join(what, " "))
}

func (c GiveUpHold) String() string {
	text := "give up " + c.Name
	for _, out := range c.TakeOut {
		text += fmt.Sprintf(", without job %d", out.Job)
	}
	return text
}

func (c ReadRequest) String() string { return fmt.Sprintf("read request of %d", c.Job) }

func (c ReadScript) String() string { return fmt.Sprintf("read script of %d", c.Job) }

func (ReadLimits) String() string { return "read limits" }

func (ReadLicenses) String() string { return "read licences" }

func (ReadAccrual) String() string { return "read accrual of age" }

func (c ReadTimeUsed) String() string { return fmt.Sprintf("read time used by %d", c.Job) }

func (c PowerUp) String() string { return "power up " + slurmctl.CompressNodes(c.Nodes) }

func (c PowerDown) String() string { return "power down " + slurmctl.CompressNodes(c.Nodes) }

func (c DrainNodes) String() string {
	return "drain " + slurmctl.CompressNodes(c.Nodes) + ": " + c.Reason
}

func (c KeepUp) String() string { return "keep up " + slurmctl.CompressNodes(c.Nodes) }

func (Reconfigure) String() string { return "reconfigure" }

func (c Contact) String() string { return "contact " + slurmctl.CompressNodes(c.Nodes) }

func (e AddEvent) String() string {
	text := fmt.Sprintf("event %q of row %d", e.Kind, e.Job)
	if detail, ok := e.Detail.(map[string]any); ok {
		for _, key := range slices.Sorted(maps.Keys(detail)) {
			value := detail[key]
			if second, ok := value.(int64); ok && slices.Contains([]string{"planned", "expected", "start", "was", "latest", "earliest"}, key) {
				value = clock(time.Unix(second, 0))
			}
			text += fmt.Sprintf(" %s=%v", key, value)
		}
	}
	return text
}

func (r Resize) String() string {
	q := r.Question
	text := fmt.Sprintf("ask the policy who is to %s by %d", q.Asked.Kind, q.Asked.Nodes)
	for _, j := range q.Jobs {
		held := ""
		if j.Held {
			held = ", held"
		}
		text += fmt.Sprintf(", %s of %d (%d-%d%s)", j.ID, j.Nodes, j.Min, j.Max, held)
	}
	return text
}

func (r Reply) String() string {
	switch {
	case r.Err != nil:
		return fmt.Sprintf("reply: %v", r.Err)
	case r.Submit != nil:
		return fmt.Sprintf("reply to %d: submit %s", r.Submit.Job, r.Submit.Request.Name)
	case r.Change != nil:
		return fmt.Sprintf("reply to %d: %s", r.Change.Job, changeText(r.Change))
	case r.Offer != nil:
		return fmt.Sprintf("reply to %d: %s", r.Offer.Job, offerText(r.Offer))
	case r.Answer != nil:
		return fmt.Sprintf("reply to %d: %s", r.Answer.Job, answerText(r.Answer))
	case r.Progress != nil:
		return strings.TrimSuffix(fmt.Sprintf("reply to %d: %v done; %s", r.Progress.Job, r.Progress.Fraction, r.Progress.Speedup), "; ")
	case r.Cancelled != nil:
		return fmt.Sprintf("reply to %d: %d holds cancelled", r.Cancelled.Job, len(r.Cancelled.Holds))
	case r.Place != nil:
		return "reply: " + placeText(r.Place)
	case r.Allocation.Done:
		return fmt.Sprintf("reply to %d: done", r.Allocation.Job)
	case !r.Allocation.Ready:
		return fmt.Sprintf("reply to %d: not yet: %s", r.Allocation.Job, r.Allocation.Note)
	}
	text := fmt.Sprintf("reply to %d: step %d on %d nodes", r.Allocation.Job, r.Allocation.Step, r.Allocation.Nodes)
	if r.Allocation.CPUFreq != "" {
		text += " at frequency " + r.Allocation.CPUFreq
	}
	if lost := r.Allocation.Lost; len(lost) > 0 {
		text += ", lost " + slurmctl.CompressNodes(lost)
	}
	if n := r.Allocation.Restarts; n > 0 {
		text += fmt.Sprintf(", restarts=%d", n)
	}
	if d := r.Allocation.Demand; d != nil {
		text += fmt.Sprintf(", to give back %s by %s", slurmctl.CompressNodes(d.Leaving), clock(d.Deadline))
	}
	return text
}

// ChangeText describes a request to change a job.
func ChangeText(req *api.ChangeRequest) string {
	switch {
	case req.Update != nil:
		text := "update to " + cmp.Or(req.Update.Profile, "the same steps")
		if req.Update.Current > 0 {
			text += fmt.Sprintf(" in %v", time.Duration(req.Update.Current)*time.Second)
		}
		return text
	case req.Grow != nil:
		return fmt.Sprintf("grow by %d nodes", req.Grow.Nodes)
	case req.Shrink != nil && len(req.Shrink.List) > 0:
		return "shrink by " + slurmctl.CompressNodes(req.Shrink.List)
	case req.Shrink != nil:
		return fmt.Sprintf("shrink by %d nodes", req.Shrink.Nodes)
	}
	return "in no way"
}

// changeText describes the answer to a change.
func changeText(a *api.Change) string {
	switch {
	case !a.Ready:
		return "not yet"
	case !a.Accepted:
		text := "refused: " + a.Why
		if !a.Earliest.IsZero() {
			text += "; earliest " + clock(a.Earliest)
		}
		return text
	}
	text := "accepted"
	if a.DryRun {
		text = "would be accepted"
	}
	for _, p := range a.Plan {
		text += fmt.Sprintf(", step %d on %d nodes from %s to %s", p.Step, p.Nodes, clock(p.Start), clock(p.End))
	}
	if a.Has != nil {
		text += fmt.Sprintf("; it has %d", a.Has.Nodes)
	}
	return text
}

// offerText describes an offer.
func offerText(o *api.Offer) string {
	switch {
	case !o.Ready:
		return "no offer yet"
	case o.Mandatory:
		return fmt.Sprintf("is to shrink by %d of %d nodes, %s, by %s", o.Nodes, o.Has, o.NodeList, clock(o.Deadline))
	case o.Kind == "shrink":
		return fmt.Sprintf("may shrink by %d of %d nodes, %s, by %s", o.Nodes, o.Has, o.NodeList, clock(o.Deadline))
	}
	return fmt.Sprintf("may grow by %d to %d nodes, %s, by %s", o.Nodes, o.Has+o.Nodes, o.NodeList, clock(o.Deadline))
}

// answerText describes the result of an answer.
func answerText(a *api.Answer) string {
	switch {
	case !a.Ready:
		return "not yet"
	case a.Has == nil:
		return strings.TrimSuffix("declined; "+a.Note, "; ")
	}
	return fmt.Sprintf("accepted %d to %s; it has %d", a.Accepted, a.Kind, a.Has.Nodes)
}

func (l Log) String() string {
	text := l.Level + ": " + l.Text
	if l.Err != nil {
		text += ": " + l.Err.Error()
	}
	return text
}

// clock formats a time of day, or returns "parked" for a time years ahead.
func clock(t time.Time) string {
	if t.Year() > 2030 {
		return "parked"
	}
	return cmp.Or(t.UTC().Format(time.TimeOnly), "-")
}

// placeText returns where a job would run that is not submitted yet.
func placeText(a *api.Placement) string {
	switch {
	case !a.Ready:
		return "no place yet"
	case a.Unfit != "":
		return "no place ever: " + a.Unfit
	case a.Start.IsZero():
		return "no place is kept"
	}
	text := fmt.Sprintf("a place from %s to %s, kept until %s; %d of %d nodes are free", clock(a.Start), clock(a.End), clock(a.Until), a.Free, a.Nodes)
	if a.Waits != "" {
		text += "; " + a.Waits
	}
	return text
}
