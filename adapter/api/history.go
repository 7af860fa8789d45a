package api

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// History is a page of ended jobs, the latest end first.
type History struct {
	Jobs []Job  `json:"jobs"`
	Next string `json:"next,omitempty"` // of the query for the next page; missing on the last one
}

// HistoryQuery selects ended jobs. Empty lists select all.
type HistoryQuery struct {
	Start, End time.Time // ended at Start or later, and submitted before End; zero for any time
	Jobs       []uint32  // Slurm IDs of base jobs
	Tasks      []JobName // tasks of arrays, besides Jobs: one, or all of an array
	Users      []string  // names or UIDs
	Names      []string  // of jobs
	Before     Place     // History.Next, parsed; zero for the first page
	Limit      int       // jobs of a page; 0 for MostHistory

	Owner *uint32 // set by the server: only jobs that this user may read; nil for all
}

// Place is a place in the history: an end in Unix seconds, and a number that tells jobs of the same second apart.
type Place struct{ Ended, Row int64 }

func (p Place) String() string { return fmt.Sprintf("%d.%d", p.Ended, p.Row) }

// ParsePlace reads what String writes.
func ParsePlace(text string) (p Place, err error) {
	ended, row, _ := strings.Cut(text, ".")
	p.Ended, err = strconv.ParseInt(ended, 10, 64)
	if err == nil {
		p.Row, err = strconv.ParseInt(row, 10, 64)
	}
	return p, err
}

const (
	// MostHistory bounds the jobs of a page of the history.
	MostHistory = 200
	// MostListed bounds the values of each list in a HistoryQuery.
	MostListed = 100
	// HistoryBytes is about how many bytes of profiles and plans a page of the history holds: it has fewer jobs then.
	HistoryBytes = userShare
)

// Room reports whether a page that has used some bytes takes a further job, and counts it.
func (j *Job) Room(used *int) bool {
	*used += j.bytes()
	return *used <= HistoryBytes
}

// values returns the query as it travels.
func (q HistoryQuery) values() url.Values {
	v := url.Values{"user": q.Users, "name": q.Names}
	for _, id := range q.Jobs {
		v.Add("job", idText(id))
	}
	for _, t := range q.Tasks {
		v.Add("task", t.String())
	}
	for name, t := range map[string]time.Time{"start": q.Start, "end": q.End} {
		if !t.IsZero() {
			v.Set(name, t.Format(time.RFC3339))
		}
	}
	if q.Before != (Place{}) {
		v.Set("before", q.Before.String())
	}
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return v
}

// parseHistoryQuery reads what values writes.
func parseHistoryQuery(v url.Values) (q HistoryQuery, err error) {
	q.Limit = MostHistory
	for name, texts := range v {
		if len(texts) > MostListed {
			return q, Errorf(ErrInvalid, "%d values of %s: at most %d are read", len(texts), name, MostListed)
		}
		var n uint64
		switch text := texts[0]; name {
		case "user":
			q.Users = texts
		case "name":
			q.Names = texts
		case "job":
			for _, text := range texts {
				var id uint64
				id, err = strconv.ParseUint(text, 10, 32)
				if q.Jobs = append(q.Jobs, uint32(id)); err != nil {
					break
				}
			}
		case "task":
			q.Tasks, err = parseJobNames(texts)
		case "start":
			q.Start, err = time.Parse(time.RFC3339, text)
		case "end":
			q.End, err = time.Parse(time.RFC3339, text)
		case "before":
			q.Before, err = ParsePlace(text)
		case "limit":
			n, err = strconv.ParseUint(text, 10, 31)
			q.Limit = int(min(max(n, 1), MostHistory))
		default:
			return q, Errorf(ErrInvalid, "%s=%q: want start, end, user, job, task, name, before or limit", name, text)
		}
		if err != nil {
			return q, Errorf(ErrInvalid, "%s=%q is not understood", name, texts[0])
		}
	}
	return q, nil
}

// history returns a page of the ended jobs that the caller may read.
func (d *desk) history(ctx context.Context, r request) (any, error) {
	if err := d.rights.mayAsk(r.caller); err != nil {
		return nil, err
	}
	q, err := parseHistoryQuery(r.URL.Query())
	if err != nil {
		return nil, err
	}
	leave, ok := d.shares.history.take(holder{known: r.caller.known, uid: r.caller.uid}, 1, d.rights.trusted(r.caller))
	if !ok {
		return nil, Errorf(ErrUnavailable, "other pages of the history are being read: try again")
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	if !d.rights.seesAll(ctx, r.caller) {
		q.Owner = &r.caller.uid
	}
	page, err := d.backend.History(ctx, q)
	with := d.rights.discretion(ctx, r.caller)
	for i := range page.Jobs {
		discreet(&page.Jobs[i], with)
	}
	return page, err
}
