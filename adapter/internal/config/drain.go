package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Drain says what the sidecar no longer does, in words: "" for nothing, "drain", or "release" with what becomes of the
// jobs. Operators set it at run time (evosctl drain, release-all); by= and at= then name the operator and the time.
//
//	drain by=root at=1790000000
//	release queued=start as=first running=keep by=root at=1790000000
type Drain string

// Drained holds what a [Drain] says.
type Drained struct {
	Release bool      `json:"release,omitempty"` // give up everything at once; otherwise adopt and hold nothing new
	Queued  string    `json:"queued,omitempty"`  // start, hold or cancel
	As      string    `json:"as,omitempty"`      // first or peak
	Running string    `json:"running,omitempty"` // keep or shrink
	By      string    `json:"by,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// What becomes of jobs when everything is released. The first of each is the default.
var (
	ReleaseQueued  = []string{"start", "hold", "cancel"}
	ReleaseAs      = []string{"first", "peak"}
	ReleaseRunning = []string{"keep", "shrink"}
)

// On reports whether the sidecar is drained.
func (d Drain) On() bool { return d != "" }

// Releases reports whether the sidecar gives everything up.
func (d Drain) Releases() bool { return strings.HasPrefix(string(d), "release") }

// Parse returns what the words say.
func (d Drain) Parse() (Drained, error) {
	words := strings.Fields(string(d))
	if len(words) == 0 {
		return Drained{}, nil
	}
	out := Drained{Release: words[0] == "release"}
	if out.Release {
		out.Queued, out.As, out.Running = ReleaseQueued[0], ReleaseAs[0], ReleaseRunning[0]
	} else if words[0] != "drain" {
		return out, fmt.Errorf("%q; want drain or release", words[0])
	}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		to, among := (*string)(nil), []string(nil)
		switch {
		case key == "by" && value != "":
			out.By = value
			continue
		case key == "at":
			unix, err := strconv.ParseInt(value, 10, 48)
			if err != nil {
				return out, fmt.Errorf("%q; want at=SECONDS", word)
			}
			out.At = time.Unix(unix, 0)
			continue
		case !out.Release:
		case key == "queued":
			to, among = &out.Queued, ReleaseQueued
		case key == "as":
			to, among = &out.As, ReleaseAs
		case key == "running":
			to, among = &out.Running, ReleaseRunning
		}
		if !slices.Contains(among, value) {
			return out, fmt.Errorf("%q does not go with %s", word, words[0])
		}
		*to = value
	}
	return out, nil
}

// Text returns the words that say this.
func (d Drained) Text() Drain {
	words := []string{"drain"}
	if d.Release {
		words = []string{"release", "queued=" + d.Queued, "as=" + d.As, "running=" + d.Running}
	}
	if by := strings.Join(strings.Fields(d.By), "_"); by != "" { // names of a domain may have spaces
		words = append(words, "by="+by)
	}
	if !d.At.IsZero() {
		words = append(words, fmt.Sprintf("at=%d", d.At.Unix()))
	}
	return Drain(strings.Join(words, " "))
}

// Words says for people who drained the sidecar, and when.
func (d Drained) Words() string {
	text := "the sidecar is drained"
	if d.Release {
		text = "everything was released"
	}
	switch {
	case d.By == "":
		return text + " by the configuration (drain)"
	case d.At.IsZero():
		return text + " by " + d.By
	}
	return fmt.Sprintf("%s by %s at %s", text, d.By, d.At.Local().Format(time.DateTime))
}

// DrainFile returns the file beside a database in which evosctl says, while the sidecar is down, that it must start
// drained.
func DrainFile(database string) string { return database + ".drain" }
