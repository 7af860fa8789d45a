package when

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	now := time.Date(2026, 11, 20, 14, 0, 0, 0, time.Local)
	for text, want := range map[string]string{
		"now": "2026-11-20T14:00:00", "midnight": "2026-11-20T00:00:00", "noon": "2026-11-20T12:00:00", "yesterday": "2026-11-19T00:00:00", "now-2hours": "2026-11-20T12:00:00",
		"now-7days": "2026-11-13T14:00:00", "now-60": "2026-11-20T13:59:00", "08:30": "2026-11-20T08:30:00", "2026-01-02": "2026-01-02T00:00:00", "2026-01-02T03:04:05": "2026-01-02T03:04:05",
		"0102": "2026-01-02T00:00:00", "010225": "2025-01-02T00:00:00", "11/01": "2026-11-01T00:00:00",
		"": "", "now-": "", "nowadays": "", "now-1fortnight": "", "25:00": "", "now*3": "",
	} {
		got, err := Parse(text, now)
		if want == "" && err == nil || want != "" && got.Format("2006-01-02T15:04:05") != want {
			t.Errorf("%q is %v, %v; want %q", text, got, err, want)
		}
	}
}
