package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 11, 22, 15, 4, 5, 0, time.Local)
	for text, want := range map[string]time.Time{
		"30m":                 now.Add(-30 * time.Minute),
		"2d":                  now.AddDate(0, 0, -2),
		"15:04":               time.Date(2026, 11, 22, 15, 4, 0, 0, time.Local),
		"16:00":               time.Date(2026, 11, 21, 16, 0, 0, 0, time.Local),
		"2026-11-20":          time.Date(2026, 11, 20, 0, 0, 0, 0, time.Local),
		"2026-11-20T01:02:03": time.Date(2026, 11, 20, 1, 2, 3, 0, time.Local),
	} {
		if got, err := parseSince(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "-1h", "d", "12"} {
		if got, err := parseSince(text, now); err == nil || !strings.Contains(err.Error(), "--since="+text) {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
}

// TestNoEvents checks that an unknown job is reported, and that a future one may be followed.
func TestNoEvents(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	none := func(context.Context, api.EventQuery) ([]api.Event, error) { cancel(); return nil, nil }
	for _, c := range []struct {
		q      api.EventQuery
		follow bool
		want   string
	}{{api.EventQuery{Job: 99}, false, "job 99"}, {api.EventQuery{}, false, ""}, {api.EventQuery{Job: 99, Since: time.Unix(1, 0)}, false, ""}, {api.EventQuery{Job: 99}, true, ""}} {
		var out strings.Builder
		err := showEvents(ctx, &out, none, c.q, c.follow, false)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || out.Len() > 0 {
			t.Errorf("%+v: %v %q", c, err, out.String())
		}
	}
}

// TestFollow checks that existing events, then new ones, are printed once, one per line.
func TestFollow(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var asked []api.EventQuery
	source := func(_ context.Context, q api.EventQuery) ([]api.Event, error) {
		asked = append(asked, q)
		switch len(asked) {
		case 1:
			return []api.Event{{ID: 4, Job: 7, Text: "started on n1"}, {ID: 6, Text: "a\nb \x1b[31mc"}}, nil
		case 2:
			return nil, nil
		case 3:
			cancel()
			return nil, ctx.Err()
		}
		t.Error("asked once more after the end")
		return nil, nil
	}
	var out strings.Builder
	if err := showEvents(ctx, &out, source, api.EventQuery{Job: 7, Limit: 100}, true, false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 3 || !strings.HasSuffix(lines[0], "  job 7       started on n1") || !strings.Contains(lines[1], "  sidecar     a b ") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("written:\n%q", out.String())
	}
	if asked[0].After != 0 || asked[0].Limit != 100 || asked[1].After != 6 || asked[1].Limit != 0 || asked[2].After != 6 {
		t.Errorf("asked %+v", asked)
	}
}
