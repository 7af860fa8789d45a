package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Report sums up what evolving jobs had in a period, and what their promises cost.
type Report struct {
	Start  time.Time     `json:"start"`
	End    time.Time     `json:"end"`
	By     string        `json:"by,omitempty"`     // what the rows are grouped by
	Rows   []ReportRow   `json:"rows"`             // the most expensive first, days in order; empty without By
	More   int           `json:"more,omitempty"`   // further rows, which are only in Total
	Total  ReportRow     `json:"total"`            // of all rows
	Causes []ReportCause `json:"causes,omitempty"` // why promises were late or broken, most frequent first
	Idle   *ReportIdle   `json:"idle,omitempty"`   // all nodes without a job; not in a report on a user's own jobs
}

// ReportIdle sums up nodes that were awake without a job, held or not.
type ReportIdle struct {
	NodeHours float64 `json:"node_hours"`
	KWh       float64 `json:"kwh,omitempty"` // that they drew, by the configured watts
}

// ReportRow holds the figures of a group. Sums are in node-hours.
type ReportRow struct {
	Name      string         `json:"name,omitempty"`
	Jobs      int            `json:"jobs"` // evolving jobs that had nodes
	Requested float64        `json:"requested_node_hours"`
	Planned   float64        `json:"planned_node_hours"`
	Allocated float64        `json:"allocated_node_hours"`
	Wasted    float64        `json:"wasted_node_hours"`    // allocated, and neither requested nor lent
	Lent      float64        `json:"lent_node_hours"`      // to malleable jobs, beyond their profiles
	Held      float64        `json:"held_node_hours"`      // by reservations, idle or not
	HeldIdle  float64        `json:"held_idle_node_hours"` // of idle nodes that a waiting job could have used
	Promises  ReportPromises `json:"promises"`

	HeldIdleKWh float64       `json:"held_idle_kwh,omitempty"` // that nodes drew which were held idle, by the mean of the configured watts
	Delayed     ReportDelayed `json:"stock_jobs_delayed"`      // stock jobs of the group itself
}

// ReportPromises counts promises of growths by outcome.
type ReportPromises struct {
	Made       int     `json:"made"` // of those decided in the period
	Kept       int     `json:"kept"`
	Late       int     `json:"late"`        // by ten seconds or more
	Broken     int     `json:"broken"`      // they lapsed, or fewer nodes came
	NotReached int     `json:"not_reached"` // the job ended before
	Average    float64 `json:"late_seconds_average"`
	Latest     float64 `json:"late_seconds_most"`
}

// ReportDelayed counts stock jobs that started later because of holds.
type ReportDelayed struct {
	Jobs    int   `json:"jobs"`
	Seconds int64 `json:"seconds"` // added up
	Most    int64 `json:"seconds_most"`
}

// ReportCause counts promises that were not kept for the same reason.
type ReportCause struct {
	Outcome  string `json:"outcome"` // late or broken
	Cause    string `json:"cause"`
	Promises int    `json:"promises"`
}

// ReportQuery selects what a report is about.
type ReportQuery struct {
	Start, End time.Time
	By         string // one of ReportsBy; "" for the total only

	Owner *uint32 // set by the server: only this user's jobs; nil for all
}

// ReportsBy lists what a report can be grouped by.
var ReportsBy = []string{"user", "account", "partition", "qos", "day"}

const (
	// MostReportRows bounds the rows of a report.
	MostReportRows = 1000
	// MostReportDays bounds the days of a report by days.
	MostReportDays = 100
)

// Empty reports whether nothing was recorded in the period.
func (r Report) Empty() bool { return r.Total == ReportRow{} && r.Idle == nil }

// parseReportQuery reads what values writes.
func parseReportQuery(v url.Values) (q ReportQuery, err error) {
	for name, texts := range v {
		switch text := texts[0]; name {
		case "start":
			q.Start, err = time.Parse(time.RFC3339, text)
		case "end":
			q.End, err = time.Parse(time.RFC3339, text)
		case "by":
			if q.By = text; !slices.Contains(ReportsBy, text) {
				return q, Errorf(ErrInvalid, "by=%q: want %s", text, strings.Join(ReportsBy, ", "))
			}
		default:
			return q, Errorf(ErrInvalid, "%s=%q: want start, end or by", name, text)
		}
		if err != nil {
			return q, Errorf(ErrInvalid, "%s=%q is not understood", name, texts[0])
		}
	}
	switch {
	case q.Start.IsZero() || q.End.IsZero():
		return q, Errorf(ErrInvalid, "a report needs start and end")
	case q.Start.Year() < 1970 || q.End.Year() > 9999 || !q.End.After(q.Start):
		return q, Errorf(ErrInvalid, "end=%q is not after start=%q", v.Get("end"), v.Get("start"))
	case q.By == "day" && q.End.Sub(q.Start) > MostReportDays*24*time.Hour:
		return q, Errorf(ErrInvalid, "a report by day has at most %d days", MostReportDays)
	}
	return q, nil
}

func (q ReportQuery) values() url.Values {
	v := url.Values{"start": {q.Start.Format(time.RFC3339)}, "end": {q.End.Format(time.RFC3339)}}
	if q.By != "" {
		v.Set("by", q.By)
	}
	return v
}

// report sums up the jobs that the caller may read of: all of them, or those of the caller.
func (d *desk) report(ctx context.Context, r request) (any, error) {
	if err := d.rights.mayAsk(r.caller); err != nil {
		return nil, err
	}
	q, err := parseReportQuery(r.URL.Query())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	if !d.rights.seesAll(ctx, r.caller) {
		q.Owner = &r.caller.uid
	}
	answer, err := d.backend.Report(ctx, q)
	if k := (*kindError)(nil); err != nil && ctx.Err() != nil && !errors.As(err, &k) {
		return nil, Errorf(ErrConflict, "this report takes more than %v: choose a shorter period", backendTimeout)
	}
	return answer, err
}

// Report sums up what evolving jobs had in a period, and what their promises cost.
func (c *Client) Report(ctx context.Context, q ReportQuery) (Report, error) {
	return callOnce[Report](ctx, c, http.MethodGet, "/v1/report?"+q.values().Encode(), nil)
}

// Report does what Client.Report does.
func (v Visitor) Report(ctx context.Context, q ReportQuery) (Report, error) {
	return visit[Report](ctx, v, v.desk.report, "/v1/report?"+q.values().Encode(), nil)
}
