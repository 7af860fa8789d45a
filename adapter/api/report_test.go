package api

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

// TestReport: a caller who may not read other users' jobs gets the sums of the caller's own. Wrong periods are refused.
func TestReport(t *testing.T) {
	me := uint32(os.Geteuid())
	q := ReportQuery{Start: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC), End: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), By: "account"}
	path := "/v1/report?" + q.values().Encode()
	b := newBackend(me)
	r := serve(t, b, func(s *Server) { s.Reading = func() Reading { return OwnJobs } })
	if got, err := client(t, r.unix).Report(t.Context(), q); err != nil || got.By != "account" || !got.Empty() || b.reported[0].Owner != nil || !b.reported[0].Start.Equal(q.Start) {
		t.Errorf("an operator: %+v, %v, %+v", got, err, b.reported)
	}
	header := authorization(encodeAs(t, 4242, r.payload("GET", path, nil), 60))
	status, body := send(t, http.DefaultClient, "GET", "http://"+r.tcp+path, header, "")
	if last := b.reported[len(b.reported)-1]; status != 200 || last.Owner == nil || *last.Owner != 4242 {
		t.Errorf("a user: %d %s, %+v", status, body, last)
	}
	for query, want := range map[string]string{"": "needs start and end", "start=2026-11-20": "is not understood", "by=node": "want user, account", "x=1": "want start, end or by", "owner=0": "want start",
		"start=2026-11-20T00:00:00Z&end=2026-11-20T00:00:00Z": "is not after", "start=0001-01-02T00:00:00Z&end=2026-11-20T00:00:00Z": "is not after",
		"by=day&start=2026-01-01T00:00:00Z&end=2026-11-20T00:00:00Z": "at most 100 days"} {
		v, err := url.ParseQuery(query)
		if err == nil {
			_, err = parseReportQuery(v)
		}
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%q: %v, want %q", query, err, want)
		}
	}
}
