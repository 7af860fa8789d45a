package main

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// terminal is what is known of the place where output goes.
type terminal struct {
	tty           bool
	width, height int // 0: not known
	color, ascii  bool
}

// look asks the system about a file and the environment about the user's wishes.
func look(f *os.File, getenv func(string) string) terminal {
	var t terminal
	if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil {
		t.tty, t.width, t.height = true, int(size.Col), int(size.Row)
	}
	if n, err := strconv.Atoi(getenv("COLUMNS")); err == nil && n > 0 && t.width == 0 {
		t.width = n
	}
	t.color = t.tty && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	t.ascii = !utf8Locale(getenv)
	return t
}

// utf8Locale tells whether text is UTF-8, by the first variable that says anything.
func utf8Locale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToLower(getenv(name)); value != "" {
			return strings.Contains(value, "utf-8") || strings.Contains(value, "utf8")
		}
	}
	return false
}
