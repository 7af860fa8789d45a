package slurmctl

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// none reports whether s is how the commands print an absent text or list.
func none(s string) bool {
	switch s {
	case "", "(null)", "N/A", "n/a", "None", "none":
		return true
	}
	return false
}

// text returns s, or "" for a placeholder of an absent text.
func text(s string) string {
	if s == "(null)" {
		return ""
	}
	return s
}

// list splits a comma list.
func list(s string) []string {
	if none(s) {
		return nil
	}
	return strings.Split(s, ",")
}

// parseTime reads epoch seconds (SLURM_TIME_FORMAT=%s), or UTC without a zone as printed by a build
// that ignores formats. An unknown time is zero.
func parseTime(s string) (time.Time, error) {
	switch strings.ToLower(s) {
	case "", "n/a", "none", "unknown", "(null)", "invalid", "not_set", "0":
		return time.Time{}, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		if n < 0 || n > 1<<40 {
			return time.Time{}, fmt.Errorf("time %q is out of range", s)
		}
		return time.Unix(n, 0).UTC(), nil
	}
	t, err := time.ParseInLocation("2006-01-02T15:04:05", s, time.UTC)
	if err != nil {
		return time.Time{}, fmt.Errorf("time %q is not understood", s)
	}
	return t, nil
}

// formatTime writes a time for scontrol, independent of the time zone.
func formatTime(t time.Time) string {
	return "uts" + strconv.FormatInt(t.Unix(), 10)
}

// maxDuration is the longest duration that is read: a hundred years.
const maxDuration = 100 * 366 * 24 * time.Hour

// parseDuration reads [days-]hours:minutes:seconds or minutes:seconds; seconds never occur on their
// own. It returns 0 if none is set. It returns Unlimited for no limit, for a duration above
// maxDuration, and for one too long for Slurm to print (INVALID).
func parseDuration(s string) (time.Duration, error) {
	switch strings.ToUpper(s) {
	case "UNLIMITED", "INFINITE", "NONE", "INVALID":
		return Unlimited, nil
	case "", "NOT_SET", "N/A", "(NULL)", "UNKNOWN":
		return 0, nil
	}
	bad := fmt.Errorf("duration %q is not understood", s)
	days, clock, hasDays := strings.Cut(s, "-")
	if !hasDays {
		days, clock = "0", s
	}
	parts := strings.Split(clock, ":")
	units := []time.Duration{time.Hour, time.Minute, time.Second}
	switch {
	case len(parts) > 3, len(parts) < 2 && !hasDays:
		return 0, bad
	case !hasDays:
		units = units[3-len(parts):] // minutes:seconds
	}
	total := time.Duration(0)
	add := func(field string, unit time.Duration) bool {
		if !digits(field) {
			return false
		}
		n, err := strconv.ParseUint(field, 10, 32)
		if err != nil || time.Duration(n) > maxDuration/unit {
			n = uint64(maxDuration/unit) + 1
		}
		total = min(total+time.Duration(n)*unit, maxDuration+time.Second)
		return true
	}
	if !add(days, 24*time.Hour) {
		return 0, bad
	}
	for i, p := range parts {
		if !add(p, units[i]) {
			return 0, bad
		}
	}
	if total > maxDuration {
		return Unlimited, nil
	}
	return total, nil
}

// formatDuration writes D-HH:MM:SS, which every duration option accepts.
func formatDuration(d time.Duration) string {
	if d == Unlimited {
		return "UNLIMITED"
	}
	s := int64(d / time.Second)
	return fmt.Sprintf("%d-%02d:%02d:%02d", s/86400, s/3600%24, s/60%60, s%60)
}

// parseCount reads a count: "3", "2-4" (its lower bound), or "2K". Since users may request
// anything, a count that is too large becomes the largest possible.
func parseCount(s string) (int, error) {
	low, _, _ := strings.Cut(s, "-")
	if none(low) {
		return 0, nil
	}
	n, err := scaled(low, 1000, "KMGTPE")
	if err != nil {
		return 0, fmt.Errorf("count %q is not understood", s)
	}
	return int(min(n, math.MaxInt32)), nil
}

// parseMemory reads an amount of memory as MiB: "0", "500M", "1.50G", "2Tn", "100Mc".
func parseMemory(s string) (int64, error) {
	if none(s) || s == "UNLIMITED" {
		return 0, nil
	}
	v := strings.TrimRight(strings.TrimSuffix(s, "+"), "cn")
	kib := strings.TrimSuffix(v, "K")
	if kib != v {
		n, err := strconv.ParseFloat(kib, 64)
		if err != nil || !(n >= 0 && n < 1<<50) {
			return 0, fmt.Errorf("memory %q is not understood", s)
		}
		return int64((n + 1023) / 1024), nil
	}
	n, err := scaled(strings.TrimSuffix(v, "M"), 1024, "GTPE")
	if err != nil {
		return 0, fmt.Errorf("memory %q is not understood", s)
	}
	return n, nil
}

// maxScaled is the largest value that scaled returns.
const maxScaled = 1 << 50

// scaled reads a decimal number with at most one unit letter. The first letter stands for step, the
// next for step², and so on.
func scaled(s string, step float64, letters string) (int64, error) {
	factor := 1.0
	if s != "" {
		if i := strings.IndexByte(letters, s[len(s)-1]); i >= 0 {
			for range i + 1 {
				factor *= step
			}
			s = s[:len(s)-1]
		}
	}
	if s == "" || strings.Trim(s, "0123456789.") != "" {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, err
	}
	return int64(min(n*factor, maxScaled)), nil
}

// digits reports whether s consists of decimal digits only.
func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
