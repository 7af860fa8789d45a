package web

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// window is the part of the data that an address requests: a period, and a selection of jobs.
type window struct {
	Span      time.Duration // 0 for what the plans need
	At        time.Time     // the middle; zero: it follows the present
	By        string        // node or job; "": both
	User      string
	Account   string
	Partition string
	Ended     bool // whether the list includes ended jobs
	Tasks     bool // whether each waiting task of an array has a line
	Page      int  // of the list of jobs, from 0
	Rows      int  // the first node that is drawn, from 0
}

// spans lists the offered widths.
var spans = []time.Duration{10 * time.Minute, 30 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	24 * time.Hour, 3 * 24 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour}

// parseWindow reads an address and ignores what it does not know.
func parseWindow(q url.Values, place *time.Location) (window, error) {
	w := window{User: q.Get("user"), Account: q.Get("account"), Partition: q.Get("partition"), By: q.Get("by")}
	bad := func(key, want string) (window, error) {
		return window{}, api.Errorf(api.ErrInvalid, "%s=%q: want %s", key, text(q.Get(key)), want)
	}
	if v := q.Get("span"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil || d < time.Minute || d > 366*24*time.Hour {
			return bad("span", "a length of time from 1m to 8784h")
		}
		w.Span = d
	}
	if v := q.Get("at"); v != "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 0 || n > 1<<33 {
			return bad("at", "seconds since 1970")
		}
		w.At = time.Unix(n, 0).In(place)
	}
	if !slices.Contains([]string{"", "node", "job"}, w.By) {
		return bad("by", "node or job")
	}
	for key, into := range map[string]*bool{"ended": &w.Ended, "tasks": &w.Tasks} {
		b, err := strconv.ParseBool(cmp.Or(q.Get(key), "0"))
		if err != nil {
			return bad(key, "1 or 0")
		}
		*into = b
	}
	for key, into := range map[string]*int{"page": &w.Page, "row": &w.Rows} {
		if v := q.Get(key); v != "" {
			n, err := strconv.ParseUint(v, 10, 20)
			if err != nil {
				return bad(key, "a number")
			}
			*into = int(n)
		}
	}
	return w, nil
}

// link returns the address of a window, relative to the page.
func (w window) link() string {
	q := url.Values{}
	set := func(key, value string, wanted bool) {
		if wanted {
			q.Set(key, value)
		}
	}
	set("span", w.Span.String(), w.Span != 0)
	set("at", strconv.FormatInt(w.At.Unix(), 10), !w.At.IsZero())
	set("by", w.By, w.By != "")
	set("user", w.User, w.User != "")
	set("account", w.Account, w.Account != "")
	set("partition", w.Partition, w.Partition != "")
	set("ended", "1", w.Ended)
	set("tasks", "1", w.Tasks)
	set("page", strconv.Itoa(w.Page), w.Page > 0)
	set("row", strconv.Itoa(w.Rows), w.Rows > 0)
	if len(q) == 0 {
		return "./"
	}
	return "./?" + q.Encode()
}

// Follows reports whether it moves with the present.
func (w window) Follows() bool { return w.At.IsZero() }

// times are from when until when is shown, and how wide that is. Following, a third is past.
func (w window) times(now, last time.Time) (scale, time.Duration) {
	width := w.Span
	if width == 0 {
		width = spans[len(spans)-1]
		for _, s := range spans {
			if s*2/3 >= last.Sub(now) {
				width = s
				break
			}
		}
	}
	if w.Follows() {
		from := now.Add(-width / 3)
		return scale{from, from.Add(width)}, width
	}
	return scale{w.At.Add(-width / 2), w.At.Add(width / 2)}, width
}

// matches reports whether a job is one that was asked for.
func (w window) matches(user, account, partition string) bool {
	return (w.User == "" || w.User == user) && (w.Account == "" || w.Account == account) && (w.Partition == "" || w.Partition == partition)
}
