package display

import (
	"os/exec"
	"testing"
	"time"
)

func TestSlurmTime(t *testing.T) {
	now := time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		after  time.Duration
		format string
		want   string
	}{
		{time.Hour, "", "2026-11-20T15:00:00"},
		{time.Hour, "standard", "2026-11-20T15:00:00"},
		{time.Hour, "no conversion", "2026-11-20T15:00:00"},
		{time.Hour, "%a %T and more than there is room for", "2026-11-20T15:00:00"},
		{time.Hour, "relative", "15:00:00"},
		{-24 * time.Hour, "relative", "Ystday 14:00"},
		{24 * time.Hour, "relative", "Tomorr 14:00"},
		{72 * time.Hour, "relative", "Mon 14:00"},
		{-72 * time.Hour, "relative", "17 Nov 14:00"},
		{20 * 24 * time.Hour, "relative", "10 Dec 14:00"},
		{365 * 24 * time.Hour, "relative", "20 Nov 2027"},
		{0, "%s", "1795183200"},
		{0, "100%% %?%", "100% %?%"},
	} {
		if got := SlurmTime(now.Add(c.after), now, c.format); got != c.want {
			t.Errorf("%v by %q: %q, want %q", c.after, c.format, got, c.want)
		}
	}
	if got := SlurmTime(time.Time{}, now, "%s"); got != "Unknown" {
		t.Errorf("no time is %q", got)
	}
}

// TestStrftime compares with the system's.
func TestStrftime(t *testing.T) {
	at := time.Date(2026, 3, 5, 7, 8, 9, 0, time.UTC)
	for c := range conversions {
		verb := "%" + string(c)
		want, err := exec.Command("env", "LC_ALL=C", "TZ=UTC", "date", "-d", at.Format(time.RFC3339), "+x"+verb+"|%-d %k %l %u %w %s").Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strftime(at, "x"+verb+"|%-d %k %l %u %w %s") + "\n"; got != string(want) {
			t.Errorf("%s: %q, date has %q", verb, got, want)
		}
	}
}
