package api

import (
	"net"
	"sync"
	"syscall"
)

// Connections are bounded: a sidecar without files left cannot run commands, and plans
// nothing.
const (
	maxConnections = 4096 // of each listener, where the process may have so many files
	keptFiles      = 256  // that are no connections
)

// connections is how many connections a listener of so many may have at once.
func connections(listeners int) int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return keptFiles
	}
	most := max(files.Cur/2, 32)
	if files.Cur > 2*keptFiles {
		most = files.Cur - keptFiles
	}
	return int(min(most/uint64(listeners), maxConnections))
}

// limited is a listener with a bounded number of connections; those beyond wait in
// the kernel.
type limited struct {
	net.Listener
	slots chan struct{}
	ended chan struct{}
	end   sync.Once
}

func limit(l net.Listener, most int) *limited {
	return &limited{Listener: l, slots: make(chan struct{}, most), ended: make(chan struct{})}
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.ended:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slotted{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

func (l *limited) Close() error {
	l.end.Do(func() { close(l.ended) })
	return l.Listener.Close()
}

// slotted is a connection that gives its slot back when it is closed.
type slotted struct {
	net.Conn
	free func()
}

func (c *slotted) Close() error {
	defer c.free()
	return c.Conn.Close()
}

// CloseWrite is for net/http, which so lets callers read why they were cut off.
func (c *slotted) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}
