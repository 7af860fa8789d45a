package controller

import (
	"context"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
)

// lateCaller looks at its own context, as a caller does before it waits, only once the loop has ended.
type lateCaller struct {
	context.Context
	looked int
	gone   <-chan struct{}
}

func (l *lateCaller) Done() <-chan struct{} {
	if l.looked++; l.looked > 1 {
		<-l.gone
	}
	return l.Context.Done()
}

// TestLastWord checks that a caller hears what the loop did last, although the loop has ended when it looks.
func TestLastWord(t *testing.T) {
	for range 100 {
		c := &Controller{mail: make(chan any), gone: make(chan struct{})}
		go func() {
			(<-c.mail).(func())()
			close(c.gone)
		}()
		if !c.onLoop(&lateCaller{Context: t.Context(), gone: c.gone}, func() {}) {
			t.Fatal("what was carried out counts as not running")
		}
	}
}

// TestLastReply is TestLastWord for calls of scripts.
func TestLastReply(t *testing.T) {
	for range 100 {
		c := &Controller{mail: make(chan any, 1), gone: make(chan struct{})}
		c.calls.waiting = map[uint64]chan msg.Reply{}
		go func() {
			in := (<-c.mail).(msg.Call)
			c.calls.reply(msg.Reply{ID: in.ID})
			close(c.gone)
		}()
		if _, err := c.ask(&lateCaller{Context: t.Context(), gone: c.gone}, msg.Call{}); err != nil {
			t.Fatal(err)
		}
	}
}
