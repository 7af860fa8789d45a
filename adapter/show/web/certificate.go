package web

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// Certificate is TLS's, from two files in PEM. It is read again when it has been renewed.
type Certificate struct {
	File, Key string

	mu   sync.Mutex
	made time.Time // of File, as it was read
	pair *tls.Certificate
}

// Config is for a server with this certificate. It fails if that cannot be read now.
func (c *Certificate) Config() (*tls.Config, error) {
	if _, err := c.get(nil); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}, nil
}

// get returns the certificate; while a new one is not whole, the one before.
func (c *Certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	st, err := os.Stat(c.File)
	if err == nil && c.pair != nil && st.ModTime().Equal(c.made) {
		return c.pair, nil
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.LoadX509KeyPair(c.File, c.Key)
	}
	switch {
	case err == nil:
		c.pair, c.made = &pair, st.ModTime()
	case c.pair == nil:
		return nil, fmt.Errorf("the certificate: %w", err)
	}
	return c.pair, nil
}
