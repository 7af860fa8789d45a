package slurmctl

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// column is a field that squeue prints for a job.
type column struct {
	letter string // for -o; "" if it has none
	long   string // for -O
	since  int    // first version with the long name, e.g. 2405; 0 for all
	until  int    // first version that no longer needs the column; 0 for none
	set    func(*Job, []byte, *kept) error
}

// jobColumns lists all fields that the client asks for. Before 24.05, neither form of format has
// them all: -o lacks the exit code, memory per CPU, and GRES per job; -O lacks excluded nodes. From
// 24.05 on, -O has all. In 26.05, OverSubscribe no longer says whether the job's nodes are
// exclusive; Exclusive does.
var jobColumns = []column{
	{"A", "JobID", 0, 0, func(j *Job, b []byte, _ *kept) (err error) { j.ID, err = readID(b); return }},
	{"i", "JobArrayID", 0, 0, setDisplay},
	{"F", "ArrayJobID", 0, 0, func(j *Job, b []byte, _ *kept) (err error) { j.ArrayJobID, err = readID(b); return }},
	{"K", "ArrayTaskID", 0, 0, setTasks},
	{"j", "Name", 0, 0, func(j *Job, b []byte, k *kept) error { j.Name = k.verbatim(b, k.last.Name); return nil }},
	{"u", "UserName", 0, 0, func(j *Job, b []byte, k *kept) error { j.User = k.verbatim(b, k.last.User); return nil }},
	{"U", "UserID", 0, 0, func(j *Job, b []byte, _ *kept) error {
		n, err := readNumber(b, 32)
		j.UID = uint32(n)
		return err
	}},
	{"a", "Account", 0, 0, func(j *Job, b []byte, k *kept) error { j.Account = k.text(b); return nil }},
	{"q", "QOS", 0, 0, func(j *Job, b []byte, k *kept) error { j.QOS = k.text(b); return nil }},
	{"P", "Partition", 0, 0, func(j *Job, b []byte, k *kept) error { j.Partition = k.text(b); return nil }},
	{"k", "Comment", 0, 0, func(j *Job, b []byte, k *kept) error { j.Comment = k.own(b, k.last.Comment); return nil }},
	{"T", "State", 0, 0, func(j *Job, b []byte, k *kept) error {
		j.State = JobState(k.verbatim(b, string(k.last.State)))
		return nil
	}},
	{"r", "Reason", 0, 0, func(j *Job, b []byte, k *kept) error { j.Reason = k.text(b); return nil }},
	{"Q", "PriorityLong", 0, 0, func(j *Job, b []byte, _ *kept) (err error) { j.Priority, err = readNumber(b, 64); return }},
	{"D", "NumNodes", 0, 0, func(j *Job, b []byte, _ *kept) (err error) { j.NumNodes, err = readCount(b); return }},
	{"C", "NumCPUs", 0, 0, func(j *Job, b []byte, _ *kept) (err error) { j.NumCPUs, err = readCount(b); return }},
	{"N", "NodeList", 0, 0, func(j *Job, b []byte, k *kept) (err error) { j.NodeList, err = k.nodes(b); return }},
	{"B", "BatchHost", 0, 0, func(j *Job, b []byte, k *kept) error {
		if !none(string(b)) {
			j.BatchHost = k.text(b)
		}
		return nil
	}},
	{"n", "ReqNodes", 0, 0, func(j *Job, b []byte, k *kept) error { j.ReqNodes = k.wished(b); return nil }},
	{"x", "ExcNodes", 2405, 0, func(j *Job, b []byte, k *kept) error { j.ExcNodes = k.wished(b); return nil }},
	{"f", "Feature", 0, 0, func(j *Job, b []byte, k *kept) error { j.Features = k.text(b); return nil }},
	{"c", "MinCpus", 0, 0, func(j *Job, b []byte, _ *kept) (err error) { j.MinCPUs, err = readCount(b); return }},
	{"m", "MinMemory", 0, 0, func(j *Job, b []byte, _ *kept) (err error) { j.MinMemory, err = parseMemory(string(b)); return }},
	{"z", "SCT", 0, 0, func(j *Job, b []byte, _ *kept) (err error) { j.Layout, err = readLayout(b); return }},
	{"", "tres-alloc", 0, 0, setTRES}, // after MinMemory, NumNodes
	{"", "tres-per-job", 0, 0, addTRESPer},
	{"b", "tres-per-node", 0, 0, addTRESPer},
	{"", "tres-per-socket", 0, 0, addTRESPer},
	{"", "tres-per-task", 0, 0, addTRESPer},
	{"h", "OverSubscribe", 0, 2605, func(j *Job, b []byte, _ *kept) error { j.Exclusive = string(b) == "NO"; return nil }},
	{"", "Exclusive", 2605, 0, func(j *Job, b []byte, _ *kept) error { j.Exclusive = string(b) == "NODE"; return nil }},
	{"E", "Dependency", 0, 0, func(j *Job, b []byte, k *kept) error { j.Dependency = k.own(b, k.last.Dependency); return nil }},
	{"l", "TimeLimit", 0, 0, func(j *Job, b []byte, _ *kept) (err error) { j.TimeLimit, err = readDuration(b); return }},
	{"V", "SubmitTime", 0, 0, func(j *Job, b []byte, _ *kept) (err error) { j.SubmitTime, err = readTime(b); return }},
	{"S", "StartTime", 0, 0, func(j *Job, b []byte, _ *kept) (err error) { j.StartTime, err = readTime(b); return }},
	{"e", "EndTime", 0, 0, func(j *Job, b []byte, _ *kept) (err error) { j.EndTime, err = readTime(b); return }},
	{"v", "Reservation", 0, 0, func(j *Job, b []byte, k *kept) error { j.Reservation = k.text(b); return nil }},
	{"y", "Nice", 0, 0, func(j *Job, b []byte, _ *kept) (err error) { j.Nice, err = readNice(b); return }},
	{"W", "Licenses", 0, 0, func(j *Job, b []byte, k *kept) error { j.Licenses = k.text(b); return nil }},
	{"", "LicensesAlloc", 2505, 0, func(j *Job, b []byte, k *kept) error { j.Licenses = cmp.Or(k.text(b), j.Licenses); return nil }},
	{"", "exit_code", 0, 0, func(j *Job, b []byte, _ *kept) error { return setExit(j, string(b)) }},
	{"", "admin_comment", 0, 0, func(j *Job, b []byte, k *kept) error { j.AdminComment = k.own(b, k.last.AdminComment); return nil }},
}

// detailOnly holds the columns that -o lacks, and those that setTRES reads.
var detailOnly = map[string]bool{"JobID": true, "NumNodes": true, "MinMemory": true,
	"tres-alloc": true, "tres-per-job": true, "tres-per-node": true, "tres-per-socket": true, "tres-per-task": true,
	"exit_code": true, "admin_comment": true}

// longFormat is the first version whose -O has all columns.
const longFormat = 2405

// view is a set of columns and the way to request them.
type view struct {
	table
	columns []column
	env     string
}

// shortView returns the columns of -o; longView returns the columns of -O in that version.
func shortView() view {
	var cols []column
	var letters []string
	for _, c := range jobColumns {
		if c.letter != "" {
			cols, letters = append(cols, c), append(letters, c.letter)
		}
	}
	t := newTable(len(cols))
	return view{t, cols, "SQUEUE_FORMAT=" + t.short(letters...)}
}

func longView(version int, only map[string]bool) view {
	var cols []column
	var names []string
	for _, c := range jobColumns {
		if version >= c.since && (c.until == 0 || version < c.until) && (only == nil || only[c.long]) {
			cols, names = append(cols, c), append(names, c.long)
		}
	}
	t := newTable(len(cols))
	return view{t, cols, "SQUEUE_FORMAT2=" + t.long(names...)}
}

// reading reads squeue's output into jobs while it comes.
type reading struct {
	view
	*rows
	keep *kept
	jobs []Job
}

func (v view) reading(keep *kept) *reading {
	r := &reading{view: v, keep: keep.next()}
	r.jobs = make([]Job, 0, r.keep.jobs+r.keep.jobs/32)
	r.rows = newRows(v.table, r.job)
	return r
}

// job reads a record.
func (r *reading) job(fields [][]byte) error {
	r.jobs = append(r.jobs, Job{})
	j := &r.jobs[len(r.jobs)-1]
	for i, c := range r.columns {
		if err := c.set(j, fields[i], r.keep); err != nil {
			return fmt.Errorf("job %s: %s: %w", oneLine(string(fields[0]), 20), c.long, err)
		}
	}
	r.keep.last = *j
	j.requeued()
	return nil
}

// end returns all jobs, or what was wrong with the output: never a part of them.
func (r *reading) end() ([]Job, error) {
	if err := r.close(); err != nil {
		return nil, fmt.Errorf("squeue: %w", err)
	}
	return r.jobs, nil
}

// Jobs returns every pending, running, suspended, or completing job, in squeue's order, by one
// squeue. Before 24.05, MinMemory may be per CPU, and TRESPer holds only requests per node: see
// JobsByID. O(jobs + nodes held).
func (c *Client) Jobs(ctx context.Context) ([]Job, error) {
	version, err := c.release(ctx)
	if err != nil {
		return nil, err
	}
	v := shortView()
	if version >= longFormat {
		v = longView(version, nil)
	}
	r := v.reading(c.kept.Swap(nil)) // of two readings at once, one shares nothing
	jobs, err := c.squeueInto(ctx, r)
	if err == nil {
		c.kept.Store(r.keep.done(len(jobs)))
	}
	return jobs, err
}

// JobsByID returns the jobs with these IDs, in the order of ids. It includes ended jobs while
// slurmctld remembers them (MinJobAge) and omits unknown IDs. An array's ID stands for the record
// of its tasks that have not begun. It takes one squeue, two before 24.05.
func (c *Client) JobsByID(ctx context.Context, ids ...JobID) ([]Job, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	version, err := c.release(ctx)
	if err != nil {
		return nil, err
	}
	args := []string{"--states=all"}
	if len(ids) <= 200 { // with several IDs, squeue reads all jobs and then drops the others
		args = append(args, "--jobs="+joinIDs(ids))
	}
	look := func(v view) (map[JobID]Job, error) {
		jobs, err := c.squeue(ctx, v, args...)
		if errors.Is(err, ErrUnknownJob) {
			return nil, nil
		}
		byID := make(map[JobID]Job, len(jobs))
		for _, j := range jobs {
			byID[j.ID] = j
		}
		return byID, err
	}
	var jobs, details map[JobID]Job
	if version >= longFormat {
		jobs, err = look(longView(version, nil))
	} else if jobs, err = look(shortView()); err == nil {
		details, err = look(longView(version, detailOnly))
	}
	if err != nil {
		return nil, err
	}
	var found []Job
	for _, id := range ids {
		j, ok := jobs[id]
		if !ok {
			continue
		}
		delete(jobs, id) // the same ID given twice
		if d, ok := details[id]; ok {
			// The second query is later. So the record stays as the first query read it, and an
			// exit code counts only if the job had ended by then.
			if j.Ended() {
				j.ExitCode, j.ExitSignal = d.ExitCode, d.ExitSignal
			}
			j.MinMemory, j.TRESPer, j.AdminComment = d.MinMemory, d.TRESPer, d.AdminComment
		}
		found = append(found, j)
	}
	return found, nil
}

// Glance returns what Jobs returns, for only a few jobs, including ended ones, by one squeue per job,
// in the order of ids. Each such query costs slurmctld the same, however many jobs there are; one
// query for several jobs would not. Later jobs are queried later. It omits unknown IDs.
func (c *Client) Glance(ctx context.Context, ids ...JobID) ([]Job, error) {
	v, err := c.glanced(ctx)
	if err != nil {
		return nil, err
	}
	var found []Job
	for _, id := range ids {
		jobs, err := c.squeue(ctx, v, "--states=all", "--jobs="+formatID(id))
		if errors.Is(err, ErrUnknownJob) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, j := range jobs {
			if j.ID == id {
				found = append(found, j)
			}
		}
	}
	return found, nil
}

// glanced returns the view that shows what Jobs returns.
func (c *Client) glanced(ctx context.Context) (view, error) {
	version, err := c.release(ctx)
	if err != nil || version < longFormat {
		return shortView(), err
	}
	return longView(version, nil), nil
}

// Named returns a user's jobs with a name (letters, digits, "_.-"), by one squeue that reads only
// that user's jobs. It includes ended jobs while slurmctld remembers them.
func (c *Client) Named(ctx context.Context, uid uint32, name string) ([]Job, error) {
	v, err := c.glanced(ctx)
	if err != nil {
		return nil, err
	}
	jobs, err := c.squeue(ctx, v, "--states=all", "--user="+strconv.FormatUint(uint64(uid), 10), "--name="+name)
	return slices.DeleteFunc(jobs, func(j Job) bool { return j.UID != uid || j.Name != name }), err
}

// TimeUsed returns how long a job has run, without the time that it was suspended.
func (c *Client) TimeUsed(ctx context.Context, id JobID) (time.Duration, error) {
	if err := checkID(id); err != nil {
		return 0, err
	}
	t := newTable(2)
	out, _, err := c.run(ctx, command{name: "squeue", args: []string{"--noheader", "--all", "--local", "--jobs=" + formatID(id)},
		env: []string{"SQUEUE_FORMAT=" + t.short("A", "M")}})
	if err != nil {
		return 0, err
	}
	records, err := t.split(out)
	if err != nil {
		return 0, fmt.Errorf("squeue: %w", err)
	}
	for _, r := range records {
		if r[0] == formatID(id) {
			return parseDuration(r[1])
		}
	}
	return 0, fmt.Errorf("job %d: %w", id, ErrUnknownJob)
}

// squeue runs squeue once for a view, and reads its rows while they come.
func (c *Client) squeue(ctx context.Context, v view, args ...string) ([]Job, error) {
	return c.squeueInto(ctx, v.reading(nil), args...)
}

func (c *Client) squeueInto(ctx context.Context, r *reading, args ...string) ([]Job, error) {
	args = append([]string{"--noheader", "--all", "--local", "--noconvert"}, args...)
	_, _, err := c.run(ctx, command{name: "squeue", args: args, env: []string{r.env}, into: r.rows})
	var jobs []Job
	if err == nil {
		jobs, err = r.end()
		c.tasks.see(jobs)
	}
	if err != nil && !errors.Is(err, ErrUnknownJob) {
		c.distrust() // perhaps these are the columns of another release
	}
	return jobs, err
}

func joinIDs(ids []JobID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = formatID(id)
	}
	return strings.Join(texts, ",")
}

// readID, readNumber, readTasks, readCount, readDuration, readTime, and readNice read the usual forms without a string.
func readID(b []byte) (JobID, error) {
	if n, ok := number(b); ok && n > 0 && n <= math.MaxUint32 {
		return JobID(n), nil
	}
	return parseID(string(b))
}

func readNumber(b []byte, bits int) (uint64, error) {
	if n, ok := number(b); ok && n>>min(bits, 63) == 0 {
		return n, nil
	}
	return strconv.ParseUint(string(b), 10, bits)
}

func readTasks(b []byte) (int, error) {
	if string(b) == "N/A" {
		return 1, nil
	}
	return countTasks(string(b))
}

func readCount(b []byte) (int, error) {
	if n, ok := number(b); ok {
		return int(min(n, math.MaxInt32)), nil
	}
	return parseCount(string(b))
}

// readDuration reads minutes:seconds, hours:minutes:seconds, and days-hours:minutes:seconds.
func readDuration(b []byte) (time.Duration, error) {
	days, clock, has := bytes.Cut(b, []byte("-"))
	if !has {
		days, clock = nil, b
	}
	total, parts := uint64(0), 0
	for more := true; more; parts++ {
		var part []byte
		part, clock, more = bytes.Cut(clock, []byte(":"))
		n, ok := number(part)
		if !ok || n > math.MaxUint16 {
			return parseDuration(string(b))
		}
		total = total*60 + n
	}
	n, ok := number(days)
	if parts > 3 || parts < 2 || has && (parts < 3 || !ok || n > 366) {
		return parseDuration(string(b))
	}
	return time.Duration(total+n*24*60*60) * time.Second, nil
}

func readTime(b []byte) (time.Time, error) {
	if n, ok := number(b); ok && n > 0 && n <= math.MaxUint32 {
		return time.Unix(int64(n), 0).UTC(), nil
	}
	if string(b) == "N/A" {
		return time.Time{}, nil
	}
	return parseTime(string(b))
}

func readNice(b []byte) (int, error) {
	if n, ok := number(b); ok && n <= math.MaxInt32 {
		return int(n), nil
	}
	return strconv.Atoi(string(b))
}

func parseID(s string) (JobID, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err == nil && n == 0 {
		err = strconv.ErrRange
	}
	return JobID(n), err
}

// setDisplay reads how squeue shows a job.
func setDisplay(j *Job, b []byte, _ *kept) error {
	if len(b) > MostTasksText { // an array may have a million tasks
		short, end := b[:MostTasksText], []byte("]")
		if i := bytes.LastIndexByte(b, '%'); i >= 0 {
			end = b[i:]
		}
		b = slices.Concat(short[:max(bytes.LastIndexByte(short, ','), 0)], []byte(",..."), end)
	}
	j.Display = string(b)
	j.Heterogenous = bytes.IndexByte(b, '+') >= 0
	return nil
}

// wished reads a list of nodes as a user wrote it. A list that it cannot parse becomes one node
// that does not exist, so that one job cannot hide all others.
func (k *kept) wished(b []byte) []string {
	nodes, err := k.nodes(b)
	if err != nil {
		return []string{string(b)}
	}
	return nodes
}

// setTasks reads the tasks of an array's record, and how many of the array may run at once.
func setTasks(j *Job, b []byte, _ *kept) (err error) {
	if _, most, limited := bytes.Cut(bytes.Trim(b, "[]"), []byte("%")); limited {
		n, err := strconv.ParseUint(string(most), 10, 31)
		if err != nil {
			return fmt.Errorf("array tasks %q are not understood", oneLine(string(b), 80))
		}
		j.ArrayLimit = int(n)
	}
	j.ArrayTasks, err = readTasks(b)
	return err
}

// countTasks counts the tasks of an array expression: "N/A" (no array), "7", "2-200%2",
// "1,3,5-9:2%4".
func countTasks(s string) (int, error) {
	if none(s) {
		return 1, nil
	}
	s, _, _ = strings.Cut(strings.Trim(s, "[]"), "%")
	total := 0
	for part := range strings.SplitSeq(s, ",") {
		low, high, by, err := taskRange(part)
		if err != nil {
			return 0, err
		}
		total += int((high-low)/by) + 1
	}
	return total, nil
}

// setTRES converts memory per CPU into memory per node. MinMemory does not distinguish the two, but
// the total is known while the job is pending.
func setTRES(j *Job, b []byte, _ *kept) error {
	if j.MinMemory == 0 || j.NumNodes == 0 {
		return nil
	}
	for _, t := range list(string(b)) {
		if v, ok := strings.CutPrefix(t, "mem="); ok {
			total, err := parseMemory(v)
			if err != nil {
				return err
			}
			j.MinMemory = (total + int64(j.NumNodes) - 1) / int64(j.NumNodes)
		}
	}
	return nil
}

// addTRESPer collects requests other than CPUs and memory, which newer versions show here as well
// ("cpu=2" for --cpus-per-task).
func addTRESPer(j *Job, b []byte, k *kept) error {
	if absent(b) || none(string(b)) {
		return nil
	}
	for _, t := range list(k.text(b)) {
		switch {
		case strings.HasPrefix(t, "cpu=") || strings.HasPrefix(t, "cpu:"):
		case j.TRESPer == "":
			j.TRESPer = t
		default:
			j.TRESPer += "," + t
		}
	}
	return nil
}

// setExit reads "status:signal" or, up to 22.05, the raw status of wait(2).
func setExit(j *Job, s string) error {
	if code, sig, ok := strings.Cut(s, ":"); ok {
		var err1, err2 error
		j.ExitCode, err1 = strconv.Atoi(code)
		j.ExitSignal, err2 = strconv.Atoi(sig)
		return errors.Join(err1, err2)
	}
	if none(s) {
		return nil
	}
	raw, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return err
	}
	switch w := syscall.WaitStatus(raw); {
	case w.Signaled():
		j.ExitSignal = int(w.Signal())
	case w.Exited():
		j.ExitCode = w.ExitStatus()
	}
	return nil
}

// Ended reports whether the job's state is final. COMPLETING is not: the job's nodes are not free
// yet.
func (j Job) Ended() bool {
	switch j.State {
	case Completed, Cancelled, Failed, TimedOut, "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "REVOKED":
		return true
	}
	return false
}

// requeued has a job be pending that waits in a state of its own after a requeue or for a reservation that is gone. Slurm starts
// an expediting one (sbatch --requeue=expedite, 25.11 and later) before all other jobs, unless it is held.
func (j *Job) requeued() {
	switch j.State {
	case "EXPEDITING":
		if j.State = Pending; j.Priority > 0 {
			j.Priority = math.MaxUint32
		}
	case "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD": // held, with priority 0, until somebody releases it
		j.State = Pending
	}
}

// Held reports whether the job is pending until a user releases it.
func (j Job) Held() bool { return j.State == Pending && j.Priority == 0 }
