package slurmctl

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseQueueFormat(t *testing.T) {
	for _, c := range []struct {
		format string
		steps  bool
		want   string // with <> as the separator
		own    []OwnField
	}{
		{"", false, "%A<><>", nil},
		{"%i %.8j|", false, "%A<>%i %.8j|<>", nil},
		{"a {b} %i", true, "%i<>a {b} %i<>", nil},
		{"%.8{step} %i%{next}%5{End}x", false, "%A<><>%i<><><>", []OwnField{{"step", 8, true, " "}, {"next", 0, false, ""}, {"End", 5, false, "x"}}},
		{"%%i%%", false, "%A<>%i<>", nil},
		{"%j{x}", false, "%A<>%j{x}<>", nil},
		{"%ALL", true, "%i<>%b|%i|%j|%l|%u|%A|%M|%N|%P|%S|%U<>", nil},
	} {
		f, err := ParseQueueFormat(c.format, c.steps)
		if err != nil {
			t.Errorf("%q: %v", c.format, err)
			continue
		}
		if got, _ := f.with("<>", c.steps); got != c.want {
			t.Errorf("%q is %q, want %q", c.format, got, c.want)
		}
		if diff := cmp.Diff(c.own, f.Own); diff != "" {
			t.Errorf("%q: places (-want +got):\n%s", c.format, diff)
		}
	}
	for _, bad := range []string{"%{step", "%99999999999999999999{step}", "%1.2{step}", "%100000{step}", "%i %1"} {
		if _, err := ParseQueueFormat(bad, false); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestParseLongQueueFormat(t *testing.T) {
	isOwn := func(name string) bool { return strings.HasPrefix(strings.ToLower(name), "evo") }
	for _, c := range []struct {
		format  string
		want    string
		printed []bool
		own     []OwnField
	}{
		{"jobid,name:.8 ", "JobID:<>,jobid,name:.8 <>", []bool{true}, nil},
		{"name", "JobID:<>,name:20<>", []bool{true}, nil},
		{"evostep,name,EvoNext:.9|", "JobID:<>,name:20<>", []bool{false, true, false}, []OwnField{{"evostep", 20, false, ""}, {"EvoNext", 9, true, "|"}}},
		{"jobid:##,evostep:##", "JobID:<>,jobid:##<>", []bool{true, false}, []OwnField{{"evostep", 0, false, "##"}}},
	} {
		f, err := ParseLongQueueFormat(c.format, isOwn)
		if err != nil {
			t.Errorf("%q: %v", c.format, err)
			continue
		}
		got, printed := f.with("<>", false)
		if got != c.want {
			t.Errorf("%q is %q, want %q", c.format, got, c.want)
		}
		if diff := cmp.Diff(c.printed, printed); diff != "" {
			t.Errorf("%q: printed (-want +got):\n%s", c.format, diff)
		}
		if diff := cmp.Diff(c.own, f.Own); diff != "" {
			t.Errorf("%q: places (-want +got):\n%s", c.format, diff)
		}
	}
}

func TestOwnFieldText(t *testing.T) {
	for _, c := range []struct {
		f    OwnField
		text string
		want string
	}{
		{OwnField{}, "text", "text"},
		{OwnField{Width: 6, Suffix: "|"}, "text", "text  |"},
		{OwnField{Width: 6, Right: true}, "text", "  text"},
		{OwnField{Width: 2}, "text", "te"},
		{OwnField{Width: 2}, "tö", "t "},
	} {
		if got := c.f.Text(c.text); got != c.want {
			t.Errorf("%+v of %q is %q, want %q", c.f, c.text, got, c.want)
		}
	}
}
