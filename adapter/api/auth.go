package api

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
)

// maxDecoders is how many processes of MUNGE run at a time.
const maxDecoders = 16

// authenticator identifies callers and proves answers to them.
type authenticator struct {
	munge     Munge
	maxAge    time.Duration              // of a credential
	cluster   func() string              // as Server.Cluster
	forwarded []string                   // as Server.Forwarded
	since     *atomic.Pointer[time.Time] // as Server.since
	tokens    *Keys                      // nil: tokens are not accepted
	shares    *shares
	log       logrus.FieldLogger

	seen  replayCache
	slots chan struct{} // one for each process of MUNGE that may run
}

// authenticate identifies the caller. It checks a credential if there is one; without one, it knows
// only Unix peers.
func (a *authenticator) authenticate(r *http.Request, body []byte) (caller, error) {
	if p, ok := r.Context().Value(peerKey{}).(peer); ok {
		if p.err != nil {
			return caller{}, fmt.Errorf("the peer's credentials: %w", p.err)
		}
		return caller{known: true, uid: p.uid}, nil
	}
	var c caller
	credential, byToken, err := credentialOf(r.Header)
	if err != nil {
		return c, Errorf(ErrDenied, "%v", err)
	}
	if credential == "" {
		return c, nil
	}
	who := callerOf(r)
	leave, ok := a.shares.decoding.take(who, 1, false)
	if !ok {
		return c, Errorf(ErrUnavailable, "%d credentials from %s are being checked: try again", itsDecoding, who.address)
	}
	defer leave()
	if byToken {
		c.uid, err = a.openToken(r, credential, body)
	} else {
		c.uid, err = a.openMunge(r, credential, body)
	}
	if err != nil {
		return c, err
	}
	if a.seen.used(credential, time.Now(), 2*a.maxAge) { // the caller's clock may be ahead by maxAge
		return c, Errorf(ErrDenied, "the credential has been used before")
	}
	if err := claimed(r.Context(), c.uid); err != nil {
		return c, err
	}
	c.known = true
	return c, nil
}

// openMunge opens a credential of MUNGE that was made for this request, and returns its user.
func (a *authenticator) openMunge(r *http.Request, credential string, body []byte) (uid uint32, err error) {
	decoded, err := a.decode(r.Context(), credential)
	if err != nil {
		var m *mungeError
		if errors.As(err, &m) && m.away() {
			return 0, Errorf(ErrUnavailable, "munged does not answer the sidecar: %v", err)
		}
		return 0, Errorf(ErrDenied, "%v", err)
	}
	return decoded.UID, a.bind(r, credential, decoded, body)
}

// decode opens a credential, a bounded number at a time: a client that floods the
// port with false ones gets no more processes than that.
func (a *authenticator) decode(ctx context.Context, credential string) (Credential, error) {
	free, err := a.mungeSlot(ctx)
	if err != nil {
		return Credential{}, err
	}
	defer free()
	return a.munge.Decode(ctx, credential)
}

// seal keeps of a request what its answer is proved by.
type seal struct {
	target     target
	credential string // of a user of this realm; "": the answer is not proved
	key        []byte // of a token; nil: MUNGE proves the answer
}

type sealKey struct{}

// sealed prepares a request for an answer that is proved.
func sealed(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), sealKey{}, new(seal)))
}

// bind checks that a credential was made for this request to this server, and has its answer proved.
func (a *authenticator) bind(r *http.Request, credential string, c Credential, body []byte) error {
	targets, err := a.targets(r, body)
	if err != nil {
		return err
	}
	t := targets[0]
	for _, other := range targets[1:] {
		if c.Payload == other.request() {
			t = other
		}
	}
	if sl, ok := r.Context().Value(sealKey{}).(*seal); ok {
		*sl = seal{target: t, credential: credential}
	}
	if c.Payload != t.request() {
		return t.mismatch(c.Payload)
	}
	if age := c.Decoded.Sub(c.Encoded); age > a.maxAge || age < -a.maxAge {
		return Errorf(ErrDenied, "the MUNGE credential is %v old, at most %v is accepted (are the clocks of the two machines alike?)", age, a.maxAge)
	}
	// MUNGE counts whole seconds. Ages are compared, not times: the host's clock may be set.
	if since := a.since.Load(); since != nil && c.Decoded.Sub(c.Encoded)+time.Second > time.Since(*since) {
		return Errorf(ErrUnavailable, "the MUNGE credential was made before the sidecar began to listen here: make another")
	}
	return nil
}

// prove adds the server's credential to an answer's header. Without munged, the answer goes out
// without it, and the client asks again.
func (a *authenticator) prove(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	sl, ok := r.Context().Value(sealKey{}).(*seal)
	if !ok || sl.credential == "" {
		return
	}
	if sl.key != nil {
		w.Header().Set(answerHeader, hex.EncodeToString(mac(sl.key, sl.target.answer(sl.credential, status, body))))
		return
	}
	free, err := a.mungeSlot(r.Context())
	if err != nil { // the caller has hung up
		return
	}
	defer free()
	credential, err := a.munge.Encode(r.Context(), sl.target.answer(sl.credential, status, body), credentialTTL)
	if err != nil {
		level := logrus.WarnLevel
		if r.Context().Err() != nil {
			level = logrus.DebugLevel // the caller has hung up
		}
		a.log.WithError(err).Log(level, "cannot prove an answer by MUNGE")
		return
	}
	w.Header().Set(answerHeader, credential)
}

// mungeSlot waits for one of the slots for processes of MUNGE.
func (a *authenticator) mungeSlot(ctx context.Context) (free func(), err error) {
	select {
	case a.slots <- struct{}{}:
		return func() { <-a.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
