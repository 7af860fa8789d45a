package api

import (
	"net/url"
	"strconv"
	"time"
)

// MaxEvents is how many events one answer has at most.
const MaxEvents = 1000

// parseQuery reads what values writes.
func parseQuery(v url.Values) (EventQuery, error) {
	q := EventQuery{Limit: MaxEvents}
	for name, texts := range v {
		var err error
		var n uint64
		switch text := texts[0]; name {
		case "job":
			n, err = strconv.ParseUint(text, 10, 32)
			q.Job = uint32(n)
		case "after":
			n, err = strconv.ParseUint(text, 10, 63)
			q.After = int64(n)
		case "limit":
			n, err = strconv.ParseUint(text, 10, 31)
			q.Limit = min(int(n), MaxEvents)
		case "since":
			q.Since, err = time.Parse(time.RFC3339, text)
		default:
			return q, Errorf(ErrInvalid, "%s=%q: want job, after, since or limit", name, text)
		}
		if err != nil {
			return q, Errorf(ErrInvalid, "%s=%q is not understood", name, texts[0])
		}
	}
	if q.Limit == 0 {
		q.Limit = MaxEvents
	}
	return q, nil
}

// values returns the query as it travels.
func (q EventQuery) values() url.Values {
	v := url.Values{}
	for name, n := range map[string]int64{"job": int64(q.Job), "after": q.After, "limit": int64(q.Limit)} {
		if n != 0 {
			v.Set(name, strconv.FormatInt(n, 10))
		}
	}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.Format(time.RFC3339))
	}
	return v
}
