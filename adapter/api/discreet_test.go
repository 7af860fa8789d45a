package api

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
)

// gossip is a text that names the caller's job 12, another user's evolving job 13 with its
// hold, and a stock job 99.
const gossip = "waits for job 13, which began before it, for stock job 99 of ann, and for job 12 (evo_13_2_1; evo_12_2_1): scontrol update JobId=13: no"

const discreetGossip = "waits for another job, which began before it, for another job, and for job 12 (another job's hold; evo_12_2_1): scontrol update JobId=…: no"

// gossiping answers everything with that, about job 12.
type gossiping struct {
	*fakeBackend
	lastCycle time.Time
}

func (b gossiping) Owner(_ context.Context, id uint32) (uint32, error) {
	if id != 12 && id != 13 {
		if b.lastCycle.IsZero() {
			return 0, NotSeen(id)
		}
		return 0, Unknown(id)
	}
	return b.owner + id - 12, nil
}

func (b gossiping) one() Job {
	return Job{ID: 12, UID: b.owner, Reason: gossip, Offers: []Offer{{Why: gossip, Note: gossip}},
		Moldable: &Moldable{Alternatives: []Alternative{{Reason: gossip}}}}
}
func (b gossiping) has() Allocation {
	return Allocation{Ready: true, Job: 12, Note: gossip, Demand: &Demand{Why: gossip}}
}

func (b gossiping) Status(context.Context) (Status, error) {
	return Status{LastError: gossip, LastCycle: b.lastCycle}, nil
}
func (b gossiping) Jobs(context.Context, bool) ([]Job, error)              { return []Job{b.one()}, nil }
func (b gossiping) Job(context.Context, uint32) (Job, error)               { return b.one(), nil }
func (b gossiping) Allocation(context.Context, uint32) (Allocation, error) { return b.has(), nil }
func (b gossiping) Next(context.Context, uint32, NextRequest) (Allocation, error) {
	return Allocation{}, Errorf(ErrConflict, gossip)
}
func (b gossiping) Change(context.Context, uint32, ChangeRequest) (Change, error) {
	has := b.has()
	return Change{Ready: true, Why: gossip, Note: gossip, Has: &has}, nil
}
func (b gossiping) Offer(context.Context, uint32, OfferQuery) (Offer, error) {
	return Offer{Ready: true, Why: gossip, Note: gossip}, nil
}
func (b gossiping) Answer(context.Context, uint32, AnswerRequest) (Answer, error) {
	has := b.has()
	return Answer{Ready: true, Note: gossip, Has: &has}, nil
}
func (b gossiping) Events(context.Context, EventQuery) ([]Event, error) {
	detail, err := json.Marshal(map[string]string{"why": gossip})
	return []Event{{ID: 1, Job: 12, Text: gossip, Detail: detail}}, err
}

// TestOthersJobsAreNotNamed checks that with private jobs no answer to an ordinary user contains
// the number of another user's job, in any text. Operators read everything.
func TestOthersJobsAreNotNamed(t *testing.T) {
	b := gossiping{newBackend(4000), time.Unix(1_800_000_000, 0)}
	owner, operator := b.owner, uint32(4009)
	for _, reading := range []Reading{OwnJobs, AllJobs} {
		s := &Server{Backend: b, Log: logrus.New(), Reading: func() Reading { return reading }, Operator: func(uid uint32) bool { return uid == operator }}
		ctx, d := t.Context(), s.desk(t.Context())
		for name, c := range map[string]struct {
			answer handler
			body   any
			texts  int
		}{
			"status":     {d.status, nil, 1},
			"jobs":       {d.jobs, nil, 4},
			"job":        {d.job, nil, 4},
			"allocation": {d.allocation, nil, 2},
			"next":       {d.next, NextRequest{From: 1}, 1},
			"change":     {d.change, ChangeRequest{ID: "1"}, 4},
			"offer":      {d.offer, OfferQuery{}, 2},
			"answer":     {d.answerOffer, AnswerRequest{Offer: 1}, 3},
			"events":     {d.events, nil, 2},
		} {
			for _, uid := range []*uint32{&owner, &operator} {
				v, err := visit[any](ctx, s.Visitor(uid), c.answer, "/v1/", c.body, "id", "12")
				text, _ := json.Marshal(v)
				if err != nil {
					text = []byte(err.Error())
				}
				want := gossip
				if uid == &owner && reading == OwnJobs {
					want = discreetGossip
				}
				if n := strings.Count(string(text), want); n != c.texts {
					t.Errorf("%s, %v, uid %d: %d of %d texts are as wanted: %s", name, reading, *uid, n, c.texts, text)
				}
			}
		}
	}
	if one := b.one(); one.Reason != gossip || one.Offers[0].Why != gossip || one.Moldable.Alternatives[0].Reason != gossip {
		t.Error("the backend's own job was changed")
	}
}

// TestNotThereAndNotYours checks that with private jobs another user's job is answered like one
// that does not exist, even before the first poll of Slurm.
func TestNotThereAndNotYours(t *testing.T) {
	for kind, seen := range map[error]time.Time{ErrNotFound: time.Unix(1_800_000_000, 0), ErrUnavailable: {}} {
		b := gossiping{newBackend(4000), seen}
		s := &Server{Backend: b, Log: logrus.New(), Reading: func() Reading { return OwnJobs }}
		d := s.desk(t.Context())
		for name, answer := range map[string]handler{"job": d.job, "allocation": d.allocation, "events": d.events, "next": d.next} {
			ask := func(id string) (string, error) {
				_, err := visit[any](t.Context(), s.Visitor(&b.owner), answer, "/v1/events?job="+id, NextRequest{From: 1}, "id", id)
				if err == nil {
					t.Fatalf("%s %s is answered", name, id)
				}
				return strings.ReplaceAll(err.Error(), id, "N"), err
			}
			text1, theirs := ask("13")
			text2, none := ask("77")
			if !errors.Is(theirs, kind) || !errors.Is(none, kind) || text1 != text2 {
				t.Errorf("%s: not yours: %v; not there: %v; want both %v", name, theirs, none, kind)
			}
		}
	}
}
