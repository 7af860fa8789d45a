package chart

import (
	"fmt"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

// glyphs holds the characters of a chart.
type glyphs struct {
	allocated, planned    []string // bars of growing height
	now, rule, tick, mark string
	other, cut            string
}

var unicodeGlyphs = glyphs{
	allocated: strings.Split("▁▂▃▄▅▆▇█", ""),
	planned:   strings.Split("░▒▓", ""), // lighter; a darker colour says it better
	now:       "│", rule: "─", tick: "┬", mark: "▼",
	other: "▒", cut: "…",
}

var asciiGlyphs = glyphs{
	allocated: []string{"#"},
	planned:   []string{":"},
	now:       "|", rule: "-", tick: "+", mark: "v",
	other: "%", cut: ">",
}

// bar returns a column of a lane with this many nodes.
func (c *canvas) bar(l lane, nodes, peak int, planned bool) string {
	levels, color := c.glyphs.allocated, l.hue.allocated
	if planned && c.opts.Color {
		color = l.hue.planned
	} else if planned {
		levels = c.glyphs.planned
	}
	level := (nodes*len(levels) + peak - 1) / max(1, peak)
	return c.paint(levels[min(max(level, 1), len(levels))-1], color)
}

// Heat draws a column per number, the higher the larger it is; 0 is a dot. `most` has the highest column.
func Heat(numbers []int, most int, ascii bool) string {
	levels, none := unicodeGlyphs.allocated, "·"
	if ascii {
		levels, none = strings.Split(":-=+*%#@", ""), "."
	}
	var b strings.Builder
	for _, n := range numbers {
		if n <= 0 || most <= 0 {
			b.WriteString(none)
			continue
		}
		b.WriteString(levels[(min(n, most)*len(levels)-1)/most])
	}
	return b.String()
}

// hue is one of the 256 colours for allocated nodes, and a darker one for planned nodes.
type hue struct{ allocated, planned int }

// palette are hues that differ well and read on black and white.
var palette = []hue{{39, 24}, {208, 130}, {71, 65}, {170, 96}, {178, 94}, {37, 30}, {203, 95}, {141, 61}, {107, 64}, {168, 89}}

const (
	gray     = 244
	darkGray = 238
	white    = -1 // bold, in the terminal's own colour
)

// paint colours a text; colour 0 is the terminal's own.
func (c *canvas) paint(text string, color int) string {
	switch {
	case !c.opts.Color || color == 0 || strings.TrimSpace(text) == "":
		return text
	case color == white:
		return "\x1b[1m" + text + "\x1b[0m"
	}
	return fmt.Sprintf("\x1b[38;5;%dm%s\x1b[0m", color, text)
}

// fit makes a text printable, cuts it to a width with a mark for the missing part, and pads it.
func (c *canvas) fit(text string, columns int) string {
	text = legible.Cut(legible.Printable(text, c.opts.ASCII), columns, c.glyphs.cut)
	return text + strings.Repeat(" ", max(0, columns-legible.Columns(text)))
}
