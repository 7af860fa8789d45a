package api

import (
	"sync"
	"time"
)

// amounts bounds what each holder has of something, and all together.
type amounts[K comparable] struct {
	all, each, kept int64 // bounds; 0: there is none

	mu  sync.Mutex
	sum int64
	of  map[K]int64
}

// take gives a holder that much more, unless the holder or all would have too much. Trusted holders
// may also use the reserve. The caller returns it with free, which works once.
func (a *amounts[K]) take(who K, n int64, trusted bool) (free func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.all - a.kept
	if trusted {
		all = a.all
	}
	if a.each > 0 && a.of[who]+n > a.each || a.all > 0 && a.sum+n > all {
		return func() {}, false
	}
	if a.of == nil {
		a.of = map[K]int64{}
	}
	a.of[who] += n
	a.sum += n
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.sum -= n
		if a.of[who] -= n; a.of[who] == 0 {
			delete(a.of, who)
		}
	}), true
}

// most is how many holders are remembered.
const most = 4096

// rates bounds how often each holder does something: burst times at once, and perSecond
// times a second in the long run.
type rates[K comparable] struct {
	perSecond, burst float64

	mu       sync.Mutex
	of       map[K]rate
	searched time.Time // for idle holders
}

// rate is the amount left at a time.
type rate struct {
	left float64
	at   time.Time
}

// take reports whether a holder may do it now.
func (r *rates[K]) take(who K, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	// A search looks at all holders, so there is one per refill at most, however many callers come.
	if len(r.of) >= most && now.Sub(r.searched).Seconds()*r.perSecond >= 1 {
		r.forget(now)
	}
	if r.of == nil {
		r.of = map[K]rate{}
	}
	is, known := r.of[who]
	if !known {
		is = rate{r.burst, now}
	}
	is = r.refilled(is, now)
	ok := is.left >= 1
	if ok {
		is.left--
	}
	if r.of[who] = is; len(r.of) > most { // as many holders at once: none of them is remembered
		delete(r.of, who)
	}
	return ok
}

func (r *rates[K]) refilled(is rate, now time.Time) rate {
	gone := max(now.Sub(is.at).Seconds(), 0)
	return rate{min(is.left+gone*r.perSecond, r.burst), now}
}

// forget drops callers that were idle for a while.
func (r *rates[K]) forget(now time.Time) {
	r.searched = now
	for who, is := range r.of {
		if r.refilled(is, now).left >= r.burst {
			delete(r.of, who)
		}
	}
}
