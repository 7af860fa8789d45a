//go:build browser

package web

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/axetest"
)

// TestOverviewBrowser: the overview is accessible, with and without figures, on a desk and a phone, also while the
// sidecar observes or is drained.
func TestOverviewBrowser(t *testing.T) {
	alloc, stop := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WSURLReadTimeout(2*time.Minute))...)
	defer stop()
	ctx, stop := chromedp.NewContext(alloc)
	defer stop()
	observing, drained := small(), small()
	observing.status.Mode, drained.status.Drain = "observe", &api.Drain{Words: "Drained by root since 11:00:00: Evoslurm adopts and holds nothing new."}
	for name, c := range map[string]*overseen{"overview-full": {cluster: drained, name: "alice"}, "overview-idle": {cluster: observing, name: "alice", idle: true}, "overview-long": {cluster: lengthy(), name: lengthy().jobs[0].User}} {
		c.operator = true
		server := httptest.NewServer(pageOf(c, "/"))
		defer server.Close()
		for _, color := range []string{"light", "dark"} {
			for width, of := range map[int64]string{1200: "desktop", 390: "phone"} {
				var png []byte
				if err := chromedp.Run(ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: color}}),
					chromedp.EmulateViewport(width, 844), chromedp.Navigate(server.URL+"/overview"), chromedp.WaitVisible("#live h1"), chromedp.FullScreenshot(&png, 100)); err != nil {
					t.Fatal(err)
				}
				name := name + "-" + of + "-" + color
				axetest.Check(ctx, t, name)
				if *shots != "" {
					if err := os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o644); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
}
