package ran

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// wallSecond is a second in a detail.
var wallSecond = regexp.MustCompile(`@\d+`)

// TestPromises checks for each planned growth when it was promised, when the nodes came, how late
// that was, and why, from the sidecar's events in their order.
func TestPromises(t *testing.T) {
	const zero = 1795368500
	at := func(s float64) time.Time { return time.UnixMicro(zero*1e6 + int64(s*1e6)) }
	type ev struct {
		at     float64
		kind   string
		detail string // times in it are seconds after zero, as @60
		text   string
	}
	started, ended := ev{0, "started", `{"step":1,"planned":@0,"nodes":"n[1-2]"}`, ""}, ev{60, "step ended", `{"step":1,"expected":@60}`, ""}
	begun := func(when float64, planned int) ev {
		return ev{when, "step begun", fmt.Sprintf(`{"step":2,"planned":@%d,"nodes":"n[1-5]"}`, planned), ""}
	}
	for name, c := range map[string]struct {
		events []ev
		now    float64
		state  string
		plan   float64 // of the growth, at present; 0: none
		want   string  // promised, came, late, outcome, causes
	}{
		"to come":          {[]ev{started}, 10, "running", 60, "60 - 0.0 to come []"},
		"kept":             {[]ev{started, ended, begun(60.8, 60)}, 70, "running", 60.8, "60 60.8 0.8 kept []"},
		"asked for late":   {[]ev{started, {100, "step ended", `{"step":1}`, ""}, begun(101, 60)}, 200, "running", 101, "60 101 1.0 kept [its own step 1 ended 40s later than that]"},
		"asked for early":  {[]ev{started, {40, "step ended", `{"step":1}`, ""}, begun(40.5, 40)}, 200, "running", 40.5, "40 40.5 0.5 kept []"},
		"delayed":          {[]ev{started, {50, "delayed", `{"step":2,"why":"a node is down","was":@60,"start":@90}`, ""}, {55, "delayed", `{"step":2,"why":"another is","was":@90,"start":@120}`, ""}, ended, begun(120, 120)}, 200, "running", 120, "60 120 60.0 late [a node is down another is]"},
		"delayed, to come": {[]ev{started, {50, "delayed", `{"step":2,"why":"a node is down","was":@60,"start":@90}`, ""}}, 55, "running", 90, "60 - 30.0 late [a node is down]"},
		"of another step":  {[]ev{started, {50, "delayed", `{"step":3,"why":"a node is down","was":@160,"start":@190}`, ""}}, 55, "running", 60, "60 - 0.0 to come []"},
		"waits":            {[]ev{started, ended, {61, "kept back", `{"limit":"AssocGrpNodeLimit","nodes":5}`, "kept back by AssocGrpNodeLimit"}}, 100, "waiting", 60, "60 - 40.0 late [kept back by AssocGrpNodeLimit]"},
		"lapsed":           {[]ev{started, {90, "lapsed", `{"step":1}`, "step 1 lasts too long"}, {200, "step ended", `{"step":1}`, ""}, begun(300, 300)}, 400, "running", 300, "300 300 0.0 lapsed [step 1 lasts too long]"},
		"too few":          {[]ev{started, ended, {61, "given up", `{"nodes":5,"failures":3,"error":"x"}`, "given up"}, {62, "step begun", `{"step":2,"planned":@60,"nodes":"n[1-2]"}`, ""}}, 70, "running", 62, "60 62 2.0 2 of 5 nodes [given up]"},
		"not reached":      {[]ev{started, {30, "ended", `{"state":"FAILED","step":1,"steps":3}`, ""}}, 70, "ended", 60, "- - 0.0 not reached []"},
		"not planned":      {[]ev{started}, 10, "running", 0, "- - 0.0 not planned []"},
		"requeued":         {[]ev{started, ended, begun(60.8, 60), {70, "requeued", `{"step":2}`, ""}}, 80, "queued", 160, "160 - 0.0 to come []"},
		"nothing is known": {nil, 80, "running", 60, "60 - 0.0 to come []"},
	} {
		j := api.Job{ID: 12, State: c.state, Profile: "2@1m,5@1m,1@1m"}
		if c.plan > 0 {
			j.Plan = []api.Span{{Step: 1, Start: at(0)}, {Step: 2, Start: at(c.plan)}, {Step: 3, Start: at(c.plan + 60)}}
		}
		var events []api.Event
		for _, e := range c.events {
			detail := wallSecond.ReplaceAllStringFunc(e.detail, func(s string) string {
				var n int
				_, _ = fmt.Sscanf(s, "@%d", &n)
				return fmt.Sprint(zero + n)
			})
			events = append(events, api.Event{At: at(e.at), Job: 12, Kind: e.kind, Detail: json.RawMessage(detail), Text: e.text})
		}
		all := Promises(j, events)
		if len(all) != 1 || all[0].Step != 2 || all[0].From != 2 || all[0].To != 5 {
			t.Fatalf("%s: %+v", name, all)
		}
		p, now := all[0], at(c.now)
		second := func(when time.Time) string {
			if when.IsZero() {
				return "-"
			}
			return fmt.Sprint(float64(when.UnixMicro()-zero*1e6) / 1e6)
		}
		got := fmt.Sprintf("%s %s %.1f %s %v", second(p.At), second(p.Came), p.Late(now).Seconds(), p.Outcome(now), p.Causes)
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if p.Kept() != (p.Outcome(now) == "kept") {
			t.Errorf("%s: kept %v", name, p.Kept())
		}
	}
	if all := Promises(api.Job{Profile: "?"}, nil); all != nil {
		t.Errorf("of no profile: %v", all)
	}
	many := []api.Event{{At: at(0), Kind: "started", Detail: json.RawMessage(`{"step":1}`)}}
	for i := range 100 {
		many = append(many, api.Event{At: at(float64(i)), Kind: "failed", Text: fmt.Sprint(i)})
	}
	if causes := Promises(api.Job{Profile: "1@1m,2@1m"}, many)[0].Causes; !slices.Equal(causes, []string{"0", "1", "2"}) {
		t.Errorf("of a hundred failures: %v", causes)
	}
}
