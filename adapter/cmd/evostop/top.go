package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/show/chart"
	"github.com/evoslurm/evoslurm/adapter/show/display"
	"github.com/evoslurm/evoslurm/slurmctl"
)

const keysHelp = `Keys, as in top and turm:
  q            quit (^C, too)
  up, down, j, k, PgUp, PgDn, Home, End   select another job; scroll in a text
  Enter        show the job's details; Esc, Backspace: go back
  g, Tab       switch between the chart of all jobs and the queue
  u            show only one user's jobs (empty: all users)
  o            change the order: by number, user, or next change
  R            reverse the order
  a            show or hide ended jobs
  r            show waiting tasks of an array on one line, or each on its own
  c            cancel the job, after the answer y
  d, s         set the seconds between two updates
  m            show the next cluster, with --clusters
  space        update now
  h, ?         show these keys`

// options holds the command line's options.
type options struct {
	delay      time.Duration
	user       string
	all, gantt bool
	ascii      bool
}

// source is the source of jobs: the sidecar.
type source interface {
	Jobs(ctx context.Context, all bool) ([]api.Job, error)
	Job(ctx context.Context, id uint32) (api.Job, error)
	Status(ctx context.Context) (api.Status, error)
	Cluster(ctx context.Context) (api.Cluster, error)
	Events(ctx context.Context, q api.EventQuery) ([]api.Event, error)
}

// canceller is Slurm, which cancels jobs in the user's name, or says why it does not.
type canceller interface {
	Cancel(ctx context.Context, ids ...slurmctl.JobID) error
}

// orders lists the orders of the queue.
var orders = []struct {
	name string
	less func(a, b api.Job) int
}{
	{"number", api.CompareJobs},
	{"user", func(a, b api.Job) int { return cmp.Or(cmp.Compare(a.User, b.User), api.CompareJobs(a, b)) }},
	{"next change", func(a, b api.Job) int {
		return cmp.Or(compareTimes(a.NextChange, b.NextChange), api.CompareJobs(a, b))
	}},
}

// compareTimes sorts unknown times last.
func compareTimes(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		return map[bool]int{true: 1, false: -1}[a.IsZero()]
	}
	return a.Compare(b)
}

// place is a cluster whose jobs can be shown.
type place struct {
	cluster string
	from    source
	slurm   canceller
}

// top is the screen and its contents. Only the event loop uses it, except look.
type top struct {
	options
	place          // shown
	places []place // the user can choose among these
	shown  int     // which it is
	app    *tview.Application
	now    func() time.Time

	pages *tview.Pages // queue, gantt, job, help
	head  *tview.TextView
	foot  *tview.TextView
	ask   *tview.InputField
	queue *tview.Table
	texts map[string]*tview.TextView
	body  *tview.Flex

	order    int
	reversed bool
	jobs     []api.Job      // shown
	lines    []display.Line // of the queue
	apart    bool           // a line for each waiting task of an array
	seen     view
	again    chan struct{} // to look at once
	job      uint32        // whose details are shown
	said     string        // what became of a cancellation
}

// view is one look at the sidecar.
type view struct {
	jobs   []api.Job
	status api.Status
	others []api.OtherJob // for the chart
	events []api.Event    // of the job whose details are shown
	of     uint32
	place  int // of top.places
	err    error
	at     time.Time
}

func newTop(places []place, o options) *top {
	t := &top{options: o, place: places[0], places: places, app: tview.NewApplication(), now: time.Now, again: make(chan struct{}, 1), texts: map[string]*tview.TextView{}}
	plain := tcell.StyleDefault
	tview.Styles.PrimitiveBackgroundColor, tview.Styles.PrimaryTextColor = tcell.ColorDefault, tcell.ColorDefault
	t.head, t.foot = tview.NewTextView().SetWrap(false), tview.NewTextView().SetWrap(false)
	t.foot.SetText("q quit  Enter details  g chart  u user  o order  a ended  c cancel  h help").SetTextStyle(plain.Reverse(true))
	t.queue = tview.NewTable().SetFixed(1, 0).SetSelectable(true, false).SetSelectedStyle(plain.Reverse(true))
	t.queue.SetSelectedFunc(func(row, _ int) {
		if row > 0 && row <= len(t.lines) {
			t.job = t.lines[row-1].ID
			t.show("job")
		}
	})
	t.pages = tview.NewPages().AddPage("queue", t.queue, true, true)
	for _, name := range []string{"gantt", "job", "help"} {
		t.texts[name] = tview.NewTextView().SetWrap(name != "gantt").SetDynamicColors(name == "gantt")
		t.pages.AddPage(name, t.texts[name], true, false)
	}
	t.texts["help"].SetText(keysHelp)
	t.body = tview.NewFlex().SetDirection(tview.FlexRow).AddItem(t.head, 2, 0, false).AddItem(t.pages, 0, 1, true).AddItem(t.foot, 1, 0, false)
	t.app.SetRoot(t.body, true).SetInputCapture(t.key)
	if t.gantt {
		t.show("gantt")
	}
	return t
}

// run shows the jobs on a screen until the user or ctx ends it.
func (t *top) run(ctx context.Context, screen tcell.Screen) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t.app.SetScreen(screen)
	context.AfterFunc(ctx, t.app.Stop)
	go t.watch(ctx)
	return t.app.Run()
}

// watch looks at the sidecar again and again.
func (t *top) watch(ctx context.Context) {
	for {
		var all, gantt bool
		var from source
		var shown int
		var job uint32
		var delay time.Duration
		t.app.QueueUpdate(func() {
			page, _ := t.pages.GetFrontPage()
			all, gantt, job, delay, from, shown = t.all, page == "gantt", t.job, t.delay, t.from, t.shown
		})
		v := t.look(ctx, from, all, gantt, job)
		v.place = shown
		if ctx.Err() != nil {
			return
		}
		t.app.QueueUpdateDraw(func() { t.take(v) })
		select {
		case <-ctx.Done():
			return
		case <-t.again:
		case <-time.After(delay):
		}
	}
}

const (
	patience    = 3 * time.Second  // how long the sidecar may be away before this is shown
	scancelTime = 30 * time.Second // how long Slurm may take to cancel a job
)

func (t *top) look(ctx context.Context, from source, all, gantt bool, job uint32) view {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v := view{at: t.now(), of: job}
	if v.status, v.err = from.Status(ctx); v.err != nil {
		return v
	}
	if gantt {
		cluster, err := from.Cluster(ctx)
		if v.others = cluster.Others; err != nil && !errors.Is(err, api.ErrNotFound) && !errors.Is(err, api.ErrUnavailable) { // an older sidecar, or a young one
			v.err = err
			return v
		}
	}
	if v.jobs, v.err = from.Jobs(ctx, all); v.err != nil || job == 0 {
		return v
	}
	if i := slices.IndexFunc(v.jobs, func(j api.Job) bool { return j.ID == job }); i >= 0 { // in a list it may be without its plan
		if j, err := from.Job(ctx, job); err == nil {
			v.jobs[i] = j
		}
	}
	v.events, v.err = from.Events(ctx, api.EventQuery{Job: job})
	return v
}

// next shows the next cluster.
func (t *top) next(page string) {
	if len(t.places) < 2 {
		return
	}
	t.shown = (t.shown + 1) % len(t.places)
	t.place, t.job, t.said, t.seen = t.places[t.shown], 0, "", view{}
	if page == "job" {
		page = "queue"
	}
	t.show(page)
}

// take shows a new view. If a query failed, it keeps the last view and says so.
func (t *top) take(v view) {
	if v.place != t.shown { // another cluster was chosen meanwhile
		return
	}
	if v.err != nil {
		t.seen.err = v.err
	} else {
		t.seen = v
	}
	t.draw()
}

func (t *top) show(page string) {
	t.pages.SwitchToPage(page)
	t.draw()
	t.lookNow()
}

func (t *top) lookNow() {
	select {
	case t.again <- struct{}{}:
	default:
	}
}

// which names the cluster that is shown.
func (t *top) which() string {
	name := cmp.Or(t.seen.status.Cluster, t.cluster)
	if len(t.places) > 1 {
		name += fmt.Sprintf(" (%d of %d)", t.shown+1, len(t.places))
	}
	return name
}

// draw writes the last view onto the front page.
func (t *top) draw() {
	v, now := t.seen, t.now()
	counts := map[string]int{}
	used := 0
	t.jobs = t.jobs[:0]
	for _, j := range v.jobs {
		counts[j.State]++
		used += j.Nodes
		if t.user == "" || t.user == j.User || t.user == strconv.FormatUint(uint64(j.UID), 10) {
			t.jobs = append(t.jobs, j)
		}
	}
	slices.SortFunc(t.jobs, func(a, b api.Job) int {
		c := orders[t.order].less(a, b)
		if t.reversed {
			return -c
		}
		return c
	})
	nodes := fmt.Sprintf("%d nodes, %d", v.status.Nodes, used)
	if v.status.Nodes == 0 { // Slurm shows none to users
		nodes = fmt.Sprintf("%d nodes", used)
	}
	// Two lines of no more than 80 columns, the width of a terminal as it opens.
	head := fmt.Sprintf("evostop %s  %s, %s of evolving jobs; strategy %s\n", now.Format("15:04:05"), t.which(), nodes, v.status.Strategy)
	how := fmt.Sprintf("%d running, %d waiting, %d queued; ", counts["running"]+counts["starting"], counts["waiting"]+counts[api.Suspended], counts["queued"])
	switch {
	case v.err != nil:
		head += fmt.Sprintf("No news: %v. This is what was seen at %s.", v.err, v.at.Format("15:04:05"))
	case t.said != "":
		head += t.said
	case t.user != "":
		head += how + "jobs of " + t.user + ", by " + orders[t.order].name
	default:
		head += how + "by " + orders[t.order].name
	}
	t.head.SetText(t.printable(head))
	_, _, width, height := t.pages.GetRect()
	switch page, _ := t.pages.GetFrontPage(); page {
	case "queue":
		t.drawQueue(now)
	case "gantt":
		view := t.texts["gantt"]
		view.Clear()
		fmt.Fprint(tview.ANSIWriter(view), tview.Escape(chart.Render(t.jobs, now, chart.Options{Width: width, Height: height, Color: true, ASCII: t.ascii, Nodes: v.status.Nodes, Others: chart.Others(v.others, now)})))
	case "job":
		t.texts["job"].SetText(t.details(v))
	}
}

var columns = []string{"JOBID", "USER", "NAME", "PARTITION", "STATE", "STEP", "NODES", "NEXT", "AT", "END", "REASON"}

func (t *top) drawQueue(now time.Time) {
	row, _ := t.queue.GetSelection()
	var chosen uint32
	if cell := t.queue.GetCell(row, 0); row > 0 && cell != nil {
		chosen, _ = cell.GetReference().(uint32)
	}
	t.queue.Clear()
	for c, title := range columns {
		t.queue.SetCell(0, c, tview.NewTableCell(title).SetSelectable(false).SetAttributes(tcell.AttrBold))
	}
	t.queue.Select(1, 0)
	t.lines = display.Fold(t.jobs, t.apart)
	for i, l := range t.lines {
		for c, text := range cells(l, now) {
			t.queue.SetCell(i+1, c, tview.NewTableCell(tview.Escape(t.printable(text))).SetReference(l.ID))
		}
		if l.ID == chosen {
			t.queue.Select(i+1, 0)
		}
	}
}

func cells(j display.Line, now time.Time) []string {
	clock := func(at time.Time) string {
		switch {
		case at.IsZero():
			return "-"
		case at.Sub(now).Abs() < 20*time.Hour:
			return at.In(now.Location()).Format("15:04:05")
		}
		return at.In(now.Location()).Format("01-02 15:04")
	}
	next := "-"
	if !j.NextChange.IsZero() {
		next = fmt.Sprintf("%+d", j.NextNodes-j.Nodes)
		if j.NextNodes == 0 {
			next = "end"
		}
	}
	return []string{j.Label(), j.User, legible.Cut(j.Name, 16, "+"), j.Partition, j.State, fmt.Sprintf("%d/%d", j.Step, j.Steps),
		strconv.Itoa(j.Nodes), next, clock(j.NextChange), clock(j.End), j.Reason}
}

// printable returns what a terminal may get of users' texts.
func (t *top) printable(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = legible.Printable(line, t.ascii)
	}
	return strings.Join(lines, "\n")
}

// details returns all about the job that was chosen.
func (t *top) details(v view) string {
	i := slices.IndexFunc(v.jobs, func(j api.Job) bool { return j.ID == t.job })
	if i < 0 {
		return fmt.Sprintf("Job %d is not there (any more); a shows ended jobs.", t.job)
	}
	j := v.jobs[i]
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s%s\n", name, legible.Printable(fmt.Sprintf(format, args...), t.ascii))
	}
	at := func(at time.Time) string { return display.SlurmTime(at, v.at, "") }
	line("Job", "%s %s", j.Label(), j.Name)
	if j.Array != 0 {
		line("JobID", "%d", j.ID)
	}
	line("User", "%s  account %s  partition %s", j.User, j.Account, j.Partition)
	line("State", "%s %s  step %d of %d, %s %s", j.State, j.EndState, j.Step, j.Steps, display.Nodes(j.Nodes), j.NodeList)
	line("Reason", "%s", cmp.Or(j.Reason, "-"))
	line("Requested", "%s  expand limit %s  drive mode %s", j.Profile, j.ExpandLimit, j.Drive)
	for _, c := range j.Components {
		line("Component", "%s  %s  now %s %s", c.Name, c.Profile, display.Nodes(c.Nodes), c.NodeList)
	}
	line("Submitted", "%s", at(j.Submit))
	spans := func(title string, all []api.Span) {
		for _, s := range all {
			end := at(s.End)
			if day, _, _ := strings.Cut(at(s.Start), "T"); s.End.IsZero() {
				end = "now"
			} else {
				end = strings.TrimPrefix(end, day+"T")
			}
			line(title, "step %d  %s to %s  %s %s", s.Step, at(s.Start), end, display.Nodes(s.Nodes), s.NodeList)
			title = ""
		}
	}
	spans("Planned", j.Plan)
	spans("Actual", j.Past)
	if v.of == j.ID {
		for k, e := range v.events {
			line(map[bool]string{true: "Events"}[k == 0], "%s  %s", at(e.At), e.Text)
		}
	}
	return b.String()
}

// key handles a key; it returns nil if the event needs no further handling.
func (t *top) key(e *tcell.EventKey) *tcell.EventKey {
	if t.ask != nil { // typed characters are an answer
		return e
	}
	page, _ := t.pages.GetFrontPage()
	t.said = ""
	switch e.Key() {
	case tcell.KeyEscape, tcell.KeyBackspace, tcell.KeyBackspace2:
		t.job = 0
		t.show("queue")
		return nil
	case tcell.KeyTab:
		t.other(page)
		return nil
	case tcell.KeyRune:
	default:
		return e
	}
	switch e.Rune() {
	case 'q', 'Q':
		if page == "help" || page == "job" {
			t.job = 0
			t.show("queue")
			return nil
		}
		t.app.Stop()
	case 'g':
		t.other(page)
	case 'h', '?':
		t.show("help")
	case 'a':
		t.all = !t.all
		t.lookNow()
	case 'o':
		t.order = (t.order + 1) % len(orders)
		t.draw()
	case 'r':
		t.apart = !t.apart
		t.draw()
	case 'R':
		t.reversed = !t.reversed
		t.draw()
	case 'm':
		t.next(page)
	case ' ':
		t.lookNow()
	case 'u':
		t.question("jobs of user (nothing: all): ", func(text string) string {
			t.user = strings.TrimSpace(text)
			return ""
		})
	case 'c':
		t.cancel(page)
	case 'd', 's':
		t.question("seconds between two looks: ", func(text string) string {
			seconds, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil || seconds < 0.5 || seconds > 3600 {
				return "want 0.5 to 3600 seconds"
			}
			t.delay = time.Duration(seconds * float64(time.Second))
			return ""
		})
	default:
		return e
	}
	return nil
}

// cancel asks whether to cancel the selected job, and lets Slurm do it.
func (t *top) cancel(page string) {
	id := t.job
	if row, _ := t.queue.GetSelection(); page == "queue" && row > 0 && row <= len(t.lines) {
		id = t.lines[row-1].ID
	}
	i := slices.IndexFunc(t.seen.jobs, func(j api.Job) bool { return j.ID == id })
	if i < 0 || page != "queue" && page != "job" {
		return
	}
	j := t.seen.jobs[i]
	if j.ArrayRest != "" { // scancel would also take the tasks that run
		t.said = fmt.Sprintf("The tasks %s wait in the array's record: cancel them with scancel.", j.Label())
		t.draw()
		return
	}
	if k, ok := t.slurm.(interface {
		SeeTask(id, array slurmctl.JobID, number uint32)
	}); ok && j.Array != 0 {
		k.SeeTask(slurmctl.JobID(j.ID), slurmctl.JobID(j.Array), j.ArrayTask)
	}
	t.question(tview.Escape(t.printable(fmt.Sprintf("cancel job %s, %s of %s? y or n: ", j.Label(), legible.Cut(j.Name, 16, "+"), j.User))), func(text string) string {
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "y", "yes":
		case "n", "no", "":
			return ""
		default:
			return "want y or n"
		}
		slurm := t.slurm
		go func() {
			said := fmt.Sprintf("Job %s is cancelled.", j.Label())
			ctx, stop := context.WithTimeout(context.Background(), scancelTime)
			defer stop()
			if err := slurm.Cancel(ctx, slurmctl.JobID(id)); err != nil {
				said = fmt.Sprintf("Job %s is not cancelled: %v", j.Label(), err)
			}
			t.app.QueueUpdateDraw(func() {
				t.said = said
				t.draw()
				t.lookNow()
			})
		}()
		return ""
	})
}

func (t *top) other(page string) {
	if page == "gantt" {
		t.show("queue")
	} else {
		t.show("gantt")
	}
}

// question asks in the last line; answered receives the input and returns what is wrong with it.
func (t *top) question(label string, answered func(string) string) {
	t.ask = tview.NewInputField().SetLabel(label)
	t.ask.SetDoneFunc(func(key tcell.Key) {
		wrong := ""
		if key == tcell.KeyEnter {
			wrong = answered(t.ask.GetText())
		}
		if wrong != "" {
			t.ask.SetText("").SetLabel(wrong + "; " + label)
			return
		}
		t.body.RemoveItem(t.ask)
		t.body.AddItem(t.foot, 1, 0, false)
		t.ask = nil
		t.app.SetFocus(t.pages)
		t.draw()
		t.lookNow()
	})
	t.body.RemoveItem(t.foot)
	t.body.AddItem(t.ask, 1, 0, true)
	t.app.SetFocus(t.ask)
}
