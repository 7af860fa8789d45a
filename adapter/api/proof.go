package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
)

// Over TCP, both sides prove their identity. The caller's credential is for one request to one
// server: it names the cluster and the address at which the caller has reached the server, so no
// other server can use it. The server's credential is for one answer to that request: it names the
// request with the caller's credential, the status, and the body.

const (
	requestUse = "evoslurm-api-2"    // first line of a request's credential
	answerUse  = "evoslurm-answer-1" // first line of an answer's credential

	// answerHeader carries the answer's credential.
	answerHeader = "Evoslurm-Answer"
)

// target identifies a request and its server.
type target struct {
	cluster, server string // server is IP:port
	method, uri     string // uri is the URI of the request line
	body            string // its SHA-256
}

func newTarget(cluster, server, method, uri string, body []byte) target {
	return target{cluster: strings.ToLower(cluster), server: server, method: method, uri: uri, body: digest(body)}
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// request returns the payload of the request's credential. Its first line prevents reuse of
// credentials made for other purposes.
func (t target) request() string {
	return strings.Join([]string{requestUse, t.cluster, t.server, t.method, t.uri, t.body, ""}, "\n")
}

// answer returns the payload of the answer's credential. A request's credential is unique, so an
// answer to another request never fits.
func (t target) answer(credential string, status int, body []byte) string {
	return strings.Join([]string{answerUse, digest([]byte(t.request() + credential)), strconv.Itoa(status), digest(body), ""}, "\n")
}

// mismatch explains why a request's credential with this payload is not for the target.
func (t target) mismatch(payload string) error {
	lines := strings.Split(payload, "\n")
	switch {
	case lines[0] == "evoslurm-api-1":
		return Errorf(ErrDenied, "the MUNGE credential is of an older version: install the sidecar's version of the commands")
	case lines[0] != requestUse || len(lines) != strings.Count(t.request(), "\n")+1:
	case lines[1] != t.cluster:
		return Errorf(ErrDenied, "the MUNGE credential was made for cluster %q, and this sidecar drives %q", lines[1], t.cluster)
	case lines[2] != t.server:
		return Errorf(ErrDenied, "the MUNGE credential was made for a server at %q, and it has arrived at %s (if a forwarder is between them, add the former to listen.forwarded)", lines[2], t.server)
	}
	return Errorf(ErrDenied, "the MUNGE credential was made for another request")
}

// endpoint writes an end of a TCP connection as IP:port, in the same way on both of its sides.
func endpoint(a net.Addr) string {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return a.String()
	}
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port()).String()
}

// seal keeps of a request what its answer is proved by.
type seal struct {
	target     target
	credential string // of a user of this realm; "": the answer is not proved
}

type sealKey struct{}

// sealed prepares a request for an answer that is proved.
func sealed(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), sealKey{}, new(seal)))
}

// targets returns the targets that a request's credential may name: this server, at one of its
// addresses.
func (s *Server) targets(r *http.Request, body []byte) ([]target, error) {
	cluster := ""
	if s.Cluster != nil {
		if cluster = s.Cluster(); cluster == "" {
			return nil, Errorf(ErrUnavailable, "the sidecar has not asked Slurm yet which cluster this is")
		}
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return nil, Errorf(ErrDenied, "the request's connection has no address")
	}
	var all []target
	for _, address := range append([]string{endpoint(local)}, s.Forwarded...) {
		all = append(all, newTarget(cluster, address, r.Method, r.URL.RequestURI(), body))
	}
	return all, nil
}

// bind checks that a credential was made for this request to this server, and has its answer proved.
func (s *Server) bind(r *http.Request, credential string, c Credential, body []byte) error {
	targets, err := s.targets(r, body)
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
		*sl = seal{t, credential}
	}
	if c.Payload != t.request() {
		return t.mismatch(c.Payload)
	}
	if age := c.Decoded.Sub(c.Encoded); age > s.maxAge() || age < -s.maxAge() {
		return Errorf(ErrDenied, "the MUNGE credential is %v old, at most %v is accepted (are the clocks of the two machines alike?)", age, s.maxAge())
	}
	// MUNGE counts whole seconds. Ages are compared, not times: the host's clock may be set.
	if since := s.since.Load(); since != nil && c.Decoded.Sub(c.Encoded)+time.Second > time.Since(*since) {
		return Errorf(ErrUnavailable, "the MUNGE credential was made before the sidecar began to listen here: make another")
	}
	return nil
}

// prove adds the server's credential to an answer's header. Without munged, the answer goes out
// without it, and the client asks again.
func (s *Server) prove(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	sl, ok := r.Context().Value(sealKey{}).(*seal)
	if !ok || sl.credential == "" {
		return
	}
	free, err := s.mungeSlot(r.Context())
	if err != nil { // the caller has hung up
		return
	}
	defer free()
	credential, err := s.Munge.Encode(r.Context(), sl.target.answer(sl.credential, status, body), credentialTTL)
	if err != nil {
		s.Log.WithError(err).Warn("cannot prove an answer by MUNGE")
		return
	}
	w.Header().Set(answerHeader, credential)
}

// impostor is an answer that is not the sidecar's.
type impostor struct{ why string }

func (e impostor) Error() string { return e.why }

// verify reports whether an answer over TCP is the sidecar's own answer to this very request.
func (c *Client) verify(ctx context.Context, t target, credential string, res *http.Response, body []byte) error {
	proof := res.Header.Get(answerHeader)
	if proof == "" {
		return impostor{"the server did not prove that it is the sidecar" + c.said(res, body)}
	}
	decoded, err := c.munge.Decode(ctx, proof)
	if err != nil {
		return fmt.Errorf("the answer's MUNGE credential: %w", err)
	}
	if err := c.trust(ctx, decoded.UID); err != nil {
		return err
	}
	if decoded.Payload != t.answer(credential, res.StatusCode, body) {
		return impostor{"the answer's MUNGE credential is not for this answer" + c.said(res, body)}
	}
	return nil
}

// said quotes a server that did not prove to be the sidecar, for people only.
func (c *Client) said(res *http.Response, body []byte) string {
	text := fmt.Sprint(res.StatusCode, " ", http.StatusText(res.StatusCode))
	if err := c.failure(res.StatusCode, body); res.StatusCode != http.StatusOK && err != nil {
		text = err.Error()
	}
	const most = 300
	return fmt.Sprintf("; it said %q", fmt.Sprintf("%.*s", most, Printable(text)))
}

// trust returns nil for users whose answers are the sidecar's: root, this process's user, and the
// users that Trusts accepts.
func (c *Client) trust(ctx context.Context, uid uint32) error {
	if uid == 0 || int(uid) == os.Geteuid() {
		return nil
	}
	if c.Trusts != nil {
		switch ok, err := c.Trusts(ctx, uid); {
		case err != nil:
			return fmt.Errorf("the answer came from user %s (uid %d), and whether that is the sidecar is not known: %w", userName(uid), uid, err)
		case ok:
			return nil
		}
	}
	return impostor{fmt.Sprintf("the answer came from user %s (uid %d), not from the sidecar", userName(uid), uid)}
}
