package api

import (
	"io"
	"net/http"
	"time"
)

// What callers share besides connections: memory for their bodies, concurrent requests, requests
// per second, and log lines. Each user, or address if the user is unknown, has a share. A caller
// beyond its share is asked to try again, and others are served.
const (
	leastBody  = 4 << 10 // bytes that each caller counts at least, because it has a connection
	allBodies  = 8 << 20 // bytes of all requests at a time
	itsBodies  = 1 << 20 // largest share of a user or an address, in bytes
	keptBodies = 1 << 20 // reserved for root and operators, in bytes

	itsRequests = 16 // concurrent requests of a user, or of an address without a credential, not counting those that wait for their job
	itsWaiting  = 64 // requests that wait for a job
	allHistory  = 16 // pages of the history that are read at a time: each has up to HistoryBytes
	itsHistory  = 2
	keptHistory = 4 // reserved for root and operators

	itsDecoding = 64 // credentials of an address that are being checked, or wait for that

	perSecond = 20  // requests of a user that are answered in the long run
	burst     = 400 // and at once
)

// shares holds the callers' shares of a server.
type shares struct {
	bodies   amounts[holder]
	readers  readers
	requests amounts[holder]
	waiting  amounts[uint32] // by job
	history  amounts[holder]
	decoding amounts[holder]
	rate     rates[uint32]
	lines    *lines
}

func newShares() *shares {
	return &shares{
		bodies:   amounts[holder]{all: allBodies, each: itsBodies, kept: keptBodies},
		requests: amounts[holder]{each: itsRequests},
		waiting:  amounts[uint32]{each: itsWaiting},
		history:  amounts[holder]{all: allHistory, each: itsHistory, kept: keptHistory},
		decoding: amounts[holder]{each: itsDecoding},
		rate:     rates[uint32]{perSecond: perSecond, burst: burst},
		lines:    newLines(),
	}
}

// readBody reads a request's body: at most maxBody, nothing from a caller without a well-formed
// credential, and nothing beyond the shares. The caller calls free once it no longer needs the
// body. open callers need no credential, and trusted may be nil for no user.
func (s *shares) readBody(w http.ResponseWriter, r *http.Request, trusted func(uid uint32) bool, open bool) (body []byte, free func(), err error) {
	free = func() {}
	if r.ContentLength == 0 || r.Body == nil {
		return nil, free, nil
	}
	who := callerOf(r)
	if !who.known && !open {
		if err := wellFormed(r.Header); err != nil {
			return nil, free, Errorf(ErrDenied, "%v", err)
		}
	}
	size := max(r.ContentLength, leastBody)
	limit := int64(maxBody)
	if open {
		limit = maxForm
	}
	if size > limit {
		return nil, free, Errorf(ErrInvalid, "the request's body is too large: %d bytes, at most %d are read", size, limit)
	}
	if r.ContentLength < 0 {
		size = limit
	}
	free, ok := s.room(r.Context(), who, size, who.known && trusted != nil && trusted(who.uid))
	if !ok {
		return nil, free, Errorf(ErrUnavailable, "too much is being sent at this moment: try again")
	}
	defer s.readers.add(who, func() { _ = http.NewResponseController(w).SetReadDeadline(time.Now()) })()
	if body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, limit)); err != nil {
		free()
		return nil, func() {}, Errorf(ErrInvalid, "the request's body: %v", err)
	}
	return body, free, nil
}

// enter counts a request until leave is called. Root is not counted.
func (s *shares) enter(c caller, from holder) (leave func(), err error) {
	leave = func() {}
	switch {
	case !c.known:
	case c.uid == 0:
		return leave, nil
	case !s.rate.take(c.uid, time.Now()):
		return leave, Errorf(ErrUnavailable, "uid %d asks too often: try again in a second", c.uid)
	default:
		from = holder{known: true, uid: c.uid}
	}
	leave, ok := s.requests.take(from, 1, false)
	if !ok {
		return leave, Errorf(ErrUnavailable, "%d requests of this caller are being answered: try again", itsRequests)
	}
	return leave, nil
}

// enterWait counts a request that waits for a job, until leave is called. It counts neither as
// one of its user's nor for its body any more.
func (s *shares) enterWait(r request, id uint32) (leave func(), err error) {
	leave, ok := s.waiting.take(id, 1, false)
	if !ok {
		return leave, Errorf(ErrUnavailable, "%d requests wait for job %d: try again", itsWaiting, id)
	}
	if r.leave != nil {
		r.leave()
	}
	return leave, nil
}
