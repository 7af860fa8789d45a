//go:build browser

package axetest

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var file = flag.String("axe", "", "axe.min.js, which looks for what keeps people out")

// Check fails if axe-core finds something serious in the tab of ctx.
func Check(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(*file)
	if err != nil {
		t.Fatalf("-axe: %v", err)
	}
	var found string
	if err := chromedp.Run(ctx, chromedp.Evaluate(string(text)+"; 0", nil),
		chromedp.Evaluate(`axe.run(document).then(r => JSON.stringify(r.violations.map(v => ({impact: v.impact, id: v.id, help: v.help, nodes: v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + " " + n.failureSummary)}))))`, &found,
			func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) })); err != nil {
		t.Fatal(name, err)
	}
	var all []struct {
		Impact, ID, Help string
		Nodes            []string
	}
	if err := json.Unmarshal([]byte(found), &all); err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if v.Impact == "serious" || v.Impact == "critical" {
			t.Errorf("%s: %s (%s): %q", name, v.Help, v.ID, v.Nodes)
		} else {
			t.Logf("%s: %s: %s (%s): %q", name, v.Impact, v.Help, v.ID, v.Nodes)
		}
	}
}
