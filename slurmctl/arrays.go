package slurmctl

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Slurm keeps the waiting tasks of an array in one record, which has the array's ID. A task gets a record and an ID
// of its own ("split") when it starts or is changed by its name ("12_3"); the last one keeps the array's ID.
// (job_array_split and update_job_str in src/slurmctld/job_mgr.c, 20.11 to 26.05.) The commands differ in what they
// take: scontrol update takes a task's own ID, but takes the array's for all tasks; scancel ignores a task's own ID and
// returns 0 (measured on 22.05). So the client names each task "12_3", as far as it has seen its record.
//
// Up to 26.05, squeue shows waiting tasks with records of their own in the line of the array's record, unless their
// name or partition is another (_combine_pending_array_tasks in src/squeue/print.c).

// MostTasksText bounds the text of an array's tasks, in bytes. A longer one is cut at a comma, and ends with "...".
const MostTasksText = 4096

// Task returns the number of the array task that the record stands for. It reports false for a job that is no task, and
// for a record of several tasks.
func (j *Job) Task() (number uint32, is bool) {
	id, text, is := strings.Cut(j.Display, "_")
	if !is || j.ArrayTasks != 1 || j.Heterogenous {
		return 0, false
	}
	array, err := strconv.ParseUint(id, 10, 32)
	if err != nil || JobID(array) != j.ArrayJobID {
		return 0, false
	}
	text, _, _ = strings.Cut(strings.Trim(text, "[]"), "%")
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err == nil
}

// HetJob returns the ID of the heterogeneous job that a job is a component of, or 0. Its first component has this ID.
func (j *Job) HetJob() JobID {
	id, _, is := strings.Cut(j.Display, "+")
	if !is {
		return 0
	}
	n, _ := parseID(id) // 0 if it is none
	return n
}

// cutTasks ends a list of tasks that was cut.
const cutTasks = "..."

// WaitingTasks returns the tasks of an array's record, e.g. "4-9,12" or "0-98:2". It reports whether these are all of
// them. The text is "" if the record stands for no array.
func (j *Job) WaitingTasks() (text string, all bool) {
	_, text, is := strings.Cut(j.Display, "_")
	if !is {
		return "", true
	}
	text, _, _ = strings.Cut(strings.Trim(text, "[]"), "%")
	short, cut := strings.CutSuffix(text, ","+cutTasks)
	return short, !cut
}

// FirstTasks returns the first n tasks of a text such as "4-9,12" or "0-98:2", as UpdateTasks takes them.
func FirstTasks(text string, n int) (string, error) {
	var parts []string
	for part := range strings.SplitSeq(text, ",") {
		if n <= 0 {
			break
		}
		low, high, by, err := taskRange(part)
		if err != nil {
			return "", err
		}
		took := min(uint64(n), (high-low)/by+1)
		n -= int(took)
		if by > 1 { // scontrol update takes no steps
			for ; took > 0; took-- {
				parts, low = append(parts, strconv.FormatUint(low, 10)), low+by
			}
			continue
		}
		parts = append(parts, formatTasks(low, low+took-1))
	}
	return strings.Join(parts, ","), nil
}

func formatTasks(low, high uint64) string {
	if low == high {
		return strconv.FormatUint(low, 10)
	}
	return fmt.Sprintf("%d-%d", low, high)
}

// taskRange reads a part of an array's tasks: "7", "2-200", "5-9:2".
func taskRange(part string) (low, high, by uint64, err error) {
	wrong := func() (uint64, uint64, uint64, error) {
		return 0, 0, 1, fmt.Errorf("array tasks %q are not understood", oneLine(part, 40))
	}
	r, step, hasStep := strings.Cut(part, ":")
	lo, hi, isRange := strings.Cut(r, "-")
	if low, err = strconv.ParseUint(lo, 10, 32); err != nil {
		return wrong()
	}
	high, by = low, 1
	if isRange {
		if high, err = strconv.ParseUint(hi, 10, 32); err != nil || high < low {
			return wrong()
		}
	}
	if hasStep {
		if by, err = strconv.ParseUint(step, 10, 32); err != nil || by == 0 {
			return wrong()
		}
	}
	return low, high, by, nil
}

// tasks holds the names of tasks that have a record of their own. It is safe for concurrent use.
type tasks struct {
	mu    sync.Mutex
	named map[JobID]task
}

type task struct {
	array  JobID
	number uint32
}

// mostNamed bounds the tasks whose names the client remembers.
const mostNamed = 500_000

// see remembers the tasks among some records, also once they are gone: the array's ID alone would stand for all others.
func (t *tasks) see(jobs []Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.named) > mostNamed {
		t.named = nil
	}
	for i := range jobs {
		j := &jobs[i]
		if n, is := j.Task(); is {
			if t.named == nil {
				t.named = map[JobID]task{}
			}
			t.named[j.ID] = task{j.ArrayJobID, n}
		} else if _, was := t.named[j.ID]; was && j.Display != "" { // a few columns do not say
			delete(t.named, j.ID) // the ID has been given to another job
		}
	}
}

func (t *tasks) of(id JobID) (task, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of, is := t.named[id]
	return of, is
}

// SeeTask tells the client that an ID is that of an array's task, which the environment of the task's job says.
func (c *Client) SeeTask(id, array JobID, number uint32) {
	c.tasks.see([]Job{{ID: id, ArrayJobID: array, ArrayTasks: 1, Display: fmt.Sprintf("%d_%d", array, number)}})
}

// name writes a job in the form that means this job alone: "12", or "12_3" for a task.
func (c *Client) name(id JobID) string {
	if t, is := c.tasks.of(id); is {
		return fmt.Sprintf("%d_%d", t.array, t.number)
	}
	return formatID(id)
}

var tasksPattern = pattern(`^[0-9][0-9,-]*$`)

// UpdateTasks changes tasks of an array, e.g. "1-32". Those in the array's record get records of their own, unless they
// are all of that record's tasks: then it changes the record. Tasks that do not exist are an error, and others are
// changed all the same.
func (c *Client) UpdateTasks(ctx context.Context, array JobID, tasks string, u JobUpdate) error {
	if len(tasks) > MostTasksText || !tasksPattern().MatchString(tasks) {
		return fmt.Errorf("scontrol update: invalid tasks %q", oneLine(tasks, 80))
	}
	a := newSetting("update")
	a.user = u.As
	a.add("JobId", func(string) error { return checkID(array) }, fmt.Sprintf("%d_[%s]", array, tasks))
	fixed := len(a.args)
	if err := u.settings(a); err != nil || len(a.args) == fixed {
		return err
	}
	return c.change(ctx, array, a)
}

// HasTask reports whether a text such as "4-9,12" or "0-98:2" has a task, or may have it, as it ends with "...".
func HasTask(text string, number uint32) bool {
	n := uint64(number)
	for part := range strings.SplitSeq(text, ",") {
		if low, high, by, err := taskRange(part); part == cutTasks || err == nil && low <= n && n <= high && (n-low)%by == 0 {
			return true
		}
	}
	return false
}

// CutTasks returns a list of tasks of at most so many bytes; one that was cut ends with "...".
func CutTasks(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	return text[:strings.LastIndexByte(text[:bytes-len(cutTasks)], ',')+1] + cutTasks
}

// mostShown is how many bytes of an array's tasks JoinTasks writes, as squeue does unless SLURM_BITSTR_LEN says otherwise.
const mostShown = 64

// JoinTasks writes waiting tasks as squeue shows them, "[2-4,9%2]": some by their numbers in ascending order, then those
// of a text. At most `limit` of them may run at once. A long list ends with "...".
func JoinTasks(numbers []uint32, text string, limit int) string {
	var parts []string
	for first := 0; first < len(numbers); {
		last := first
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		low, high := uint64(numbers[first]), uint64(numbers[last])
		if first = last + 1; first == len(numbers) {
			next, more, _ := strings.Cut(text, ",")
			if l, h, by, err := taskRange(next); err == nil && by == 1 && l == high+1 {
				high, text = h, more
			}
		}
		parts = append(parts, formatTasks(low, high))
	}
	if text != "" {
		parts = append(parts, text)
	}
	all := CutTasks(strings.Join(parts, ","), mostShown)
	if limit > 0 {
		all += "%" + strconv.Itoa(limit)
	}
	return "[" + all + "]"
}
