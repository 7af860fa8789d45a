package submit

import (
	"testing"
	"time"
)

// beginForms lists values of --begin with Slurm's result on Friday, 20 November 2026, 14:30:15
// local time.
var beginForms = map[string]string{
	"16:00":                 "2026-11-20 16:00:00",
	"14:30":                 "2026-11-21 14:30:00",
	"14:31":                 "2026-11-20 14:31:00",
	"9:05":                  "2026-11-21 09:05:00",
	"16:00:30":              "2026-11-20 16:00:30",
	"4:00PM":                "2026-11-20 16:00:00",
	"4:00 pm":               "2026-11-20 16:00:00",
	"12:30AM":               "2026-11-21 00:30:00",
	"12:30pm":               "2026-11-21 12:30:00",
	"midnight":              "2026-11-21 00:00:00",
	"noon":                  "2026-11-21 12:00:00",
	"fika":                  "2026-11-20 15:00:00",
	"teatime":               "2026-11-20 16:00:00",
	"today":                 "2026-11-20 00:00:00",
	"tomorrow":              "2026-11-21 00:00:00",
	"tomorrow noon":         "2026-11-21 12:00:00",
	"noon tomorrow":         "2026-11-21 12:00:00",
	"today 10:00":           "2026-11-20 10:00:00",
	"tomorrow-06:15":        "2026-11-21 06:15:00",
	"now":                   "2026-11-20 14:30:15",
	"now+60":                "2026-11-20 14:31:15",
	"now+1hour":             "2026-11-20 15:30:15",
	"now + 3 days":          "2026-11-23 14:30:15",
	"now+2minutes":          "2026-11-20 14:32:15",
	"now+1week":             "2026-11-27 14:30:15",
	"now-1hour":             "2026-11-20 13:30:15",
	"NOW+1HOUR":             "2026-11-20 15:30:15",
	"2027-01-20":            "2027-01-20 00:00:00",
	"2027-01-20T12:34":      "2027-01-20 12:34:00",
	"2027-01-20T12:34:56":   "2027-01-20 12:34:56",
	"2027-01-20 12:34":      "2027-01-20 12:34:00",
	"1/20":                  "2027-01-20 00:00:00",
	"12/24":                 "2026-12-24 00:00:00",
	"12/24/27":              "2027-12-24 00:00:00",
	"12.24.27":              "2027-12-24 00:00:00",
	"1224":                  "2026-12-24 00:00:00",
	"122427":                "2027-12-24 00:00:00",
	"12/24-08:00":           "2026-12-24 08:00:00",
	"11/20-14:31":           "2026-11-20 14:31:00",
	"11/20-14:30":           "2027-11-20 14:30:00",
	"11/20":                 "2027-11-20 00:00:00",
	"08:00 12/24/27":        "2027-12-24 08:00:00",
	"uts1800000000":         "2027-01-15 08:00:00",
	"  16:00":               "2026-11-20 16:00:00",
	"2027-02-31":            "2027-03-03 00:00:00",
	"16:00 17:00":           "2026-11-20 17:00:00",
	"2026-11-20T14:30:15--": "2026-11-20 14:30:15",
}

// badBegins are refused by Slurm, or ask for nothing.
var badBegins = []string{
	"", " ", "soon", "25:00", "12:60", "12:5", "1:2:3", "13:00pm", "13:00am", "now+", "now+x", "now*2", "now+1fortnight",
	"13/01", "12/32", "12/", "2027-13-01", "2027-01-20X12:00", "2027-01-20T12:34:56Z", "uts5", "uts", "utsx", "Today",
	"tomorrow!", "12/24/2027", "-", "99999999999999999999:00",
}

func TestParseBegin(t *testing.T) {
	now := time.Date(2026, 11, 20, 14, 30, 15, 999, time.UTC)
	for text, want := range beginForms {
		got, err := parseBegin(text, now)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if g := got.Format(time.DateTime); g != want {
			t.Errorf("%q is %s, want %s", text, g, want)
		}
	}
	for _, text := range badBegins {
		if got, err := parseBegin(text, now); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
}

func TestParseBeginInAPlace(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 10, 24, 23, 0, 0, 0, berlin) // the clock goes back that night
	got, err := parseBegin("tomorrow noon", now)
	if want := time.Date(2026, 10, 25, 11, 0, 0, 0, time.UTC); err != nil || !got.Equal(want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

func FuzzParseBegin(f *testing.F) {
	for text := range beginForms {
		f.Add(text)
	}
	for _, text := range badBegins {
		f.Add(text)
	}
	now := time.Date(2026, 11, 20, 14, 30, 15, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := parseBegin(text, now); err == nil && got.IsZero() {
			t.Fatalf("%q is no time", text)
		}
	})
}
