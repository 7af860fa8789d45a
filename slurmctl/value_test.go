package slurmctl

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	for in, want := range map[string]time.Duration{
		"10:00": 10 * time.Minute, "0:01": time.Second, "1:30:00": 90 * time.Minute, "1-00:00:00": day,
		"2-01:00:00": 49 * time.Hour, "365-00:00:00": 365 * day, "1-2": 26 * time.Hour, "1-02:03": 26*time.Hour + 3*time.Minute,
		"UNLIMITED": Unlimited, "infinite": Unlimited, "NOT_SET": 0, "N/A": 0, "INVALID": Unlimited, "": 0, "00:00": 0,
		"99999999999-00:00:00": Unlimited, "40000-00:00:00": Unlimited, "1-99999999:00:00": Unlimited,
		"8784:00:00": 366 * day, "90:61": 90*time.Minute + 61*time.Second,
	} {
		if got, err := parseDuration(in); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"10", "x", "1:2:3:4", "1:-2:00", "-1:00", "1-", "-", ":", "1::2", "1-1-1", "+1:00", " 1:00"} {
		if got, err := parseDuration(in); err == nil {
			t.Errorf("%q is taken as %v", in, got)
		}
	}
}

func TestDurationThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(maxDuration/time.Second)).Draw(t, "s")) * time.Second
		if got, err := parseDuration(formatDuration(d)); err != nil || got != d {
			t.Fatalf("%v is written %q and read %v, %v", d, formatDuration(d), got, err)
		}
	})
	if got := formatDuration(Unlimited); got != "UNLIMITED" {
		t.Error(got)
	}
}

func TestParseTime(t *testing.T) {
	for _, in := range []string{"N/A", "NONE", "Unknown", "None", "INVALID", "", "(null)", "0"} {
		if got, err := parseTime(in); err != nil || !got.IsZero() {
			t.Errorf("%q is %v, %v", in, got, err)
		}
	}
	want := time.Date(2026, 11, 20, 11, 4, 50, 0, time.UTC)
	for _, in := range []string{"1795172690", "2026-11-20T11:04:50"} {
		if got, err := parseTime(in); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"-5", "now", "2026-11-20", "99999999999999999999", "9999999999999999"} {
		if got, err := parseTime(in); err == nil {
			t.Errorf("%q is taken as %v", in, got)
		}
	}
	if got := formatTime(want); got != "uts1795172690" {
		t.Error(got)
	}
}

func TestParseMemory(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "100M": 100, "1G": 1024, "1.50G": 1536, "2Tn": 2 << 20, "100Mc": 100, "1000": 1000, "1000+": 1000,
		"N/A": 0, "UNLIMITED": 0, "2048K": 2, "1K": 1, "": 0, "1P": 1 << 30,
		"99999999999999999999P": maxScaled, "4E": 4 << 40,
	} {
		if got, err := parseMemory(in); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", in, got, err, want)
		}
	}
	if got, err := parseMemory(strings.Repeat("9", 400) + "G"); err != nil || got != maxScaled {
		t.Error(got, err)
	}
	for _, in := range []string{"x", "-1", "M", "1e9", "NaN", "NaNK", "1GG", "0x10", "InfK"} {
		if got, err := parseMemory(in); err == nil {
			t.Errorf("%q is taken as %d", in, got)
		}
	}
}

func TestParseCount(t *testing.T) {
	for in, want := range map[string]int{"3": 3, "2-4": 2, "2K": 2000, "1.5K": 1500, "": 0, "N/A": 0, "0": 0, "9999999999": math.MaxInt32, "5T": math.MaxInt32} {
		if got, err := parseCount(in); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"x", "+3", "1.2.3"} {
		if got, err := parseCount(in); err == nil {
			t.Errorf("%q is taken as %d", in, got)
		}
	}
}

// FuzzValues checks that a parser fails only with an error and never returns a value that makes no
// sense.
func FuzzValues(f *testing.F) {
	for _, s := range []string{"10:00", "1-00:00:00", "UNLIMITED", "1795172690", "N/A", "1.50G", "2K", "2-200%2", "1,3,5-9:2%4", "768", "3:9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := parseDuration(s); err == nil && (d < Unlimited || d > maxDuration) {
			t.Errorf("duration %q is %v", s, d)
		}
		if at, err := parseTime(s); err == nil && !at.IsZero() && at.Year() < 1 {
			t.Errorf("time %q is %v", s, at)
		}
		if m, err := parseMemory(s); err == nil && m < 0 {
			t.Errorf("memory %q is %d", s, m)
		}
		if n, err := parseCount(s); err == nil && n < 0 {
			t.Errorf("count %q is %d", s, n)
		}
		if n, err := countTasks(s); err == nil && n < 1 {
			t.Errorf("tasks %q are %d", s, n)
		}
		var j Job
		if err := setExit(&j, s); err == nil && j.ExitSignal < 0 {
			t.Errorf("exit %q is %d:%d", s, j.ExitCode, j.ExitSignal)
		}
	})
}
