//go:build browser

package web

import (
	"context"
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var shots = flag.String("shots", "", "folder to put pictures of the page into")

// TestPaintBrowser measures, by the browser's own clock, when the first page of 1,000 jobs on 1,000 nodes is painted, and what it
// weighs: a browser that has nothing of it yet, five times. That it is drawn, and that uPlot has drawn its series, is seen.
func TestPaintBrowser(t *testing.T) {
	server := httptest.NewServer(pageOf(many(1000, 1000, 200), "/"))
	defer server.Close()
	alloc, stop := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox,
		chromedp.WindowSize(1200, 900), chromedp.WSURLReadTimeout(2*time.Minute))...)
	defer stop()
	var paints []float64
	for range 5 {
		ctx, stop := chromedp.NewContext(alloc)
		ctx, done := context.WithTimeout(ctx, 3*time.Minute)
		var paint, served float64
		var bytes, drawn int
		if err := chromedp.Run(ctx, chromedp.Navigate(server.URL), chromedp.WaitVisible("#series canvas"),
			chromedp.Poll(`performance.getEntriesByName("first-contentful-paint").length > 0`, nil),
			chromedp.Evaluate(`performance.getEntriesByName("first-contentful-paint")[0].startTime`, &paint),
			chromedp.Evaluate(`performance.getEntriesByType("navigation")[0].responseEnd`, &served),
			chromedp.Evaluate(`document.querySelectorAll(".nodes path").length`, &drawn),
			chromedp.Evaluate(`performance.getEntriesByType("navigation").concat(performance.getEntriesByType("resource")).reduce((n, r) => n + r.encodedBodySize, 0)`, &bytes)); err != nil {
			t.Fatal(err)
		}
		t.Logf("first paint after %.0f ms, of which the server %.0f ms; %d bytes in all, %d shapes", paint, served, bytes, drawn)
		if bytes > 150_000 || bytes < 10_000 || drawn < 500 {
			t.Errorf("%d bytes, want 150,000 at most; %d shapes", bytes, drawn)
		}
		paints = append(paints, paint)
		done()
		stop()
	}
	if *shots != "" {
		few := httptest.NewServer(pageOf(small(), "/"))
		defer few.Close()
		ctx, stop := chromedp.NewContext(alloc)
		defer stop()
		for name, address := range map[string]string{"thousand": server.URL, "series": few.URL, "series-job": few.URL + "/job?id=12"} {
			for _, color := range []string{"light", "dark"} {
				var png []byte
				if err := chromedp.Run(ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: color}}),
					chromedp.Navigate(address), chromedp.WaitVisible("#series canvas"), chromedp.FullScreenshot(&png, 100)); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(*shots, name+"-"+color+".png"), png, 0o644); err != nil {
					t.Error(err)
				}
			}
		}
	}
	slices.Sort(paints)
	t.Logf("median %.0f ms", paints[len(paints)/2])
}
