package api

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
)

// archived has the ended job 5 of the owner besides, and notes what it is asked.
type archived struct {
	*fakeBackend
	asked *[]HistoryQuery
}

func (b archived) History(_ context.Context, q HistoryQuery) (History, error) {
	*b.asked = append(*b.asked, q)
	if len(q.Jobs) > 0 && q.Jobs[0] != 5 || q.Owner != nil && *q.Owner != b.owner {
		return History{Jobs: []Job{}}, nil
	}
	return History{Jobs: []Job{{ID: 5, UID: b.owner, State: "ended", Reason: "waits for job 13"}}, Next: "7.8"}, nil
}

// TestHistory checks that the history is asked for what the caller may read, and that an ended job that the backend
// has forgotten is still found.
func TestHistory(t *testing.T) {
	b := archived{newBackend(4000), new([]HistoryQuery)}
	operator, other := uint32(4009), uint32(4001)
	s := &Server{Backend: b, Log: logrus.New(), Reading: func() Reading { return OwnJobs }, Operator: func(uid uint32) bool { return uid == operator }}
	q := HistoryQuery{Start: time.Unix(1000, 0).UTC(), End: time.Unix(2000, 0).UTC(), Jobs: []uint32{5, 6}, Tasks: []JobName{{ID: 20}, {ID: 20, Task: 3, One: true}}, Users: []string{"a&b", "7"}, Names: []string{"x"}, Before: Place{5, -6}, Limit: 9}
	for uid, owner := range map[*uint32]*uint32{&operator: nil, &b.owner: &b.owner, &other: &other} {
		page, err := s.Visitor(uid).History(t.Context(), q)
		want := q
		want.Owner = owner
		if d := cmp.Diff(want, (*b.asked)[len(*b.asked)-1]); d != "" || err != nil || len(page.Jobs) > 0 && page.Next != "7.8" {
			t.Errorf("uid %d: %+v, %v: asked (-want +got):\n%s", *uid, page, err, d)
		}
		if want := map[*uint32]string{&operator: "waits for job 13", &b.owner: "waits for another job"}[uid]; len(page.Jobs) > 0 && page.Jobs[0].Reason != want {
			t.Errorf("uid %d: %q", *uid, page.Jobs[0].Reason)
		}
		_, err1 := s.Visitor(uid).Job(t.Context(), 5)
		_, err2 := s.Visitor(uid).Events(t.Context(), EventQuery{Job: 5})
		if hidden := uid == &other; errors.Is(err1, ErrNotFound) != hidden || errors.Is(err2, ErrNotFound) != hidden || !hidden && errors.Join(err1, err2) != nil {
			t.Errorf("uid %d: job 5: %v, its events: %v", *uid, err1, err2)
		}
	}
}

// TestHistoryQueries checks that only what is understood is asked, within bounds.
func TestHistoryQueries(t *testing.T) {
	b, operator := archived{newBackend(4000), new([]HistoryQuery)}, uint32(4000)
	s := &Server{Backend: b, Log: logrus.New(), Operator: func(uid uint32) bool { return uid == operator }}
	if _, err := s.Visitor(nil).History(t.Context(), HistoryQuery{}); !errors.Is(err, ErrDenied) {
		t.Errorf("an unknown caller: %v", err)
	}
	for _, text := range []string{"job=x", "job=1&job=-1", "task=20&task=20_x", "before=5", "limit=-1", "start=now", "nothing=1", strings.Repeat("user=u&", MostListed+1)} {
		if _, err := visit[History](t.Context(), s.Visitor(&operator), s.desk(t.Context()).history, "/v1/history?"+text, nil); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := visit[History](t.Context(), s.Visitor(&operator), s.desk(t.Context()).history, "/v1/history?limit=2000000000", nil); err != nil || (*b.asked)[len(*b.asked)-1].Limit != MostHistory {
		t.Errorf("a large limit: %+v, %v", (*b.asked)[len(*b.asked)-1], err)
	}
}

// TestHistoryIsShared checks that one user cannot have many pages read at a time.
func TestHistoryIsShared(t *testing.T) {
	b := paused{archived{newBackend(4000), new([]HistoryQuery)}, make(chan struct{}), make(chan struct{})}
	s := &Server{Backend: b, Log: logrus.New(), Reading: func() Reading { return OwnJobs }}
	d := s.desk(t.Context())
	ask := func(uid uint32) error {
		_, err := visit[History](t.Context(), Visitor{d, caller{known: true, uid: uid}}, d.history, "/v1/history", nil)
		return err
	}
	done := make(chan error, itsHistory+1)
	for range itsHistory {
		go func() { done <- ask(4000) }()
		await(t, 1, b.begun, done)
	}
	if err := ask(4000); !errors.Is(err, ErrUnavailable) {
		t.Errorf("one more: %v", err)
	}
	go func() { done <- ask(4001) }()
	await(t, 1, b.begun, done)
	close(b.may)
	for range itsHistory + 1 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// paused answers once it may.
type paused struct {
	archived
	begun, may chan struct{}
}

func (b paused) History(context.Context, HistoryQuery) (History, error) {
	b.begun <- struct{}{}
	<-b.may
	return History{}, nil
}
