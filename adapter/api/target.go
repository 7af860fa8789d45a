package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
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

// targets returns the targets that a request's credential may name: this server, at one of its
// addresses.
func (a *authenticator) targets(r *http.Request, body []byte) ([]target, error) {
	cluster := ""
	if a.cluster != nil {
		if cluster = a.cluster(); cluster == "" {
			return nil, Errorf(ErrUnavailable, "the sidecar has not asked Slurm yet which cluster this is")
		}
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return nil, Errorf(ErrDenied, "the request's connection has no address")
	}
	var all []target
	for _, address := range append([]string{endpoint(local)}, a.forwarded...) {
		all = append(all, newTarget(cluster, address, r.Method, r.URL.RequestURI(), body))
	}
	return all, nil
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
