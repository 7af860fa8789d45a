package chart

import (
	"fmt"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// A malleable job's offers and demands, with their outcome, have their own row: the number of nodes
// at that time, and a mark at the end.
const (
	markDone  = "="
	markNone  = "x" // declined, not answered, withdrawn, or it could not be
	markTaken = "!"
)

// by returns how many nodes an offer is about: +3, or -2.
func by(o api.Offer) string {
	if o.Kind == "shrink" {
		return fmt.Sprintf("-%d", o.Nodes)
	}
	return fmt.Sprintf("+%d", o.Nodes)
}

// mark returns the outcome of an offer, and when; "" if it is open.
func mark(o api.Offer) (string, time.Time) {
	switch {
	case o.State == "open", o.State == "accepted":
		return "", time.Time{}
	case o.Enforced:
		return markTaken, o.Closed
	case o.State == "done":
		return markDone, o.Closed
	}
	return markNone, o.Closed
}

// lastOffer returns the job's last offer with its times, as far as there is room.
func (c *canvas) lastOffer(j api.Job) string {
	o := j.Offers[len(j.Offers)-1]
	text := o.Made.In(c.now.Location()).Format(time.TimeOnly) + " " + by(o)
	if _, at := mark(o); !at.IsZero() {
		word := o.State
		switch {
		case o.Enforced:
			word = "taken"
		case o.State == "done" && o.Kind == "shrink":
			word = "back"
		case o.State == "done":
			word = "lent"
		}
		return text + " " + word + " " + at.In(c.now.Location()).Format(time.TimeOnly)
	}
	return text + " " + o.State
}

// offers returns the row of a job's offers.
func (c *canvas) offers(l lane) string {
	row := c.blank()
	if c.at >= 0 {
		row[c.at] = c.nowCell()
	}
	free := 0
	put := func(t time.Time, text string) {
		if t.IsZero() || t.Before(c.from) {
			return
		}
		col := max(c.column(t), free)
		if c.at >= col && c.at < col+len(text) { // not over the present
			col = c.at + 1
		}
		if !c.fits(col, len(text)) {
			return
		}
		for k := range len(text) {
			row[col+k] = c.paint(text[k:k+1], l.hue.allocated)
		}
		free = col + len(text)
	}
	for _, o := range l.job.Offers {
		put(o.Made, by(o))
		text, at := mark(o)
		put(at, text)
	}
	return strings.Join(row, "")
}
