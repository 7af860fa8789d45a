package display

import (
	"strings"
	"testing"
)

func TestLocale(t *testing.T) {
	for env, want := range map[string]bool{"": false, "LANG=C": false, "LANG=C.UTF-8": true, "LANG=de_DE.utf8": true, "LANG=C.UTF-8 LC_ALL=C": false, "LC_CTYPE=en_GB.UTF-8": true} {
		getenv := func(name string) string {
			for _, assignment := range strings.Fields(env) {
				if value, ok := strings.CutPrefix(assignment, name+"="); ok {
					return value
				}
			}
			return ""
		}
		if got := utf8Locale(getenv); got != want {
			t.Errorf("%q: %v", env, got)
		}
	}
}
