package web

import (
	"context"
	"math"
	"net/url"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// history is the page of ended jobs.
type history struct {
	Now                          time.Time
	User, Name, ID, Since, Until string // as asked for
	Jobs                         []past
	First, Older                 string // links; "": there is none
}

// past is an ended job.
type past struct {
	api.Job
	Most    int // nodes
	Seconds int64
}

func (p *Page) history(ctx context.Context, v visit) (any, error) {
	q := v.URL.Query()
	page := &history{Now: v.now, User: q.Get("user"), Name: q.Get("name"), ID: q.Get("id"), Since: q.Get("since"), Until: q.Get("until")}
	asked, err := parseHistory(q, v.now.Location())
	if err != nil {
		return nil, err
	}
	found, err := v.History(ctx, asked)
	if err != nil {
		return nil, err
	}
	for _, j := range found.Jobs {
		one := past{Job: j}
		for _, s := range j.Past {
			one.Most = max(one.Most, s.Nodes)
			one.Seconds += int64(max(s.End.Sub(s.Start), 0)/time.Second) * int64(s.Nodes)
		}
		page.Jobs = append(page.Jobs, one)
	}
	if found.Next != "" {
		q.Set("before", found.Next)
		page.Older = "history?" + q.Encode()
	}
	if asked.Before != (api.Place{}) {
		q.Del("before")
		page.First = "history?" + q.Encode()
	}
	return page, nil
}

// parseHistory reads an address and ignores what it does not know.
func parseHistory(v url.Values, place *time.Location) (q api.HistoryQuery, err error) {
	q.Limit = mostListed
	if user := v.Get("user"); user != "" {
		q.Users = []string{user}
	}
	if name := v.Get("name"); name != "" {
		q.Names = []string{name}
	}
	for _, key := range []string{"id", "before", "since", "until"} {
		value := v.Get(key)
		if value == "" {
			continue
		}
		switch key {
		case "id":
			var name api.JobName
			name, err = api.ParseJobName(value)
			if q.Tasks = []api.JobName{name}; !name.One {
				q.Jobs = []uint32{name.ID}
			}
		case "before":
			q.Before, err = api.ParsePlace(value)
		case "since":
			q.Start, err = time.ParseInLocation(time.DateOnly, value, place)
		case "until":
			q.End, err = time.ParseInLocation(time.DateOnly, value, place)
			q.End = q.End.AddDate(0, 0, 1)
		}
		if err != nil {
			return q, api.Errorf(api.ErrInvalid, "%s=%q is not understood", key, text(value))
		}
	}
	return q, nil
}

// mostEarlier is how many pages of the history a drawing of the past reads.
const mostEarlier = 5

// earlierJobs returns the jobs that ended in view before all ended jobs of a list, and whether there are more.
func earlierJobs(ctx context.Context, from Reader, listed []api.Job, s scale) (all []api.Job, more bool, err error) {
	oldest := s.to
	for i := range listed {
		if j := &listed[i]; j.State == "ended" && j.End.Before(oldest) {
			oldest = j.End
		}
	}
	if oldest.Before(s.from) {
		return nil, false, nil
	}
	type key struct {
		id     uint32
		submit int64
	}
	seen := map[key]bool{}
	for i := range listed {
		seen[key{listed[i].ID, listed[i].Submit.Unix()}] = true
	}
	q := api.HistoryQuery{Start: s.from, End: s.to, Before: api.Place{Ended: oldest.Unix(), Row: math.MaxInt64}}
	for range mostEarlier {
		page, err := from.History(ctx, q)
		if err != nil {
			return nil, false, err
		}
		for _, j := range page.Jobs {
			if k := (key{j.ID, j.Submit.Unix()}); !seen[k] {
				seen[k] = true
				all = append(all, j)
			}
		}
		if page.Next == "" {
			return all, false, nil
		}
		if q.Before, err = api.ParsePlace(page.Next); err != nil {
			return nil, false, err
		}
	}
	return all, true, nil
}
