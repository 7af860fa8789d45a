//go:build browser

package web

import (
	"context"
	"flag"
	"io"
	"net/http"
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

// TestPaintBrowser measures by the browser's own clock when the first page of 1,000 jobs on 1,000
// nodes is painted, and its size. Seven browsers with empty caches each run beside another that
// loads a one-word page, which shows the machine's share of the time. It also checks that the page
// and uPlot's series are drawn.
func TestPaintBrowser(t *testing.T) {
	server := httptest.NewServer(pageOf(many(1000, 1000, 200), "/"))
	defer server.Close()
	word := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<!doctype html><title>one word</title><p>Evoslurm")
	}))
	defer word.Close()
	alloc, stop := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox,
		chromedp.WindowSize(1200, 900), chromedp.WSURLReadTimeout(2*time.Minute))...)
	defer stop()
	// painted gives when a page was painted in a new browser, in milliseconds.
	painted := func(address string, more ...chromedp.Action) (at float64) {
		ctx, stop := chromedp.NewContext(alloc)
		defer stop()
		ctx, done := context.WithTimeout(ctx, 3*time.Minute)
		defer done()
		if err := chromedp.Run(ctx, chromedp.Navigate(address),
			chromedp.Poll(`performance.getEntriesByName("first-contentful-paint").length > 0`, nil),
			chromedp.Evaluate(`performance.getEntriesByName("first-contentful-paint")[0].startTime`, &at), chromedp.Tasks(more)); err != nil {
			t.Fatal(err)
		}
		return at
	}
	var paints, words []float64
	for range 7 {
		words = append(words, painted(word.URL))
		var served float64
		var bytes, drawn int
		paints = append(paints, painted(server.URL, chromedp.WaitVisible("#series canvas"),
			chromedp.Evaluate(`performance.getEntriesByType("navigation")[0].responseEnd`, &served),
			chromedp.Evaluate(`document.querySelectorAll(".nodes path").length`, &drawn),
			chromedp.Evaluate(`performance.getEntriesByType("navigation").concat(performance.getEntriesByType("resource")).reduce((n, r) => n + r.encodedBodySize, 0)`, &bytes)))
		t.Logf("first paint after %.0f ms (%.0f ms of it the server); of one word after %.0f ms; %d bytes in all, %d shapes",
			paints[len(paints)-1], served, words[len(words)-1], bytes, drawn)
		if bytes > 150_000 || bytes < 10_000 || drawn < 500 {
			t.Errorf("%d bytes, want 150,000 at most; %d shapes", bytes, drawn)
		}
	}
	slices.Sort(paints)
	slices.Sort(words)
	m := len(paints) / 2
	t.Logf("first paint: best %.0f ms, median %.0f ms; of one word: %.0f and %.0f ms; of the medians the ratio is %.1f",
		paints[0], paints[m], words[0], words[m], paints[m]/words[m])
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
}
