package display

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Terminal describes the output device.
type Terminal struct {
	TTY           bool
	Width, Height int // 0: not known
	Color, ASCII  bool
}

// Look asks the system about a file and the environment about the user's wishes.
func Look(f *os.File, getenv func(string) string) Terminal {
	var t Terminal
	if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil {
		t.TTY, t.Width, t.Height = true, int(size.Col), int(size.Row)
	}
	if n, err := strconv.Atoi(getenv("COLUMNS")); err == nil && n > 0 && t.Width == 0 {
		t.Width = n
	}
	t.Color = t.TTY && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	t.ASCII = !utf8Locale(getenv)
	return t
}

// utf8Locale reports whether text is UTF-8, by the first variable that says anything.
func utf8Locale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToLower(getenv(name)); value != "" {
			return strings.Contains(value, "utf-8") || strings.Contains(value, "utf8")
		}
	}
	return false
}
