package api

import (
	"container/list"
	"context"
	"sync"
	"time"
)

const (
	roomSoon = 500 * time.Millisecond // how long a body waits for the room of an older one
	roomLook = 5 * time.Millisecond
)

// readers lists how to stop each body that is being read, by holder, oldest first.
type readers struct {
	mu sync.Mutex
	of map[holder]*list.List
}

// add notes a body until done is called.
func (r *readers) add(who holder, stop func()) (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[holder]*list.List{}
	}
	its := r.of[who]
	if its == nil {
		its = list.New()
		r.of[who] = its
	}
	e := its.PushBack(stop)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		its.Remove(e)
		if its.Len() == 0 && r.of[who] == its {
			delete(r.of, who)
		}
	}
}

// stopOldest stops the oldest body of a holder, and reports whether there is one.
func (r *readers) stopOldest(who holder) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	its := r.of[who]
	if its == nil || its.Len() == 0 {
		return false
	}
	its.Remove(its.Front()).(func())()
	return true
}

// room counts a body until free is called. If its holder's share is full, room stops the holder's
// oldest unfinished body and waits a moment for its room. An honest caller, who sends the whole
// body at once, may share an address with one that sends slowly on purpose.
func (s *shares) room(ctx context.Context, who holder, size int64, trusted bool) (free func(), ok bool) {
	free, ok = s.bodies.take(who, size, trusted)
	if ok || !s.readers.stopOldest(who) {
		return free, ok
	}
	for end := time.Now().Add(roomSoon); !ok && ctx.Err() == nil && time.Now().Before(end); {
		time.Sleep(roomLook)
		free, ok = s.bodies.take(who, size, trusted)
	}
	return free, ok
}
