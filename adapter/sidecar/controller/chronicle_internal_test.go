package controller

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func TestEventText(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	for _, test := range []struct{ kind, detail, want string }{
		{"started", `{"planned":1699999990,"nodes":"n[1-2]","step":1}`, "started on n[1-2], in step 1, 10s later than planned"},
		{"started", `{"planned":0,"nodes":"n1"}`, "started on n1"},
		{"step begun", `{"step":2,"planned":1700000000,"nodes":"n[1-3]"}`, "step 2 begun on n[1-3], as planned"},
		{"step ended", `{"step":1,"expected":1700000060}`, "step 1 ended, 1m0s sooner than expected"},
		{"failed", `{"action":"grow","detail":"2 nodes","error":"no"}`, "grow failed (2 nodes): no"},
		{"failed", `{"action":"grow","error":"no"}`, "grow failed: no"},
		{"ended", `{"state":"COMPLETED","step":3,"steps":3}`, "ended COMPLETED in step 3 of 3"},
		{"ended", `{"step":3}`, "ended: step 3"},
		{"refused", `{"slurm_id":7,"user":"u","error":"no","suppressed":4}`, "job 7 of u refused: no; 4 more before it"},
		{"left", `{"slurm_id":7,"user":"u","what":"cancelled","why":"no"}`, "job 7 of u cancelled: no"},
		{"of tomorrow", `{"b":[1,"x"],"a":true,"c":{"d":null}}`, `of tomorrow: a true, b 1,x, c {"d":null}`},
		{"of tomorrow", `{}`, "of tomorrow"},
		{"of tomorrow", `null`, "of tomorrow"},
		{"of tomorrow", `[`, "of tomorrow"},
	} {
		e := store.ReadEvent{Event: store.Event{At: at, Kind: test.kind, Detail: json.RawMessage(test.detail)}}
		if got := eventText(e); got != test.want {
			t.Errorf("%s %s: %q, want %q", test.kind, test.detail, got, test.want)
		}
	}
	for kind, template := range eventTexts {
		if words, _ := fill(template, nil); words == "" && template == "" {
			t.Errorf("%s says nothing", kind)
		}
	}
}

// TestEventsForWhom checks that events are found by job, user, time, and position, and that they
// reveal nothing about others to readers without the right.
func TestEventsForWhom(t *testing.T) {
	b := newIdle(t)
	ctx, at := context.Background(), time.Unix(1_700_000_000, 0)
	add := func(job int64, seconds int, kind string, detail any) {
		t.Helper()
		must.OK(t, b.store.AddEvent(ctx, job, at.Add(time.Duration(seconds)*time.Second), kind, detail))
	}
	add(0, 0, "sidecar started", map[string]any{"version": "1", "jobs": 0})
	ids := map[uint32]int64{}
	for i, id := range []uint32{7, 8, 7} { // the last one has the number of the first again
		j := &store.Job{Owned: row.Owned{SlurmID: id, Submitted: at.Add(time.Duration(i) * time.Second), UID: 1001 + uint32(i), User: "u"}, Terms: row.Terms{Profile: planner.Profile{{Duration: 1, Nodes: 1}}}, Life: row.Life{State: store.Queued}}
		must.OK(t, b.store.AddJob(ctx, j))
		ids[id] = j.ID
		add(j.ID, 10*(i+1), "started", map[string]any{"nodes": "n1"})
	}
	add(ids[8], 40, "enforced", map[string]any{"step": 1, "rival": 7})
	add(0, 50, "refused", map[string]any{"slurm_id": 9, "uid": 1001, "user": "u", "error": "bad"})
	add(ids[8], 60, "lapsed", map[string]any{"in": 2, "for": 7})
	user := func(uid uint32) *uint32 { return &uid }
	for _, test := range []struct {
		name string
		q    api.EventQuery
		want []string
	}{
		{"all", api.EventQuery{Sidecar: true, Limit: 10}, []string{"sidecar started", "started", "started", "started", "enforced", "refused", "lapsed"}},
		{"the last", api.EventQuery{Sidecar: true, Limit: 2}, []string{"refused", "lapsed"}},
		{"the next", api.EventQuery{Sidecar: true, Limit: 2, After: 1}, []string{"started", "started"}},
		{"of jobs", api.EventQuery{Limit: 10}, []string{"started", "started", "started", "enforced", "lapsed"}},
		{"late ones", api.EventQuery{Sidecar: true, Limit: 10, Since: at.Add(35 * time.Second)}, []string{"enforced", "refused", "lapsed"}},
		{"of a number", api.EventQuery{Job: 7, Limit: 10}, []string{"started", "started"}},
		{"of a user's job of that number", api.EventQuery{Job: 7, Owner: user(1003), Limit: 10}, []string{"started"}},
		{"of a user", api.EventQuery{Owner: user(1002), Limit: 10}, []string{"started", "enforced", "lapsed"}},
		{"of nobody", api.EventQuery{Owner: user(1), Limit: 10}, nil},
		{"of a refused job", api.EventQuery{Job: 9, Owner: user(1001), Limit: 10}, []string{"refused"}},
		{"of another's refused job", api.EventQuery{Job: 9, Owner: user(1002), Limit: 10}, nil},
	} {
		events, err := b.Events(ctx, test.q)
		must.OK(t, err)
		var kinds []string
		for _, e := range events {
			kinds = append(kinds, e.Kind)
			if test.q.Owner != nil && e.Kind == "enforced" && (e.Text != "enforced: step 1" || string(e.Detail) != `{"step":1}`) {
				t.Errorf("%s: told of others: %q %s", test.name, e.Text, e.Detail)
			}
			if test.q.Owner != nil && e.Kind == "lapsed" && strings.Contains(e.Text+string(e.Detail), "7") {
				t.Errorf("%s: names another user's job: %q %s", test.name, e.Text, e.Detail)
			}
		}
		if got, want := strings.Join(kinds, "; "), strings.Join(test.want, "; "); got != want {
			t.Errorf("%s: %s; want %s", test.name, got, want)
		}
	}
}
