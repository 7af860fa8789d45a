//go:build browser

package observed

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/evoslurm/evoslurm/adapter/internal/axetest"
	"github.com/evoslurm/evoslurm/adapter/lab/report"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var shots = flag.String("shots", "", "folder to put pictures of the report into")

// TestObservedBrowser: the report on observed days is accessible, and shows all columns of its answers on a desk and a phone.
func TestObservedBrowser(t *testing.T) {
	r, err := New(t.Context(), folder(t, map[string]string{"2026-03-01.jsonl": kept(t)}), third)
	must.OK(t, err)
	name := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(name)
	must.OK(t, err)
	defer f.Close()
	must.OK(t, r.Page(f, report.Options{Version: "v1"}))
	alloc, stop := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WSURLReadTimeout(2*time.Minute))...)
	defer stop()
	ctx, stop := chromedp.NewContext(alloc)
	defer stop()
	ctx, stop = context.WithTimeout(ctx, 5*time.Minute)
	defer stop()
	for _, color := range []string{"light", "dark"} {
		for width, of := range map[int64]string{1200: "desktop", 390: "phone"} {
			var png []byte
			var reach int64
			var cut int
			if err := chromedp.Run(ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: color}}),
				chromedp.EmulateViewport(width, 844), chromedp.Navigate("file://"+name), chromedp.WaitVisible("#gantt canvas"),
				chromedp.Evaluate(`document.documentElement.scrollWidth`, &reach),
				chromedp.Evaluate(`[...document.querySelectorAll(".answer .wide")].filter(e => e.scrollWidth > e.clientWidth).length`, &cut), chromedp.FullScreenshot(&png, 100)); err != nil {
				t.Fatal(err)
			}
			if reach > width || cut > 0 {
				t.Errorf("%d wide on a screen of %d, and %d tables of answers cut", reach, width, cut)
			}
			axetest.Check(ctx, t, of+" "+color)
			if *shots != "" {
				if err := os.WriteFile(filepath.Join(*shots, "observed-"+of+"-"+color+".png"), png, 0o644); err != nil {
					t.Error(err)
				}
			}
		}
	}
}
