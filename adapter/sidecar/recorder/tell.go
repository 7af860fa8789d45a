package recorder

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// name returns a type without its package.
func name(v any) string {
	text := fmt.Sprintf("%T", v)
	return text[strings.LastIndexByte(text, '.')+1:]
}

// tell returns an effect in words.
func tell(e msg.Effect) string {
	switch e := e.(type) {
	case nil:
		return "nothing"
	case msg.Task:
		return fmt.Sprintf("task %d: %v", e.ID, e.Command)
	case msg.Plan:
		return "plan"
	case msg.Try:
		return fmt.Sprintf("plan the change of call %d", e.ID)
	case fmt.Stringer:
		return e.String()
	}
	return fmt.Sprintf("%s %+v", name(e), e)
}

// TellInput returns an input in words.
func TellInput(in msg.Input) string {
	switch in := in.(type) {
	case msg.Books:
		return fmt.Sprintf("the database with %d jobs", len(in.Active))
	case msg.Observation:
		if in.Err != nil {
			return "a poll that failed: " + in.Err.Error()
		}
		return fmt.Sprintf("a poll of %d jobs on %d nodes", len(in.Jobs), len(in.Nodes))
	case msg.NodesSeen:
		return fmt.Sprintf("a poll of %d nodes", len(in.Nodes))
	case msg.Planned:
		return fmt.Sprintf("plans of %d jobs", len(in.Jobs))
	case msg.Tried:
		if in.Refused != "" {
			return fmt.Sprintf("the change of call %d cannot be: %s", in.ID, in.Refused)
		}
		return fmt.Sprintf("the change of call %d was planned", in.ID)
	case msg.Resized:
		if in.Fault != "" {
			return "the malleability policy failed: " + in.Fault
		}
		return fmt.Sprintf("the malleability policy changes %d jobs", len(in.Changes))
	case msg.Outcome:
		if in.Err != nil {
			return fmt.Sprintf("task %d failed: %v", in.Task, in.Err)
		}
		return fmt.Sprintf("task %d done", in.Task)
	case msg.Call:
		if in.Next != nil {
			return fmt.Sprintf("job %d ends step %d", in.Job, in.Next.From)
		}
		if in.Change != nil {
			return fmt.Sprintf("job %d is to change: %s", in.Job, msg.ChangeText(in.Change))
		}
		if in.Offer != nil {
			return fmt.Sprintf("job %d waits for an offer", in.Job)
		}
		if in.Answer != nil {
			return fmt.Sprintf("job %d accepts %d nodes of offer %d", in.Job, in.Answer.Accept, in.Answer.Offer)
		}
		if in.Progress != nil {
			return fmt.Sprintf("job %d reports that %v is done", in.Job, in.Progress.Fraction)
		}
		if in.Cancel != nil {
			return fmt.Sprintf("%s cancels the holds of job %d", in.Cancel.By, in.Job)
		}
		return fmt.Sprintf("somebody asks for the nodes of job %d", in.Job)
	case msg.ClockSet:
		return fmt.Sprintf("the clock was set by %v", in.By)
	}
	return strings.ToLower(name(in))
}

// concerns reports whether a value concerns a job: it contains the job's Slurm ID, its row's, or
// one of its holds or expanders. Polls, plans, and books concern all jobs.
func concerns(v reflect.Value, id slurmctl.JobID, row int64, tasks []int64) bool {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		return !v.IsNil() && v.Type() != reflect.TypeFor[*msg.Problem]() && concerns(v.Elem(), id, row, tasks)
	case reflect.Slice:
		for i := range v.Len() {
			if concerns(v.Index(i), id, row, tasks) {
				return true
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if k := it.Key(); k.Kind() == reflect.String && (k.String() == "job" || k.String() == "slurm_id") && fmt.Sprint(it.Value()) == fmt.Sprint(id) {
				return true
			}
		}
	case reflect.String:
		return strings.Contains(v.String(), fmt.Sprintf("evo_%d_", id))
	case reflect.Uint32:
		return v.Type() == reflect.TypeFor[slurmctl.JobID]() && v.Uint() == uint64(id)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return false
		}
		for i := range v.NumField() {
			f, name := v.Field(i), v.Type().Field(i).Name
			switch {
			case (name == "SlurmID" || name == "Job") && f.Kind() == reflect.Uint32 && f.Uint() == uint64(id):
				return true
			case name == "Job" && f.Kind() == reflect.Int64 && row != 0 && f.Int() == row:
				return true
			case name == "Task" && f.Kind() == reflect.Int64 && slices.Contains(tasks, f.Int()):
				return true
			case concerns(f, id, row, tasks):
				return true
			}
		}
	}
	return false
}
