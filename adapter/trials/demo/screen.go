package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/show/chart"
	"github.com/evoslurm/evoslurm/adapter/show/display"
)

// frame is everything visible at one moment.
type frame struct {
	title      string
	begin, now time.Time
	jobs       []api.Job
	others     []api.Span
	nodes      int
	events     []string
}

// screen is where a phase is shown.
type screen interface {
	event(line string)
	draw(f frame)
	// leave ends the live view of a phase; what remains to be seen of it stays.
	leave(last frame)
}

// plain writes one line for each event.
type plain struct {
	out io.Writer
	terminal
}

func (p *plain) event(line string) { fmt.Fprintln(p.out, line) }
func (p *plain) draw(frame)        {}
func (p *plain) leave(last frame)  { fmt.Fprint(p.out, "\n", p.chart(last, 0), "\n") }

// live draws each frame over the one before, on the terminal's other screen.
type live struct {
	out    io.Writer
	header string
	shown  bool
	terminal
}

const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the other screen, no cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
)

func (l *live) event(string) {}

func (l *live) draw(f frame) {
	text := l.compose(f)
	if !l.shown {
		l.shown = true
		text = enterScreen + text
	}
	io.WriteString(l.out, text)
}

// compose returns the frame as the terminal takes it: every line cut to its width and
// cleared behind.
func (l *live) compose(f frame) string {
	width, height := l.size()
	clock := fmt.Sprintf("%3.0f s", f.now.Sub(f.begin).Seconds())
	const eventLines = 3 // at least, below the chart
	lines := []string{l.bold(pad(l.header, width-len(clock)) + clock), l.dim(legible.Cut(f.title, width, "")), ""}
	drawn := strings.Split(strings.TrimSuffix(l.chart(f, max(height-len(lines)-2-eventLines, 8)), "\n"), "\n")
	lines = append(lines, drawn...)
	if room := height - len(lines) - 2; room > 0 {
		lines = append(lines, "")
		for _, e := range f.events[max(0, len(f.events)-room):] {
			lines = append(lines, legible.Cut(e, width, ""))
		}
	}
	if len(lines) > height-1 {
		lines = lines[:height-1]
	}
	return "\x1b[H" + strings.Join(lines, "\x1b[K\r\n") + "\x1b[K\x1b[J"
}

func (l *live) leave(last frame) {
	if !l.shown {
		return
	}
	l.shown = false
	io.WriteString(l.out, leaveScreen)
	if len(last.jobs) > 0 {
		fmt.Fprint(l.out, l.bold(last.title), "\n", l.chart(last, 0), "\n")
	}
}

// terminal describes the output device.
type terminal struct {
	file         *os.File // nil: no terminal
	color, ascii bool
}

// look asks the system about a file and the environment about the user's wishes.
func look(f *os.File) terminal {
	seen := display.Look(f, os.Getenv)
	t := terminal{color: seen.Color, ascii: seen.ASCII}
	if seen.TTY {
		t.file = f
	}
	return t
}

// size queries the terminal's size each time, because it may have been resized.
func (t terminal) size() (width, height int) {
	if t.file != nil {
		if seen := display.Look(t.file, os.Getenv); seen.Width > 0 && seen.Height > 0 {
			return seen.Width, seen.Height
		}
	}
	return 80, 24
}

func (t terminal) chart(f frame, height int) string {
	width, _ := t.size()
	return chart.Render(f.jobs, f.now, chart.Options{
		Width: width, Height: height, Color: t.color, ASCII: t.ascii, Nodes: f.nodes, Others: f.others, From: f.begin,
	})
}

func (t terminal) paint(text, code string) string {
	if !t.color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (t terminal) bold(text string) string  { return t.paint(text, "1") }
func (t terminal) dim(text string) string   { return t.paint(text, "2") }
func (t terminal) green(text string) string { return t.paint(text, "1;32") }
func (t terminal) red(text string) string   { return t.paint(text, "1;31") }

// pad cuts or fills a text to a number of columns.
func pad(text string, columns int) string {
	text = legible.Cut(text, columns, "")
	return text + strings.Repeat(" ", max(0, columns-legible.Columns(text)))
}
