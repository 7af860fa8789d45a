package api

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Texts for people name jobs by number: "waits for job 7", "stock job 9 of ann", "JobId=7", the
// hold evo_7_2_1. A caller who may not read other users' jobs must not learn these numbers.

// jobText matches a job, or a hold, as texts name it.
var jobText = regexp.MustCompile(`\b(?:stock )?job (\d+)(?: of [^\s:;,)]+)?|\bJobId=(\d+)|\bevo_(\d+)_\d+_\d+\b`)

// discretion returns what replaces, in a text, each job that the caller may not read of; nil
// if the caller reads of all.
func (r *rights) discretion(ctx context.Context, c caller) func(text string) string {
	if r.seesAll(ctx, c) {
		return nil
	}
	sees := r.seer(ctx, c)
	readable := func(number string) bool {
		id, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return false
		}
		if owner, err := r.backend.Owner(ctx, uint32(id)); err == nil && c.known && owner == c.uid {
			return true
		}
		j, err := r.backend.Job(ctx, uint32(id))
		return err == nil && j.Account != "" && sees(j.Account)
	}
	return func(text string) string {
		return jobText.ReplaceAllStringFunc(text, func(name string) string {
			m := jobText.FindStringSubmatch(name)
			switch {
			case readable(m[1] + m[2] + m[3]):
				return name
			case m[3] != "":
				return "another job's hold"
			case m[2] != "":
				return "JobId=…"
			}
			return "another job"
		})
	}
}

// discreet applies a discretion to the texts of an answer, in place; it clones lists before.
func discreet(answer any, with func(string) string) {
	if with == nil {
		return
	}
	apply := func(texts ...*string) {
		for _, text := range texts {
			*text = with(*text)
		}
	}
	switch a := answer.(type) {
	case *Job:
		apply(&a.Reason)
		a.Offers = slices.Clone(a.Offers)
		for i := range a.Offers {
			discreet(&a.Offers[i], with)
		}
		if a.Moldable != nil {
			m := *a.Moldable
			m.Alternatives = slices.Clone(m.Alternatives)
			for i := range m.Alternatives {
				apply(&m.Alternatives[i].Reason)
			}
			a.Moldable = &m
		}
	case *Offer:
		apply(&a.Why, &a.Note)
	case *Allocation:
		apply(&a.Note)
		if a.Demand != nil {
			d := *a.Demand
			apply(&d.Why)
			a.Demand = &d
		}
	case *Change:
		apply(&a.Why, &a.Note)
		a.Has = discreetAllocation(a.Has, with)
	case *Answer:
		apply(&a.Note)
		a.Has = discreetAllocation(a.Has, with)
	case *Event:
		apply(&a.Text)
		if len(a.Detail) > 0 { // an empty text is no JSON
			a.Detail = []byte(with(string(a.Detail)))
		}
	case *Status:
		apply(&a.LastError)
	}
}

func discreetAllocation(a *Allocation, with func(string) string) *Allocation {
	if a == nil {
		return nil
	}
	own := *a
	discreet(&own, with)
	return &own
}

// discreetError applies a discretion to an error, whose kind stays.
func discreetError(err error, with func(string) string) error {
	var k *kindError
	if with == nil || !errors.As(err, &k) {
		return err
	}
	return &kindError{kind: k.kind, text: with(k.text)}
}

// strategiesFor returns strategies as the caller may read them. Parameters may be secret (e.g. a
// licence server's token), and a plugin's faults may repeat them: both are only for operators.
func (r *rights) strategiesFor(c caller, all []Strategy) []Strategy {
	if r.trusted(c) {
		return all
	}
	all = slices.Clone(all)
	for i := range all {
		all[i].Parameters, all[i].LastFault = []StrategyParameter{}, ""
		if all[i].State == "refused" {
			all[i].Reason = "operators see why"
		}
	}
	return all
}

// noteFor returns a strategy's or policy's note as the caller may read it: the text after the colon
// is the plugin's fault.
func (r *rights) noteFor(c caller, note string) string {
	if !r.trusted(c) {
		note, _, _ = strings.Cut(note, ": ")
	}
	return note
}
