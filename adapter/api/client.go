package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"time"
)

const (
	unixPrefix = "unix://"

	// DefaultPort is below 1024, so that no user can take it while the sidecar is away. It is assigned to
	// no service, and below the ports that NFS and RPC clients take (from 600 on).
	DefaultPort = 341

	maxAnswer      = 256 << 20        // bytes; 10,000 jobs are about 10 MB
	attemptTimeout = 15 * time.Second // for one try, beyond the server's wait
	firstPause     = 200 * time.Millisecond
	longestPause   = 5 * time.Second
	credentialTTL  = time.Minute
	patience       = 2 * time.Second // with a server that says "not yet", as it does of a job that has just started
)

// Client sends requests to a Server. While the server is away (not started, restarting, machine
// down), a call retries until its context ends.
type Client struct {
	// Waiting is called once in each call that finds the server away, or for two
	// seconds not ready to answer; nil: nothing is called.
	Waiting func(address string, err error)

	// ClusterName names the cluster of the sidecar that is asked over TCP; nil: a server without Server.Cluster.
	ClusterName func(ctx context.Context) (string, error)
	// Trusts reports whether the sidecar may run as a user that is neither root nor the one of this
	// process. nil: it may not.
	Trusts func(ctx context.Context, uid uint32) (bool, error)

	address string
	base    string // of URLs
	unix    bool
	line    *line // to a TCP server
	munge   Munge
	http    *http.Client
}

// NewClient makes a client of the server at unix:///path or host:port.
func NewClient(address string, munge Munge) (*Client, error) {
	c := &Client{address: address, munge: munge}
	dialer := &net.Dialer{Timeout: attemptTimeout}
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
			return nil, fmt.Errorf("address %q: want unix:///path or host:port", address)
		}
		c.address, c.base = address, "http://"+address
		c.line = &line{dialer: dialer, address: address}
		tr.DialContext = c.line.dial
	}
	c.http = &http.Client{
		Transport:     tr,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// Address returns the server's, as NewClient was given it.
func (c *Client) Address() string { return c.address }

// Status returns the sidecar's.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	return s, c.call(ctx, http.MethodGet, "/v1/status", nil, &s)
}

// Jobs lists the evolving jobs with their plans, including ended ones if all is set. If a user has
// very many steps, some jobs come without plans: [Client.Job] has them.
func (c *Client) Jobs(ctx context.Context, all bool) ([]Job, error) {
	var js []Job
	return js, c.call(ctx, http.MethodGet, jobsPath(all, true), nil, &js)
}

// Queue lists the evolving jobs without their plans, and with the beginnings of long profiles.
func (c *Client) Queue(ctx context.Context, all bool) ([]Job, error) {
	var js []Job
	return js, c.call(ctx, http.MethodGet, jobsPath(all, false), nil, &js)
}

func jobsPath(all, plans bool) string {
	return "/v1/jobs?all=" + strconv.FormatBool(all) + "&plan=" + strconv.FormatBool(plans)
}

// Job returns one evolving job.
func (c *Client) Job(ctx context.Context, id uint32) (Job, error) {
	var j Job
	return j, c.call(ctx, http.MethodGet, jobPath(id), nil, &j)
}

// Allocation returns what the job has now.
func (c *Client) Allocation(ctx context.Context, id uint32) (Allocation, error) {
	var a Allocation
	return a, c.call(ctx, http.MethodGet, jobPath(id)+"/allocation", nil, &a)
}

// Next ends step req.From and waits until the next step's nodes are there (Ready), there is no next
// step (Done), or ctx ends. A repeated call with the same From continues to wait.
func (c *Client) Next(ctx context.Context, id uint32, req NextRequest) (Allocation, error) {
	return untilReady(ctx, c, jobPath(id)+"/next", req, func(a Allocation) bool { return a.Ready || a.Done })
}

func jobPath(id uint32) string { return "/v1/jobs/" + strconv.FormatUint(uint64(id), 10) }

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
	told, refused, since := false, false, time.Now()
	var before error // of the attempt before, which says more than "out of time"
	for pause := newPause(); ; {
		err := c.attempt(ctx, method, uri, body, out)
		if errors.Is(err, ErrDenied) && !refused && !c.unix {
			refused = true // once: the clock may have been stepped since the credential was made
			continue
		}
		if err == nil || ctx.Err() == nil && !away(err) {
			return err
		}
		if ctx.Err() != nil && before != nil {
			return silence{c.address, before, ctx.Err()}
		}
		before = err
		if ctx.Err() != nil {
			return silence{c.address, err, ctx.Err()}
		}
		notYet := errors.Is(err, ErrUnavailable)
		if notYet {
			pause.length = min(pause.length, time.Second)
		}
		if !told && !(notYet && time.Since(since) < patience) && c.Waiting != nil {
			c.Waiting(c.address, err)
			told = true
		}
		if pause.sleep(ctx) != nil {
			return silence{c.address, err, ctx.Err()}
		}
	}
}

// silence means that no server answered until a context ended; it holds the last failure and the
// context's error.
type silence struct {
	address string
	last    error
	done    error
}

func (s silence) Error() string {
	why := s.last.Error()
	if errors.Is(s.last, s.done) {
		why = "nothing came in time"
	}
	return fmt.Sprintf("the sidecar at %s does not answer: %s", s.address, why)
}

func (s silence) Unwrap() []error { return []error{s.done, s.last} }

// awayError is a failure that may pass.
type awayError struct{ error }

func (e awayError) Unwrap() error { return e.error }

func away(err error) bool {
	var a awayError
	return errors.As(err, &a)
}

// attempt returns one try.
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
	var t target
	var credential string
	if !c.unix {
		if t, credential, err = c.credential(ctx, method, uri, body); err != nil {
			return err
		}
		req.Header.Set("Authorization", authorization(credential))
	}
	res, err := c.http.Do(req)
	if err != nil {
		var u *url.Error // the caller adds the address, and the path helps no user
		if errors.As(err, &u) {
			err = u.Err
		}
		if errors.Is(err, fs.ErrPermission) {
			return err
		}
		return awayError{err}
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return awayError{err}
	}
	if len(data) > maxAnswer {
		return fmt.Errorf("the sidecar at %s answered more than %d MiB: too many jobs for one answer", c.address, maxAnswer>>20)
	}
	if !c.unix {
		if err := c.verify(ctx, t, credential, res, data); err != nil {
			return c.mungeFailure(err, awayError{err})
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

// credential makes the MUNGE credential of a request over TCP.
func (c *Client) credential(ctx context.Context, method, uri string, body []byte) (t target, credential string, err error) {
	server, err := c.line.server(ctx)
	if err != nil {
		return t, "", awayError{err}
	}
	cluster := ""
	if c.ClusterName != nil {
		if cluster, err = c.ClusterName(ctx); err != nil {
			return t, "", awayError{fmt.Errorf("the cluster's name, for a credential: %w", err)}
		}
	}
	t = newTarget(cluster, server, method, uri, body)
	credential, err = c.munge.Encode(ctx, t.request(), credentialTTL)
	return t, credential, c.mungeFailure(err, err)
}

// mungeFailure classifies a failed munge or unmunge; other errors are as otherwise says.
func (c *Client) mungeFailure(err, otherwise error) error {
	var m *mungeError
	switch {
	case errors.As(err, &m) && m.away():
		return awayError{err}
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%w: it is needed to reach the sidecar at %s", err, c.address)
	}
	return otherwise
}

// failure returns the error that an answer reports.
func (c *Client) failure(status int, data []byte) error {
	var e Error
	if json.Unmarshal(data, &e) != nil || e.Error == "" {
		e.Error = fmt.Sprintf("the server at %s answered %d %s; is it a sidecar?", c.address, status, http.StatusText(status))
	}
	if status == http.StatusNotFound && strings.HasPrefix(e.Error, noRoute) {
		e.Error = fmt.Sprintf("the sidecar at %s is older than this command: %s", c.address, e.Error)
	}
	e.Error = Printable(strings.ReplaceAll(e.Error, "\n", "; "))
	err := errors.New(e.Error)
	for _, k := range kinds {
		if k.status == status {
			err = Errorf(k.kind, "%s", e.Error)
		}
	}
	switch status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return awayError{err}
	}
	return err
}

// pause grows with every retry and has a random part, so that the jobs of a whole cluster do not
// return in step.
type pause struct{ length time.Duration }

func newPause() *pause { return &pause{firstPause} }

func (p *pause) sleep(ctx context.Context) error {
	t := time.NewTimer(p.length/2 + rand.N(p.length))
	defer t.Stop()
	p.length = min(2*p.length, longestPause)
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
