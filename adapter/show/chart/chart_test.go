package chart

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the charts in testdata")

var start = time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// steps are consecutive spans from a second on: nodes, seconds, nodes, seconds, …
func steps(from int, pairs ...int) []api.Span {
	var spans []api.Span
	for i := 0; i < len(pairs); i += 2 {
		spans = append(spans, api.Span{Step: i/2 + 1, Start: at(from), End: at(from + pairs[i+1]), Nodes: pairs[i]})
		from += pairs[i+1]
	}
	return spans
}

// open leaves the last span without an end: it continues.
func open(spans []api.Span) []api.Span {
	spans[len(spans)-1].End = time.Time{}
	return spans
}

// demo are jobs that grow, shrink, wait and have ended, at second 90.
func demo() []api.Job {
	return []api.Job{
		{ID: 4, Name: "warmup", User: "alice", State: "ended", EndState: "COMPLETED", Step: 2, Steps: 2,
			Past: steps(0, 3, 20, 1, 25)},
		{ID: 7, Name: "amr", User: "alice", State: "running", Step: 2, Steps: 3, Nodes: 5,
			Plan: steps(10, 2, 30, 5, 70, 1, 30), Past: open(steps(10, 2, 31, 5, 1))},
		{ID: 8, Name: "spectral-element solver", User: "bob", State: "waiting", Step: 1, Steps: 2, Nodes: 1,
			Plan: steps(50, 1, 60, 6, 40), Past: open(steps(50, 1, 1))},
		{ID: 11, Name: "größe|\x1b[31m", User: "carol", State: "queued", Steps: 2,
			Plan: steps(140, 2, 40, 8, 20)},
	}
}

// lent returns the demo with offers to its job that runs: one in each way.
func lent() []api.Job {
	jobs := demo()
	o := func(kind string, nodes, made, closed int, state string, enforced bool) api.Offer {
		one := api.Offer{Kind: kind, Nodes: nodes, Made: at(made), State: state, Enforced: enforced}
		if closed > 0 {
			one.Closed = at(closed)
		}
		return one
	}
	jobs[1].Offers = []api.Offer{o("grow", 3, 15, 22, "done", false), o("shrink", 12, 30, 45, "done", true), o("grow", 1, 55, 57, "declined", false), o("shrink", 2, 80, 0, "open", false)}
	jobs[2].Offers = []api.Offer{o("grow", 2, 60, 70, "done", false)}
	return jobs
}

func TestGolden(t *testing.T) {
	many := demo()
	for id := uint32(20); id < 40; id++ {
		many = append(many, api.Job{ID: id, Name: "filler", User: "dave", State: "queued", Steps: 1, Plan: steps(200, int(id), 60)})
	}
	others := []api.Span{{Start: at(20), End: at(70), Nodes: 1}, {Start: at(80), Nodes: 2}}
	for name, c := range map[string]struct {
		jobs []api.Job
		opts Options
	}{
		"plain":    {demo(), Options{Width: 100}},
		"stack":    {demo(), Options{Width: 100, Nodes: 8, Others: others}},
		"color":    {demo(), Options{Width: 100, Nodes: 8, Others: others, Color: true}},
		"ascii":    {demo(), Options{Width: 80, Nodes: 8, Others: others, ASCII: true}},
		"narrow":   {demo(), Options{Width: 44}},
		"compact":  {demo(), Options{Width: 100, Height: 16, Nodes: 8}},
		"many":     {many, Options{Width: 100, Height: 20, Nodes: 8}},
		"window":   {demo(), Options{Width: 80, From: at(100), To: at(200)}},
		"offers":   {lent(), Options{Width: 110, Nodes: 8}},
		"bound":    {lent(), Options{Width: 60, Height: 11, ASCII: true}},
		"big":      {many[3:10], Options{Width: 80, Nodes: 1000}},
		"ended":    {demo()[:1], Options{Width: 80, Nodes: 4}},
		"long ago": {[]api.Job{{ID: 1, Name: "old", User: "eve", State: "running", Step: 1, Steps: 2, Plan: steps(-900000, 1, 900100, 3, 200), Past: open(steps(-900000, 1, 1))}}, Options{}},
		"days":     {[]api.Job{{ID: 1, Name: "slow", User: "eve", State: "queued", Steps: 3, Plan: steps(3600, 1, 86400, 3, 2*86400, 2, 86400)}}, Options{}},
		"none":     {nil, Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Render(c.jobs, at(90), c.opts)
			file := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".txt")
			if *rewrite {
				must.OK(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want := must.Read(t, file)
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got; look, then rewrite with -rewrite):\n%s", file, diff)
			}
		})
	}
}

// TestWidest checks that the claimed width of a terminal is bounded.
func TestWidest(t *testing.T) {
	for line := range strings.Lines(Render(demo(), at(90), Options{Width: 1 << 40, Nodes: 8})) {
		if n := legible.Columns(strings.TrimSuffix(line, "\n")); n > maxWidth {
			t.Fatalf("a line of %d columns", n)
		}
	}
}

func TestNeverTooWide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opts := Options{
			Width:  rapid.IntRange(0, 200).Draw(t, "width"),
			Height: rapid.IntRange(0, 60).Draw(t, "height"),
			ASCII:  rapid.Bool().Draw(t, "ascii"),
			Nodes:  rapid.IntRange(0, 2000).Draw(t, "nodes"),
		}
		seconds := rapid.IntRange(-200000, 200000)
		spans := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) api.Span {
			s := api.Span{Start: at(seconds.Draw(t, "start")), Nodes: rapid.IntRange(0, 1500).Draw(t, "nodes")}
			if rapid.Bool().Draw(t, "closed") {
				s.End = at(seconds.Draw(t, "end"))
			}
			return s
		}), 0, 6)
		jobs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) api.Job {
			return api.Job{
				ID: rapid.Uint32().Draw(t, "id"), Name: rapid.String().Draw(t, "name"), User: rapid.String().Draw(t, "user"),
				State: rapid.SampledFrom([]string{"queued", "starting", "running", "waiting", "ended"}).Draw(t, "state"),
				Plan:  spans.Draw(t, "plan"), Past: spans.Draw(t, "past"),
				Offers: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) api.Offer {
					return api.Offer{Kind: rapid.SampledFrom([]string{"grow", "shrink"}).Draw(t, "kind"), Nodes: rapid.IntRange(0, 2000).Draw(t, "offered"), Made: at(seconds.Draw(t, "made")),
						Closed: at(seconds.Draw(t, "closed")), State: rapid.SampledFrom([]string{"open", "done", "declined", "failed"}).Draw(t, "became"), Enforced: rapid.Bool().Draw(t, "enforced")}
				}), 0, 4).Draw(t, "offers"),
			}
		}), 1, 20).Draw(t, "jobs")
		opts.Others = spans.Draw(t, "others")
		chart := Render(jobs, at(0), opts)
		width := opts.Width
		if width == 0 {
			width = defaultWidth
		}
		lines := strings.Split(strings.TrimSuffix(chart, "\n"), "\n")
		for _, line := range lines {
			if n := legible.Columns(line); n > max(width, minWidth) {
				t.Fatalf("a line of %d columns in a chart of %d:\n%s", n, width, chart)
			}
			if opts.ASCII && strings.ContainsFunc(line, func(r rune) bool { return r > '~' || r < ' ' }) {
				t.Fatalf("%q is not ASCII", line)
			}
		}
		if opts.Height >= 6 && len(lines) > opts.Height {
			t.Fatalf("%d lines in a chart of at most %d:\n%s", len(lines), opts.Height, chart)
		}
	})
}

func TestHeat(t *testing.T) {
	for _, c := range []struct {
		numbers []int
		most    int
		want    string
		ascii   string
	}{
		{[]int{0, 1, 5, 10, 99, -1}, 10, "·▁▄██·", ".:+@@."},
		{[]int{0, 3}, 0, "··", ".."},
		{nil, 4, "", ""},
		{[]int{1, 8}, 8, "▁█", ":@"},
	} {
		if got, ascii := Heat(c.numbers, c.most, false), Heat(c.numbers, c.most, true); got != c.want || ascii != c.ascii {
			t.Errorf("%v of %d: %q and %q, want %q and %q", c.numbers, c.most, got, ascii, c.want, c.ascii)
		}
	}
}
