package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/certs"
)

const (
	// DefaultPort is below 1024, so that no user can take it while the sidecar is away. It is assigned to
	// no service, and below the ports that NFS and RPC clients take (from 600 on).
	DefaultPort = 341

	maxAnswer      = 256 << 20        // bytes; 10,000 jobs are about 10 MB
	attemptTimeout = 15 * time.Second // for one try, beyond the server's wait
	secondTimeout  = 3 * time.Second  // to reach a server, where there is another
	probeEvery     = 8 * time.Second  // how often a call looks whether the server still lives, where there is another
	probeLimit     = 4 * time.Second  // of an answer to that
	patience       = 2 * time.Second  // with a server that says "not yet", as it does of a job that has just started
)

// wantsTLS is how net/http answers a request without TLS where there is TLS.
const wantsTLS = "Client sent an HTTP request to an HTTPS server.\n"

// Client sends requests to a Server. While the server is away (not started, restarting, machine
// down), a call retries until its context ends.
type Client struct {
	// Waiting is called once in each call that finds the server away, or for two
	// seconds not ready to answer; nil: nothing is called.
	Waiting func(address string, err error)

	// Away is asked, while the server is away, whether to give up: its error is the call's. It returns when to ask
	// again at the latest. nil: never.
	Away func(ctx context.Context) (again time.Time, err error)

	// ClusterName names the cluster of the sidecar that is asked over TCP; nil: a server without Server.Cluster.
	ClusterName func(ctx context.Context) (string, error)
	// Trusts reports whether the sidecar may run as a user that is neither root nor the one of this
	// process. nil: it may not.
	Trusts func(ctx context.Context, uid uint32) (bool, error)

	// Submit submits a Slurm job that brings nodes to a job about which a call waits, where the sidecar cannot. nil: this
	// process cannot, and the sidecar refuses such growths.
	Submit func(ctx context.Context, job uint32, s Submission) error
	// Token returns a token of Slurm for the caller, in place of MUNGE; nil: MUNGE proves who is calling.
	Token func(ctx context.Context) (string, error)

	servers []*Client    // this one first; one for each address
	at      atomic.Int32 // index of the server in use
	begin   sync.Once

	address string
	base    string // of URLs
	unix    bool
	line    *line                     // to a TCP server
	expires atomic.Pointer[time.Time] // the server's certificate; nil: none was seen
	munge   Munge
	http    *http.Client
}

// NewClient makes a client of the server at unix:///path or host:port, or https://host:port. After a comma may follow the address of
// the server on a second host, and so on: the client uses the first that answers, and moves on when it no longer does.
func NewClient(addresses string, munge Munge) (*Client, error) {
	dialer := &net.Dialer{Timeout: attemptTimeout}
	all := strings.Split(addresses, ",")
	if len(all) > 1 {
		dialer.Timeout = secondTimeout
		dialer.KeepAliveConfig = net.KeepAliveConfig{Enable: true, Idle: secondTimeout, Interval: secondTimeout, Count: 3}
	}
	var servers []*Client
	for _, address := range all {
		c, err := newClient(address, munge, dialer)
		if err != nil {
			return nil, err
		}
		servers = append(servers, c)
	}
	servers[0].servers = servers
	return servers[0], nil
}

func newClient(address string, munge Munge, dialer *net.Dialer) (*Client, error) {
	c := &Client{address: address, munge: munge}
	scheme, address := schemeOf(address)
	tr := &http.Transport{MaxResponseHeaderBytes: maxHeader, IdleConnTimeout: idleTimeout / 2}
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		if !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("address %q: want unix:///path", address)
		}
		c.unix, c.base = true, "http://sidecar"
		tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return c.dialUnix(ctx, dialer, path)
		}
	} else {
		if !strings.Contains(address, ":") && address != "" {
			address = net.JoinHostPort(address, strconv.Itoa(DefaultPort))
		}
		_, port, err := net.SplitHostPort(address)
		if _, e := strconv.ParseUint(port, 10, 16); err != nil || e != nil {
			return nil, fmt.Errorf("address %q: want unix:///path, host:port, or https://host:port", c.address)
		}
		c.address, c.base = strings.TrimPrefix(scheme, "http://")+address, scheme+address
		c.line = &line{dialer: dialer, address: address}
		tr.DialContext = c.line.dial
	}
	c.http = &http.Client{
		Transport:     tr,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// schemeOf splits the scheme of URLs off an address that is not a Unix socket's.
func schemeOf(address string) (scheme, rest string) {
	if rest, secure := strings.CutPrefix(address, "https://"); secure {
		return "https://", rest
	}
	return "http://", address
}

// UseTLS sets how the client trusts a server at https://. It is called before the first request.
func (c *Client) UseTLS(cfg *tls.Config) {
	for _, s := range c.servers {
		s.http.Transport.(*http.Transport).TLSClientConfig = cfg
	}
}

// Expires returns when the certificate of the server expires that was last asked; nil if it had none.
func (c *Client) Expires() *time.Time { return c.server().expires.Load() }

// Address returns the address of the server in use.
func (c *Client) Address() string { return c.server().address }

// server returns the server in use.
func (c *Client) server() *Client {
	c.begin.Do(func() {
		for _, s := range c.servers {
			s.ClusterName, s.Trusts, s.Token = c.ClusterName, c.Trusts, c.Token
		}
	})
	return c.servers[int(c.at.Load())%len(c.servers)]
}

// try tries a request once, at the server in use. While that is away, it tries the next one, which is in use then.
func (c *Client) try(ctx context.Context, method, uri string, body []byte, out any) (err error) {
	if len(c.servers) == 1 {
		return c.attempt(ctx, method, uri, body, out)
	}
	for range c.servers {
		at := c.at.Load()
		if err = c.probed(ctx, method, uri, body, out); err == nil || ctx.Err() != nil || !away(err) {
			return err
		}
		c.at.CompareAndSwap(at, (at+1)%int32(len(c.servers)))
	}
	return err
}

// probed tries a request at the server in use, and ends it if that has stopped.
func (c *Client) probed(ctx context.Context, method, uri string, body []byte, out any) error {
	own, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go c.server().probe(own, cancel)
	err := c.server().attempt(own, method, uri, body, out)
	if mute := context.Cause(own); err != nil && mute != nil && ctx.Err() == nil {
		err = awayError{mute}
	}
	return err
}

// probe ends an attempt at a server that has stopped: the kernel keeps its connections.
func (c *Client) probe(ctx context.Context, mute context.CancelCauseFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(probeEvery):
		}
		asked, done := context.WithTimeout(ctx, probeLimit)
		req, err := http.NewRequestWithContext(asked, http.MethodGet, c.base+"/healthz", http.NoBody)
		if err == nil {
			var res *http.Response
			if res, err = c.http.Do(req); err == nil {
				res.Body.Close()
			}
		}
		done()
		if err != nil {
			mute(errors.New("it takes no more requests"))
			return
		}
	}
}

// call retries a request until it is answered.
func (c *Client) call(ctx context.Context, method, uri string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	if len(body) > maxBody {
		return Errorf(ErrInvalid, "the request is too large: %d bytes, the sidecar takes %d", len(body), maxBody)
	}
	return c.persist(ctx, func() error { return c.try(ctx, method, uri, body, out) })
}

// persist repeats an attempt until the sidecar has answered it or ctx ends.
func (c *Client) persist(ctx context.Context, attempt func() error) error {
	told, refused, since := false, false, time.Now()
	var before error // of the attempt before, which says more than "out of time"
	for pause := newPause(); ; {
		err := attempt()
		if errors.Is(err, ErrDenied) && !refused && !c.server().unix {
			refused = true // once: the clock may have been stepped since the credential was made
			continue
		}
		if err == nil || ctx.Err() == nil && !away(err) {
			return err
		}
		if ctx.Err() != nil {
			return silence{c.Address(), cmp.Or(before, err), ctx.Err()}
		}
		before = err
		notYet := errors.Is(err, ErrUnavailable)
		if notYet {
			pause.length = min(pause.length, time.Second)
		}
		if !told && !(notYet && time.Since(since) < patience) && c.Waiting != nil {
			c.Waiting(c.Address(), err)
			told = true
		}
		if err := c.pause(ctx, pause, err); err != nil {
			return err
		}
	}
}

// pause waits for the next attempt after one that failed, or returns why a call does not go on waiting.
func (c *Client) pause(ctx context.Context, p *pause, last error) error {
	most := 2 * longestPause
	if c.Away != nil && !errors.Is(last, ErrUnavailable) {
		again, err := c.Away(ctx)
		if err != nil {
			return err
		}
		most = time.Until(again)
	}
	if p.sleep(ctx, most) != nil {
		return silence{c.Address(), last, ctx.Err()}
	}
	return nil
}

// attempt tries a request once.
func (c *Client) attempt(ctx context.Context, method, uri string, body []byte, out any) error {
	limit := attemptTimeout
	if method == http.MethodPost {
		limit += DefaultWait
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.base+uri, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	var s sent
	if !c.unix {
		if s, err = c.credential(ctx, method, uri, body); err != nil {
			return err
		}
		req.Header.Set("Authorization", s.authorization())
	}
	res, err := c.http.Do(req)
	if err != nil {
		return unreachable(err)
	}
	defer res.Body.Close()
	if res.TLS != nil {
		c.expires.Store(&res.TLS.PeerCertificates[0].NotAfter)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return awayError{err}
	}
	if len(data) > maxAnswer {
		return fmt.Errorf("the sidecar at %s answered more than %d MiB: too many jobs for one answer", c.address, maxAnswer>>20)
	}
	if !c.unix {
		if err := c.prove(ctx, s, res, data); err != nil {
			return err
		}
	}
	if res.StatusCode == http.StatusOK {
		if err := json.Unmarshal(data, out); err != nil {
			return fmt.Errorf("the sidecar at %s answered what is no JSON of this API: %w", c.address, err)
		}
		clean(reflect.ValueOf(out))
		return nil
	}
	return c.failure(res.StatusCode, data)
}

// unreachable returns why a request was not sent, or not answered.
func unreachable(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok { // the caller adds the address, and the path helps no user
		err = u.Err
	}
	if errors.Is(err, fs.ErrPermission) {
		return err
	}
	return awayError{cmp.Or(certs.Explain(err), err)}
}

// prove returns an error unless an answer over TCP is the sidecar's own.
func (c *Client) prove(ctx context.Context, s sent, res *http.Response, data []byte) error {
	if res.StatusCode == http.StatusBadRequest && string(data) == wantsTLS {
		return awayError{fmt.Errorf("the server there has TLS: set api to https://%s", c.address)}
	}
	if s.key != nil {
		if err := c.verifyToken(s, res, data); err != nil {
			return awayError{err}
		}
		return nil
	}
	if err := c.verify(ctx, s.target, s.credential, res, data); err != nil {
		return c.mungeFailure(err, awayError{err})
	}
	return nil
}

// dialUnix connects to a Unix socket, for which the kernel reports the listening user.
func (c *Client) dialUnix(ctx context.Context, dialer *net.Dialer, path string) (net.Conn, error) {
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	p := peerOf(conn.(*net.UnixConn))
	if err = p.err; err == nil {
		err = c.trust(ctx, p.uid)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// credential proves a request over TCP.
func (c *Client) credential(ctx context.Context, method, uri string, body []byte) (s sent, err error) {
	server, err := c.line.server(ctx)
	if err != nil {
		return s, awayError{err}
	}
	cluster := ""
	if c.ClusterName != nil {
		if cluster, err = c.ClusterName(ctx); err != nil {
			return s, awayError{fmt.Errorf("the cluster's name, for a credential: %w", err)}
		}
	}
	s.target = newTarget(cluster, server, method, uri, body)
	if c.Token != nil {
		s.credential, s.key, err = c.byToken(ctx, s.target)
		return s, err
	}
	s.credential, err = c.munge.Encode(ctx, s.target.request(), credentialTTL)
	return s, c.mungeFailure(err, err)
}

// authorization returns the header that carries the credential.
func (s sent) authorization() string {
	if s.key != nil {
		return tokenScheme + " " + s.credential
	}
	return authorization(s.credential)
}

// untilReady asks again and again about a job until the answer is ready, and submits what it is asked to meanwhile.
func untilReady[A any](ctx context.Context, c *Client, id uint32, what string, q any, ready func(A) bool) (A, error) {
	hands := Hands{Submits: c.Submit != nil}
	for pause := newPause(); ; {
		var e either[A]
		asked := time.Now()
		err := c.call(ctx, http.MethodPost, jobPath(id)+what+hands.query(), q, &e)
		if err == nil && e.Submit != nil && hands.Submits {
			hands = c.submit(ctx, id, e.Submit)
			continue
		}
		a := e.Answer
		if err != nil || ready(a) {
			return a, err
		}
		hands = Hands{Submits: hands.Submits} // the report has arrived
		if time.Since(asked) >= time.Second {
			pause = newPause()
		} else if err := pause.sleep(ctx, 2*longestPause); err != nil { // cut short at once: the sidecar is stopping
			return a, err
		}
	}
}
