package api

import (
	"context"
	"net"
	"sync"
	"time"
)

// line is a client's connection to a TCP server. It connects before there is a request, because the
// request's credential names the address of the connection.
type line struct {
	dialer  *net.Dialer
	address string // host:port

	mu    sync.Mutex
	at    string // IP:port; "": not known
	spare net.Conn
	made  time.Time // of spare
}

// spareTime is how long a connection is kept for the first request: less than the server waits for it.
const spareTime = headTimeout / 2

// server returns the server's address as IP:port.
func (l *line) server(ctx context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at != "" {
		return l.at, nil
	}
	conn, err := l.dialer.DialContext(ctx, "tcp", l.address)
	if err != nil {
		return "", err
	}
	l.at, l.spare, l.made = endpoint(conn.RemoteAddr()), conn, time.Now()
	return l.at, nil
}

// dial connects to that address. If nothing answers there, the next request looks for the server again.
func (l *line) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	l.mu.Lock()
	at, spare := l.at, l.spare
	l.spare = nil
	fresh := time.Since(l.made) < spareTime
	l.mu.Unlock()
	if spare != nil {
		if fresh {
			return spare, nil
		}
		spare.Close()
	}
	conn, err := l.dialer.DialContext(ctx, "tcp", at)
	if err != nil {
		l.mu.Lock()
		l.at = ""
		l.mu.Unlock()
	}
	return conn, err
}
