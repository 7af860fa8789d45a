//go:build browser

package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// lengthy returns a cluster whose names and texts are as long as they may be, without a place to break them.
func lengthy() *cluster {
	c := small()
	long := strings.Repeat("abcdefghij", 12)
	c.status.Cluster, c.status.Strategy, c.status.LastError = long, long, long
	j := &c.jobs[0]
	j.Name, j.User, j.Account, j.Partition, j.Reason, j.NodeList = long, long, long, long, long, "n[1-2],"+long
	j.Profile = strings.TrimSuffix(strings.Repeat("2@5m,4@5m,", 30), ",")
	j.Past[0].NodeList, j.Plan[0].NodeList, j.Plan[1].NodeList = long, long, long
	j.Offers = []api.Offer{{Kind: "grow", Nodes: 3, NodeList: long, Why: long, State: "declined"}}
	j.SlurmJobs = make([]uint32, 40)
	for i := range j.SlurmJobs {
		j.SlurmJobs[i] = 4_000_000_000 + uint32(i)
	}
	for i := range c.is.Nodes {
		c.is.Nodes[i].Name = fmt.Sprintf("%s%d", long, i)
		c.is.Nodes[i].Partitions = []string{"main", long}
	}
	c.is.Others[0].User = long
	c.is.Reservations[0].NodeList = "n[3-4]"
	c.events[0].Text = long
	return c
}

// wider lists the elements that extend beyond the screen, except what scrolls or is clipped in its
// own box. Rows that become cards do neither.
const wider = `[...document.querySelectorAll("body *")].filter(e => { const r = e.getBoundingClientRect(); return r.width > 0 && r.right > %d && (e.closest(".cards") || !e.closest(".scroll, svg, .uplot, .unseen, .skip")); })
	.map(e => e.outerHTML.slice(0, 100) + " " + Math.round(e.getBoundingClientRect().right)).slice(0, 5)`

// apartOf is how far apart the chart of nodes and the series begin, or end; 0 unless there are both.
const apartOf = `(() => { const a = document.querySelector(".chart > div"), b = document.querySelector(".series .u-over");
	if (!a || !b) return 0; const x = a.getBoundingClientRect(), y = b.getBoundingClientRect(); return Math.max(Math.abs(x.left - y.left), Math.abs(x.right - y.right)); })()`

// TestPhoneBrowser: on a phone nothing is wider than the screen but tables and charts, which scroll in their own box.
func TestPhoneBrowser(t *testing.T) {
	alloc, stop := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WSURLReadTimeout(2*time.Minute))...)
	defer stop()
	ctx, stop := chromedp.NewContext(alloc)
	defer stop()
	for name, c := range map[string]*cluster{"small": small(), "lengthy": lengthy(), "hostile": hostile()} {
		narrow(ctx, t, name, pageOf(&overseen{cluster: c, operator: true, name: c.jobs[0].User}, "/"))
	}
}

func narrow(ctx context.Context, t *testing.T, name string, page http.Handler) {
	server := httptest.NewServer(page)
	defer server.Close()
	for _, script := range []bool{true, false} {
		for _, width := range []int64{320, 390} {
			for _, address := range []string{"/", "/?by=node", "/?user=" + strings.Repeat("u", 100), "/job?id=12", "/strategies", "/overview", "/history", "/job?id=99"} {
				var reach, inner int
				var apart float64
				var found []string
				var png []byte
				if err := chromedp.Run(ctx, chromedp.EmulateViewport(width, 640, chromedp.EmulateMobile), emulation.SetScriptExecutionDisabled(!script),
					chromedp.Navigate(server.URL+address), chromedp.WaitVisible("#live"), emulation.SetScriptExecutionDisabled(false),
					chromedp.Evaluate(`document.querySelectorAll("details").forEach(d => d.open = true); document.documentElement.scrollWidth`, &reach),
					chromedp.Evaluate(`innerWidth`, &inner), chromedp.Evaluate(apartOf, &apart), chromedp.Evaluate(fmt.Sprintf(wider, width), &found), chromedp.FullScreenshot(&png, 100)); err != nil {
					t.Fatal(address, err)
				}
				if reach > int(width) || inner > int(width) || len(found) > 0 {
					t.Errorf("%s: %s on a screen of %d (JavaScript %v): %d wide, laid out for %d; beyond it are %q", name, address, width, script, reach, inner, found)
				}
				if apart > 1.5 {
					t.Errorf("%s: %s on a screen of %d: the charts begin or end %v pixels apart", name, address, width, apart)
				}
				if *shots != "" && script && width == 390 && len(address) < 20 {
					file := strings.NewReplacer("/", "", "?", "-", "=", "-").Replace(name + "-phone" + address)
					if err := os.WriteFile(filepath.Join(*shots, file+".png"), png, 0o644); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
}
