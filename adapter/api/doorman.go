package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
)

// Doorman serves a port for a sidecar that is another process: TLS, HTTP, and the bounds of connections, heads, and bodies are its
// own, and it hands on what is well-formed. It has no rights, and knows no secret but the port's private key: the sidecar
// checks who is asking.
type Doorman struct {
	// Static serves a static file below a base, or reports that there is none of that name. nil: there are none.
	Static func(base string, w http.ResponseWriter, r *http.Request) bool
	// Fence is called before the first caller: from then on the process can do nothing else. nil: it stays as it is.
	Fence func()
	Log   logrus.FieldLogger

	setup   setup
	shares  *shares
	trusted sync.Map // uids that may have the reserve
	line    http.RoundTripper
	config  atomic.Pointer[tls.Config]
}

// Serve serves until its control is closed. The files are its control, its line to the sidecar, and the listeners.
func (d *Doorman) Serve(files []*os.File) error {
	if len(files) < 3 {
		return errors.New("want a control, a line, and listeners")
	}
	var conns [2]net.Conn
	for i := range conns {
		var err error
		if conns[i], err = net.FileConn(files[i]); err != nil {
			return err
		}
		defer conns[i].Close()
		files[i].Close()
	}
	var listeners []net.Listener
	for _, f := range files[2:] {
		l, err := net.FileListener(f)
		if err != nil {
			return err
		}
		defer l.Close()
		f.Close()
		listeners = append(listeners, l)
	}
	if d.Fence != nil {
		d.Fence()
	}
	control := json.NewDecoder(conns[0])
	var err error
	if d.setup, err = d.read(control); err != nil {
		return err
	}
	d.shares = newShares()
	lost := make(chan error, 1)
	if d.line, err = lineTo(conns[1], lost); err != nil {
		return err
	}
	return d.serve(control, listeners, lost)
}

// read reads a setup, and takes its certificate.
func (d *Doorman) read(control *json.Decoder) (s setup, err error) {
	if err := control.Decode(&s); err != nil || s.Pair == nil {
		return s, err
	}
	cfg, _, err := s.Pair.Config()
	if err == nil {
		d.config.Store(cfg)
	}
	return s, err
}

// serve serves until the sidecar closes the control, or the line is lost.
func (d *Doorman) serve(control *json.Decoder, listeners []net.Listener, lost <-chan error) error {
	s := d.setup
	server := &http.Server{Handler: d, ReadTimeout: s.Read, ReadHeaderTimeout: s.Head, WriteTimeout: s.Answer, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ConnContext: withConn, ConnState: stateOf, ErrorLog: quietLog(d.Log)}
	most := s.Most
	if most == 0 {
		most = connections(len(listeners) + 1)
	}
	failed := make(chan error, len(listeners)+1)
	for _, l := range listeners {
		g := limit(l, most, func(uid uint32) bool { _, ok := d.trusted.Load(uid); return ok })
		if s.Share > 0 {
			g.share = s.Share
		}
		var l net.Listener = g
		if s.Pair != nil {
			l = tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12,
				GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return d.config.Load(), nil }})
		}
		go func() { failed <- server.Serve(l) }()
	}
	go func() {
		for {
			if _, err := d.read(control); err != nil {
				failed <- err
				return
			}
		}
	}()
	var err error
	select {
	case err = <-failed:
	case err = <-lost:
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		server.Close()
	}
	if errors.Is(err, io.EOF) { // the sidecar has ended, or wants this
		return nil
	}
	return err
}

// lineTo returns what sends requests to the sidecar, all on one connection. lost receives why the line was lost.
func lineTo(conn net.Conn, lost chan<- error) (http.RoundTripper, error) {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	t := &http.Transport{Protocols: &p, DisableCompression: true, HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 1 << 20},
		DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	line, err := t.NewClientConn(context.Background(), "http", "sidecar:80")
	if err != nil {
		return nil, err
	}
	line.SetStateHook(func(line *http.ClientConn) {
		if line.Err() != nil {
			select {
			case lost <- errors.New("the sidecar has closed the line"):
			default:
			}
		}
	})
	return line, nil
}

// handed are the headers that the sidecar or its page reads.
var handed = []string{"Authorization", "Content-Type", "Cookie", "Origin", "Sec-Fetch-Site", "Accept-Encoding", "If-None-Match", "X-Forwarded-Proto"}

// ServeHTTP answers a caller's request, mostly by the sidecar's answer.
func (d *Doorman) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.setup.Base != "" && d.Static != nil && d.Static(d.setup.Base, w, r) {
		return
	}
	f := front{shares: d.shares, log: d.Log}
	if !strings.HasPrefix(r.URL.Path, "/") {
		f.refuse(w, r, Errorf(ErrInvalid, "invalid path"))
		return
	}
	body, free, err := d.shares.readBody(w, r, nil, d.setup.AnyBody)
	if err != nil {
		w.Header().Set("Connection", "close") // the body is not read
		f.refuse(w, r, err)
		return
	}
	defer free()
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
		return
	}
	res, err := d.line.RoundTrip(d.outgoing(r, body, free))
	if err != nil {
		if r.Context().Err() == nil {
			f.refuse(w, r, Errorf(ErrUnavailable, "the sidecar cannot answer now: %v", err))
		}
		return
	}
	defer res.Body.Close()
	for name, values := range res.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body) // an error means that the caller hung up, or the sidecar ended
}

// outgoing returns a request as it is handed on. proved is called once the sidecar has found who is calling: then it has read the body.
func (d *Doorman) outgoing(r *http.Request, body []byte, proved func()) *http.Request {
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error { proved(); return d.claim(r, h) }})
	out := (&http.Request{Method: r.Method, Host: r.Host, Header: http.Header{"User-Agent": nil}, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
		URL: &url.URL{Scheme: "http", Host: "sidecar", Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery, ForceQuery: r.URL.ForceQuery}}).WithContext(ctx)
	if len(body) == 0 {
		out.Body = http.NoBody
	}
	for _, name := range handed {
		if values := r.Header.Values(name); len(values) > 0 {
			out.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	out.Header.Set(fromHeader, r.RemoteAddr)
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		out.Header.Set(atHeader, endpoint(at))
	}
	if r.TLS != nil {
		out.Header.Set(secureHeader, "1")
	}
	return out
}

// claim assigns the connection to the user whom the sidecar has found to be calling.
func (d *Doorman) claim(r *http.Request, h textproto.MIMEHeader) error {
	uid, trusted, err := parseHint(h.Get(callerHeader))
	if err != nil {
		return fmt.Errorf("the sidecar's hint: %w", err)
	}
	if trusted {
		d.trusted.Store(uid, true)
	} else {
		d.trusted.Delete(uid)
	}
	return claimed(r.Context(), uid)
}
