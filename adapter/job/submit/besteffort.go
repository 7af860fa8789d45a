package submit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/adapter/job/request"
)

// A best-effort job has the bounds of --nodes, and the account, QOS, and partition that the site has for such jobs.

// bestEffort gives a best-effort job of the command line, or else of the script, its bounds. The option --nodes has no other
// meaning for it, so that the layers lose it.
func (l *layers) bestEffort(given, fromScript request.Request) (request.Request, error) {
	if !given.BestEffort() && (given.Profile != nil || given.Moldable != nil || !fromScript.BestEffort()) {
		return given, nil
	}
	bounds, o := "1", getopt.Option{}
	if nodes, has := l.last("nodes"); has {
		bounds, o = strings.TrimSpace(nodes.Value), nodes
	}
	if !strings.Contains(bounds, "-") {
		bounds += "-" + bounds
	}
	if err := given.Set("malleable", bounds); err != nil {
		return given, fmt.Errorf("%s: %w", o, err)
	}
	given.Malleable.BestEffort = request.Requeued
	for _, o := range l.all() {
		switch o.Name {
		case "no-requeue":
			given.Malleable.BestEffort = request.Cancelled
		case "requeue":
			given.Malleable.BestEffort = request.Requeued
		case "array":
			return given, fmt.Errorf("%s: a best-effort job cannot be an array: give --nodes=MIN-MAX and work the tasks off in one job", o)
		case "licenses":
			return given, fmt.Errorf("%s: a best-effort job cannot ask for licences, since it would keep them from others: leave the option out, or give --malleable=MIN-MAX", o)
		}
	}
	isNodes := func(o getopt.Option) bool { return o.Name == "nodes" }
	l.command, l.script = slices.DeleteFunc(slices.Clone(l.command), isNodes), slices.DeleteFunc(slices.Clone(l.script), isNodes)
	return given, nil
}

// asBestEffort charges a best-effort job to what the site has for such jobs, or returns why the site runs none as this one.
func (s site) asBestEffort(r submission) (submission, error) {
	if !r.request.BestEffort() {
		return r, nil
	}
	if !s.bestEffort.Enabled {
		return r, errors.New(config.NoBestEffort + ": leave --best-effort out, or give --malleable=MIN-MAX")
	}
	if why := s.bestEffort.TooFew(r.request.Profile[0].Nodes); why != "" {
		return r, errors.New(why)
	}
	add := func(name, value string) {
		r.options.command = append(slices.Clone(r.options.command), getopt.Option{Name: name, Value: value, HasValue: true, Words: []string{"--" + name + "=" + value}})
	}
	for _, charged := range s.bestEffort.Charged() {
		o, given := r.options.last(charged.Name)
		switch {
		case !given:
			add(charged.Name, charged.Value)
		case o.Value != charged.Value:
			return r, fmt.Errorf("%s: this site runs best-effort jobs with --%s=%s: leave the option out", o, charged.Name, charged.Value)
		}
	}
	if r.request.Malleable.BestEffort == request.Requeued { // the site's default may be another one
		r.options.command = append(slices.Clone(r.options.command), getopt.Option{Name: "requeue", Words: []string{"--requeue"}})
	}
	return r, nil
}
