// Package certs has what TLS needs: a server's certificate, which is read again when it is renewed, and a client's trust.
package certs

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Soon is how long before its end a certificate is warned of.
const Soon = 30 * 24 * time.Hour

const most = 1 << 20 // bytes of a file

const certificateExpired = 45 // an alert of TLS (RFC 8446, section 6)

// Files names a server's files, all PEM.
type Files struct {
	Certificate, Key string
	Authority        string // that has signed clients' certificates; "": clients need none

	mu     sync.Mutex
	tried  [3]stamp
	failed error // of that try
	pair   *Pair // nil: none was good yet
	ends   time.Time
}

// stamp distinguishes versions of a file.
type stamp struct {
	made time.Time
	size int64
}

// Pair holds the contents of Files.
type Pair struct{ Certificate, Key, Authority []byte }

// Config returns the configuration of a server, and when the certificate expires.
func (p Pair) Config() (*tls.Config, time.Time, error) {
	pair, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return nil, time.Time{}, err
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if len(p.Authority) > 0 {
		cfg.ClientCAs, cfg.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !cfg.ClientCAs.AppendCertsFromPEM(p.Authority) {
			return nil, time.Time{}, errors.New("the file of the clients' authority has no certificate in PEM")
		}
	}
	return cfg, pair.Leaf.NotAfter, nil
}

// Current returns the files' contents. While new files do not belong together, or cannot be read, it returns the ones before.
func (f *Files) Current() (*Pair, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	stamps, err := f.stamps()
	if err == nil && (f.pair == nil || stamps != f.tried) {
		err = f.load()
		f.tried, f.failed = stamps, err
	} else if err != nil {
		f.tried, f.failed = [3]stamp{}, err
	}
	if f.pair == nil {
		return nil, f.failed
	}
	return f.pair, nil
}

func (f *Files) names() [3]string { return [3]string{f.Certificate, f.Key, f.Authority} }

func (f *Files) stamps() (stamps [3]stamp, err error) {
	for i, name := range f.names() {
		if name == "" {
			continue
		}
		st, err := os.Stat(name)
		if err != nil {
			return stamps, err
		}
		stamps[i] = stamp{st.ModTime(), st.Size()}
	}
	return stamps, nil
}

// load reads the files, which must belong together.
func (f *Files) load() (err error) {
	var texts [3][]byte
	for i, name := range f.names() {
		if name == "" {
			continue
		}
		if texts[i], err = read(name); err != nil {
			return err
		}
	}
	pair := &Pair{texts[0], texts[1], texts[2]}
	_, ends, err := pair.Config()
	if err == nil {
		f.pair, f.ends = pair, ends
	}
	return err
}

func read(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

// Trouble returns what an administrator must do about the files, or nil.
func (f *Files) Trouble(now time.Time) error {
	if _, err := f.Current(); err != nil {
		return fmt.Errorf("the certificate %s cannot be used: %w", f.Certificate, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.failed != nil:
		return fmt.Errorf("the certificate %s cannot be used, and the one before stays: %w", f.Certificate, f.failed)
	case !now.Before(f.ends):
		return fmt.Errorf("the certificate %s expired on %s: renew it", f.Certificate, day(f.ends))
	case f.ends.Sub(now) < Soon:
		return fmt.Errorf("the certificate %s expires on %s, in %d days: renew it", f.Certificate, day(f.ends), int(f.ends.Sub(now).Hours()/24))
	}
	return nil
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// Client configures how clients trust servers.
type Client struct {
	CA               string // file of authorities, PEM; "": those of the system
	Certificate, Key string // of the client, where servers want one
}

// Config returns the configuration of a client.
func (c Client) Config() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		text, err := read(c.CA)
		if err != nil {
			return nil, fmt.Errorf("tls.ca: %w", err)
		}
		if cfg.RootCAs = x509.NewCertPool(); !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("tls.ca: %s has no certificate in PEM", c.CA)
		}
	}
	if c.Certificate != "" {
		if _, err := c.pair(); err != nil {
			return nil, err
		}
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.pair() }
	}
	return cfg, nil
}

// pair reads the certificate and its key, which are renewed while a client waits.
func (c Client) pair() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.Certificate, c.Key)
	if err != nil {
		return nil, fmt.Errorf("tls.certificate: %w", err)
	}
	return &pair, nil
}

// Expires returns when the client's certificate expires; nil if it has none, or none that Config accepts.
func (c Client) Expires() *time.Time {
	pair, err := c.pair()
	if err != nil {
		return nil
	}
	return &pair.Leaf.NotAfter
}

// Explain says in words why a connection by TLS failed, with what to do; nil if the reason is another one.
func Explain(err error) error {
	if bad, ok := errors.AsType[x509.CertificateInvalidError](err); ok && bad.Reason == x509.Expired {
		if now := time.Now(); now.Before(bad.Cert.NotBefore) {
			return fmt.Errorf("the server's certificate is valid from %s on: set the clocks, or renew it", day(bad.Cert.NotBefore))
		}
		return fmt.Errorf("the server's certificate expired on %s: the administrator must renew it (listen.certificate)", day(bad.Cert.NotAfter))
	}
	if bad, ok := errors.AsType[x509.HostnameError](err); ok {
		names := slices.Clone(bad.Certificate.DNSNames)
		for _, ip := range bad.Certificate.IPAddresses {
			names = append(names, ip.String())
		}
		return fmt.Errorf("the server's certificate is for %s, not for %s: set api to one of its names", cmp.Or(strings.Join(names, ", "), "no name"), bad.Host)
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return errors.New("the authority of the server's certificate is not trusted here: set tls.ca to its certificate")
	}
	// crypto/tls exports no type for what the server says.
	if said, ok := errors.AsType[*net.OpError](err); ok && said.Op == "remote error" && said.Err.Error() == tls.AlertError(certificateExpired).Error() {
		return errors.New("the server refuses this machine's certificate, which has expired: the administrator must renew it (tls.certificate)")
	}
	// net/http has no type for this one.
	if errors.Is(err, http.ErrSchemeMismatch) {
		return errors.New("the server there has no TLS: write api without https://, or set listen.certificate")
	}
	return nil
}
