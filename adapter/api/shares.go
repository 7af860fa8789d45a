package api

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// What callers share besides connections: memory for their bodies, concurrent requests, requests
// per second, and log lines. Each user, or address if the user is unknown, has a share. A caller
// beyond its share is asked to try again, and others are served.
const (
	maxBody    = 16 << 10 // bytes of a request
	leastBody  = 4 << 10  // bytes that each caller counts at least, because it has a connection
	allBodies  = 8 << 20  // bytes of all requests at a time
	itsBodies  = 1 << 20  // largest share of a user or an address, in bytes
	keptBodies = 1 << 20  // reserved for root and operators, in bytes

	itsRequests = 16 // concurrent requests of a user, or of an address without a credential, not counting those that wait for their job
	itsWaiting  = 64 // requests that wait for a job
	itsDecoding = 64 // credentials of an address that are being decoded, or wait for that

	perSecond = 20  // requests of a user that are answered in the long run
	burst     = 400 // and at once

	most = 4096 // shares that are remembered
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

// rates bounds how often each holder does something: burst times at once, and perSecond
// times a second in the long run.
type rates[K comparable] struct {
	perSecond, burst float64

	mu sync.Mutex
	of map[K]rate
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
	if len(r.of) >= most {
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
	for who, is := range r.of {
		if r.refilled(is, now).left >= r.burst {
			delete(r.of, who)
		}
	}
}

// shares holds the callers' shares of a server.
type shares struct {
	bodies   amounts[holder]
	requests amounts[holder]
	waiting  amounts[uint32] // by job
	decoding amounts[holder]
	rate     rates[uint32]
	lines    *lines
}

func newShares() *shares {
	return &shares{
		bodies:   amounts[holder]{all: allBodies, each: itsBodies, kept: keptBodies},
		requests: amounts[holder]{each: itsRequests},
		waiting:  amounts[uint32]{each: itsWaiting},
		decoding: amounts[holder]{each: itsDecoding},
		rate:     rates[uint32]{perSecond: perSecond, burst: burst},
		lines:    newLines(),
	}
}

// share returns what the callers share.
func (s *Server) share() *shares {
	s.sharing.Do(func() { s.shares = newShares() })
	return s.shares
}

// callerOf returns the holder of a request's connection, as far as it is known before
// authentication.
func callerOf(r *http.Request) holder {
	if p, ok := r.Context().Value(peerKey{}).(peer); ok && p.err == nil {
		return holder{known: true, uid: p.uid}
	}
	host := r.RemoteAddr
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		host = host[:i]
	}
	return holder{address: host}
}

// readBody reads a request's body: at most maxBody, nothing from a caller without a well-formed
// credential, and nothing beyond the shares. The caller calls free once it no longer needs the
// body.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) (body []byte, free func(), err error) {
	free = func() {}
	if r.ContentLength == 0 || r.Body == nil {
		return nil, free, nil
	}
	who := callerOf(r)
	if !who.known {
		if err := wellFormed(r.Header); err != nil {
			return nil, free, Errorf(ErrDenied, "%v", err)
		}
	}
	size := max(r.ContentLength, leastBody)
	if size > maxBody {
		return nil, free, Errorf(ErrInvalid, "the request's body is too large: %d bytes, at most %d are read", size, maxBody)
	}
	if r.ContentLength < 0 {
		size = maxBody
	}
	free, ok := s.share().bodies.take(who, size, who.known && s.acts(who.uid))
	if !ok {
		return nil, free, Errorf(ErrUnavailable, "too much is being sent at this moment: try again")
	}
	if body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		free()
		return nil, func() {}, Errorf(ErrInvalid, "the request's body: %v", err)
	}
	return body, free, nil
}

// enter counts a request until leave is called. Root is not counted.
func (s *Server) enter(c caller, from holder) (leave func(), err error) {
	leave = func() {}
	switch {
	case !c.known:
	case c.uid == 0:
		return leave, nil
	case !s.share().rate.take(c.uid, time.Now()):
		return leave, Errorf(ErrUnavailable, "uid %d asks too often: try again in a second", c.uid)
	default:
		from = holder{known: true, uid: c.uid}
	}
	leave, ok := s.share().requests.take(from, 1, false)
	if !ok {
		return leave, Errorf(ErrUnavailable, "%d requests of this caller are being answered: try again", itsRequests)
	}
	return leave, nil
}

// enterWait counts a request that waits for a job, until leave is called: it does not count as
// one of its user's any more.
func (s *Server) enterWait(r request, id uint32) (leave func(), err error) {
	leave, ok := s.share().waiting.take(id, 1, false)
	if !ok {
		return leave, Errorf(ErrUnavailable, "%d requests wait for job %d: try again", itsWaiting, id)
	}
	if r.leave != nil {
		r.leave()
	}
	return leave, nil
}

// decoder waits for one of the slots for unmunge; an address does not wait more often than its
// share lets it.
func (s *Server) decoder(ctx context.Context, who holder) (free func(), err error) {
	leave, ok := s.share().decoding.take(who, 1, false)
	if !ok {
		return leave, Errorf(ErrUnavailable, "%d credentials from %s are being decoded: try again", itsDecoding, who.address)
	}
	slot, err := s.mungeSlot(ctx)
	if err != nil {
		leave()
		return leave, err
	}
	return func() { slot(); leave() }, nil
}

// mungeSlot waits for one of the slots for processes of MUNGE.
func (s *Server) mungeSlot(ctx context.Context) (free func(), err error) {
	select {
	case s.decoders <- struct{}{}:
		return func() { <-s.decoders }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
