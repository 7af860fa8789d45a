//go:build browser

package report_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/evoslurm/evoslurm/adapter/internal/axetest"
	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/adapter/lab/report"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var (
	shots = flag.String("shots", "", "folder to put pictures of the report into")
	from  = flag.String("outcomes", "", "folder of outcomes to look at instead of the test's own")
)

// TestReportBrowser opens a report in headless Chromium. It must draw, zoom, be light and dark,
// print nothing on the console, violate no policy, fetch nothing, and show its tables without
// JavaScript.
func TestReportBrowser(t *testing.T) {
	outcomes := sample()
	if *from != "" {
		outcomes = nil
		files, err := outcome.Files(*from)
		must.OK(t, err)
		for _, name := range files {
			o, err := outcome.ReadFile(name)
			must.OK(t, err)
			outcomes = append(outcomes, o)
		}
	}
	name := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(name)
	must.OK(t, err)
	must.OK(t, report.Write(f, outcomes, report.Options{Command: "evosim report", Version: "test"}))
	f.Close()

	alloc, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1200, 1600), chromedp.WSURLReadTimeout(2*time.Minute))...)
	defer stop()
	ctx, stop := chromedp.NewContext(alloc)
	defer stop()
	ctx, stop = context.WithTimeout(ctx, 5*time.Minute)
	defer stop()
	var mu sync.Mutex
	var said []string
	chromedp.ListenTarget(ctx, func(e any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := e.(type) {
		case *runtime.EventConsoleAPICalled:
			said = append(said, fmt.Sprint("console: ", e.Type))
		case *runtime.EventExceptionThrown:
			said = append(said, e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			said = append(said, e.Entry.Text)
		}
	})
	do := func(actions ...chromedp.Action) {
		t.Helper()
		must.OK(t, chromedp.Run(ctx, actions...))
	}
	picture := func(name string) {
		var png []byte
		do(chromedp.FullScreenshot(&png, 100))
		if *shots != "" {
			if err := os.WriteFile(filepath.Join(*shots, "report-"+name+".png"), png, 0o644); err != nil {
				t.Error(err)
			}
		}
	}
	scheme := func(name string) chromedp.Action {
		return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}})
	}
	var opens float64
	var canvases, requests int
	do(scheme("light"), chromedp.Navigate("file://"+name), chromedp.WaitVisible("#gantt canvas"),
		chromedp.Evaluate(`performance.timing.loadEventEnd - performance.timing.navigationStart`, &opens),
		chromedp.Evaluate(`document.querySelectorAll("canvas").length`, &canvases),
		chromedp.Evaluate(`performance.getEntriesByType("resource").length`, &requests))
	t.Logf("open after %.0f ms", opens)
	if canvases != 5 || requests != 0 {
		t.Errorf("%d charts, %d requests", canvases, requests)
	}
	// Each chart is painted: more than two colours in its middle.
	const colours = `[...document.querySelectorAll("canvas")].map(c => { const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, s = new Set();
		for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 200) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return s.size; })`
	var painted []int
	do(chromedp.Evaluate(colours, &painted))
	for i, n := range painted {
		if n < 3 {
			t.Errorf("chart %d has %d colours", i, n)
		}
	}
	picture("light")
	axetest.Check(ctx, t, "light")
	// Drag across a part of the Gantt chart, in both directions.
	var before, after []float64
	const scales = `[gantt.scales.x.min, gantt.scales.x.max, gantt.scales.y.min, gantt.scales.y.max]`
	var box []float64
	do(chromedp.Evaluate(scales, &before),
		chromedp.Evaluate(`(() => { document.querySelector("#gantt").scrollIntoView(); const r = document.querySelector("#gantt .u-over").getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()`, &box))
	drag := func(fx, fy, tx, ty float64) chromedp.Action {
		at := func(x, y float64) (float64, float64) { return box[0] + x*box[2], box[1] + y*box[3] }
		x0, y0 := at(fx, fy)
		x1, y1 := at(tx, ty)
		return chromedp.Tasks{chromedp.MouseEvent("mouseMoved", x0, y0), chromedp.MouseEvent("mousePressed", x0, y0, chromedp.ButtonLeft, chromedp.ClickCount(1)),
			chromedp.MouseEvent("mouseMoved", (x0+x1)/2, (y0+y1)/2, chromedp.ButtonLeft), chromedp.MouseEvent("mouseMoved", x1, y1, chromedp.ButtonLeft),
			chromedp.MouseEvent("mouseReleased", x1, y1, chromedp.ButtonLeft, chromedp.ClickCount(1))}
	}
	var what string
	do(drag(.25, .25, .5, .75), chromedp.Sleep(300*time.Millisecond), chromedp.Evaluate(scales, &after), chromedp.Text("#what", &what))
	if !(after[1]-after[0] < .4*(before[1]-before[0]) && after[3]-after[2] < .7*(before[3]-before[2])) {
		t.Errorf("zoomed from %v to %v", before, after)
	}
	picture("zoomed")
	do(chromedp.Click(`//button[text()="by job"]`, chromedp.BySearch), chromedp.Evaluate(colours, &painted))
	if painted[0] < 3 {
		t.Errorf("by job: %d colours", painted[0])
	}
	picture("jobs")
	var light, dark, phone string
	const background = `getComputedStyle(document.body).backgroundColor`
	do(chromedp.Evaluate(background, &light), scheme("dark"), chromedp.Sleep(300*time.Millisecond), chromedp.Evaluate(background, &dark))
	if light == dark {
		t.Errorf("%s in light and in dark", light)
	}
	picture("dark")
	axetest.Check(ctx, t, "dark")
	var wide bool
	do(chromedp.EmulateViewport(390, 844), chromedp.Sleep(500*time.Millisecond), chromedp.Evaluate(`document.documentElement.scrollWidth > innerWidth`, &wide))
	if wide {
		t.Error("a phone has to scroll the page sideways")
	}
	picture("phone")
	// Without JavaScript: the tables, and no charts.
	var text string
	do(emulation.SetScriptExecutionDisabled(true), chromedp.Navigate("file://"+name), chromedp.Text("body", &text), chromedp.Evaluate(background, &phone))
	for _, want := range []string{"Charts need JavaScript", "Figures", "How this was made", outcomes[0].Name} {
		if !strings.Contains(text, want) {
			t.Errorf("without JavaScript %q is missing", want)
		}
	}
	if strings.Contains(text, "Drag to zoom") {
		t.Error("without JavaScript charts are promised")
	}
	mu.Lock()
	defer mu.Unlock()
	if len(said) > 0 {
		t.Errorf("the browser says: %q", said)
	}
}
