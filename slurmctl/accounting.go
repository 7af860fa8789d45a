package slurmctl

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// AccountedJob holds a job as `sacct --parsable2` prints it. Without a column for a value, times
// are zero and numbers are -1.
type AccountedJob struct {
	ID                 int64 // Slurm's own ID, also of an array task if JobIDRaw is printed
	Submit, Start, End time.Time
	Elapsed, Limit     time.Duration // -1 if unknown or, for the limit, UNLIMITED
	Nodes, CPUs        int64         // allocated; 0 if none
	WantedNodes        int64
	WantedCPUs         int64
	User, Group        string // names, or numbers if only UID and GID are printed
	Account, Partition string
	State              string // its first word
	Name               string // where JobName is printed
}

// AccountingQuery selects jobs.
type AccountingQuery struct {
	From, Until string   // in sacct's format; "" for its defaults
	Users       []string // nil for all that the caller may see
}

// Accounting returns what sacct prints about jobs, one line each, for an [AccountingReader]. The
// reader rejects a line whose job name holds a line break.
func (c *Client) Accounting(ctx context.Context, q AccountingQuery) (string, error) {
	args := []string{"--parsable2", "--allocations", "--format=JobIDRaw,Submit,Start,End,ElapsedRaw,TimelimitRaw,NNodes,User,Group,Account,Partition,State,JobName"}
	for _, t := range []struct{ option, value string }{{"--starttime=", q.From}, {"--endtime=", q.Until}} {
		if t.value != "" {
			args = append(args, t.option+t.value)
		}
	}
	if len(q.Users) > 0 {
		args = append(args, "--user="+strings.Join(q.Users, ","))
	} else {
		args = append(args, "--allusers")
	}
	zone := "TZ=:/etc/localtime" // the zone of From and Until; printed times have none
	if own, ok := os.LookupEnv("TZ"); ok {
		zone = "TZ=" + own
	}
	out, _, err := c.run(ctx, command{name: "sacct", args: args, env: []string{zone}})
	return out, err
}

// AccountingReader reads what `sacct --parsable2` (-P) prints, with its line of column names. It
// skips steps. It reads times as they are, without a zone, as UTC.
//
// Whenever a job changes its size, slurmdbd starts a new record with a submit and start time of its
// own, and ends the record before in state RESIZING. sacct prints all records, each at its own
// submit time (22.05). The reader joins such lines into one job at the position of its first line.
type AccountingReader struct {
	lines   *bufio.Reader
	columns map[string]int
	count   int
	line    int // last line read
	given   int // line of the job or error that Next returned last
	ahead   []*accounted
	resized map[int64]*accounted // jobs whose next record is still to be read
}

// accounted is a line's job and the records that continue it.
type accounted struct {
	job  AccountedJob
	err  error
	line int
	more bool // another record follows
}

// resized is the state of a record whose job continued with another size.
const resized = "RESIZING"

// IsAccounting reports whether a text begins like output of `sacct --parsable2`.
func IsAccounting(begin []byte) bool {
	names := accountingColumns(begin)
	return len(names) > 1 && (slices.Contains(names, "JobID") || slices.Contains(names, "JobIDRaw"))
}

// AccountsNodes reports whether accounting that begins like this includes the nodes of jobs.
func AccountsNodes(begin []byte) bool {
	names := accountingColumns(begin)
	return slices.Contains(names, "AllocNodes") || slices.Contains(names, "NNodes")
}

func accountingColumns(begin []byte) []string {
	first, _, _ := bytes.Cut(begin, []byte("\n"))
	return strings.Split(strings.TrimSpace(string(first)), "|")
}

// NewAccountingReader reads jobs from r.
func NewAccountingReader(r io.Reader) *AccountingReader {
	return &AccountingReader{lines: bufio.NewReaderSize(r, 1<<16), resized: map[int64]*accounted{}}
}

// AccountingError describes one invalid line; the reader can continue after it.
type AccountingError struct {
	Column string // "" for the line as a whole
	Err    error
}

func (e *AccountingError) Error() string {
	if e.Column == "" {
		return e.Err.Error()
	}
	return e.Column + ": " + e.Err.Error()
}

func (e *AccountingError) Unwrap() error { return e.Err }

// Line returns the line number of what Next returned last; for a job, that of its first line.
func (a *AccountingReader) Line() int { return a.given }

// Next returns the next job, or io.EOF after the last.
func (a *AccountingReader) Next() (AccountedJob, error) {
	for len(a.ahead) == 0 || a.ahead[0].more {
		j, err := a.next()
		x := &accounted{j, err, a.line, err == nil && j.State == resized}
		before := a.resized[j.ID]
		switch {
		case err != nil && !errors.As(err, new(*AccountingError)): // the end
			for _, y := range a.ahead {
				y.more = false
			}
			a.ahead = append(a.ahead, x)
		case err == nil && before != nil:
			before.job.resize(j)
			if before.more = x.more; !x.more {
				delete(a.resized, j.ID)
			}
		default:
			if a.ahead = append(a.ahead, x); x.more {
				a.resized[j.ID] = x
			}
		}
	}
	x := a.ahead[0]
	a.ahead, a.given = a.ahead[1:], x.line
	return x.job, x.err
}

// resize continues the job with its next record.
func (j *AccountedJob) resize(next AccountedJob) {
	if j.State = next.State; next.Nodes == 0 { // merged into another job: slurmdbd has no end of it
		return
	}
	j.End = next.End
	if j.Elapsed >= 0 && next.Elapsed >= 0 {
		j.Elapsed += next.Elapsed
	}
	j.Nodes, j.CPUs, j.Limit = max(j.Nodes, next.Nodes), max(j.CPUs, next.CPUs), max(j.Limit, next.Limit)
}

func (a *AccountingReader) next() (AccountedJob, error) {
	for {
		text, err := a.read()
		if err != nil {
			return AccountedJob{}, err
		}
		fields := strings.Split(text, "|")
		switch {
		case a.columns == nil:
			a.columns, a.count = make(map[string]int), len(fields)
			for i, name := range fields {
				a.columns[name] = i
			}
			if err := a.enough(); err != nil {
				return AccountedJob{}, err
			}
			continue
		case text == "":
			continue
		case len(fields) > a.count && a.columns["JobName"] == a.count-1 && a.count > 1: // a name may hold anything
			fields = fields[:a.count]
		case len(fields) != a.count:
			return AccountedJob{}, &AccountingError{Err: fmt.Errorf("%d columns, the first line has %d (a name with a | in it? leave JobName out, or put it last)", len(fields), a.count)}
		}
		if strings.Contains(a.id(fields), ".") {
			continue // a step
		}
		return a.job(fields)
	}
}

// enough reports a missing column without which jobs would seem never to have run.
func (a *AccountingReader) enough() error {
	for _, one := range [][]string{{"Submit"}, {"State"}, {"NNodes", "AllocNodes", "NCPUS", "AllocCPUS"}, {"ElapsedRaw", "Elapsed", "End"}} {
		if !slices.ContainsFunc(one, func(name string) bool { _, ok := a.columns[name]; return ok }) {
			return fmt.Errorf("missing column %s; print it: sacct -P -o JobIDRaw,Submit,Start,End,ElapsedRaw,TimelimitRaw,NNodes,NCPUS,ReqNodes,ReqCPUS,User,Group,Account,Partition,State", one[0])
		}
	}
	return nil
}

// read returns a line without its line end.
func (a *AccountingReader) read() (string, error) {
	a.line++
	text, err := a.lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = a.lines.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		return "", &AccountingError{Err: errors.New("longer than 65536 bytes")}
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(text) == 0) {
		return "", err
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

func (a *AccountingReader) get(fields []string, names ...string) (text, name string) {
	for _, name := range names {
		if i, ok := a.columns[name]; ok && strings.TrimSpace(fields[i]) != "" {
			return strings.TrimSpace(fields[i]), name
		}
	}
	return "", ""
}

func (a *AccountingReader) id(fields []string) string {
	id, _ := a.get(fields, "JobIDRaw", "JobID")
	return id
}

func (a *AccountingReader) job(fields []string) (j AccountedJob, err error) {
	fail := func(column, value, want string) {
		if err == nil {
			err = &AccountingError{column, fmt.Errorf("%.40q; want %s", value, want)}
		}
	}
	number := func(names ...string) int64 {
		text, name := a.get(fields, names...)
		if text == "" {
			return -1
		}
		n, bad := strconv.ParseInt(text, 10, 64)
		if bad != nil || n < 0 {
			fail(name, text, "a number")
		}
		return n
	}
	moment := func(name string) (t time.Time) {
		text, _ := a.get(fields, name)
		switch text {
		case "", "Unknown", "None", "N/A":
			return t
		}
		if n, bad := strconv.ParseInt(text, 10, 64); bad == nil && n > 0 { // SLURM_TIME_FORMAT=%s
			return time.Unix(n, 0)
		}
		t, bad := time.Parse("2006-01-02T15:04:05", text)
		if bad != nil {
			fail(name, text, "a time such as 2026-11-22T15:04:05")
		}
		return t
	}
	span := func(raw string, unit time.Duration, name string) time.Duration {
		if text, _ := a.get(fields, raw); text != "" {
			n, bad := strconv.ParseInt(text, 10, 64)
			switch {
			case bad == nil && n >= 0 && n < 1<<31 && n <= math.MaxInt64/int64(unit):
				return time.Duration(n) * unit
			case text != "UNLIMITED" && text != "Partition_Limit":
				fail(raw, text, "a number")
			}
			return -1
		}
		switch text, _ := a.get(fields, name); text {
		case "", "UNLIMITED", "Partition_Limit", "INVALID":
			return -1
		default:
			d, bad := elapsed(text)
			if bad != nil {
				fail(name, text, "a duration such as 1-02:03:04")
			}
			return d
		}
	}
	id, column := a.get(fields, "JobIDRaw", "JobID")
	digits := strings.FieldsFunc(id, func(r rune) bool { return r == '_' || r == '+' })
	if len(digits) == 0 {
		digits = []string{""}
	}
	if _, raw := a.columns["JobIDRaw"]; !raw && digits[0] != id && digits[0] != "" {
		return j, &AccountingError{column, fmt.Errorf("%.40q: the number of an array's task, or of a component, is in column JobIDRaw; print that", id)}
	}
	if j.ID, err = strconv.ParseInt(digits[0], 10, 64); err != nil || j.ID < 0 {
		return j, &AccountingError{column, fmt.Errorf("%.40q; want a job's number", id)}
	}
	j.Submit, j.Start, j.End = moment("Submit"), moment("Start"), moment("End")
	j.Elapsed, j.Limit = span("ElapsedRaw", time.Second, "Elapsed"), span("TimelimitRaw", time.Minute, "Timelimit")
	j.Nodes, j.CPUs = number("AllocNodes", "NNodes"), number("AllocCPUS", "NCPUS")
	j.WantedNodes, j.WantedCPUs = number("ReqNodes"), number("ReqCPUS")
	j.User, _ = a.get(fields, "User", "UID")
	j.Group, _ = a.get(fields, "Group", "GID")
	j.Account, _ = a.get(fields, "Account")
	j.Partition, _ = a.get(fields, "Partition")
	j.Name, _ = a.get(fields, "JobName")
	state, _ := a.get(fields, "State")
	j.State, _, _ = strings.Cut(state, " ")
	if err == nil && j.Submit.IsZero() {
		fail("Submit", "", "a time")
	}
	return j, err
}

// elapsed reads a duration as sacct prints it, [DD-[HH:]]MM:SS[.mmm].
func elapsed(text string) (time.Duration, error) {
	text, _, _ = strings.Cut(text, ".")
	days, rest, dashed := strings.Cut(text, "-")
	if !dashed {
		days, rest = "0", text
	}
	parts := strings.Split(rest, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return 0, errors.New("not a duration")
	}
	total, err := strconv.ParseInt(days, 10, 32)
	if err != nil || total < 0 || total > 36500 {
		return 0, errors.New("not a duration")
	}
	if len(parts) == 2 {
		parts = append([]string{"0"}, parts...)
	}
	total *= 24
	for i, p := range parts {
		n, err := strconv.ParseInt(p, 10, 32)
		if err != nil || n < 0 {
			return 0, errors.New("not a duration")
		}
		if i > 0 {
			total *= 60
		}
		total += n
	}
	return time.Duration(total) * time.Second, nil
}
