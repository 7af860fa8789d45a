//go:build browser

package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/evoslurm/evoslurm/adapter/internal/axetest"
	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

var shots = flag.String("shots", "", "folder to put pictures of the page into")

// steps is a script that lasts so many seconds in each step.
const steps = `#!/bin/bash
sleep $1
for s in "${@:2}"; do eval "$(evosctl next)" || exit; sleep $s; done
`

// browser is a tab of headless Chromium, and what it has said.
type browser struct {
	t    *testing.T
	ctx  context.Context
	mu   sync.Mutex
	said []string
}

func newBrowser(t *testing.T) *browser {
	alloc, stop := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1200, 900), chromedp.WSURLReadTimeout(2*time.Minute))...)
	t.Cleanup(stop)
	ctx, stop := chromedp.NewContext(alloc)
	t.Cleanup(stop)
	b := &browser{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, func(e any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := e.(type) {
		case *runtime.EventConsoleAPICalled:
			b.said = append(b.said, fmt.Sprint("console: ", e.Type))
		case *runtime.EventExceptionThrown:
			b.said = append(b.said, e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			b.said = append(b.said, e.Entry.Text+" "+e.Entry.URL)
		}
	})
	if err := chromedp.Run(ctx); err != nil { // the browser lives as long as this context
		t.Fatal(err)
	}
	return b
}

func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// quiet sees that the browser has said nothing, of policies that were violated for instance.
func (b *browser) quiet(when string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.said) > 0 {
		b.t.Errorf("%s the browser says %q", when, b.said)
	}
	b.said = nil
}

func (b *browser) picture(name string) {
	b.t.Helper()
	var png []byte
	b.do(chromedp.FullScreenshot(&png, 100))
	if *shots != "" {
		if err := os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o644); err != nil {
			b.t.Error(err)
		}
	}
}

// open checks the accessibility of the page: axe-core must find nothing serious.
func (b *browser) open(name string) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	axetest.Check(ctx, b.t, name)
}

func scheme(name string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}})
}

// TestPageBrowser checks the page of a live cluster. A signed-in user sees what runs and what is
// planned, in light and dark, on a phone, and without JavaScript. The page updates without flicker,
// survives a sleep and an absent sidecar, fetches nothing from elsewhere, and is accessible.
func TestPageBrowser(t *testing.T) {
	s := newSite(t, slurmtest.Options{Nodes: 8, Accounting: true, PermitJobExpansion: true}, nil)
	if _, errs, err := s.As(0, "evosqueue"); err != nil { // it is there
		t.Fatal(errs)
	}
	s.stop(syscall.SIGTERM)
	address, err := rig.FreeAddress()
	s.must(err)
	const token = "a-token-of-the-test-0123456789"
	s.must(os.WriteFile(s.Dir+"/web.tokens", []byte("root "+token+"\n"), 0o600))
	conf, err := os.OpenFile(s.Dir+"/evoslurm.yaml", os.O_APPEND|os.O_WRONLY, 0)
	s.must(err)
	fmt.Fprintf(conf, "web:\n  listen: %s\n  base: /pun/evo/\n  tokens: %s/web.tokens\n", address, s.Dir)
	s.must(conf.Close())
	s.start()
	base := "http://" + address + "/pun/evo/"

	script := s.script("steps.sh", steps)
	root := func(name string, args ...string) {
		t.Helper()
		if out, err := s.Cluster.Run(t.Context(), slurmtest.Root, name, args...); err != nil {
			t.Fatal(err, out)
		}
	}
	root("scontrol", "create", "reservation", "reservationname=maintenance", "starttime=now+15minutes", "duration=3", "nodes=n[7-8]", "users=root", "flags=maint,ignore_jobs")
	id := s.submit("--job-name=ocean", "--profile=2@1m,4@4m,1@3m", "--time=12", script, "60", "600")
	if _, errs, err := s.As(1, "sbatch", "--job-name=render", "--nodes=2", "--exclusive", "--time=6", "--output=/dev/null", "--wrap=sleep 330"); err != nil {
		t.Fatal(errs)
	}
	s.submit("--job-name=mesh", "--profile=1@2m,3@3m,5@4m", "--time=12", script, "120", "180", "600")
	s.submit("--job-name=assimilate", "--profile=3@3m,6@2m", "--time=8", script, "180", "600")

	b := newBrowser(t)
	b.do(scheme("light"), chromedp.Navigate(base+"?by=node"), chromedp.WaitVisible(`.signin`))
	b.mu.Lock()
	b.said = nil // that it is not authorised
	b.mu.Unlock()
	b.open("sign in")
	signIn := func() { // each session has its own path
		b.do(chromedp.SendKeys(`input[name="token"]`, token), chromedp.Click(`.signin button`), chromedp.WaitVisible(".nodes"),
			chromedp.Evaluate(`location.href.replace(/[^/]*$/, "")`, &base))
	}
	signIn()
	b.quiet("signed in")
	if *shots != "" { // with a past
		time.Sleep(100 * time.Second)
		b.do(chromedp.Navigate(base+"?span=30m0s"), chromedp.WaitVisible(".nodes"))
		b.picture("page")
	}
	s.submit("--job-name=<script>alert(1)</script>", "--profile=4@4m,6@5m", "--time=20", script, "600")
	for deadline := time.Now().Add(patience); ; time.Sleep(300 * time.Millisecond) {
		if out, _, _ := s.As(0, "evosqueue", "-h", "-o", "%j"); strings.Contains(out, "<script>") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the job is not known")
		}
	}
	var paint float64
	var strangers []string
	var bytes int
	b.do(chromedp.Navigate(base), chromedp.WaitVisible(".nodes"),
		chromedp.Poll(`performance.getEntriesByName("first-contentful-paint").length > 0`, nil),
		chromedp.Evaluate(`performance.getEntriesByName("first-contentful-paint")[0].startTime`, &paint),
		chromedp.Evaluate(`performance.getEntriesByType("resource").map(r => r.name).filter(n => !n.startsWith(location.origin + "/pun/evo/"))`, &strangers),
		chromedp.Evaluate(`performance.getEntriesByType("navigation").concat(performance.getEntriesByType("resource")).reduce((n, r) => n + r.encodedBodySize, 0)`, &bytes))
	t.Logf("first paint after %.0f ms, %d bytes in all", paint, bytes)
	if len(strangers) > 0 {
		t.Errorf("it asks others: %q", strangers)
	}
	var body, light, dark string
	const background = `getComputedStyle(document.body).backgroundColor`
	b.do(chromedp.Text("body", &body), chromedp.Evaluate(background, &light))
	for _, want := range []string{"ocean", "mesh", "<script>alert(1)</script>", "Sign out"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not on the page: %s", want, body)
		}
	}
	b.picture("light")
	b.open("light")
	b.do(scheme("dark"), chromedp.Evaluate(background, &dark))
	if light == dark {
		t.Errorf("%s in light and in dark", light)
	}
	b.picture("dark")
	b.open("dark")

	// It follows: what changes is put in place, the page stays.
	b.do(chromedp.Evaluate(`window.stays = true; window.blank = 0; window.swaps = 0; scrollTo(0, 50); window.at = scrollY;
		new MutationObserver(() => { if (!document.querySelector("#live h1")) blank++; else swaps++; }).observe(document.body, {childList: true}); 0`, nil),
		chromedp.Poll(`swaps > 0 && window.stays`, nil, chromedp.WithPollingTimeout(patience)))
	var blank int
	var moved float64
	b.do(chromedp.Evaluate(`blank`, &blank), chromedp.Evaluate(`scrollY - at`, &moved))
	if blank > 0 || moved != 0 {
		t.Errorf("an update: %d times blank, scrolled by %v", blank, moved)
	}
	// A field in use is left alone.
	var typed string
	b.do(chromedp.SendKeys(`input[name="user"]`, "no"), chromedp.Sleep(7*time.Second), chromedp.Value(`input[name="user"]`, &typed))
	if typed != "no" {
		t.Errorf("while somebody types it becomes %q", typed)
	}
	b.do(chromedp.Evaluate(`document.activeElement.blur(), swaps = 0`, nil))
	// An invisible page fetches nothing; once it is visible again, it is updated.
	var meanwhile int
	const seen = `Object.defineProperty(document, "hidden", {configurable: true, value: %t}), swaps = 0, document.dispatchEvent(new Event("visibilitychange")), 0`
	b.do(chromedp.Evaluate(fmt.Sprintf(seen, true), nil), chromedp.Sleep(time.Second), chromedp.Evaluate(`swaps = 0`, nil), chromedp.Sleep(7*time.Second), chromedp.Evaluate(`swaps`, &meanwhile),
		chromedp.Evaluate(fmt.Sprintf(seen, false), nil), chromedp.Poll(`swaps > 0`, nil, chromedp.WithPollingTimeout(patience)))
	if meanwhile > 0 {
		t.Errorf("while nobody looked it was fetched %d times", meanwhile)
	}
	b.quiet("all the while")
	// The sidecar is away, and comes back. It has forgotten the session.
	s.stop(syscall.SIGTERM)
	b.do(chromedp.WaitVisible("#stale"))
	s.start()
	b.do(chromedp.WaitVisible(".signin"))
	signIn()
	b.mu.Lock()
	b.said = nil // that there was no answer
	b.mu.Unlock()

	// A job's page, strategies, the overview, a filter; all of it on a phone.
	for name, address := range map[string]string{"job": "job?id=" + id, "strategies": "strategies", "overview": "overview", "filtered": "?user=" + s.Cluster.Users()[1].Name + "&span=10m0s&by=node", "cluster": ""} {
		for _, color := range []string{"light", "dark"} {
			b.do(scheme(color), chromedp.EmulateViewport(1200, 900), chromedp.Navigate(base+address), chromedp.WaitVisible("#live h1"))
			b.open(name + " " + color)
			b.picture(name + "-" + color)
		}
		// The chart is redrawn once the page knows its new size; then nothing scrolls sideways.
		b.do(chromedp.EmulateViewport(390, 844), chromedp.Poll(`document.documentElement.scrollWidth <= innerWidth`, nil, chromedp.WithPollingTimeout(patience)))
		b.picture(name + "-phone")
	}
	// Without JavaScript it says the same, and its links and forms work.
	b.do(emulation.SetScriptExecutionDisabled(true), chromedp.EmulateViewport(1200, 900), scheme("light"), chromedp.Navigate(base), chromedp.Text("body", &body))
	for _, want := range []string{"ocean", "mesh", "By node", "planned"} {
		if !strings.Contains(body, want) {
			t.Errorf("without JavaScript %q is missing", want)
		}
	}
	b.do(chromedp.Click(`a[href*="by=job"]`), chromedp.WaitReady("#jobs"), chromedp.SendKeys(`input[name="user"]`, "nobody-at-all"), chromedp.Click(".filter button"),
		chromedp.WaitVisible(`//p[contains(text(), "No evolving jobs of these")]`, chromedp.BySearch), chromedp.Click(`form[action="signout"] button`), chromedp.WaitVisible(`.signin`))
}
