package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata")

// noon is the time of all tests.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func after(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }

// cluster is a Reader.
type cluster struct {
	status api.Status
	jobs   []api.Job
	is     api.Cluster
	events []api.Event
	err    error
}

func (c *cluster) Status(context.Context) (api.Status, error)   { return c.status, c.err }
func (c *cluster) Cluster(context.Context) (api.Cluster, error) { return c.is, c.err }
func (c *cluster) Jobs(_ context.Context, _ bool) ([]api.Job, error) {
	return append([]api.Job{}, c.jobs...), c.err
}
func (c *cluster) Events(context.Context, api.EventQuery) ([]api.Event, error) {
	return c.events, nil
}
func (c *cluster) History(context.Context, api.HistoryQuery) (api.History, error) {
	return api.History{}, c.err
}
func (c *cluster) Job(_ context.Context, id uint32) (api.Job, error) {
	for _, j := range c.jobs {
		if j.ID == id {
			return j, c.err
		}
	}
	return api.Job{}, api.Unknown(id)
}

// small returns a cluster of eight nodes with a bit of everything.
func small() *cluster {
	c := &cluster{status: api.Status{Version: "v1", Cluster: "lab", SlurmVersion: "22.05.8", Strategy: "noX", Nodes: 8, Now: noon}}
	c.is = api.Cluster{Taken: noon, Others: []api.OtherJob{
		{ID: 7, Name: "stock", User: "bob", Account: "chem", Partition: "main", Start: after(-5), End: after(15), NodeList: "n[5-6]"},
		{NodeList: "n7", Start: noon},
	}, Reservations: []api.Reservation{
		{Name: "evo_12_2_1", Hold: true, Job: 12, Step: 2, Start: after(3), End: after(6), NodeList: "n[3-4]"},
		{Name: "maint", Start: after(10), End: after(12), NodeList: "n[1-8]"},
	}}
	for i := range 8 {
		c.is.Nodes = append(c.is.Nodes, api.Node{Name: fmt.Sprintf("n%d", i+1), State: "idle", Usable: i != 7, Partitions: []string{"main"}})
	}
	c.jobs = []api.Job{{ID: 12, Name: "amr", User: "alice", Account: "phys", Partition: "main", State: "running", Reason: "as planned", Drive: "merge", ExpandLimit: "1",
		Profile: "2@5m,4@5m", Step: 1, Steps: 2, Nodes: 2, NodeList: "n[1-2]", Submit: after(-3), Start: after(-2), End: after(8), NextChange: after(3), NextNodes: 4,
		Plan:       []api.Span{{Step: 1, Start: after(-2), End: after(3), Nodes: 2, NodeList: "n[1-2]"}, {Step: 2, Start: after(3), End: after(8), Nodes: 4, NodeList: "n[1-4]"}},
		Past:       []api.Span{{Step: 1, Start: after(-2), Nodes: 2, NodeList: "n[1-2]"}},
		Components: []api.JobComponent{{Name: "ocean", Profile: "1@5m,3@5m", Nodes: 1, NodeList: "n1"}, {Name: "atm", Profile: "1@10m", Nodes: 1, NodeList: "n2"}}}}
	c.events = []api.Event{{ID: 1, At: after(-2), Job: 12, Kind: "started", Text: "started on n[1-2]"}}
	return c
}

// hostile returns the same with what users and sites could write.
func hostile() *cluster {
	c := small()
	const evil = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>` + "\u202e\x1b[31m\n"
	c.jobs[0].Name, c.jobs[0].User, c.jobs[0].Account, c.jobs[0].Partition, c.jobs[0].Reason = evil, evil, evil, evil, "javascript:alert(1) "+evil
	c.jobs[0].NodeList, c.jobs[0].Drive, c.jobs[0].Components[0].Name, c.jobs[0].Components[1].NodeList = evil, evil, evil, evil
	c.jobs[0].Offers = []api.Offer{{Kind: evil, Why: evil, State: evil, NodeList: evil}}
	c.is.Others[0].Name, c.is.Others[0].User, c.is.Others[0].Account = evil, evil, evil
	c.is.Reservations[1].Name = evil
	c.is.Nodes[0].Name, c.is.Nodes[1].Partitions = evil, []string{"main", evil}
	c.status.Cluster, c.status.LastError, c.status.Strategy = evil, evil, evil
	c.events[0].Text = evil
	return c
}

func pageOf(r Reader, base string) http.Handler {
	p := Page{Base: base, Reader: func(*http.Request) (Reader, error) { return r, nil }}
	return p.Handler()
}

func get(t *testing.T, h http.Handler, address string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, address, nil))
	return w
}

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		must.OK(t, os.WriteFile(file, got, 0o644))
	}
	want := must.Read(t, file)
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got), -rewrite if it is meant:\n%s", name, d)
	}
}

// sums of files change with them; the pages stay as they are.
var sumOf = regexp.MustCompile(`\?v=[0-9a-f]+`)

func TestPages(t *testing.T) {
	for name, c := range map[string]*cluster{"small": small(), "hostile": hostile()} {
		for page, address := range map[string]string{"gantt": "/", "job": "/job?id=12"} {
			w := get(t, pageOf(c, "/"), address)
			if w.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", address, w.Code, w.Body)
			}
			golden(t, name+"-"+page+".html", sumOf.ReplaceAll(w.Body.Bytes(), []byte("?v=SUM")))
		}
	}
}

// TestOneAxis: charts of nodes, and nodes over time, show the same period, with the same times at the same places.
func TestOneAxis(t *testing.T) {
	for _, address := range []string{"/", "/?span=10m", "/?span=168h&at=1795000000", "/job?id=12"} {
		body := get(t, pageOf(small(), "/"), address).Body.String()
		_, body, _ = strings.Cut(body, `<svg class="axis"`)
		axis, _, _ := strings.Cut(body, "</svg>")
		data := regexp.MustCompile(`data-series="([^"]*)"`).FindStringSubmatch(body)
		var s series
		if len(data) != 2 {
			t.Fatalf("%s: no series", address)
		}
		must.OK(t, json.Unmarshal([]byte(html.UnescapeString(data[1])), &s))
		var want, got []string
		for _, m := range regexp.MustCompile(`<text x="([^"]*)" y="13">([^<]*)<`).FindAllStringSubmatch(axis, -1) {
			want = append(want, m[2]+" at "+m[1])
		}
		for _, m := range s.Marks {
			got = append(got, m.Text+" at "+percent(scale{time.Unix(s.From, 0), time.Unix(s.To, 0)}.x(time.Unix(m.At, 0))))
		}
		if len(got) < 2 || !slices.Equal(got, want) {
			t.Errorf("%s: the series has the times %q, the charts above it %q", address, got, want)
		}
	}
}

// TestGrowths checks that a job's page shows for each planned growth when it was promised, when the
// nodes came, how late that was, and why. Once the nodes are there, the plan equals the outcome, so
// this comes from the events.
func TestGrowths(t *testing.T) {
	c := small()
	j := &c.jobs[0]
	j.Profile, j.CPUFreq, j.Step, j.Steps = "2@5m,4@5m,6@5m", "2@5m,4@5m:low,6@5m", 2, 3
	came := after(-1).Add(30 * time.Second)
	j.Past = []api.Span{{Step: 1, Start: after(-10), End: came, Nodes: 2, NodeList: "n[1-2]"}, {Step: 2, Start: came, Nodes: 4, NodeList: "n[1-4]"}}
	j.Plan = []api.Span{{Step: 1, Start: after(-10), End: came, Nodes: 2}, {Step: 2, Start: came, End: after(5), Nodes: 4}, {Step: 3, Start: after(7), End: after(12), Nodes: 6}}
	event := func(at time.Time, kind, detail string) api.Event {
		return api.Event{At: at, Job: 12, Kind: kind, Detail: json.RawMessage(detail), Text: kind}
	}
	c.events = []api.Event{event(after(-10), "started", fmt.Sprintf(`{"step":1,"planned":%d}`, after(-10).Unix())), event(after(-5), "step ended", `{"step":1}`),
		event(after(-4), "kept back", `{}`), event(came, "step begun", fmt.Sprintf(`{"step":2,"planned":%d,"nodes":"n[1-4]"}`, after(-5).Unix())),
		event(noon, "delayed", fmt.Sprintf(`{"step":3,"why":"<b>node</b> n6 is down","was":%d}`, after(4).Unix()))}
	body := regexp.MustCompile(` data-label="[^"]*"`).ReplaceAllString(get(t, pageOf(c, "/"), "/job?id=12").Body.String(), "")
	for _, want := range []string{
		`<td>2 → 4</td><td>11:55:00</td><td>11:59:30</td>` + "\n" + `<td>4m30s</td><td>late</td><td>kept back</td>`,
		`<td>4 → 6</td><td>12:04:00</td><td>now planned for 12:07:00</td>` + "\n" + `<td>3m00s</td><td>late</td><td>&lt;b&gt;node&lt;/b&gt; n6 is down</td>`,
		`11:59:30 – now</td><td>4m30s late</td>`, // its start
		`<code>2@5m,4@5m:low,6@5m</code>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("it does not have %s:\n%s", want, body)
		}
	}
}

// TestRequeuedSteps checks that a job's page compares the plan with the steps since the last requeue, as the plan does not
// know of those before.
func TestRequeuedSteps(t *testing.T) {
	c := small()
	j := &c.jobs[0]
	j.Profile, j.Step, j.Steps = "2@5m,4@5m", 1, 2
	j.Past = []api.Span{{Step: 1, Start: after(-60), End: after(-55), Nodes: 2, NodeList: "n[1-2]"}, {Step: 2, Start: after(-55), End: after(-52), Nodes: 4, NodeList: "n[1-4]"}, {Step: 1, Start: after(-3), Nodes: 2, NodeList: "n[7-8]"}}
	j.Plan = []api.Span{{Step: 1, Start: after(-3), End: after(2), Nodes: 2}, {Step: 2, Start: after(2), End: after(7), Nodes: 4, NodeList: "n[5-8]"}}
	for _, e := range []struct {
		at     int
		kind   string
		detail string
	}{{-60, "started", `{"step":1,"planned":%d}`}, {-52, "requeued", `{"step":2}`}, {-3, "started", `{"step":1,"planned":%d}`}} {
		detail := strings.Replace(e.detail, "%d", strconv.FormatInt(after(e.at).Unix(), 10), 1)
		c.events = append(c.events, api.Event{At: after(e.at), Job: 12, Kind: e.kind, Detail: json.RawMessage(detail), Text: e.kind})
	}
	body := regexp.MustCompile(` data-label="[^"]*"`).ReplaceAllString(get(t, pageOf(c, "/"), "/job?id=12").Body.String(), "")
	for _, want := range []string{`11:57:00 – now</td><td>as planned</td>`, `<td>12:02:00 – 12:07:00</td><td>–</td><td></td>`} {
		if !strings.Contains(body, want) {
			t.Errorf("it does not have %s:\n%s", want, body)
		}
	}
}

// TestHostile: whatever is written in names, no page has an element, an attribute or an address of it.
func TestHostile(t *testing.T) {
	for _, address := range []string{"/", "/job?id=12", "/?user=<script>alert(1)</script>&account=%22onload=%22x", "/?span=<script>", "/job?id=<script>", "/<script>"} {
		body := get(t, pageOf(hostile(), "/"), address).Body.String()
		if body == "" {
			t.Errorf("%s: nothing", address)
		}
		for _, bad := range []string{"<script>", "<img", "onload=\"", "\u202e", "\x1b"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s has %q", address, bad)
			}
		}
	}
}

func TestHeaders(t *testing.T) {
	h := pageOf(small(), "/")
	for _, address := range []string{"/", "/job?id=12", "/job?id=99", "/style.css", "/nothing"} {
		w := get(t, h, address)
		if got := w.Header().Get("Content-Security-Policy"); got != policy || strings.Contains(got, "unsafe") {
			t.Errorf("%s: policy %q", address, got)
		}
		if w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: its type may be guessed", address)
		}
		if body := w.Body.String(); strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") && regexp.MustCompile(`(?i)\sstyle=|\son[a-z]+=|javascript:|(src|href|action)="(https?:)?//`).MatchString(body) {
			t.Errorf("%s needs what the policy forbids, or something from elsewhere", address)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x")))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// TestBase checks that below any path everything that a page refers to exists.
func TestBase(t *testing.T) {
	for _, base := range []string{"/", "/web/", "/node/login1/8080/", "web"} {
		h, seen := pageOf(small(), base), map[string]bool{}
		root := "/" + strings.Trim(base, "/")
		if root != "/" {
			w := get(t, h, root)
			to, err := (&url.URL{Path: root}).Parse(w.Header().Get("Location"))
			if err != nil || w.Code != http.StatusMovedPermanently || to.Path != root+"/" {
				t.Errorf("%s: %d to %v, %v", root, w.Code, to, err)
			}
			root += "/"
		}
		for _, page := range []string{root, root + "job?id=12"} {
			body := get(t, h, page).Body.String()
			links := regexp.MustCompile(`(?:href|src|action)="([^"#]*)`).FindAllStringSubmatch(body, -1)
			if len(links) < 5 {
				t.Fatalf("%s has %d links", page, len(links))
			}
			from, _ := url.Parse(page)
			for _, l := range links {
				to, err := from.Parse(strings.ReplaceAll(l[1], "&amp;", "&"))
				must.OK(t, err)
				if seen[to.String()] {
					continue
				}
				seen[to.String()] = true
				if w := get(t, h, to.String()); w.Code != http.StatusOK && !strings.HasSuffix(to.Path, "strategies") {
					t.Errorf("%s: %s leads to %s: %d", page, l[1], to, w.Code)
				}
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	for address, want := range map[string]int{"/job?id=99": 404, "/job": 400, "/job?id=-1": 400, "/?span=1s": 400, "/?span=forever": 400, "/?at=x": 400, "/?by=magic": 400,
		"/?page=-1": 400, "/?ended=perhaps": 400, "/?page=100000": 200, "/?row=100000": 200, "/?at=0": 200, "/?at=8000000000": 200, "/?span=8784h": 200, "/x": 404} {
		if w := get(t, pageOf(small(), "/"), address); w.Code != want {
			t.Errorf("%s: %d, want %d: %s", address, w.Code, want, w.Body)
		}
	}
	for err, want := range map[error]int{api.Errorf(api.ErrDenied, "who?"): 401, api.Errorf(api.ErrUnavailable, "not yet"): 503, io.ErrUnexpectedEOF: 500} {
		p := Page{Reader: func(*http.Request) (Reader, error) { return nil, err }}
		w := get(t, p.Handler(), "/")
		if w.Code != want || !strings.Contains(w.Body.String(), err.Error()) {
			t.Errorf("%v: %d %s", err, w.Code, w.Body)
		}
	}
}

// many returns a cluster with that many nodes and evolving jobs, a third of them running.
func many(nodes, jobs, others int) *cluster {
	c := small()
	c.is.Nodes, c.is.Others, c.jobs = nil, nil, nil
	for i := range nodes {
		c.is.Nodes = append(c.is.Nodes, api.Node{Name: fmt.Sprintf("n%04d", i), State: "idle", Usable: i%97 != 0, Partitions: []string{"main"}})
	}
	list := func(first, n int) string {
		return fmt.Sprintf("n[%04d-%04d]", first%nodes, min(first%nodes+n-1, nodes-1))
	}
	for i := range jobs {
		at := (i - jobs/3) / 4
		j := api.Job{ID: uint32(1000 + i), Name: fmt.Sprintf("application-%d", i), User: fmt.Sprintf("user%d", i%50), Account: "proj", Partition: "main", State: "queued",
			Reason: "planned", Profile: "4@30m,12@30m", Steps: 2, Drive: "merge", Start: after(at), End: after(at + 60), NextChange: after(at + 30), NextNodes: 12}
		j.Plan = []api.Span{{Step: 1, Start: after(at), End: after(at + 30), Nodes: 4, NodeList: list(i*7, 4)}, {Step: 2, Start: after(at + 30), End: after(at + 60), Nodes: 12, NodeList: list(i*7, 12)}}
		if at < 0 {
			j.State, j.Step, j.Nodes = "running", 1, 4
			j.Past = []api.Span{{Step: 1, Start: after(at), Nodes: 4, NodeList: list(i*7, 4)}}
		}
		c.jobs = append(c.jobs, j)
	}
	for i := range others {
		c.is.Others = append(c.is.Others, api.OtherJob{ID: uint32(500_000 + i), Name: "stock", User: "bob", Partition: "main", Start: after(-i % 300), End: after(1 + i%500), NodeList: list(i*3, 2)})
	}
	return c
}

// weigh returns a page's size in bytes, as sent and uncompressed.
func weigh(tb testing.TB, h http.Handler, address string) (travels, is int) {
	tb.Helper()
	r := httptest.NewRequest(http.MethodGet, address, nil)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	travels = w.Body.Len()
	if w.Header().Get("Content-Encoding") != "gzip" {
		return travels, travels
	}
	z, err := gzip.NewReader(bytes.NewReader(w.Body.Bytes()))
	must.OK(tb, err)
	n, err := io.Copy(io.Discard, z)
	must.OK(tb, err)
	return travels, int(n)
}

// TestBounded checks that the first page of 1,000 jobs on 1,000 nodes, with everything it needs, is
// at most 150 kB. With a hundred times as many, pages stay bounded in bytes and elements, and say
// what they leave out.
func TestBounded(t *testing.T) {
	h := pageOf(many(1000, 1000, 200), "/")
	page, raw := weigh(t, h, "/")
	all := page
	for name := range assets() {
		if !strings.HasSuffix(name, "LICENSE") {
			n, _ := weigh(t, h, "/"+name)
			all += n
		}
	}
	t.Logf("1,000 jobs, 1,000 nodes: page %d bytes (%d uncompressed), with its files %d", page, raw, all)
	if all > 150_000 {
		t.Errorf("it is %d bytes, want 150,000 at most", all)
	}
	h = pageOf(many(10_000, 100_000, 20_000), "/")
	for _, address := range []string{"/", "/?span=8784h", "/?ended=1&page=1999", "/?by=node&row=9000", "/?by=job&user=user7"} {
		page, raw = weigh(t, h, address)
		body := get(t, h, address).Body.String()
		elements := len(regexp.MustCompile(`<[a-z]`).FindAllStringIndex(body, -1))
		t.Logf("100,000 jobs, 10,000 nodes, %s: %d bytes (%d uncompressed), %d elements", address, page, raw, elements)
		if page > 150_000 || raw > 2*mostDrawn+200_000 || elements > 15_000 {
			t.Errorf("%s is not bounded", address)
		}
		if !strings.Contains(address, "by=job") && !strings.Contains(body, "further jobs are not drawn") || address == "/" && !strings.Contains(body, "more jobs") {
			t.Errorf("%s does not say what is left out", address)
		}
	}
}

func BenchmarkGantt(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		h := pageOf(many(min(n, 10_000), n, n/5), "/")
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				weigh(b, h, "/")
			}
		})
	}
}

func TestGate(t *testing.T) {
	g := &Gate{Secret: NewSecret()}
	h := g.Handler(pageOf(small(), "/"))
	for _, address := range []string{"/", "/?token=", "/?token=wrong", "/job?id=12"} {
		if w := get(t, h, address); w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), "amr") {
			t.Errorf("%s: %d", address, w.Code)
		}
	}
	w := get(t, h, "/?token="+g.Secret+"&span=1h0m0s")
	cookies := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "?span=1h0m0s" || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].Path != "" || strings.Contains(cookies[0].Value, g.Secret) {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.AddCookie(cookies[0])
	w = httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "amr") {
		t.Errorf("with the cookie: %d", w.Code)
	}
	if p := NewPath("/node/x/"); !regexp.MustCompile(`^/node/x/s/[A-Z2-7]{26}/$`).MatchString(p) || p == NewPath("/node/x/") {
		t.Errorf("the page is below %s", p)
	}
	if new(Gate).opens("") {
		t.Error("a gate without a secret is open")
	}
}

// TestConfig checks that htmx's configuration is JSON; otherwise it would fall back to what the
// policy forbids.
func TestConfig(t *testing.T) {
	body := get(t, pageOf(small(), "/"), "/").Body.String()
	found := regexp.MustCompile(`name="htmx-config" content='([^']*)'`).FindStringSubmatch(body)
	var config map[string]any
	if found == nil || json.Unmarshal([]byte(found[1]), &config) != nil || config["allowEval"] != false || config["includeIndicatorStyles"] != false {
		t.Errorf("htmx gets %q", found)
	}
}

// TestSidecarsClock checks that now is the sidecar's clock, in its zone, wherever the page is made.
func TestSidecarsClock(t *testing.T) {
	c := small()
	for at, want := range map[time.Time]string{
		noon: "Fri 20 Nov 12:00:00 UTC",
		noon.Add(time.Minute).In(time.FixedZone("EAT", 3*3600)): "Fri 20 Nov 15:01:00 EAT",
	} {
		c.status.Now = at
		if body := get(t, pageOf(c, "/"), "/").Body.String(); !strings.Contains(body, want) {
			t.Errorf("it is not %s: %s", want, body)
		}
	}
}

// TestWindow checks that only the address holds the filters by user, account, and partition, the
// zoom, and whether the page follows the present.
func TestWindow(t *testing.T) {
	c := small()
	other := c.jobs[0]
	other.ID, other.Name, other.User, other.Account, other.Partition = 13, "climate", "carol", "geo", "big"
	c.jobs = append(c.jobs, other)
	c.is.Nodes[7].Partitions = []string{"big"}
	h := pageOf(c, "/")
	for address, want := range map[string]struct{ sees, not string }{
		"/":                         {"13 climate", "follow now"},
		"/?user=carol":              {"13 climate", "12 amr"},
		"/?account=phys":            {"12 amr", "13 climate"},
		"/?partition=big":           {"13 climate", "12 amr"},
		"/?partition=big&by=node":   {">n8<", ">n1<"},
		"/?user=nobody":             {"No evolving jobs of these", "13 climate"},
		"/?by=node":                 {"By node", "By job"},
		"/?by=job":                  {"By job", "By node"},
		"/?at=1763640000&span=1h0m": {"follow now", "follows now"},
		"/?span=1h0m0s":             {`aria-current="true">1 h`, "follow now"},
	} {
		body := get(t, h, address).Body.String()
		if !strings.Contains(body, want.sees) || strings.Contains(body, want.not) {
			t.Errorf("%s: it should have %q, and not %q: %s", address, want.sees, want.not, body)
		}
	}
}

// TestHeldNodes: a node that two holds have at a time is one node, on both pages and however the holds lie.
func TestHeldNodes(t *testing.T) {
	c := small()
	c.is.Reservations = []api.Reservation{
		{Name: "evo_12_2_1", Hold: true, Job: 12, Step: 2, Start: after(3), End: after(6), NodeList: "n[3-7]"},
		{Name: "evo_12_3_1", Hold: true, Job: 12, Step: 3, Start: after(4), End: after(9), NodeList: "n[3-7]"},
		{Name: "evo_12_4_1", Hold: true, Job: 12, Step: 4, Start: after(4), End: after(5), NodeList: "n[6-8]"},
		{Name: "maint", Start: after(4), End: after(5), NodeList: "n1"},
	}
	for _, address := range []string{"/", "/job?id=12"} {
		page := get(t, pageOf(c, "/"), address).Body.String()
		if want := "held: at most 6 nodes"; !strings.Contains(page, want) {
			t.Errorf("%s says no %q: %q", address, want, regexp.MustCompile(`held: [^;"<]*`).FindString(page))
		}
	}
	s := clusterSeries(scale{noon, after(10)}, noon, []*api.Job{&c.jobs[0]}, c.is)
	for minute, want := range []int{0, 0, 0, 5, 6, 5, 5, 5, 5, 0} {
		if got := s.Lines[1].Nodes[minute*points/10+points/20]; got != want {
			t.Errorf("in minute %d %d nodes are held, want %d", minute, got, want)
		}
	}
}

// TestLinks checks that each page leads to the pages of other clusters, without its own address, which is a secret.
func TestLinks(t *testing.T) {
	p := Page{Base: "/", Clusters: []string{"beta=https://head-beta/?a=1&b=\"<", "gamma=javascript:alert(1)"}, Reader: func(*http.Request) (Reader, error) { return small(), nil }}
	for _, page := range []string{"/", "/job?id=12", "/history"} {
		body := get(t, p.Handler(), page).Body.String()
		if !strings.Contains(body, `<a href="https://head-beta/?a=1&amp;b=%22%3c" rel="noreferrer">beta</a>`) || strings.Contains(body, "gamma") {
			t.Errorf("%s: %s", page, body[:min(len(body), 1500)])
		}
	}
}
